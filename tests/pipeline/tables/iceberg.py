"""Runs for an Iceberg table, and what readers find in it."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from leafledger.pipeline.tables.shared_parts import Share, SharedPart, plain

NAME = "iceberg:nights.prod.explained"


ROWS = pa.table({"flight": pa.array([1, 2, 3], pa.int16()), "phi a": pa.array([0.1, 0.2, 0.3], pa.float32())})


def share(root, day="2026-11-22", manifest="0123456789abcdef", rows=ROWS, folder="", stands=lambda: True):
    """A run of one part."""
    run = f"{root}/runs/{day}{folder}"
    path = Path(run) / "attributions" / "part-00000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path)
    columns = {field.name: field.type for field in rows.schema}
    return Share(run, manifest, date.fromisoformat(day), plain(columns, run), (SharedPart(str(path), path.stat().st_size, rows.num_rows),), stands)


def read(catalog):
    return catalog.load_table("prod.explained").scan().to_arrow()


def flights(catalog):
    return sorted(read(catalog)["flight"].to_pylist())
