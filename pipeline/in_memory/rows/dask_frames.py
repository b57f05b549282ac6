"""Dask DataFrames: partitions are explained lazily by one explainer stored once in the graph."""

import sys
from collections.abc import Callable
from typing import Any

from ...errors import UsageError

Explain = Callable[[Any, str | None, str | None], Any]  # from a frame, labels and weights to a frame of attributions


def is_dask(rows: Any) -> bool:
    """Return whether rows are a Dask DataFrame, without importing Dask."""
    dask = sys.modules.get("dask.dataframe")
    return dask is not None and isinstance(rows, dask.DataFrame)


def _explain_partition(part: Any, explain: Explain, label: str | None, weight: str | None) -> Any:
    return explain(part, label, weight)


def _without_unknown(meta: Any) -> Any:
    """Return an empty frame without placeholder texts of unknown categories, which may be numbers."""
    import pandas
    from dask.dataframe.utils import UNKNOWN_CATEGORIES

    found = meta.copy()
    for name, kind in meta.dtypes.items():
        if isinstance(kind, pandas.CategoricalDtype) and UNKNOWN_CATEGORIES in kind.categories:
            found[name] = meta[name].cat.set_categories([])
    return found


def explain_partitions(explain: Explain, rows: Any, label: Any, weight: Any) -> Any:
    """Explain a Dask DataFrame.

    Parameters
    ----------
    explain : callable
        ``explain(frame, label, weight)`` of a pandas frame; it can be pickled.
    label, weight : str or None
        Columns of the rows.

    Returns
    -------
    dask.dataframe.DataFrame
        Of what ``explain`` makes of every partition, with the index and the divisions of the rows.

    Raises
    ------
    UsageError
        Labels are no column, or weights.
    """
    import dask

    for name, given in (("label", label), ("weight", weight)):
        if not isinstance(given, str | None):
            raise UsageError(f"{name} is a {type(given).__name__}, expected the name of a column of the Dask DataFrame")
    once = dask.delayed(explain, pure=False, traverse=False)  # a key of its own, which tasks reference
    return rows.map_partitions(_explain_partition, once, label, weight, meta=explain(_without_unknown(rows._meta), label, weight))
