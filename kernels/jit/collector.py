"""Python's garbage collector, kept from what is loaded and stays: looking through it takes a sixth of a short command."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_process_is_ours = False


def own_process() -> None:
    """Tell that this process is the command's: what there is once it has loaded modules is never looked through again. Others may have garbage."""
    global _process_is_ours
    _process_is_ours = True


@contextmanager
def loading() -> Iterator[None]:
    """Collect no garbage while modules are loaded, unless none is collected anyway."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if _process_is_ours:
            gc.freeze()
        if enabled:
            gc.enable()
