"""Output objects of a comparison: tables of features and rows, then the table of measures."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import RunConflict
from ..runs.publish.table_objects import create_table
from ..stores import storage
from .tables import Tables

SUFFIX = ".parquet"
BESIDE = ("features", "rows")  # tables besides the measures
FOOTER = b"leafledger"


def name_beside(out: str) -> dict[str, str]:
    """Name the objects beside that of the measures.

    Parameters
    ----------
    out : str
        URI or path of the measures.

    Returns
    -------
    dict of str to str
        From what a table is of to its URI or path: of ``x.parquet`` to ``x.features.parquet`` and ``x.rows.parquet``.
    """
    stem = out.removesuffix(SUFFIX)
    return {name: f"{stem}.{name}{SUFFIX}" for name in BESIDE}


def _create(uri: str, local: Path, table: pa.Table) -> dict[str, Any]:
    """Create an object, or find it; refuse a different one."""
    if not create_table(uri, table, local):
        raise RunConflict(f"{uri}: exists already and differs from this comparison; choose another output or remove it")
    return {"size": local.stat().st_size, "sha256": storage.sha256(local)}


def publish_tables(out: str, tables: Tables, facts: Mapping[str, Any]) -> pa.Table:
    """Write all tables, measures last: their metadata hold the others' sizes and digests, so they mark completeness."""
    beside = name_beside(out)
    with storage.scratch() as folder:
        written = {name: _create(beside[name], folder / name, getattr(tables, name)) for name in BESIDE}
        measures = tables.measures.replace_schema_metadata({FOOTER: json.dumps({**facts, "tables": written})})
        _create(out, folder / "measures", measures)
    return measures
