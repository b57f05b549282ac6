"""Identity of a Parquet file, to detect a replaced file of the same name, size and time.

Copies keep times, and some stores have none. So the footer counts too, with sizes and minima and maxima of all columns; where the store does not
guarantee the bytes, also sampled blocks, or all bytes if the footer has too few statistics. Inodes, devices and change times do not count: backups,
restored disks and other mounts change them, but not the rows.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...stores import storage

LENGTH, MAGIC = 4, 4  # bytes at a file's end: the footer's length, and the magic number
BLOCK, BLOCKS = 1 << 14, 16  # bytes of a sampled block, and number of blocks
WHOLE = BLOCK * BLOCKS  # size of files that are digested entirely
PIECE = 1 << 22  # bytes read at a time
CHARACTERS = 32  # hexadecimal digits of a digest


def hold_small(found: storage.Object, file: Any) -> Any:
    """Read a small file of this machine at once, since Arrow asks for every column by itself; return any other as it is."""
    return pa.BufferReader(file.read()) if found.near and found.size <= WHOLE else file


def _digest_footer(file: Any) -> str:
    file.seek(-LENGTH - MAGIC, 2)
    n_bytes = int.from_bytes(file.read(LENGTH), "little")
    file.seek(-LENGTH - MAGIC - n_bytes, 2)
    return hashlib.sha256(file.read(n_bytes)).hexdigest()[:CHARACTERS]


def _says_enough(metadata: pq.FileMetaData, columns: Sequence[int]) -> bool:
    """Return whether every column that is read has minimum and maximum in every row group."""
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
    """Digest evenly spaced blocks, including the first and the last."""
    if size <= WHOLE:
        return _digest_bytes(file, [0], size)
    return _digest_bytes(file, np.linspace(0, size - BLOCK, BLOCKS).astype(np.int64).tolist(), BLOCK)


def identify(found: storage.Object, file: Any, metadata: pq.FileMetaData, columns: Sequence[int]) -> str:
    """Compute a text that differs for any other file under this name."""
    of_bytes = ""
    if not found.proven:
        if found.near and found.size <= WHOLE:
            of_bytes = _digest_some(file, found.size)
        elif not found.etag or not _says_enough(metadata, columns):
            of_bytes = _digest_bytes(file, list(range(0, found.size, PIECE)), PIECE)
        elif found.near:
            of_bytes = _digest_some(file, found.size)
    return f"{found.etag} {_digest_footer(file)} {of_bytes}"


def mark_of(identity: str) -> str:
    """Return the store's mark of a file, of an identity as `identify` makes it, or as 0.1 did, which knew files by their marks alone."""
    return identity.rsplit(" ", 2)[0]


def is_still(identity: str, found: storage.Object | None) -> bool:
    """Return whether the store's mark of the file is unchanged.

    Parameters
    ----------
    identity : str
        As `identify` made it.
    found : Object or None
        What is there now.
    """
    return found is not None and found.etag == mark_of(identity)


def has_footer(identity: str, file: Any) -> bool:
    """Return whether an open file has the recorded footer."""
    return _digest_footer(file) == identity.rsplit(" ", 2)[1]
