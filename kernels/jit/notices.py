"""Callbacks before a kernel is compiled, which is slow."""

from collections.abc import Callable

_TO_TELL: dict[Callable[[], None], bool] = {}  # callbacks before a compilation, and whether each has been called


def when_compiling(tell: Callable[[], None]) -> None:
    """Register a callback to be called once before a kernel is compiled, which is slow; not if all come from the cache.

    Parameters
    ----------
    tell : callable
        takes nothing; called once in a process, however often it is given
    """
    _TO_TELL.setdefault(tell, True)


def announce() -> None:
    """Call the callbacks that have not been called."""
    for tell, untold in list(_TO_TELL.items()):
        if untold:
            _TO_TELL[tell] = False
            tell()
