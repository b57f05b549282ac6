"""Row groups of a file, so many fetched at a time that they fit: of what Arrow has fetched ahead it lets nothing go before the next time."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

READ_BYTES = 1 << 26  # as they are stored, of row groups that are fetched together, unless one has more


def columns_of(metadata: pq.FileMetaData, names: Iterable[str]) -> list[int]:
    """Find the columns of a file that belong to some of its fields.

    Parameters
    ----------
    metadata : pq.FileMetaData
    names : iterable of str
        Fields, of which a nested one has several columns.

    Returns
    -------
    list of int
        Positions.
    """
    asked = set(names)
    return [c for c in range(metadata.num_columns) if metadata.schema.column(c).path.split(".")[0] in asked]


def _together(metadata: pq.FileMetaData, row_groups: Sequence[int], names: Iterable[str]) -> Iterator[list[int]]:
    """Neighbours that are fetched together."""
    if sum(metadata.row_group(group).total_byte_size for group in row_groups) <= READ_BYTES:
        yield list(row_groups)
        return
    held, n_bytes, columns = list[int](), 0, columns_of(metadata, names)
    for group in row_groups:
        found = metadata.row_group(group)
        size = sum(found.column(c).total_compressed_size for c in columns)
        if held and n_bytes + size > READ_BYTES:
            yield held
            held, n_bytes = [], 0
        held, n_bytes = [*held, group], n_bytes + size
    yield held


def read_batches(parquet: pq.ParquetFile, row_groups: Sequence[int], names: Sequence[str], n_rows: int) -> Iterator[pa.RecordBatch]:
    """Read rows in their order.

    Parameters
    ----------
    parquet : pq.ParquetFile
    row_groups : sequence of int
    names : sequence of str
        Fields to read.
    n_rows : int
        Of a batch, at most.

    Yields
    ------
    pa.RecordBatch
    """
    for groups in _together(parquet.metadata, row_groups, names):
        yield from parquet.iter_batches(n_rows, row_groups=groups, columns=list(names), use_threads=False)
