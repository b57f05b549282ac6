"""Which file it is: what tells a Parquet file from another one of the same name, size and time.

Times are kept by copies, and some stores have none. So the footer counts too, with the sizes and the smallest and largest values of all columns; and
where the store does not vouch for the bytes, some of them, or all where the footer does not say enough. Inodes, devices and times of changes to a
name do not count: a backup's links, a restored disk or another machine's mount change them, and the rows are the same.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from ...stores import storage

LENGTH, MAGIC = 4, 4  # bytes at a file's end: of the footer's length, and of what the file is known by
BLOCK, BLOCKS = 1 << 14, 16  # bytes that are looked at together, and how often
WHOLE = BLOCK * BLOCKS  # bytes of a small file, which is read whole
PIECE = 1 << 22  # bytes read at a time
CHARACTERS = 32  # of a digest


def _digest_footer(file: Any) -> str:
    file.seek(-LENGTH - MAGIC, 2)
    n_bytes = int.from_bytes(file.read(LENGTH), "little")
    file.seek(-LENGTH - MAGIC - n_bytes, 2)
    return hashlib.sha256(file.read(n_bytes)).hexdigest()[:CHARACTERS]


def _says_enough(metadata: pq.FileMetaData, columns: Sequence[int]) -> bool:
    """Whether every column that is read has its smallest and largest value in every row group."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for chunk in map(group.column, columns):
            found = chunk.statistics
            if found is None or not (found.has_min_max or found.null_count == group.num_rows):
                return False
    return True


def _digest_bytes(file: Any, starts: list[int], n_bytes: int) -> str:
    digest = hashlib.sha256()
    for start in starts:
        file.seek(start)
        digest.update(file.read(n_bytes))
    return digest.hexdigest()[:CHARACTERS]


def _digest_some(file: Any, size: int) -> str:
    """Of blocks evenly apart, the first and the last among them."""
    if size <= WHOLE:
        return _digest_bytes(file, [0], size)
    return _digest_bytes(file, np.linspace(0, size - BLOCK, BLOCKS).astype(np.int64).tolist(), BLOCK)


def identify(found: storage.Object, file: Any, metadata: pq.FileMetaData, columns: Sequence[int]) -> str:
    """Make a text that differs for any other file in the place of this one."""
    of_bytes = ""
    if not found.proven:
        if not found.etag or not _says_enough(metadata, columns):
            of_bytes = _digest_bytes(file, list(range(0, found.size, PIECE)), PIECE)
        elif found.near:
            of_bytes = _digest_some(file, found.size)
    return f"{found.etag} {_digest_footer(file)} {of_bytes}"


def is_still(identity: str, found: storage.Object | None) -> bool:
    """Tell whether the store shows a file with the mark that it had.

    Parameters
    ----------
    identity : str
        As `identify` made it.
    found : Object or None
        What is there now.
    """
    return found is not None and found.etag == identity.rsplit(" ", 2)[0]


def has_footer(identity: str, file: Any) -> bool:
    """Tell whether an open file has the footer that it had."""
    return _digest_footer(file) == identity.rsplit(" ", 2)[1]
