"""Memory and cores available to this process."""

import os

from . import cgroups as control_group


def find_memory() -> int:
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
    return find_memory() // 2


def count_cores() -> int:
    """Return the available cores: by affinity, or by CPU quota."""
    here, allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, control_group.find_cores()
    return here if allowed is None else min(here, allowed)
