"""A word to who waits: the first call on a machine compiles."""

import logging

from kernels._jit import when_compiling


def say_compiling() -> None:
    """Say it, once per process, when a kernel is compiled that is not kept on disk; ``logging.getLogger("leafledger")`` silences it."""
    when_compiling(_say)


def _say() -> None:
    logging.getLogger("leafledger").warning("Leafledger compiles its kernels, once on this machine: the first call takes some seconds")
