"""The only place where Numba's options are set.

``nogil``: Dask's threads and processes give the parallelism, never ``parallel`` (Numba's workqueue aborts on concurrent entry).
``error_model="numpy"``: no zero-division branches in inner loops. ``fastmath={"contract"}``: multiply-adds may fuse, which gives the same
bits on every run; nothing may be reassociated. ``cache``: compiled once per machine, keyed by source file. A change of ``lanes.py`` alone does
not reach the cached kernels that use it: remove ``kernels/__pycache__`` then.
"""

from collections.abc import Callable
from hashlib import sha256
from pickle import dumps
from typing import Any

import numpy as np
from numba import njit
from numba.core.caching import IndexDataCacheFile


class _CompiledFiles(IndexDataCacheFile):
    """Files of compiled code, each named by what it was compiled for.

    Numba numbers them by what its index lists. Two processes that compile one kernel for two types at once, as workers do, then take the same
    number, and the index gives one the code of the other: wrong results, and silently. Here two entries never share a file; the worst that a
    lost entry of the index costs is to compile again.
    """

    def save(self, key: Any, data: Any) -> None:
        """Write the code, then list it: what the index names is always there."""
        name = self._data_name_pattern.format(number=int(sha256(dumps((self._source_stamp, key))).hexdigest()[:16], 16))
        self._save_data(name, data)
        self._save_index(self._load_index() | {key: name})


def jit(function: Callable[..., Any]) -> Any:
    """Compile a kernel, or with ``NUMBA_DISABLE_JIT`` leave it as it is."""
    kernel: Any = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})(function)
    if kernel is not function:
        kernel._cache._cache_file.__class__ = _CompiledFiles
    return kernel


def frozen(tables: Any) -> Any:
    """Nested records' arrays contiguous and read-only, as they are when mapped from files: kernels see one type of array, and compile once."""
    if isinstance(tables, np.ndarray):
        array = np.ascontiguousarray(tables).view()
        array.flags.writeable = False
        return array
    return type(tables)(*map(frozen, tables))
