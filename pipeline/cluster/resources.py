"""Memory and cores available to this process, and their division among local workers."""

import os

from . import cgroups as control_group

WORKER_BYTES = 1 << 30  # least memory of a worker while nothing is known of its needs


def _find_memory() -> int:
    """Return the available memory in bytes: the machine's, or the limit of a container, job or unit."""
    import psutil

    total, allowed = int(psutil.virtual_memory().total), control_group.find_memory()
    return total if allowed is None else min(total, allowed)


def table_budget() -> int:
    """Return the memory for tables in memory: half of the process's.

    Returns
    -------
    int
        Bytes.
    """
    return _find_memory() // 2


def count_cores() -> int:
    """Return the available cores: by affinity, or by CPU quota."""
    here, allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, control_group.find_cores()
    return here if allowed is None else min(here, allowed)


def share_out(asked: int | None, least: int = WORKER_BYTES) -> tuple[int, int]:
    """Choose the number of local workers, and each one's memory."""
    memory = _find_memory()
    workers = asked or max(1, min(count_cores(), memory // least))
    return workers, memory // workers
