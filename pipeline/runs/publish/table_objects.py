"""Summary tables as objects that are created once, in Parquet and JSON."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...stores import commit, storage

JSON_ROWS = 1 << 12  # rows written at a time


def write_rows(table: pa.Table) -> Iterator[str]:
    """Write a table as JSON, one row per line.

    Yields
    ------
    str
        A piece of the text, of so few rows that a table of any size can be written.
    """
    yield "["
    between = "\n"
    for batch in table.to_batches(JSON_ROWS):
        yield between + ",\n".join(json.dumps(row, default=str) for row in batch.to_pylist())  # dates of groups become texts
        between = ",\n"
    yield "\n]\n"


def create_rows(uri: str, table: pa.Table, local: Path) -> bool:
    """Create a JSON object, or find it."""
    with local.open("w", encoding="utf-8", newline="\n") as text:
        text.writelines(write_rows(table))
    return commit.create(uri, local) or storage.read(uri) == local.read_bytes()


def _holds(local: Path, table: pa.Table) -> bool:
    try:
        return pq.read_table(local, page_checksum_verification=True).equals(table, check_metadata=True)
    except (pa.ArrowException, OSError):
        return False


def create_table(uri: str, table: pa.Table, local: Path) -> bool:
    """Create a Parquet object, or find an equal table, which other pyarrow versions may encode differently.

    Parameters
    ----------
    local : Path
        A file that has the object's own bytes afterwards: those that were written, or those that are there.

    Returns
    -------
    bool
        False where there is another table, or something else.
    """
    pq.write_table(table, local, compression="zstd", write_page_checksum=True)
    if commit.create(uri, local):
        return True
    written = storage.sha256(local)
    storage.download(uri, local)
    return storage.sha256(local) == written or _holds(local, table)
