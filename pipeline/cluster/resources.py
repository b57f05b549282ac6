"""Resources."""

import os

import psutil

from . import cgroups as control_group

WORKER_BYTES = 1 << 30  # that a worker has at least, where nobody says how many there are and what they need is not known yet


def _find_memory() -> int:
    """Bytes that this process and what it starts may take: the machine's, or what a container, a job or a unit allows of it."""
    total, allowed = int(psutil.virtual_memory().total), control_group.find_memory()
    return total if allowed is None else min(total, allowed)


def table_budget() -> int:
    """Choose how much memory the tables of rows in memory may take: half of what this process may.

    Returns
    -------
    int
        Bytes.
    """
    return _find_memory() // 2


def count_cores() -> int:
    """Count the cores that this process may use: those it may run on, or as many as it may take the time of."""
    here, allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, control_group.find_cores()
    return here if allowed is None else min(here, allowed)


def share_out(asked: int | None, least: int = WORKER_BYTES) -> tuple[int, int]:
    """Choose how many processes a local cluster has, and share out the memory that this process may take."""
    memory = _find_memory()
    workers = asked or max(1, min(count_cores(), memory // least))
    return workers, memory // workers
