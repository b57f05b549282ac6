"""How often a change of one feature would have sufficed: counts that add up over parts."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...runs.columns.change_columns import FEATURE

CONCERNED, ANY = 0, 1  # places of rows that have changes to be told, and of those with at least one; features follow


def count_sufficed(column: pa.ChunkedArray, features: Sequence[str]) -> tuple[int, ...]:
    """Count the rows that have changes to be told, those that some change would carry across, and those that a change of each feature would.

    Rows on the other side of the threshold are null in the column, and count nowhere.
    """
    some = pc.sum(pc.greater(pc.list_value_length(column), 0)).as_py() or 0
    told = {entry["values"]: entry["counts"] for entry in pc.value_counts(pc.struct_field(pc.list_flatten(column), FEATURE)).to_pylist()}
    return (len(column) - column.null_count, some, *(told.get(feature, 0) for feature in features))
