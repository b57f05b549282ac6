"""How often each reason was given: counts that add up over parts."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ...runs.columns.reason_columns import CODE, RANK
from ...runs.columns.reasons import FEATURE

Reason = tuple[str, str]  # its code, or nothing, and its feature


@dataclass(frozen=True, slots=True)
class Told:
    """Reasons of some rows."""

    rows: int = 0
    without: int = 0  # rows that have no reason
    withheld: int = 0  # rows where something that is never named would have been among the reasons
    unclear: int = 0  # rows where another background might have chosen otherwise; 0 where errors are not known
    first: Mapping[Reason, int] = field(default_factory=Counter)  # rows whose first reason it is,
    any: Mapping[Reason, int] = field(default_factory=Counter)  # and rows that have it at all

    def __add__(self, other: "Told") -> "Told":
        counts = (getattr(self, name) + getattr(other, name) for name in ("rows", "without", "withheld", "unclear"))
        return Told(*counts, *(Counter(getattr(self, name)) + Counter(getattr(other, name)) for name in ("first", "any")))


def _count(entries: pa.StructArray) -> Counter[Reason]:
    named = pa.table({CODE: pc.fill_null(pc.struct_field(entries, CODE), ""), FEATURE: pc.struct_field(entries, FEATURE)})
    counted = named.group_by([CODE, FEATURE]).aggregate([([], "count_all")]).to_pylist()
    return Counter({(each[CODE], each[FEATURE]): each["count_all"] for each in counted})


def count_told(reasons: pa.ChunkedArray, withheld: pa.ChunkedArray, clear: pa.ChunkedArray | None) -> Told:
    """Count the reasons of rows."""
    entries = pc.list_flatten(reasons.combine_chunks())
    first = entries.filter(pc.equal(pc.struct_field(entries, RANK), 1))
    without = pc.sum(pc.equal(pc.list_value_length(reasons), 0)).as_py() or 0
    unclear = 0 if clear is None else pc.sum(pc.invert(clear)).as_py() or 0
    return Told(len(reasons), without, pc.sum(withheld).as_py() or 0, unclear, _count(first), _count(entries))
