"""Distributions as a Parquet object: a row for every column of a run, with histograms as lists."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from leafledger.kernels.distributions.histogram import Histogram, find_cells

from ...dataset.columns.grouping import GroupColumn
from ...errors import InvalidRun
from ...runs.records.small_table import read_small_table
from .columns import Column
from .distribution import Categories, Distribution

FORMAT = "3"  # format version; objects of others are remade
KEY = b"leafledger"
NUMBERS = ("mean", "spread", "mean_abs", "spread_abs", "low", "high")
SCHEMA = pa.schema(
    [
        pa.field("column", pa.string(), nullable=False),  # of the parts
        pa.field("kind", pa.string(), nullable=False),  # total (margin, prediction or loss), base (of losses), phi or value
        pa.field("output", pa.string(), nullable=False),  # of the model; empty for values
        pa.field("of", pa.string(), nullable=False),  # the feature or group; empty for totals
        pa.field("rows", pa.int64(), nullable=False),  # all
        pa.field("missing", pa.int64(), nullable=False),  # rows without a value
        pa.field("infinite", pa.int64()),  # infinite values; null for categories
        # of finite values: mean, sum of squared distances from it (spread), both of magnitudes (abs), smallest (low), largest (high)
        *(pa.field(name, pa.float64()) for name in NUMBERS),
        pa.field("level", pa.int64()),  # low bits that cells leave out; 0 where there are points, null for categories
        pa.field("cells", pa.list_(pa.int64())),  # that are not empty: bits of a float64, those after the sign inverted in negative ones
        pa.field("points", pa.list_(pa.float64())),  # the different values, where they are at most 4,096
        pa.field("unseen", pa.int64()),  # values that are no category of the model; null where it does not list them
        pa.field("categories", pa.list_(pa.string())),  # null where they are too many
        pa.field("counts", pa.list_(pa.int64())),  # of each cell, point or category
        pa.field("bits", pa.int64()),  # of the narrowest floating-point type that parts keep the column in; null for categories
    ],
    metadata={KEY: FORMAT},
)


BY = b"by"  # metadata key of the grouping columns
GROUP = pa.field("group", pa.string(), nullable=False)  # values of a group as a JSON list


def _row(column: Column, found: Distribution | Categories) -> dict:
    row = dict.fromkeys(SCHEMA.names)
    row |= {"column": column.name, "kind": column.kind, "output": column.output, "of": column.of, "rows": found.rows, "missing": found.missing}
    if isinstance(found, Distribution):
        places = {"level": found.found.level, "cells": found.found.cells if found.found.level else None, "points": found.points}
        return row | {name: getattr(found, name) for name in ("infinite", *NUMBERS, "counts", "bits")} | places
    names, counts = (None, None) if found.counts is None else ([each[k] for each in found.counts] for k in (0, 1))
    return row | {"unseen": found.unseen, "categories": names, "counts": counts}


def _write(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue().to_pybytes()


def _read_table(data: bytes, schema: pa.Schema) -> pa.Table | None:
    """Read a table; None if it has another version or schema."""
    try:
        table = read_small_table(pa.BufferReader(data), "")
    except InvalidRun:
        return None
    same = table.schema.equals(schema, check_metadata=False) and (table.schema.metadata or {}).get(KEY) == FORMAT.encode()
    return table if same else None


def _are_of(rows: Sequence[dict], columns: Sequence[Column]) -> bool:
    return [(row["column"], row["kind"], row["output"], row["of"]) for row in rows] == [
        (each.name, each.kind, each.output, each.of) for each in columns
    ]


def pack(columns: Sequence[Column], found: Sequence[Distribution | Categories]) -> bytes:
    """Serialise distributions."""
    return _write(pa.Table.from_pylist([_row(column, each) for column, each in zip(columns, found, strict=True)], SCHEMA))


def _read(row: dict) -> Distribution | Categories:
    if row["infinite"] is None:
        named = None if row["counts"] is None else tuple(zip(row["categories"], row["counts"], strict=True))
        return Categories(row["rows"], row["missing"], row["unseen"], named)
    moments = {name: row[name] for name in NUMBERS}
    cells = find_cells(np.array(row["points"], np.float64), 0) if row["cells"] is None else np.array(row["cells"], np.int64)
    counts = Histogram(row["level"], cells, np.array(row["counts"], np.int64))
    return Distribution(row["rows"], row["missing"], row["infinite"], **moments, found=counts, bits=row["bits"])


def unpack(data: bytes, columns: Sequence[Column]) -> tuple[Distribution | Categories, ...] | None:
    """Parse distributions."""
    table = _read_table(data, SCHEMA)
    rows = [] if table is None else table.to_pylist()
    return tuple(map(_read, rows)) if table is not None and _are_of(rows, columns) else None


def pack_groups(by: Sequence[GroupColumn], columns: Sequence[Column], groups: Mapping[str, Sequence[Distribution | Categories]]) -> bytes:
    """Serialise distributions of groups of rows."""
    rows = [{GROUP.name: name} | _row(column, each) for name, found in groups.items() for column, each in zip(columns, found, strict=True)]
    schema = SCHEMA.insert(0, GROUP).with_metadata({KEY: FORMAT, BY: json.dumps([asdict(column) for column in by])})
    return _write(pa.Table.from_pylist(rows, schema))


def unpack_groups(
    data: bytes, names: Sequence[str], columns: Sequence[Column]
) -> tuple[tuple[GroupColumn, ...], dict[str, tuple[Distribution | Categories, ...]]] | None:
    """Parse distributions of groups of rows."""
    table = _read_table(data, SCHEMA.insert(0, GROUP))
    if table is None:
        return None
    by = tuple(GroupColumn(**each) for each in json.loads(table.schema.metadata.get(BY, b"[]")))
    rows, n = table.to_pylist(), len(columns)
    lots = [rows[start : start + n] for start in range(0, len(rows), n)]
    if tuple(column.name for column in by) != tuple(names) or not all(_are_of(lot, columns) for lot in lots):
        return None
    return by, {lot[0][GROUP.name]: tuple(map(_read, lot)) for lot in lots}
