"""The rows of a work item: the columns that are asked for, from the file and from its path, a slice at a time."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from . import storage
from .errors import InvalidData
from .listing import WorkItem


def carried_types(items: Sequence[WorkItem]) -> dict[str, pa.DataType]:
    """Types of the columns that paths carry, the same in all items, also where an item's value is null."""
    values: dict[str, set[str | int | None]] = {}
    for item in items:
        for name, value in item.partition:
            values.setdefault(name, set()).add(value)
    return {name: pa.string() if any(isinstance(value, str) for value in found) else pa.int64() for name, found in values.items()}


def read_slices(item: WorkItem, wanted: Sequence[str], types: Mapping[str, pa.DataType], slice_rows: int) -> Iterator[pa.RecordBatch]:
    """The item's rows in the columns wanted, at most ``slice_rows`` at a time; ``types`` are those of columns that the path carries.

    Raises
    ------
    InvalidData
        the file changed since the run was planned, or cannot be read
    """
    if storage.stat(item.uri).etag != item.etag:
        raise InvalidData(f"{item.uri}: changed since the run was planned")
    carried = dict(item.partition)
    with storage.opened(item.uri) as file:
        try:
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            present = set(parquet.schema_arrow.names)
            columns = [name for name in wanted if name in present]
            for batch in parquet.iter_batches(slice_rows, row_groups=list(item.row_groups), columns=columns, use_threads=False):
                for name in wanted:
                    if name not in present:
                        batch = batch.append_column(name, pa.repeat(pa.scalar(carried[name], types[name]), batch.num_rows))
                yield batch
        except (pa.ArrowException, OSError) as error:
            raise InvalidData(f"{item.uri}: row groups {item.row_groups}: cannot read: {' '.join(str(error).split())}") from error


def miscounted(item: WorkItem, n_rows: int) -> InvalidData:
    """What to raise where an item has other rows than were planned."""
    return InvalidData(f"{item.uri}: row groups {item.row_groups}: got {n_rows} rows, the footer says {item.n_rows}")
