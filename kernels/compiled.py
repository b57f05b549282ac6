"""Compiled kernels: the processor targeted, the cache folder, and counts of compilations."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from llvmlite import binding
from numba.core import config
from numba.core.event import install_recorder

from .trees.binning import is_member

_SETTINGS = vars(config)  # Numba's settings from the environment
LEVELS = {  # x86-64 levels: features that each adds to the level before, by LLVM's names
    "x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64-v4": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}


@dataclass(frozen=True, slots=True)
class Compiled:
    """Counter of kernels compiled so far inside the context."""

    events: list[Any] = field(default_factory=list)

    @property
    def n_kernels(self) -> int:
        """Count the kernels compiled in this process, one for each signature."""
        return sum(event.is_start for _, event in self.events)


@contextmanager
def counted() -> Iterator[Compiled]:
    """Count kernels that are compiled, not loaded from the cache, within the context.

    Yields
    ------
    Compiled
    """
    with install_recorder("numba:compile") as recorder:
        yield Compiled(recorder.buffer)


def find_lacking(level: str) -> tuple[str, ...]:
    """List the features of an x86-64 level that this machine's processor lacks.

    Parameters
    ----------
    level : str
        one of LEVELS

    Returns
    -------
    tuple of str
        names of features
    """
    found = binding.get_host_cpu_features()
    return tuple(name for name in LEVELS[level] if not found.get(name, False))


def find_folder() -> str | None:
    """Return the folder of the kernel cache.

    Returns
    -------
    str or None
        the folder that NUMBA_CACHE_DIR names, also where it is a temporary one that was found in its place; else this package's, or the user's own
        for a kernel of it; None where none can be written
    """
    kept = getattr(getattr(is_member.compiled, "_cache", None), "cache_path", None)
    return None if kept is None else _SETTINGS["CACHE_DIR"] or kept


def name_cpu() -> str:
    """Return the name of the processor that kernels are compiled for.

    Returns
    -------
    str
        in LLVM's words; what NUMBA_CPU_NAME says, or this machine's
    """
    return _SETTINGS["CPU_NAME"] or binding.get_host_cpu_name()
