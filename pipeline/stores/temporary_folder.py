"""Temporary folders beside a place that must not be touched yet."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from . import commit, storage

NAME = "_trial"  # that no listing of data or of tables shows


@contextmanager
def temporary_folder(uri: str) -> Iterator[str]:
    """Name a place on the same disk or in the same bucket, where nothing is, and remove afterwards what was written there.

    Parameters
    ----------
    uri : str
        Of a folder that may not be there. Neither it nor a folder above it is made.

    Yields
    ------
    str
        URI of a folder beside it; of a local one, in the first folder above it that is there.
    """
    name, local = f"{NAME}-{secrets.token_hex(8)}", storage.local_path(uri)
    place = storage.beside(uri, name)
    if local is not None:
        place = (next(folder for folder in local.parents if folder.is_dir()) / name).as_posix()
    try:
        yield place
    finally:
        commit.remove(place)
