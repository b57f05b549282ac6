"""The only use of Numba's ``njit``: options, cache folder, and frozen arrays for kernels.

``nogil``: Dask's threads and processes run in parallel, never ``parallel`` (Numba's workqueue aborts on concurrent entry). ``error_model="numpy"``:
no zero-division branches in inner loops. ``fastmath={"contract"}``: multiply-adds may fuse, with the same bits on every run; nothing is reassociated.
``cache``: compiled once per machine. Numba keys a cached kernel by its own file only, although code of other files is compiled into it; the key here
digests all files of this package.

Numba takes a quarter of a second to import, and as long to load its first kernel: both wait until a kernel is called.
"""

import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR
from tempfile import gettempdir, mkdtemp
from typing import Any

import numpy as np

from .collector import loading


@cache
def digest_sources() -> str:
    """Return the SHA-256 of the names and contents of all files of ``kernels``."""
    package, content = Path(__file__).parents[1], sha256()
    for path in sorted(package.rglob("*.py")):
        text = path.read_bytes()
        content.update(f"{path.relative_to(package)} {len(text)} ".encode() + text)
    return content.hexdigest()


def _make_private_folder() -> str:
    """Return a temporary folder that later processes find again and only this user can write to, else one for this process."""
    if sys.platform != "win32":  # which has no bits that say who may write
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
    from numba import config

    try:
        folder = _make_private_folder()
    except OSError:
        warnings.warn("no folder for compiled kernels can be written, every process compiles them anew; set NUMBA_CACHE_DIR", stacklevel=2)
        return False
    warnings.warn(f"no folder for compiled kernels can be written, they are kept in {folder}; set NUMBA_CACHE_DIR", stacklevel=2)
    os.environ["NUMBA_CACHE_DIR"] = vars(config)["CACHE_DIR"] = folder
    return True


class Kernel:
    """A function that is compiled, or loaded, when it is first called, from Python or in another kernel."""

    def __init__(self, function: Callable[..., Any], compile_it: Callable[[], Any]):
        self.__doc__, self.__name__, self.__module__ = function.__doc__, function.__name__, function.__module__
        self.__wrapped__ = function
        self._compile = compile_it

    @cached_property
    def compiled(self) -> Any:
        """What Numba made of the function; with ``NUMBA_DISABLE_JIT`` the function itself."""
        with loading():
            from numba import config

            _teach_numba()
        return self.__wrapped__ if vars(config)["DISABLE_JIT"] else self._compile()

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)


@cache
def _teach_numba() -> None:
    """Let Numba take a Kernel, where another one calls it, for what it is compiled to."""
    from numba.core.registry import cpu_target
    from numba.extending import typeof_impl

    from . import instructions  # noqa: F401 - Numba knows those only that are there before it compiles the first kernel that has them

    cpu_target.typing_context.refresh()  # loads what the first kernel would
    cpu_target.target_context.refresh()
    typeof_impl.register(Kernel)(lambda kernel, _: cpu_target.typing_context.resolve_value_type(kernel.compiled))


def _compile(function: Callable[..., Any], inline: bool, keep: bool) -> Any:
    from numba import njit

    # Wrappers take time to compile too. Numba's stubs know neither these options nor the inlining, hence the type that is ignored.
    wrappers: dict[str, bool] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": inline}
    return njit(nogil=True, cache=keep, error_model="numpy", fastmath={"contract"}, forceinline=inline, **wrappers)(function)  # type: ignore[call-overload]  # by names in wrappers


def _compile_and_keep(function: Callable[..., Any], inline: bool) -> Any:
    """Compile a cached function; use a temporary cache folder where Numba finds no writable one, as in a read-only image without a home."""
    with suppress(RuntimeError):
        return _compile(function, inline, True)
    if _keep_elsewhere():
        with suppress(RuntimeError):
            return _compile(function, inline, True)
    return _compile(function, inline, False)


def _compile_as_kept(function: Callable[..., Any], inline: bool) -> Any:
    """Compile a function whose code is found again until a source changes."""
    from .code_files import CompiledFiles

    kernel = _compile_and_keep(function, inline)
    files = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if files is not None:
        kernel._cache._cache_file = CompiledFiles(files._cache_path, files._index_name.removesuffix(".nbi"), digest_sources())
    return kernel


def jit(function: Callable[..., Any], inline: bool = False) -> Kernel:
    """Make a kernel of a function.

    Parameters
    ----------
    function : callable
        takes numbers, arrays, and tuples or NamedTuples of them; compiled anew when a file of this package changes, no other file counts
    inline : bool
        LLVM puts its code into kernels, which alone can call it. Called with constants, it is as fast as if it were written for them, and a kernel
        for other constants takes a fraction of the time to compile: Numba's part, before LLVM's, is done once

    Returns
    -------
    Kernel
        of the same signature: compiled when it is first called with new types, and kept on disk for later processes; with
        ``NUMBA_DISABLE_JIT`` it calls the function itself
    """
    return Kernel(function, lambda: _compile_as_kept(function, inline))


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
