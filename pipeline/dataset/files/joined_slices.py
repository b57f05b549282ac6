"""Slices of rows as they are explained: of one file, or of several small ones, which together cost hardly more than one."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from ...errors import InvalidColumn
from ..columns.row_places import RowPlaces
from .listing import WorkItem
from .row_groups import has_dictionary
from .rows import located

T = TypeVar("T")
Read = tuple[WorkItem, int, pa.RecordBatch]  # see `rows.read_rows`

JOINED_BYTES = 1 << 24  # bytes of batches that are put together, at most; what are larger gain nothing from it


@dataclass(frozen=True, slots=True)
class JoinedSlice:
    """Rows of consecutive files of a work item."""

    batch: pa.RecordBatch
    pieces: tuple[WorkItem, ...]  # the item's, of each file
    places: RowPlaces

    def convert(self, work: Callable[[pa.RecordBatch], T]) -> T:
        """Convert columns of all rows at once; where some cannot be, file by file, so that the error names the file.

        Raises
        ------
        InvalidData
            In the place of InvalidColumn, see `located`.
        """
        try:
            return work(self.batch)
        except InvalidColumn:
            for piece, (start, stop) in zip(self.pieces, self.places.spans(self.batch.num_rows), strict=True):
                with located(piece):
                    work(self.batch.slice(start, stop - start))
            raise


def _join(held: list[Read]) -> JoinedSlice:
    pieces, first_rows, batches = zip(*held, strict=True)
    starts = [0]
    for batch in batches[:-1]:
        starts.append(starts[-1] + batch.num_rows)
    batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    return JoinedSlice(batch, pieces, RowPlaces(tuple(piece.uri for piece in pieces), first_rows, tuple(starts)))


def join_slices(rows: Iterable[Read], slice_rows: int) -> Iterator[JoinedSlice]:
    """Put batches together as long as they are small and have the same columns, without dictionaries, which differ from file to file.

    Parameters
    ----------
    slice_rows : int
        Rows of a slice, at most.
    """
    held, n_rows, n_bytes = list[Read](), 0, 0
    for read in rows:
        batch, size = read[2], read[2].get_total_buffer_size()
        if held and not (batch.schema.equals(held[0][2].schema) and n_rows + batch.num_rows <= slice_rows and n_bytes + size <= JOINED_BYTES):
            yield _join(held)
            held, n_rows, n_bytes = [], 0, 0
        held.append(read)
        n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + size
        if n_rows >= slice_rows or (len(held) == 1 and any(map(has_dictionary, batch.schema.types))):
            yield _join(held)
            held, n_rows, n_bytes = [], 0, 0
    if held:
        yield _join(held)
