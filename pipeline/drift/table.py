"""Distributions as a Parquet object: a row for every column of a run, with its cells or categories as lists."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .columns import Column
from .distribution import Categories, Distribution

FORMAT = "1"  # of the object; another one is made again
KEY = b"leafledger"
NUMBERS = ("mean", "spread", "mean_abs", "spread_abs", "low", "high")
SCHEMA = pa.schema(
    [
        pa.field("column", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("output", pa.string(), nullable=False),
        pa.field("of", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("missing", pa.int64(), nullable=False),
        pa.field("infinite", pa.int64()),
        *(pa.field(name, pa.float64()) for name in NUMBERS),
        pa.field("cells", pa.list_(pa.uint16())),
        pa.field("points", pa.list_(pa.float64())),
        pa.field("unseen", pa.int64()),
        pa.field("categories", pa.list_(pa.string())),
        pa.field("counts", pa.list_(pa.int64())),
    ],
    metadata={KEY: FORMAT},
)


def _row(column: Column, found: Distribution | Categories) -> dict:
    row = dict.fromkeys(SCHEMA.names)
    row |= {"column": column.name, "kind": column.kind, "output": column.output, "of": column.of, "rows": found.rows, "missing": found.missing}
    if isinstance(found, Distribution):
        return row | {name: getattr(found, name) for name in ("infinite", *NUMBERS, "cells", "points", "counts")}
    names, counts = (None, None) if found.counts is None else ([each[k] for each in found.counts] for k in (0, 1))
    return row | {"unseen": found.unseen, "categories": names, "counts": counts}


def pack(columns: Sequence[Column], found: Sequence[Distribution | Categories]) -> bytes:
    """Write distributions.

    Parameters
    ----------
    columns : sequence of Column
    found : sequence of Distribution or Categories
        Of each column.

    Returns
    -------
    bytes
        Of a Parquet file, the same for the same distributions.
    """
    table = pa.Table.from_pylist([_row(column, each) for column, each in zip(columns, found, strict=True)], SCHEMA)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue().to_pybytes()


def _read(row: dict) -> Distribution | Categories:
    if row["infinite"] is None:
        named = None if row["counts"] is None else tuple(zip(row["categories"], row["counts"], strict=True))
        return Categories(row["rows"], row["missing"], row["unseen"], named)
    moments = {name: row[name] for name in NUMBERS}
    cells, points = (None if row[name] is None else np.array(row[name], kind) for name, kind in (("cells", np.int64), ("points", np.float64)))
    counts = np.array(row["counts"], np.int64)
    return Distribution(row["rows"], row["missing"], row["infinite"], **moments, cells=cells, points=points, counts=counts)


def unpack(data: bytes, columns: Sequence[Column]) -> tuple[Distribution | Categories, ...] | None:
    """Read distributions.

    Parameters
    ----------
    data : bytes
        As `pack` wrote them.
    columns : sequence of Column
        That they have to be of.

    Returns
    -------
    tuple of Distribution or Categories
        Of each column; None where it is the object of another version, or of other columns.
    """
    try:
        with pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True) as parquet:
            table = parquet.read()
    except (pa.ArrowException, OSError):
        return None
    if not table.schema.equals(SCHEMA, check_metadata=False) or (table.schema.metadata or {}).get(KEY) != FORMAT.encode():
        return None
    rows = table.to_pylist()
    if [(row["column"], row["kind"], row["output"], row["of"]) for row in rows] != [(each.name, each.kind, each.output, each.of) for each in columns]:
        return None
    return tuple(map(_read, rows))
