"""Rows on which two rankings differ most, selected per pair while reading, and merged in row order."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import SchemaMismatch

NAMES, NUMBERS = pa.list_(pa.string()), pa.list_(pa.float64())
KEYS = {"output": pa.string(), "ranking": pa.string(), "other": pa.string()}
WHERE = {"file": pa.string(), "row": pa.int64()}
FOUND = {
    "list_swaps": pa.int64(),
    "size_correlation": pa.float64(),
    "difference": pa.float64(),
    "first": NAMES,
    "first_values": NUMBERS,
    "other_first": NAMES,
    "other_first_values": NUMBERS,
}
PLACE, APART = "place", ("list_swaps", "size_correlation", "difference")
COLUMNS = (*KEYS, PLACE, *WHERE, *FOUND)


@dataclass(frozen=True, slots=True)
class Seen:
    """A ranking of a batch of rows."""

    ranks: np.ndarray | None  # (outputs, players, n) float64, by magnitude; None if unknown
    values: np.ndarray | None  # (outputs, players, n) float64, margin units; None if it has no values


class Apart(NamedTuple):
    """Distances of pairs of rankings on rows, ``(outputs, pairs, n) float64`` each."""

    swaps: np.ndarray  # that turn the longest list of first features into the other's; NaN if unknown,
    correlation: np.ndarray  # by magnitude; NaN if unknown
    difference: np.ndarray  # of values, summed over features, margin units; NaN if one ranking has none

    def take(self, *index: Any) -> "Apart":
        """Select rows, or one output and pair.

        Parameters
        ----------
        index : int, slice or (chosen,) int64
            Along the axes.
        """
        return Apart(*(each[index] for each in self))


@dataclass(frozen=True, slots=True)
class Named:
    """Columns with which rows are listed."""

    outputs: tuple[str, ...]
    features: tuple[str, ...]  # features in splits
    rankings: tuple[str, ...]
    ids: tuple[str, ...]
    n_first: int  # features at the top of each ranking
    n_rows: int  # rows for every output and pair, at most


def _order(apart: Apart) -> np.ndarray:
    """Sort rows by descending swaps, ascending correlation, descending difference; ties keep their order."""
    return np.lexsort((-np.nan_to_num(apart.difference), apart.correlation, -apart.swaps))


def _apart(table: pa.Table) -> Apart:
    return Apart(*(table[name].to_numpy() for name in APART))


def _first_rows(table: pa.Table, n: int) -> pa.Table:
    return table.take(pa.array(_order(_apart(table))[:n]))


def _plain(column: pa.Array) -> pa.Array:
    """Decode a dictionary, which differs between files."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


class DifferingRows:
    """The rows of an item with the largest differences so far, for every pair of rankings.

    Parameters
    ----------
    named : Named
    """

    def __init__(self, named: Named):
        self._named = named
        self._kept: dict[tuple[int, int, int], pa.Table] = {}
        self._empty: pa.Table | None = None

    def see(self, batch: pa.RecordBatch, file: str, first_row: int, seen: Sequence[Seen], pairs: Sequence[tuple[int, int]], apart: Apart) -> None:
        """Update with a batch of rows of a file."""
        if self._empty is None:
            self._empty = self._list_rows(batch, file, first_row, seen, (0, 0, 0), np.zeros(0, np.int64), Apart(*np.zeros((3, 0))))
        for k in range(len(self._named.outputs)):
            for p, (a, b) in enumerate(pairs):
                mine, kept = apart.take(k, p), self._kept.get((k, a, b))
                chosen = _order(mine)[: self._named.n_rows]
                chosen = chosen[_differ_more(mine.take(chosen), kept, self._named.n_rows)]
                if chosen.size:
                    found = self._list_rows(batch, file, first_row, seen, (k, a, b), chosen, mine.take(chosen))
                    self._kept[k, a, b] = found if kept is None else _first_rows(pa.concat_tables([kept, found]), self._named.n_rows)

    def _list_rows(
        self,
        batch: pa.RecordBatch,
        file: str,
        first_row: int,
        seen: Sequence[Seen],
        about: tuple[int, int, int],
        chosen: np.ndarray,
        apart: Apart,
    ) -> pa.Table:
        """Return selected rows of a batch, with the values of one output and pair."""
        named, n, (k, a, b) = self._named, chosen.size, about
        ranks = [np.zeros((len(named.features), n)) if (of := seen[r].ranks) is None else of[k][:, chosen] for r in (a, b)]  # unused where None
        first = [np.argsort(each, axis=0, kind="stable")[: named.n_first].T for each in ranks]
        values = [seen[r].values for r in (a, b)]
        columns = {
            "output": pa.array([named.outputs[k]] * n, pa.string()),
            "ranking": pa.array([named.rankings[a]] * n, pa.string()),
            "other": pa.array([named.rankings[b]] * n, pa.string()),
            "file": pa.array([file] * n, pa.string()),
            "row": pa.array(first_row + chosen, pa.int64()),
            **{name: _plain(batch.column(name).take(pa.array(chosen))) for name in named.ids},
            "list_swaps": pa.array(apart.swaps.astype(np.int64)),
            "size_correlation": pa.array(apart.correlation),
            "difference": pa.array(apart.difference, from_pandas=True),  # NaN becomes null
        }
        for name, order, value in zip(("first", "other_first"), first, values, strict=True):
            columns[name] = pa.array([[named.features[j] for j in row] for row in order.tolist()], NAMES)
            found = [None] * n if value is None else np.take_along_axis(value[k][:, chosen].T, order, axis=1).tolist()
            columns[f"{name}_values"] = pa.array(found, NUMBERS)
        return pa.table(columns).select([*KEYS, *WHERE, *named.ids, *FOUND])

    def pack(self) -> str:
        """Serialise the kept rows as text.

        Returns
        -------
        str
            Base64 of an Arrow stream.
        """
        tables = [*self._kept.values()] or ([] if self._empty is None else [self._empty])
        if not tables:
            return ""
        sink = pa.BufferOutputStream()
        table = pa.concat_tables(tables)
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return base64.b64encode(sink.getvalue().to_pybytes()).decode()


def _differ_more(apart: Apart, kept: pa.Table | None, n_rows: int) -> np.ndarray:
    """Return which rows differ, and by more than the last kept one if the list is full."""
    least = Apart(*np.array([[0.0], [1.0], [0.0]])) if kept is None or kept.num_rows < n_rows else _apart(kept.slice(kept.num_rows - 1))
    swaps, correlation, difference = least
    same_order = (apart.swaps == swaps) & (apart.correlation == correlation)
    return (
        (apart.swaps > swaps)
        | ((apart.swaps == swaps) & (apart.correlation < correlation))
        | (same_order & (np.nan_to_num(apart.difference) > np.nan_to_num(difference)))
    )


def _unpack(text: str) -> pa.Table:
    return pa.ipc.open_stream(base64.b64decode(text)).read_all()


def merge_rows(packed: Sequence[str], named: Named, pairs: Sequence[tuple[int, int]]) -> pa.Table:
    """Merge the rows of all items."""
    tables = [_unpack(text) for text in packed if text]
    if not tables:
        types = {**KEYS, PLACE: pa.int64(), **WHERE, **dict.fromkeys(named.ids, pa.null()), **FOUND}
        return pa.table({name: pa.array([], kind) for name, kind in types.items()})
    for table in tables:
        for name in named.ids:
            found, expected = table.schema.field(name).type, tables[0].schema.field(name).type
            if found != expected:
                raise SchemaMismatch(f"id column {name!r} is {found} in some files and {expected} in others, expected one type")
    everything = pa.concat_tables(tables)
    output, ranking, other = (everything[name].to_numpy() for name in KEYS)
    merged = []
    for k in named.outputs:
        for a, b in pairs:
            mine = np.flatnonzero((output == k) & (ranking == named.rankings[a]) & (other == named.rankings[b]))
            found = _first_rows(everything.take(pa.array(mine)), named.n_rows)
            merged.append(found.add_column(len(KEYS), PLACE, pa.array(np.arange(1, found.num_rows + 1), pa.int64())))
    return pa.concat_tables(merged) if merged else everything.slice(0, 0).add_column(len(KEYS), PLACE, pa.array([], pa.int64()))
