"""Columns of a part: ids, margins, attributions, interactions and others, as Parquet holds them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from leafledger.kernels.method.jackknife import find_errors
from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.buffers import Buffers, Prepared

from ...methods.interaction_lists import FIRST, SECOND, VALUE, column_type, count_kept, make_column
from ...methods.precision import round_to
from ...methods.tables import pair_names
from ...methods.top_k_lists import leaves
from ...models.model import Feature
from ..columns import reason_columns as told
from ..columns import reasons as reasons_
from ..columns import top_attributions as top
from ..columns.reasons import Reasons
from ..columns.top_attributions import Top
from ..records.plan import Plan

FEW_ROWS = 256  # of a row group, below which zstd takes 15 µs a column that faster codecs do not, and saves next to nothing
FALSE_HITS = 0.05  # of row groups that a Bloom filter lets pass though they lack the id: a byte for each row
# Booleans have no filters in Parquet, and nobody asks for one of a few categories, or for a float.
UNFILTERED = (pa.types.is_boolean, pa.types.is_floating, pa.types.is_dictionary, pa.types.is_nested, pa.types.is_null)


@dataclass(frozen=True, slots=True)
class PairColumns:
    """The columns of interactions, a list of pairs in every row."""

    n_kept: int  # pairs of a row, at most
    names: tuple[pa.Array, pa.Array]  # of every pair's first and second player


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a part, and what they are called in it."""

    schema: pa.Schema
    ids: tuple[str, ...]
    values: tuple[str, ...]  # of the features that are kept beside their attributions: columns of the data, of which
    kept: tuple[str, ...]  # those of the part are called so
    outputs: pa.Array | None  # names of the model's, where each row has one of its own
    numbers: tuple[str, ...]  # leaves of Parquet's schema that hold fractions,
    names: tuple[str, ...]  # and those that hold names, or places in a ranking
    dtype: np.dtype
    types: tuple[np.dtype, ...]  # of a row's attributions
    labelled: bool  # a row without a label has no attributions
    label: bool  # there is a column of labels
    pairs: PairColumns | None  # of interactions, where there are any
    wide: bool  # every player has a column
    top: Top | None
    reasons: Reasons | None
    players: tuple[str, ...]
    features: dict[str, Feature]  # from players to the features whose values are theirs


def list_columns(plan: Plan, prepared: Prepared, batch: pa.Schema) -> Columns:
    """List the columns of a part: ids, the row's output where it has one of its own, margins, attributions, errors, interactions, values, labels."""
    number = pa.float32() if plan.precision == "float32" else pa.float64()
    players, n_pairs = plan.players, len(prepared.pairs.players)
    phi_of = METHODS[plan.method].phi
    n_scores = len(phi_of.scores)
    margins, phi, pairs = plan.columns
    types = [pa.int32() if phi_of.ranks else number] * (len(players) - n_scores) + [number] * n_scores
    fields = [batch.field(name) for name in plan.ids] + [pa.field(name, pa.string(), nullable=False) for name in plan.chosen]
    fields += [pa.field(name, number, nullable=False) for name in margins]
    kinds = types * len(plan.written_outputs) if plan.wide else []
    fields += [pa.field(name, kind, nullable=plan.labels is not None) for name, kind in zip(phi, kinds, strict=True)]
    ranks = {name: None for name, kind in zip(phi, kinds, strict=True) if pa.types.is_integer(kind)}  # whose bytes, split, few readers put together
    fields += [pa.field(name, number, nullable=False) for name in plan.error_columns]
    fields += [pa.field(name, column_type(number), nullable=False) for name in pairs]
    fields += [pa.field(name, top.column_type(number), nullable=False) for name in plan.top_columns]
    kinds_of_reasons = (
        [*told.reason_column_types(number, plan.background_errors).values()] * len(plan.written_outputs) if plan.reasons is not None else []
    )
    fields += [pa.field(name, kind, nullable=empty) for name, (kind, empty) in zip(plan.reason_columns, kinds_of_reasons, strict=True)]
    passed = tuple(feature.name for feature in plan.features) if plan.values else ()
    fields += [batch.field(feature).with_name(name) for feature, name in zip(passed, plan.value_columns, strict=True)]
    label = plan.label_column if plan.label_column not in plan.ids else ""
    fields += [pa.field(label, pa.float64())] if label else []
    groups = plan.groups if phi_of.of_groups else ()
    there = {*batch.names}
    read = {feature.name: feature for feature in plan.features if feature.name in there}
    of_players = {player: read.get(top.feature_of(player, groups)) for player in players}
    lists = [name for name, (kind, _) in zip(plan.reason_columns, kinds_of_reasons, strict=True) if pa.types.is_list(kind)]
    named = pair_names(prepared, players)
    first, second = (pa.array([pair[side] for pair in named], pa.string()) for side in (0, 1))
    return Columns(
        schema=pa.schema(fields),
        ids=plan.ids,
        values=passed,
        kept=tuple(plan.value_columns),
        outputs=pa.array(plan.outputs, pa.string()) if plan.chosen else None,
        numbers=(
            *margins,
            *(name for name in phi if name not in ranks),
            *plan.error_columns,
            *([label] if label else []),
            *(leaf for name in pairs for leaf in leaves(name, VALUE)),
            *(leaf for name in plan.top_columns for leaf in leaves(name, top.PHI)),
            *(leaf for name in lists for leaf in leaves(name, told.PHI, told.SHARE)),
        ),
        names=(
            *plan.chosen,
            *ranks,
            *(leaf for name in pairs for leaf in leaves(name, FIRST, SECOND)),
            *(leaf for name in plan.top_columns for leaf in leaves(name, top.FEATURE, top.VALUE)),
            *(leaf for name in lists for leaf in leaves(name, told.CODE, told.TEXT, reasons_.FEATURE, reasons_.VALUE)),
        ),
        dtype=np.dtype(plan.precision),
        types=tuple(np.dtype(kind.to_pandas_dtype()) for kind in types),
        labelled=plan.labels is not None,
        label=bool(label),
        pairs=None if plan.interactions is None else PairColumns(count_kept(n_pairs, plan.interactions), (first, second)),
        wide=plan.wide,
        top=plan.top,
        reasons=plan.reasons,
        players=players,
        features={player: feature for player, feature in of_players.items() if feature is not None},
    )


def open_part(local: Path, columns: Columns, n_rows: int) -> pq.ParquetWriter:
    """Open a local file to write a part into. The caller closes it."""
    filtered = [name for name in columns.ids if not any(is_one(columns.schema.field(name).type) for is_one in UNFILTERED)]
    return pq.ParquetWriter(
        local,
        columns.schema,
        compression="zstd" if n_rows >= FEW_ROWS else "snappy",
        use_dictionary=[*columns.ids, *columns.names, *columns.kept],
        use_byte_stream_split=list(columns.numbers),
        write_page_checksum=True,
        bloom_filter_options={name: {"ndv": max(1, n_rows), "fpp": FALSE_HITS} for name in filtered},
        store_schema=True,
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


def make_batch(columns: Columns, prepared: Prepared, batch: pa.RecordBatch, buffers: Buffers, output: np.ndarray | None = None) -> pa.RecordBatch:
    """Turn what was computed of a slice into the columns of the part."""
    n = batch.num_rows
    missing = buffers.labels.missing[:n] if columns.labelled else None
    unused = {kind: pa.array(np.zeros(n, kind), mask=missing) for kind in set(columns.types)}
    arrays = [batch.column(name) for name in columns.ids]
    arrays += [] if columns.outputs is None or output is None else [columns.outputs.take(pa.array(output[:n]))]
    arrays += [pa.array(round_to(margin[:n], columns.dtype)) for margin in buffers.margin]
    for phi in (*buffers.phi, *(find_errors(buffers) if len(buffers.without) else ())) if columns.wide else ():
        attributions = [unused[kind] for kind in columns.types]
        for row, player in enumerate(prepared.players):
            attributions[player] = pa.array(round_to(phi[row, :n], columns.types[player]), mask=missing)
        arrays += attributions
    if columns.pairs is not None:
        arrays += [make_column(pairs[:, :n], columns.pairs.n_kept, columns.dtype, columns.pairs.names) for pairs in buffers.pairs]
    values = dict(zip(columns.features, _read_columns(batch, columns.features.values()), strict=True)) if columns.top or columns.reasons else {}
    if columns.top is not None:
        about_values = columns.players, columns.features, values, columns.dtype
        arrays += [top.make_column(phi[:, :n], columns.top, prepared, *about_values) for phi in buffers.phi]
    if columns.reasons is not None:
        for k, phi in enumerate(buffers.phi):
            about = phi[:, :n], buffers.without[:, k, :, :n], columns.reasons, prepared, columns.players, columns.features, values, columns.dtype
            arrays += told.make_columns(*about)
    arrays += [batch.column(feature) for feature in columns.values]
    arrays += [pa.array(buffers.labels.label[:n], mask=missing)] if columns.label else []
    return pa.record_batch(arrays, schema=columns.schema)
