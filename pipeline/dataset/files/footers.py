"""Footers of Parquet files, read here: one after another, or several at a time where a store lets readers wait."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import InvalidData
from ...stores import storage
from ...tables.live import LiveFile
from .identity import WHOLE, identify
from .matching import Matched, Matching, make_shape
from .row_groups import AS_READ, DAMAGED, columns_of, largest_held

FOOTER_READERS = 16
FEW, WAITS = 32, 2  # files that tell whether readers wait for them, and how many times as long as they work
BLOCK = 1024  # files that wait for a reader; one that waits takes more memory than what is kept of its footer


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file's footer says, matched against the model; footers of wide files are too large to keep."""

    rows: tuple[int, ...]  # of every row group
    row_group: int  # bytes of the largest
    n_chunks: int
    identity: str
    matched: Matched


def read_footer(live: LiveFile, matching: Matching) -> Footer:
    """Read the footer of a file and match its columns."""
    file = live.file
    with storage.opened(file.uri) as opened:
        if file.near and file.size <= WHOLE:  # all of it is digested anyway
            opened = pa.BufferReader(opened.read())
        try:
            parquet = pq.ParquetFile(opened, **AS_READ)
            metadata, shape = parquet.metadata, make_shape(parquet.schema_arrow, live)
            matched = matching.match(shape)
            columns = columns_of(metadata, matched.read)
            identity = identify(file, opened, metadata, columns)
        except DAMAGED as error:
            what = "has what Arrow does not read" if isinstance(error, NotImplementedError) else "not a Parquet file"
            raise InvalidData(f"{file.uri}: {what}: {' '.join(str(error).split())}") from error
    matching.check(shape, live)
    return Footer(
        rows=tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)),
        row_group=largest_held(metadata, columns),
        n_chunks=metadata.num_row_groups * metadata.num_columns,
        identity=identity,
        matched=matched,
    )


def _try_footer(live: LiveFile, matching: Matching) -> Footer | InvalidData:
    """What the footer says, or that it cannot be read; a schema that does not match is refused all the same."""
    try:
        return read_footer(live, matching)
    except InvalidData as error:
        return error


def read_footers(files: Sequence[LiveFile], matching: Matching) -> Iterator[Footer | InvalidData]:
    """Read the footers of files: one after another where they come at once, since readers would wait for each other, which takes twice as long.

    Parameters
    ----------
    files : sequence of LiveFile
        At least one.

    Yields
    ------
    Footer or InvalidData
        In the order of the files; why a footer cannot be read.

    Raises
    ------
    SchemaMismatch
        Columns of a file do not fit.
    """
    read = partial(_try_footer, matching=matching)
    first = FEW if files[0].file.near else 0
    began = time.perf_counter(), time.thread_time()
    yield from map(read, files[:first])
    at_once = first and time.perf_counter() - began[0] < WAITS * (time.thread_time() - began[1])
    with ThreadPoolExecutor(FOOTER_READERS) as readers:
        for start in range(first, len(files), BLOCK):
            block = files[start : start + BLOCK]
            yield from map(read, block) if at_once else readers.map(read, block)


ReadFooters = Callable[[Sequence[LiveFile], Matching], Iterator[Footer | InvalidData]]  # see `read_footers`
