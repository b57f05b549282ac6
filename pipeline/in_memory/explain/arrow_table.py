"""Attributions in memory as a table of Arrow, with the columns of a run's parts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.methods import METHODS

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
    method, outputs = METHODS[found.method], found.outputs
    chosen = () if found.output is None else (OUTPUT,)
    names, taken = (TOTALS[found.space], method.phi.column), (*ids, *chosen)
    margins, phi, pairs = schema.output_columns(found.players, outputs, taken, found.interactions is not None, names, len(method.phi.scores))
    errors = [] if found.errors is None else schema.player_columns(schema.ERROR, found.players, outputs, (*taken, *margins, *phi, *pairs))
    columns: dict[str, Any] = {name: _take_id(found, name) for name in ids}
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
    if found.interactions is not None and found.sets is not None:
        for values, name in zip(found.interactions.transpose(1, 2, 0), pairs, strict=True):
            columns[name] = make_column(np.ascontiguousarray(values), len(found.sets), NUMBER, name_entries(found.sets, found.pairs is None))
    return pa.table(columns)
