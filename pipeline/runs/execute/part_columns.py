"""Columns of a part: ids, margins, attributions, interactions and others, as Parquet holds them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from leafledger.kernels.method.jackknife import find_errors
from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.buffers import BASE, Buffers, Prepared

from ...arguments.choices import LOSS
from ...changes.asked import Changes
from ...methods.interaction_lists import VALUE, column_type, count_kept, list_leaves, make_column, name_entries
from ...methods.precision import round_to
from ...methods.tables import set_names
from ...methods.top_k_lists import leaves
from ...models.model import Feature
from ..columns import change_columns as changes
from ..columns import reason_columns as told
from ..columns import reasons as reasons_
from ..columns import top_attributions as top
from ..columns.reasons import Direction, Reasons
from ..columns.top_attributions import Top
from ..lookup import bloom_filter
from ..records.plan import Plan

FEW_ROWS = 256  # of a row group, below which zstd takes 15 µs a column that faster codecs do not, and saves next to nothing
# Booleans have no filters in Parquet, and nobody asks for one of a few categories, or for a float.
UNFILTERED = (pa.types.is_boolean, pa.types.is_floating, pa.types.is_dictionary, pa.types.is_nested, pa.types.is_null)


@dataclass(frozen=True, slots=True)
class Rows:
    """A slice of rows, as they were read, and what was found of them."""

    n: int
    batch: pa.RecordBatch
    buffers: Buffers
    output: np.ndarray | None  # of the model, where each row has one of its own
    missing: np.ndarray | None  # rows without a label, which have no attributions
    values: Mapping[str, pa.Array]  # by players, where they stand beside attributions in a list


@dataclass(frozen=True, slots=True)
class Group:
    """Columns of one kind: what they are, how Parquet holds them, and how they are filled."""

    fields: Sequence[pa.Field]
    fill: Callable[[Rows], Iterable[pa.Array]]
    split: Sequence[str] = ()  # leaves of Parquet's schema that hold fractions
    repeated: Sequence[str] = ()  # those of few values, such as names or places in a ranking, which get a dictionary


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a part."""

    schema: pa.Schema
    groups: tuple[Group, ...]  # in the order of the schema
    ids: tuple[str, ...]
    labelled: bool  # a row without a label has no attributions
    features: dict[str, Feature]  # from players to the features whose values are theirs; none where no list has values


def _name_rows(plan: Plan, batch: pa.Schema) -> Iterator[Group]:
    """Ids, and the output that a row is explained for."""
    yield Group([batch.field(name) for name in plan.ids], lambda rows: [rows.batch.column(name) for name in plan.ids], repeated=plan.ids)
    if plan.chosen:
        outputs, fields = pa.array(plan.outputs, pa.string()), [pa.field(name, pa.string(), nullable=False) for name in plan.chosen]
        yield Group(fields, lambda rows: [] if rows.output is None else [outputs.take(pa.array(rows.output[: rows.n]))], repeated=plan.chosen)


def _write_margins(plan: Plan, number: pa.DataType) -> Group:
    """Margins, predictions or losses; of losses also the base value of each row."""
    dtype, names = np.dtype(plan.precision), plan.columns[0]
    fields = [pa.field(name, number, nullable=plan.space == LOSS) for name in (*names, *plan.base_columns)]

    def write(rows: Rows) -> list[pa.Array]:
        found = [*rows.buffers.margin, *(rows.buffers.ends[:, BASE] if plan.base_columns else ())]
        return [pa.array(round_to(values[: rows.n], dtype), mask=rows.missing if plan.space == LOSS else None) for values in found]

    return Group(fields, write, split=[field.name for field in fields])


def _write_players(plan: Plan, prepared: Prepared, number: pa.DataType) -> Iterator[Group]:
    """Attributions of every player, and their standard errors."""
    phi_of, (_, phi, _) = METHODS[plan.method].phi, plan.columns
    n_scores = len(phi_of.scores)
    kinds = [pa.int32() if phi_of.ranks else number] * (len(plan.players) - n_scores) + [number] * n_scores
    types = [np.dtype(kind.to_pandas_dtype()) for kind in kinds]

    def write(rows: Rows, found: Iterable[np.ndarray]) -> Iterator[pa.Array]:
        unused = {kind: pa.array(np.zeros(rows.n, kind), mask=rows.missing) for kind in set(types)}
        for of_output in found:
            attributions = [unused[kind] for kind in types]
            for row, player in enumerate(prepared.players):
                attributions[player] = pa.array(round_to(of_output[row, : rows.n], types[player]), mask=rows.missing)
            yield from attributions

    fields = [pa.field(name, kind, nullable=plan.labels is not None) for name, kind in zip(phi, kinds * len(plan.written_outputs), strict=True)]
    ranks = [field.name for field in fields if pa.types.is_integer(field.type)]  # whose bytes, split, few readers put together
    fractions = [field.name for field in fields if not pa.types.is_integer(field.type)]
    yield Group(fields, lambda rows: write(rows, rows.buffers.phi), fractions, ranks)
    errors = [pa.field(name, number, nullable=plan.labels is not None) for name in plan.error_columns]
    yield Group(errors, lambda rows: write(rows, find_errors(rows.buffers) if errors else ()), plan.error_columns)


def _list_pairs(plan: Plan, prepared: Prepared, number: pa.DataType) -> Group:
    """Interactions, a list of pairs or sets in every row."""
    n_kept, dtype, names = count_kept(len(prepared.pairs.players), plan.interactions), np.dtype(plan.precision), plan.columns[2]
    named = name_entries(set_names(prepared, plan.players), plan.sets is not None)
    return Group(
        [pa.field(name, column_type(number, plan.sets is not None), nullable=False) for name in names],
        lambda rows: [make_column(pairs[:, : rows.n], n_kept, dtype, named) for pairs in rows.buffers.pairs],
        split=[leaf for name in names for leaf in leaves(name, VALUE)],
        repeated=[leaf for name in names for leaf in leaves(name, *list_leaves(plan.sets is not None))],
    )


def _list_top(plan: Plan, asked: Top, prepared: Prepared, number: pa.DataType, features: Mapping[str, Feature]) -> Group:
    """The largest attributions."""
    dtype, names = np.dtype(plan.precision), plan.top_columns

    def write(rows: Rows) -> list[pa.Array]:
        return [top.make_column(phi[:, : rows.n], asked, prepared, plan.players, features, rows.values, dtype) for phi in rows.buffers.phi]

    return Group(
        [pa.field(name, top.column_type(number), nullable=False) for name in names],
        write,
        split=[leaf for name in names for leaf in leaves(name, top.PHI)],
        repeated=[leaf for name in names for leaf in leaves(name, top.FEATURE, top.VALUE)],
    )


def _tell_reasons(plan: Plan, asked: Reasons, prepared: Prepared, number: pa.DataType, features: Mapping[str, Feature]) -> Group:
    """Reasons, those of an output together."""
    dtype, kinds = np.dtype(plan.precision), [*told.reason_column_types(number, plan.background_errors).values()] * len(plan.written_outputs)
    fields = [pa.field(name, kind, nullable=empty) for name, (kind, empty) in zip(plan.reason_columns, kinds, strict=True)]
    lists = [field.name for field in fields if pa.types.is_list(field.type)]

    def write(rows: Rows) -> Iterator[pa.Array]:
        for k, phi in enumerate(rows.buffers.phi):
            without = rows.buffers.without[:, k, :, : rows.n]
            yield from told.make_columns(phi[:, : rows.n], without, asked, prepared, plan.players, features, rows.values, dtype)

    return Group(
        fields,
        write,
        split=[leaf for name in lists for leaf in leaves(name, told.PHI, told.SHARE)],
        repeated=[leaf for name in lists for leaf in leaves(name, told.CODE, told.TEXT, reasons_.FEATURE, reasons_.VALUE)],
    )


def _tell_changes(plan: Plan, prepared: Prepared, asked: Changes, direction: Direction, batch: pa.Schema) -> Group:
    """What one feature would have to be."""
    (name,), there = plan.change_columns, {*batch.names}
    types = {feature.name: batch.field(feature.name).type for feature in plan.features if feature.name in there}

    def write(rows: Rows) -> list[pa.Array]:
        return [changes.make_changes(asked, direction, prepared, plan.features, types, rows.buffers, rows.n)]

    return Group([pa.field(name, pa.list_(changes.ENTRY))], write, repeated=leaves(name, *changes.ENTRY.names))


def _pass_values(plan: Plan, batch: pa.Schema) -> Iterator[Group]:
    """Values of features, and labels."""
    passed = [feature.name for feature in plan.features] if plan.values else []
    fields = [batch.field(feature).with_name(name) for feature, name in zip(passed, plan.value_columns, strict=True)]
    yield Group(fields, lambda rows: [rows.batch.column(feature) for feature in passed], repeated=plan.value_columns)
    label = plan.label_column
    if label and label not in plan.ids:
        yield Group([pa.field(label, pa.float64())], lambda rows: [pa.array(rows.buffers.labels.label[: rows.n], mask=rows.missing)], split=[label])


def list_columns(plan: Plan, prepared: Prepared, batch: pa.Schema) -> Columns:
    """List the columns of a part: ids, the row's output where it has one of its own, margins, attributions, errors, interactions, values, labels."""
    number = pa.float32() if plan.precision == "float32" else pa.float64()
    features = dict[str, Feature]()
    if plan.top is not None or plan.reasons is not None:
        of_groups, there = plan.groups if METHODS[plan.method].phi.of_groups else (), {*batch.names}
        read = {feature.name: feature for feature in plan.features if feature.name in there}
        features = {player: read[name] for player in plan.players if (name := top.feature_of(player, of_groups)) in read}
    groups = [*_name_rows(plan, batch), _write_margins(plan, number)]
    groups += _write_players(plan, prepared, number) if plan.wide else ()
    groups += [_list_pairs(plan, prepared, number)] if plan.interactions is not None else []
    groups += [_list_top(plan, plan.top, prepared, number, features)] if plan.top is not None else []
    if plan.reasons is not None:
        groups.append(_tell_reasons(plan, plan.reasons, prepared, number, features))
        asked = plan.reasons.changes
        groups += [_tell_changes(plan, prepared, asked, plan.reasons.direction, batch)] if asked is not None else []
    groups += _pass_values(plan, batch)
    schema = pa.schema([field for group in groups for field in group.fields])
    return Columns(schema, tuple(groups), plan.ids, plan.labels is not None, features)


def open_part(local: Path, columns: Columns, n_rows: int) -> pq.ParquetWriter:
    """Open a local file to write a part into. The caller closes it."""
    filtered = [name for name in columns.ids if not any(is_one(columns.schema.field(name).type) for is_one in UNFILTERED)]
    return pq.ParquetWriter(
        local,
        columns.schema,
        compression="zstd" if n_rows >= FEW_ROWS else "snappy",
        use_dictionary=[leaf for group in columns.groups for leaf in group.repeated],
        use_byte_stream_split=[leaf for group in columns.groups for leaf in group.split],
        write_page_checksum=True,
        store_schema=True,
        **bloom_filter.writing(filtered, n_rows),
    )


class RowGroups:
    """Slices of a part, put together until they have enough rows for a row group.

    Parameters
    ----------
    writer : pq.ParquetWriter
    n_rows : int
        Rows that are enough.
    """

    def __init__(self, writer: pq.ParquetWriter, n_rows: int):
        self._writer, self._enough = writer, n_rows
        self._held, self._n_held = list[pa.RecordBatch](), 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Hold a slice, and write what is held if it has enough rows."""
        self._held.append(batch)
        self._n_held += batch.num_rows
        if self._n_held >= self._enough:
            self.flush()

    def flush(self) -> None:
        """Write what is held, if there is anything."""
        if self._n_held:
            self._writer.write_table(pa.Table.from_batches(self._held).unify_dictionaries(), row_group_size=self._n_held)
        self._held, self._n_held = [], 0


def _read_columns(batch: pa.RecordBatch, features: Iterable[Feature]) -> Iterator[pa.Array]:
    """Columns by name; a batch looks through all of its names for one."""
    place = {name: k for k, name in enumerate(batch.schema.names)}
    return (batch.column(place[feature.name]) for feature in features)


def make_batch(columns: Columns, batch: pa.RecordBatch, buffers: Buffers, output: np.ndarray | None = None) -> pa.RecordBatch:
    """Turn what was computed of a slice into the columns of the part."""
    n = batch.num_rows
    values = dict(zip(columns.features, _read_columns(batch, columns.features.values()), strict=True))
    rows = Rows(n, batch, buffers, output, buffers.labels.missing[:n] if columns.labelled else None, values)
    return pa.record_batch([array for group in columns.groups for array in group.fill(rows)], schema=columns.schema)
