"""Reading of row groups within bounded memory: Arrow keeps prefetched data until the next read.

A row group too large to fetch is read by pages.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

DAMAGED = (pa.ArrowException, OSError, UnicodeDecodeError)  # exceptions of unreadable files, the last for column names
AS_READ: dict[str, Any] = {"coerce_int96_timestamp_unit": "us"}  # old timestamps in nanoseconds would end in 2262
READ_BYTES = 1 << 26  # stored bytes of row groups fetched together; larger ones are read by pages
PAGES_BYTES = 4 << 20  # memory of a column read by pages: its dictionary, a page stored and decoded, mostly a megabyte each
COLUMN_BYTES = 16 << 10  # memory of a column's reader
PIECE_BYTES = 1 << 18  # least bytes of a column per fetch


def columns_of(metadata: pq.FileMetaData, names: Iterable[str]) -> list[int]:
    """Find the columns of a file that belong, or by their names may belong, to given fields."""
    asked = set(names)

    def is_asked(path: str) -> bool:  # names may contain dots, as do paths of nested fields, so the boundary is ambiguous
        return path in asked or ("." in path and any(start in asked for start in accumulate(path.split("."), "{}.{}".format)))

    # Schema and footer form a reference cycle, which takes gigabytes over many files before garbage collection.
    found = metadata.row_group(0) if metadata.num_row_groups else metadata.schema
    paths = ((found.column(c).path_in_schema if metadata.num_row_groups else found.column(c).path) for c in range(metadata.num_columns))
    return [c for c, path in enumerate(paths) if is_asked(path)]


def _column_bytes(metadata: pq.FileMetaData, row_group: int, columns: Sequence[int]) -> tuple[int, int]:
    """Return the stored and decoded bytes of some columns of a row group."""
    chunks = [*map(metadata.row_group(row_group).column, columns)]
    return sum(chunk.total_compressed_size for chunk in chunks), sum(chunk.total_uncompressed_size for chunk in chunks)


def _is_paged(stored: int, n_columns: int) -> bool:
    """Return whether a row group is read by pages: it is too large, and pages take less memory."""
    return stored > max(READ_BYTES, n_columns * PAGES_BYTES)


def largest_held(metadata: pq.FileMetaData, columns: Sequence[int]) -> int:
    """Return the largest memory of reading a row group."""
    sizes = [_column_bytes(metadata, group, columns) for group in range(metadata.num_row_groups)]
    most = max((len(columns) * PAGES_BYTES if _is_paged(stored, len(columns)) else whole for stored, whole in sizes), default=0)
    return most + len(columns) * COLUMN_BYTES


def choose_pieces(metadata: pq.FileMetaData, row_groups: Iterable[int], names: Iterable[str], size: int) -> dict[str, Any]:
    """Choose how row groups are fetched of a file of ``size`` bytes."""
    if size <= READ_BYTES:
        return {}
    columns = columns_of(metadata, names)
    if not any(_is_paged(_column_bytes(metadata, group, columns)[0], len(columns)) for group in row_groups):
        return {}
    return {"pre_buffer": False, "buffer_size": max(PIECE_BYTES, READ_BYTES // len(columns))}


def has_dictionary(kind: pa.DataType) -> bool:
    """Return whether a type is one of categories, or has some inside."""
    return pa.types.is_dictionary(kind) or any(has_dictionary(kind.field(i).type) for i in range(kind.num_fields))


def _holds_dictionaries(kind: pa.DataType) -> bool:
    """Return whether a nested type has categories inside, which Arrow does not join across row groups."""
    return pa.types.is_nested(kind) and has_dictionary(kind)


def _together(metadata: pq.FileMetaData, row_groups: Sequence[int], names: Sequence[str], schema: pa.Schema) -> Iterator[list[int]]:
    """Group neighbouring row groups that are fetched together."""
    if any(_holds_dictionaries(schema.field(name).type) for name in names):
        yield from ([group] for group in row_groups)
        return
    if sum(metadata.row_group(group).total_byte_size for group in row_groups) <= READ_BYTES:
        yield list(row_groups)
        return
    held, n_bytes, columns = list[int](), 0, columns_of(metadata, names)
    for group in row_groups:
        size, _ = _column_bytes(metadata, group, columns)
        if held and n_bytes + size > READ_BYTES:
            yield held
            held, n_bytes = [], 0
        held, n_bytes = [*held, group], n_bytes + size
    yield held


def read_batches(parquet: pq.ParquetFile, row_groups: Sequence[int], names: Sequence[str], n_rows: int) -> Iterator[pa.RecordBatch]:
    """Read rows in their order.

    Parameters
    ----------
    names : sequence of str
        Fields to read.
    n_rows : int
        Of a batch, at most.

    Yields
    ------
    pa.RecordBatch
    """
    for groups in _together(parquet.metadata, row_groups, names, parquet.schema_arrow):
        yield from parquet.iter_batches(n_rows, row_groups=groups, columns=list(names), use_threads=False)
