"""The rows of a work item: the columns that are asked for, from the file and from its path, a slice at a time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InvalidColumn, InvalidData, StorageError
from ..stores import storage
from .listing import WorkItem


def carried_types(items: Sequence[WorkItem]) -> dict[str, pa.DataType]:
    """Types of the columns that paths carry, the same in all items, also where an item's value is null."""
    values: dict[str, set[str | int | None]] = {}
    for item in items:
        for name, value in item.partition:
            values.setdefault(name, set()).add(value)
    return {name: pa.string() if any(isinstance(value, str) for value in found) else pa.int64() for name, found in values.items()}


def _check_unchanged(item: WorkItem) -> None:
    """Refuse a file that is another one than the run was planned with."""
    found = storage.stat_if_exists(item.uri)
    if found is None or found.etag != item.etag:
        raise InvalidData(f"{item.uri}: {'changed' if found else 'removed'} since the run was planned")


def read_slices(item: WorkItem, wanted: Sequence[str], types: Mapping[str, pa.DataType], slice_rows: int) -> Iterator[pa.RecordBatch]:
    """The item's rows in the columns wanted, at most ``slice_rows`` at a time; ``types`` are those of columns that the path carries.

    Raises
    ------
    InvalidData
        the file is gone, changed since the run was planned, or cannot be read
    StorageError
        the store does not answer
    """
    _check_unchanged(item)
    try:
        yield from _read_slices(item, wanted, types, slice_rows)
    except StorageError:
        _check_unchanged(item)  # between two requests, of which the store does not answer the second with other bytes
        raise


def _read_slices(item: WorkItem, wanted: Sequence[str], types: Mapping[str, pa.DataType], slice_rows: int) -> Iterator[pa.RecordBatch]:
    carried = dict(item.partition)
    with storage.opened(item.uri) as file:
        try:
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            present = set(parquet.schema_arrow.names)
            columns = [name for name in wanted if name in present]
            read = parquet.iter_batches(slice_rows, row_groups=list(item.row_groups), columns=columns, use_threads=False)
            for batch in window(read, item.skip, item.n_rows):
                for name in wanted:
                    if name not in present:
                        batch = batch.append_column(name, pa.repeat(pa.scalar(carried[name], types[name]), batch.num_rows))
                yield batch
        except (pa.ArrowException, OSError) as error:
            where = _find_damage(file, item.row_groups, columns)
            raise InvalidData(f"{item.uri}: {where}cannot read: {' '.join(str(error).split())}") from error


def window(batches: Iterable[pa.RecordBatch], skip: int, n_rows: int) -> Iterator[pa.RecordBatch]:
    """The rows after the first ``skip``, at most ``n_rows`` of them."""
    for batch in batches:
        wanted = batch.slice(skip, n_rows)
        skip, n_rows = max(0, skip - batch.num_rows), n_rows - wanted.num_rows
        if wanted.num_rows:
            yield wanted
        if not n_rows:
            return


def _find_damage(file: Any, row_groups: Sequence[int], columns: Sequence[str]) -> str:
    """The first row group and column that cannot be read, in words, where it is one of these and not the file as a whole."""
    for group in row_groups:
        for name in columns:
            try:
                for _ in pq.ParquetFile(file, page_checksum_verification=True).iter_batches(row_groups=[group], columns=[name], use_threads=False):
                    pass
            except (pa.ArrowException, OSError):
                return f"row group {group}: column {name!r}: "
    return ""


@contextmanager
def located(item: WorkItem) -> Iterator[None]:
    """Say of which rows it is that a column cannot be converted."""
    try:
        yield
    except InvalidColumn as error:
        raise InvalidData(f"{item.uri}: row groups {list(item.row_groups)}: {error}") from error


def miscounted(item: WorkItem, n_rows: int) -> InvalidData:
    """What to raise where an item has other rows than were planned."""
    return InvalidData(f"{item.uri}: row groups {item.row_groups}: got {n_rows} rows, the footer says {item.n_rows}")
