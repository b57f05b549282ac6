"""The only place where Numba's options are set.

``nogil``: Dask's threads and processes give the parallelism, never ``parallel`` (Numba's workqueue aborts on concurrent entry).
``error_model="numpy"``: no zero-division branches in inner loops. ``fastmath={"contract"}``: multiply-adds may fuse, which gives the same
bits on every run; nothing may be reassociated. ``cache``: compiled once per machine, keyed by source file. A change of ``lanes.py`` alone does
not reach the cached kernels that use it: remove ``kernels/__pycache__`` then.
"""

from typing import Any

import numpy as np
from numba import njit

jit = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})


def frozen(tables: Any) -> Any:
    """Nested records' arrays contiguous and read-only, as they are when mapped from files: kernels see one type of array, and compile once."""
    if isinstance(tables, np.ndarray):
        array = np.ascontiguousarray(tables).view()
        array.flags.writeable = False
        return array
    return type(tables)(*map(frozen, tables))
