"""The only use of numba-cuda's ``jit``, kernels and functions that are inlined into them, and of its context."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from numba import config

Function = TypeVar("Function", bound=Callable[..., Any])

cuda: Any = import_module("numba.cuda")  # numba-cuda's, where it is installed; Numba's own stubs know another
SIMULATED = bool(vars(config)["ENABLE_CUDASIM"])  # NUMBA_ENABLE_CUDASIM: threads of this process play a card


def inlined(function: Function) -> Function:
    """Make a function of a card that is inlined wherever it is called."""
    return function if SIMULATED else cuda.jit(device=True, forceinline=True)(function)


def kernel(function: Callable[..., None], registers: int | None = None) -> Any:
    """Make a kernel, ``kernel[blocks, threads, stream, bytes of shared memory](…)``, of at most so many registers a thread.

    Multiplications and additions may fuse, as on the processor.
    """
    return cuda.jit(function) if SIMULATED else cuda.jit(max_registers=registers)(function)


@inlined
def fetch(array: Any, index: Any) -> Any:
    """Load an element anew: the compiler cannot keep the result of an earlier load in a register instead."""
    return array[index] if SIMULATED else cuda.ldca(array, np.uint64(index))


def ask_memory() -> tuple[float, float]:
    """Return the card's free memory, and all that it has, in bytes; both are infinite in the simulator."""
    context = cuda.current_context()
    if not SIMULATED:
        context.memory_manager.deallocations.clear()  # numba-cuda frees later what nobody holds any more
    return context.get_memory_info()
