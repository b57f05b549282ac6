"""The columns of a part: ids, margins, attributions and interactions, as Parquet holds them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernels.buffers import Buffers, Prepared
from kernels.methods import METHODS

from .interactions import FIRST, SECOND, VALUE, column_type, count_kept, leaves, make_column
from .plan import Plan
from .prepare import pair_names


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a part, and what they are called in it."""

    schema: pa.Schema
    ids: tuple[str, ...]
    numbers: tuple[str, ...]  # leaves of Parquet's schema that hold numbers,
    names: tuple[str, ...]  # and those that hold names
    dtype: np.dtype
    types: tuple[np.dtype, ...]  # of a row's attributions
    interactions: bool
    labelled: bool  # a row without a label has no attributions
    n_kept: int  # interactions of a row, at most
    pair_names: tuple[pa.Array, pa.Array]  # of every pair's first and second player


def list_columns(plan: Plan, prepared: Prepared, batch: pa.Schema) -> Columns:
    """Id columns, margins, attributions, interactions."""
    number = pa.float32() if plan.precision == "float32" else pa.float64()
    players, n_pairs = plan.players, len(prepared.pairs.players)
    phi_of = METHODS[plan.method].phi
    n_scores = len(phi_of.scores)
    margins, phi, pairs = plan.columns
    types = [pa.int32() if phi_of.whole else number] * (len(players) - n_scores) + [number] * n_scores
    fields = [batch.field(name) for name in plan.ids] + [pa.field(name, number, nullable=False) for name in margins]
    fields += [pa.field(name, kind, nullable=plan.labels is not None) for name, kind in zip(phi, types * len(plan.outputs), strict=True)]
    fields += [pa.field(name, column_type(number), nullable=False) for name in pairs]
    named = pair_names(prepared, players)
    return Columns(
        schema=pa.schema(fields),
        ids=plan.ids,
        numbers=(*margins, *phi, *(leaf for name in pairs for leaf in leaves(name, VALUE))),
        names=tuple(leaf for name in pairs for leaf in leaves(name, FIRST, SECOND)),
        dtype=np.dtype(plan.precision),
        types=tuple(np.dtype(kind.to_pandas_dtype()) for kind in types),
        interactions=plan.interactions is not None,
        labelled=plan.labels is not None,
        n_kept=count_kept(n_pairs, plan.interactions),
        pair_names=(pa.array([first for first, _ in named], pa.string()), pa.array([second for _, second in named], pa.string())),
    )


def open_part(local: Path, columns: Columns) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        local,
        columns.schema,
        compression="zstd",
        use_dictionary=[*columns.ids, *columns.names],
        use_byte_stream_split=list(columns.numbers),
        write_page_checksum=True,
        store_schema=True,
    )


def make_batch(columns: Columns, prepared: Prepared, batch: pa.RecordBatch, buffers: Buffers) -> pa.RecordBatch:
    n = batch.num_rows
    missing = buffers.labels.missing[:n] if columns.labelled else None
    unused = {kind: pa.array(np.zeros(n, kind), mask=missing) for kind in set(columns.types)}
    arrays = [batch.column(name) for name in columns.ids]
    arrays += [pa.array(margin[:n].astype(columns.dtype)) for margin in buffers.margin]
    for phi in buffers.phi:
        attributions = [unused[kind] for kind in columns.types]
        for row, player in enumerate(prepared.players):
            attributions[player] = pa.array(phi[row, :n].astype(columns.types[player]), mask=missing)
        arrays += attributions
    if columns.interactions:
        arrays += [make_column(pairs[:, :n], columns.n_kept, columns.dtype, columns.pair_names) for pairs in buffers.pairs]
    return pa.record_batch(arrays, schema=columns.schema)
