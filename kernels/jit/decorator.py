"""The only use of Numba's ``njit``: options, cache folder, and frozen arrays for kernels.

``nogil``: Dask's threads and processes run in parallel, never ``parallel`` (Numba's workqueue aborts on concurrent entry). ``error_model="numpy"``:
no zero-division branches in inner loops. ``fastmath={"contract"}``: multiply-adds may fuse, with the same bits on every run; nothing is reassociated.
``cache``: compiled once per machine. Numba keys a cached kernel by its own file only, although code of other files is compiled into it; the key here
digests all files of this package.
"""

import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from pickle import dumps
from stat import S_ISDIR
from tempfile import gettempdir, mkdtemp
from typing import Any

import numpy as np
from numba import config, njit
from numba.core.caching import IndexDataCacheFile


def _digest_sources() -> str:
    """Return the SHA-256 of the names and contents of all files of ``kernels``."""
    package, content = Path(__file__).parents[1], sha256()
    for path in sorted(package.rglob("*.py")):
        text = path.read_bytes()
        content.update(f"{path.relative_to(package)} {len(text)} ".encode() + text)
    return content.hexdigest()


SOURCES = _digest_sources()


_TO_TELL: dict[Callable[[], None], bool] = {}  # callbacks before a compilation, and whether each has been called


def when_compiling(tell: Callable[[], None]) -> None:
    """Register a callback to be called once before a kernel is compiled, which is slow; not if all come from the cache.

    Parameters
    ----------
    tell : callable
        takes nothing; called once in a process, however often it is given
    """
    _TO_TELL.setdefault(tell, True)


def _announce() -> None:
    """Call the callbacks that have not been called."""
    for tell, untold in list(_TO_TELL.items()):
        if untold:
            _TO_TELL[tell] = False
            tell()


class _CompiledFiles(IndexDataCacheFile):
    """Cache files of a kernel's compiled code, named by the sources, signature and processor.

    Numba numbers these files by the entries of its index. Two processes that compile a kernel for two signatures at once then take the same number,
    and one loads the other's code: wrong results, silently. Here entries never share a file; a lost index entry costs a recompilation at most.
    Changed sources get a new index; the old one is not read, since its types may be gone.
    """

    def __init__(self, cache_path: str, filename_base: str, source_stamp: str):
        super().__init__(cache_path, f"{filename_base}-{source_stamp[:16]}", source_stamp)
        self._stale = f"{filename_base.rpartition('-')[0]}-*.nb?"  # files of the same kernel, whatever its line number

    def load(self, key: Any) -> Any:
        """Load the compiled code; return None if there is none."""
        found = super().load(key)
        if found is None:
            _announce()
        return found

    def save(self, key: Any, data: Any) -> None:
        """Write the code, then its index entry, so that the index lists existing files only; remove code of other sources.

        On a full disk nothing is cached, and the kernel serves this process only.
        """
        name = self._data_name_pattern.format(number=int(sha256(dumps(key)).hexdigest()[:16], 16))
        with suppress(OSError):
            self._save_data(name, data)
            self._save_index(self._load_index() | {key: name})
            for path in Path(self._cache_path).glob(self._stale):
                if self._source_stamp[:16] not in path.name:
                    path.unlink(missing_ok=True)


def _make_private_folder() -> str:
    """Return a temporary folder that later processes find again and only this user can write to, else one for this process."""
    folder = Path(gettempdir()) / f"leafledger-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
            return str(folder)
    return mkdtemp(prefix="leafledger-")


@cache
def _keep_elsewhere() -> bool:
    """Cache kernels of this process and its children in a temporary folder, with one warning; return whether there is one."""
    try:
        folder = _make_private_folder()
    except OSError:
        warnings.warn("no folder for compiled kernels can be written, every process compiles them anew; set NUMBA_CACHE_DIR", stacklevel=2)
        return False
    warnings.warn(f"no folder for compiled kernels can be written, they are kept in {folder}; set NUMBA_CACHE_DIR", stacklevel=2)
    os.environ["NUMBA_CACHE_DIR"] = vars(config)["CACHE_DIR"] = folder
    return True


def _compile(function: Callable[..., Any], inline: bool, keep: bool) -> Any:
    wrappers: dict[str, bool] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": inline}  # which take time to compile too
    return njit(nogil=True, cache=keep, error_model="numpy", fastmath={"contract"}, forceinline=inline, **wrappers)(function)  # type: ignore[call-overload]


def _compile_and_keep(function: Callable[..., Any], inline: bool) -> Any:
    """Compile a cached function; use a temporary cache folder where Numba finds no writable one, as in a read-only image without a home."""
    with suppress(RuntimeError):
        return _compile(function, inline, True)
    if _keep_elsewhere():
        with suppress(RuntimeError):
            return _compile(function, inline, True)
    return _compile(function, inline, False)


def jit(function: Callable[..., Any], inline: bool = False) -> Any:
    """Compile a kernel; with ``NUMBA_DISABLE_JIT``, return the function unchanged.

    Parameters
    ----------
    function : callable
        takes numbers, arrays, and tuples or NamedTuples of them; compiled anew when a file of this package changes, no other file counts
    inline : bool
        LLVM puts its code into kernels, which alone can call it. Called with constants, it is as fast as if it were written for them, and a kernel
        for other constants takes a fraction of the time to compile: Numba's part, before LLVM's, is done once

    Returns
    -------
    callable
        of the same signature: compiled when it is first called with new types, and kept on disk for later processes; with
        ``NUMBA_DISABLE_JIT`` the function itself
    """
    kernel: Any = _compile_and_keep(function, inline)
    files = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if files is not None:
        kernel._cache._cache_file = _CompiledFiles(files._cache_path, files._index_name.removesuffix(".nbi"), SOURCES)
    return kernel


def frozen(tables: Any) -> Any:
    """Make all arrays of nested records contiguous and read-only, as if mapped from files: one signature per kernel.

    Parameters
    ----------
    tables : ndarray, or NamedTuple or tuple of arrays and of such records
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
    parts = map(frozen, tables)
    return type(tables)(*parts) if hasattr(tables, "_fields") else tuple(parts)


def count_bytes(tables: Any) -> int:
    """Count the bytes of all arrays of nested records.

    Parameters
    ----------
    tables : ndarray, or NamedTuple of arrays and of such NamedTuples

    Returns
    -------
    int
        bytes of all elements; an array that stands in two places counts twice
    """
    return tables.nbytes if isinstance(tables, np.ndarray) else sum(map(count_bytes, tables))
