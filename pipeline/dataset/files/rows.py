"""Reading of a work item's rows, batch by batch, with columns of files and paths."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...errors import InvalidColumn, InvalidData, LeafledgerError, StorageError
from ...stores import storage
from .identity import has_footer, hold_small, is_still
from .listing import WorkItem
from .row_groups import AS_READ, DAMAGED, choose_pieces, read_batches
from .texts import FEW_ROWS, decode, find_texts


def _open_parquet(file: Any, **options: Any) -> pq.ParquetFile:
    """Open a file with page checksums verified."""
    return pq.ParquetFile(file, page_checksum_verification=True, **AS_READ, **options)


def _append(batch: pa.RecordBatch, name: str, text: str | None) -> pa.RecordBatch:
    """Append a column from the path, constant over rows."""
    return batch.append_column(name, pa.repeat(pa.scalar(text, pa.string()), batch.num_rows))


def _says(values: pa.Array, text: str | None) -> pa.Array:
    """Return whether each value equals the text from the path."""
    if text is None:
        return values.is_null()
    if pa.types.is_float16(values.type):  # Arrow neither parses nor compares float16
        return pc.equal(values.cast(pa.float32()), float(np.float16(text)))
    return pc.equal(values, pa.scalar(text).cast(values.type))


def _check_carried(batch: pa.RecordBatch, name: str, text: str | None) -> None:
    """Refuse a column that contradicts the path."""
    column = batch.column(name)
    values = column.unique().dictionary_decode() if pa.types.is_dictionary(column.type) else column
    try:
        same = pc.all(_says(values, text), skip_nulls=False).as_py()
    except (pa.ArrowException, NotImplementedError, ValueError):  # no text is a value of this type, or this one is not
        same = False
    if not same:
        raise InvalidColumn(f"column {name!r} is {text!r} in the path, and something else in the file")


def _check_unchanged(item: WorkItem) -> storage.Object:
    """Look a file up, and refuse one that changed since planning."""
    found = storage.stat_if_exists(item.uri)
    if found is None or not is_still(item.etag, found):
        raise InvalidData(f"{item.uri}: {'changed' if found else 'removed'} since the run was planned")
    return found


def read_slices(item: WorkItem, wanted: Sequence[str], slice_rows: int) -> Iterator[pa.RecordBatch]:
    """Read an item's rows in batches.

    Parameters
    ----------
    wanted : sequence of str
        Columns to read, from the file or from its path.
    slice_rows : int
        Rows of a slice, at most.

    Yields
    ------
    pa.RecordBatch
        The columns wanted; those of the file come first, then those of the path, as texts.

    Raises
    ------
    InvalidData
        The file is gone, has changed since the run was planned, also while it was read, which is said after the last of its rows, or cannot be read;
        or a column wanted is in its path too, and says something else.
    """
    for piece in item.pieces:
        found = _check_unchanged(piece)
        try:
            yield from _read_slices(piece, found, wanted, slice_rows)
        except (InvalidData, StorageError):  # the store or the reader may notice that the file was replaced
            _check_unchanged(piece)
            raise
        _check_unchanged(piece)  # otherwise rows may come from two files


def _read_slices(item: WorkItem, found: storage.Object, wanted: Sequence[str], slice_rows: int) -> Iterator[pa.RecordBatch]:
    carried, columns = dict(item.partition), list[str]()  # unknown for a file with an unreadable footer
    with ExitStack() as stack:
        file = hold_small(found, stack.enter_context(storage.opened(item.uri)))
        try:
            parquet = _open_parquet(file)
            if not has_footer(item.etag, file):
                raise InvalidData(f"{item.uri}: changed since the run was planned")
            schema = parquet.schema_arrow  # made anew at every call
            present = set(schema.names)
            columns = [name for name in wanted if name in present]
            pieces = choose_pieces(parquet.metadata, item.row_groups, columns, found.size)
            texts, others = find_texts(parquet, schema, item.row_groups, columns)
            source = stack.enter_context(storage.opened(item.uri, ahead=False)) if pieces else file  # columns are read in turns
            known = {"metadata": parquet.metadata, "read_dictionary": texts}
            encoded = _open_parquet(source, **known, **pieces) if texts or pieces else parquet
            read = read_batches(encoded, item.row_groups, columns, min(slice_rows, FEW_ROWS) if others else slice_rows)
            for batch in decode(window(read, item.skip, item.n_rows), schema, slice_rows):
                for name in wanted:
                    if name not in present and name not in carried:
                        raise InvalidData(f"{item.uri}: column {name!r} is neither in the file nor in its path")
                    if name not in present:
                        batch = _append(batch, name, carried[name])
                    elif name in carried:
                        with located(item):
                            _check_carried(batch, name, carried[name])
                yield batch
        except DAMAGED as error:
            where = _find_damage(file, item.row_groups, columns)
            raise InvalidData(f"{item.uri}: {where}cannot read: {' '.join(str(error).split())}") from error


def read_rows(item: WorkItem, names: Sequence[str], slice_rows: int) -> Iterator[tuple[WorkItem, int, pa.RecordBatch]]:
    """Read an item's rows in batches of one file each, as `read_slices`, and refuse another number of rows than was planned.

    Yields
    ------
    piece : WorkItem
        The file's rows of the item.
    first_row : int
        Number of the batch's first row in the file.
    batch : pa.RecordBatch
    """
    for piece in item.pieces:
        done = 0
        for batch in read_slices(piece, names, slice_rows):
            yield piece, piece.first_row + done, batch
            done += batch.num_rows
        if done != piece.n_rows:
            raise miscounted(piece, done)


def read_some(item: WorkItem, name: str, most: int = 1000) -> list[Any]:
    """Read the first values of a column, for messages; none where they cannot be read."""
    with suppress(LeafledgerError):
        for batch in read_slices(item.pieces[0], [name], most):
            return batch.column(name).to_pylist()
    return []


def window(batches: Iterable[pa.RecordBatch], skip: int, n_rows: int) -> Iterator[pa.RecordBatch]:
    """Take a range of rows of a sequence of batches.

    Parameters
    ----------
    skip : int
        Rows to leave out at the beginning.
    n_rows : int
        Rows to take after them, at most.

    Yields
    ------
    pa.RecordBatch
        Parts of the batches, without copies, none of them empty.
    """
    for batch in batches:
        wanted = batch.slice(skip, n_rows)
        skip, n_rows = max(0, skip - batch.num_rows), n_rows - wanted.num_rows
        if wanted.num_rows:
            yield wanted
        if not n_rows:
            return


def _find_damage(file: Any, row_groups: Sequence[int], columns: Sequence[str]) -> str:
    """Describe the first row group and column that cannot be read, if the file as a whole can."""
    for group in row_groups:
        for name in columns:
            try:
                for _ in _open_parquet(file).iter_batches(row_groups=[group], columns=[name], use_threads=False):
                    pass
            except DAMAGED:
                return f"row group {group}: column {name!r}: "
    return ""


@contextmanager
def located(item: WorkItem) -> Iterator[None]:
    """Name the rows in conversion errors raised inside.

    Raises
    ------
    InvalidData
        In the place of InvalidColumn, with the item's file and row groups.
    """
    try:
        yield
    except InvalidColumn as error:
        raise InvalidData(f"{item.uri}: row groups {list(item.row_groups)}: {error}") from error


def miscounted(item: WorkItem, n_rows: int) -> InvalidData:
    """Make the error for an item with an unexpected number of rows.

    Parameters
    ----------
    n_rows : int
        Rows that were read.
    """
    return InvalidData(f"{item.uri}: row groups {item.row_groups}: got {n_rows} rows, the footer says {item.n_rows}")
