"""Parquet footers read sequentially, or in parallel where the store is slow to answer."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pyarrow.parquet as pq

from ...errors import InvalidData
from ...stores import storage
from ...tables.live_files import LiveFile
from .identity import hold_small, identify
from .matching import Matched, Matching, make_shape
from .row_groups import AS_READ, DAMAGED, columns_of, largest_held

FOOTER_READERS = 16
FEW, WAITS = 32, 2  # files to measure, and the ratio of waiting to work from which parallel reading pays
BLOCK = 1024  # files queued for readers; a queued file takes more memory than what is kept of its footer

# What reads files of these names.
READERS = {"csv": "read_csv", "tsv": "read_table", "json": "read_json", "jsonl": "read_json", "feather": "read_feather", "xlsx": "read_excel"}


@dataclass(frozen=True, slots=True)
class Footer:
    """The part of a file's footer that is kept, matched against the model."""

    rows: tuple[int, ...]  # rows of every row group
    row_group: int  # bytes of the largest row group
    n_chunks: int
    identity: str
    matched: Matched


def _say_written(uri: str) -> str:
    """Say how pandas makes Parquet of a file that is something else by its name; nothing of other names."""
    start, _, end = uri.rpartition("/")[2].partition(".")
    reader = READERS.get(end.lower().removesuffix(".gz"))
    return f"pandas.{reader}({start + '.' + end!r}).to_parquet({start + '.parquet'!r}) makes one of it" if reader else ""


def read_footer(live: LiveFile, matching: Matching) -> Footer:
    """Read the footer of a file and match its columns."""
    file = live.file
    with storage.opened(file.uri) as opened:
        opened = hold_small(file, opened)
        try:
            parquet = pq.ParquetFile(opened, **AS_READ)
            metadata, shape = parquet.metadata, make_shape(parquet.schema_arrow, live)
            matched = matching.match(shape)
            columns = columns_of(metadata, matched.read)
            identity = identify(file, opened, metadata, columns)
        except DAMAGED as error:
            what = "has what Arrow does not read" if isinstance(error, NotImplementedError) else "not a Parquet file"
            raise InvalidData(f"{file.uri}: {what}: {_say_written(file.uri) or ' '.join(str(error).split())}") from error
    matching.check(shape, live)
    return Footer(
        rows=tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)),
        row_group=largest_held(metadata, columns),
        n_chunks=metadata.num_row_groups * metadata.num_columns,
        identity=identity,
        matched=matched,
    )


def _try_footer(live: LiveFile, matching: Matching) -> Footer | InvalidData:
    """Return the footer, or the error if unreadable; a schema that does not match is still refused."""
    try:
        return read_footer(live, matching)
    except InvalidData as error:
        return error


def read_footers(files: Sequence[LiveFile], matching: Matching) -> Iterator[Footer | InvalidData]:
    """Read the footers of files sequentially if they arrive fast, since parallel readers would then take twice as long.

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
