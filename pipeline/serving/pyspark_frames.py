"""Attributions of Spark's data frames, by ``mapInArrow``: an explainer is unpickled once in every Python process of an executor."""

import pickle
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Unpack

import pyarrow as pa

from ..arguments.readers import read_names, shorten
from ..errors import UsageError
from ..in_memory.explain.explainer import Explainer
from .recipe import Asked, prepare_once

KEPT = 4  # explainers of a process


@lru_cache(maxsize=KEPT)
def open_pickled(pickled: bytes) -> Explainer:
    """Unpickle an explainer, once per process."""
    return pickle.loads(pickled)  # noqa: S301 - Spark itself pickles what it sends


def attribute(
    frame: Any, model: Any, method: str = "shapley", *, ids: Any = (), background: Any = None, tables: Any = None, **asked: Unpack[Asked]
) -> Any:
    """Attribute the rows of a data frame of Spark, where they are.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Columns as `leafledger.attribute` takes them from Arrow: categories as texts.
    model : Model, Explainer, str, path or model object
        As `leafledger.prepare` takes it; or what that returned, without other arguments.
    method : str
        One of `METHODS`.
    ids : str or sequence of str
        Columns of the frame that come first.
    background : data frame, Arrow table, array or "model", optional
        As `leafledger.prepare` takes it: rows in memory, or a data frame of Spark, which is collected.
    tables : str or path, optional
        Folder, as a path or URI that executors reach, where the tables are written; by default they travel with every task.
    **asked : Asked
        Other arguments of `leafledger.prepare`.

    Returns
    -------
    pyspark.sql.DataFrame
        Lazy, a row for every row, with the columns that a run writes: the ids, ``margin``, ``phi_<feature>``, …

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where. Names and types of columns are checked before any task runs.
    """
    try:
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
    except ImportError as error:
        raise UsageError(f"leafledger.spark needs pyspark, which cannot be imported: {error}; pip install 'pyspark[sql]'") from error
    if not hasattr(frame, "mapInArrow"):
        raise UsageError(f"frame is {shorten(frame)}, expected a data frame of Spark")
    names = read_names("ids", ids)
    rows = background.toArrow() if hasattr(background, "mapInArrow") else background
    explainer = prepare_once(model, method, rows, asked | ({} if tables is None else {"tables": tables}), "rows of Spark")
    columns = explainer.to_batch(to_arrow_schema(frame.schema).empty_table(), names).schema
    pickled = pickle.dumps(explainer)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield open_pickled(pickled).to_batch(batch, names)

    return frame.mapInArrow(work, from_arrow_schema(columns))
