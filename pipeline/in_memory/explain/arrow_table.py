"""Attributions in memory as a table of Arrow, with the columns of a run's parts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.methods import METHODS

from ...arguments.choices import LOSS
from ...dataset.columns import schema
from ...methods.interaction_lists import make_column, name_entries
from ...methods.output_space import TOTALS
from ...models.row_output import OUTPUT
from ..rows.named_column import take_column

NUMBER = np.dtype(np.float64)


def _take_id(found: Any, name: str) -> pa.ChunkedArray:
    """Return a column of the explained rows, as given."""
    column = take_column(found.rows, name, "ids have")
    return column if found.places is None else column.take(pa.array(found.places))


def as_table(found: Any, ids: Sequence[str]) -> pa.Table:
    """Convert Attributions to a table with a run's columns, behind the columns ``ids`` of the rows."""
    method, outputs, loss = METHODS[found.method], found.outputs, found.space == LOSS
    chosen = () if found.output is None else (OUTPUT,)
    names, taken = (TOTALS[found.space], method.phi.column), (*ids, *chosen)
    margins, phi, pairs = schema.output_columns(found.players, outputs, taken, found.interactions is not None, names, len(method.phi.scores))
    errors = [] if found.errors is None else schema.player_columns(schema.ERROR, found.players, outputs, (*taken, *margins, *phi, *pairs))
    columns: dict[str, Any] = {name: _take_id(found, name) for name in ids}
    if found.output is not None:
        columns[OUTPUT] = pa.array(found.output.tolist(), pa.string())
    columns |= {name: pa.array(found.prediction[:, k], from_pandas=loss) for k, name in enumerate(margins)}
    if loss:
        (base,) = schema.name_columns(schema.BASE, ("",), (*taken, *margins, *phi, *errors))
        columns[base] = pa.array(found.base[:, 0], from_pandas=True)
    n_players, n_names = len(found.players), len(found.names)
    for number, name in enumerate(phi):
        values = found.phi[:, number // n_players, number % n_players]
        ranks = method.phi.ranks and number % n_players < n_names
        columns[name] = pa.array(values.astype(np.int32) if ranks else values, from_pandas=method.labelled or loss)
    if found.errors is not None:
        for number, name in enumerate(errors):
            columns[name] = pa.array(found.errors[:, number // n_players, number % n_players], from_pandas=loss)
    if found.interactions is not None and found.sets is not None:
        for values, name in zip(found.interactions.transpose(1, 2, 0), pairs, strict=True):
            columns[name] = make_column(np.ascontiguousarray(values), len(found.sets), NUMBER, name_entries(found.sets, found.pairs is None))
    return pa.table(columns)
