"""Attributions as columns of Arrow, called as those of a run's parts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kernels.methods import METHODS

from ..dataset import schema
from ..errors import UsageError
from ..models.row_output import OUTPUT
from ..runs.interactions import make_column
from ..runs.space import TOTALS

if TYPE_CHECKING:
    from .attributions import Attributions

NUMBER = np.dtype(np.float64)


def _take_column(found: "Attributions", name: str) -> Any:
    """A column of the rows that were explained, as it was given."""
    rows = found.rows
    there = rows.schema.names if isinstance(rows, pa.Table | pa.RecordBatch) else getattr(rows, "columns", rows if isinstance(rows, dict) else ())
    if name not in there:
        raise UsageError(f"ids have {name!r}, which is no column of the rows")
    try:
        column = pa.table({name: rows[name]}).column(0)
    except (KeyError, TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise UsageError(f"ids have {name!r}, a column that Arrow cannot read: {' '.join(str(error).split())}") from error
    return column if found.places is None else column.take(pa.array(found.places))


def as_table(found: "Attributions", ids: Sequence[str]) -> pa.Table:
    """Lay attributions out as a run does.

    Parameters
    ----------
    found : Attributions
    ids : sequence of str
        Columns of their rows, which come first.

    Returns
    -------
    pa.Table
        Numbers are float64, ranks int32; null where a label is missing.

    Raises
    ------
    UsageError
        The rows have no such column, or one that stands twice or that Arrow cannot read.
    SchemaMismatch
        Two columns would have the same name.
    """
    method, outputs = METHODS[found.method], found.outputs
    chosen = () if found.output is None else (OUTPUT,)
    names, taken = (TOTALS[found.space], method.phi.column), (*ids, *chosen)
    margins, phi, pairs = schema.output_columns(found.players, outputs, taken, found.interactions is not None, names, len(method.phi.scores))
    errors = [] if found.errors is None else schema.player_columns(schema.ERROR, found.players, outputs, (*taken, *margins, *phi, *pairs))
    columns: dict[str, Any] = {name: _take_column(found, name) for name in ids}
    if found.output is not None:
        columns[OUTPUT] = pa.array(found.output.tolist(), pa.string())
    columns |= {name: pa.array(found.prediction[:, k]) for k, name in enumerate(margins)}
    n_players, n_names = len(found.players), len(found.names)
    for number, name in enumerate(phi):
        values = found.phi[:, number // n_players, number % n_players]
        ranks = method.phi.ranks and number % n_players < n_names
        columns[name] = pa.array(values.astype(np.int32) if ranks else values, from_pandas=method.labelled)
    if found.errors is not None:
        columns |= {name: pa.array(found.errors[:, number // n_players, number % n_players]) for number, name in enumerate(errors)}
    if found.interactions is not None and found.pairs is not None:
        players = [pa.array([pair[side] for pair in found.pairs], pa.string()) for side in (0, 1)]
        for k, name in enumerate(pairs):
            columns[name] = make_column(np.ascontiguousarray(found.interactions[:, k].T), len(found.pairs), NUMBER, players)
    return pa.table(columns)
