"""The only place where Numba's options are set.

``nogil``: Dask's threads and processes give the parallelism, never ``parallel`` (Numba's workqueue aborts on concurrent entry).
``error_model="numpy"``: no zero-division branches in inner loops. ``fastmath={"contract"}``: multiply-adds may fuse, which gives the same
bits on every run; nothing may be reassociated. ``cache``: compiled once per machine. Numba keys a kernel by its own file, but what it takes
from others is compiled into it too: the key here is the content of all files of this package.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from pickle import dumps
from typing import Any

import numpy as np
from numba import njit
from numba.core.caching import IndexDataCacheFile


def _digest_sources() -> str:
    """SHA-256 of every file of this package: its name and its text."""
    package, content = Path(__file__).parent, sha256()
    for path in sorted(package.rglob("*.py")):
        text = path.read_bytes()
        content.update(f"{path.relative_to(package)} {len(text)} ".encode() + text)
    return content.hexdigest()


SOURCES = _digest_sources()


class _CompiledFiles(IndexDataCacheFile):
    """Files of a kernel's compiled code, each named by what it was compiled from and for.

    Numba numbers them by what its index lists. Two processes that compile one kernel for two types at once, as workers do, then take the same
    number, and the index gives one the code of the other: wrong results, and silently. Here two entries never share a file; the worst that a
    lost entry of the index costs is to compile again. Other sources have an index of their own, which is not even read: what it lists may be of
    types that are there no more.
    """

    def __init__(self, cache_path: str, filename_base: str, source_stamp: str):
        super().__init__(cache_path, f"{filename_base}-{source_stamp[:16]}", source_stamp)
        self._stale = f"{filename_base.rpartition('-')[0]}-*.nb?"  # the same kernel, on whatever line

    def save(self, key: Any, data: Any) -> None:
        """Write the code, then list it: what the index names is always there. What was compiled from other sources goes."""
        name = self._data_name_pattern.format(number=int(sha256(dumps(key)).hexdigest()[:16], 16))
        self._save_data(name, data)
        self._save_index(self._load_index() | {key: name})
        for path in Path(self._cache_path).glob(self._stale):
            if self._source_stamp[:16] not in path.name:
                path.unlink(missing_ok=True)


def jit(function: Callable[..., Any]) -> Any:
    """Compile a kernel, or with ``NUMBA_DISABLE_JIT`` leave it as it is.

    Parameters
    ----------
    function : callable
        takes numbers, arrays, and tuples or NamedTuples of them; compiled anew when a file of this package changes, no other file counts

    Returns
    -------
    callable
        of the same signature: compiled when it is first called with new types, and kept on disk for later processes; with
        ``NUMBA_DISABLE_JIT`` the function itself
    """
    kernel: Any = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})(function)
    if kernel is not function:
        files = kernel._cache._cache_file
        kernel._cache._cache_file = _CompiledFiles(files._cache_path, files._index_name.removesuffix(".nbi"), SOURCES)
    return kernel


def frozen(tables: Any) -> Any:
    """Make nested records' arrays contiguous and read-only, as they are when mapped from files: kernels see one type of array, and compile once.

    Parameters
    ----------
    tables : ndarray, or NamedTuple of arrays and of such NamedTuples
        of any shapes and dtypes

    Returns
    -------
    ndarray or NamedTuple
        of the same types and values, every array C-contiguous and read-only; an array that was contiguous is not copied, but viewed
    """
    if isinstance(tables, np.ndarray):
        array = np.ascontiguousarray(tables).view()
        array.flags.writeable = False
        return array
    return type(tables)(*map(frozen, tables))


def count_bytes(tables: Any) -> int:
    """Count the bytes of nested records' arrays.

    Parameters
    ----------
    tables : ndarray, or NamedTuple of arrays and of such NamedTuples

    Returns
    -------
    int
        bytes of all elements; an array that stands in two places counts twice
    """
    return tables.nbytes if isinstance(tables, np.ndarray) else sum(map(count_bytes, tables))
