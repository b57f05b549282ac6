"""Prometheus counters of a process's work items, beside those of Dask's workers."""

import sys
import threading
from collections.abc import Iterator
from typing import Any

from ...stores.traffic import find_moved

HELP = {
    "parts": "Parts made",
    "parts_found": "Parts that were there already",
    "parts_rejected": "Work items rejected, since their rows cannot be read",
    "rows": "Rows explained",
    "busy_seconds": "Time spent on making parts",
    "read_bytes": "Bytes read of files and objects",
    "written_bytes": "Bytes of files and objects published",
    "retries": "Operations and work items tried again",
}
_lock = threading.Lock()
_done = dict.fromkeys(("parts", "parts_found", "parts_rejected", "rows", "busy_seconds"), 0.0)


class WorkerMetrics:
    """Collector of prometheus_client: counters of this process."""

    def collect(self) -> Iterator[Any]:
        """Return the current counters."""
        from prometheus_client.core import CounterMetricFamily

        read, written, retried = find_moved()
        for name, value in (_done | {"read_bytes": read, "written_bytes": written, "retries": retried}).items():
            yield CounterMetricFamily(f"leafledger_worker_{name}", HELP[name], value=value)


METRICS = WorkerMetrics()
_registered: list[Any] = []  # registries that have the collector


def _register() -> None:
    """Register with a server of this process's metrics, as in Dask's workers; without a server the library is not imported."""
    library = sys.modules.get("prometheus_client")
    registry = getattr(library, "REGISTRY", None)
    if registry is not None and registry not in _registered:
        _registered.append(registry)
        registry.register(METRICS)


def count_made(n_rows: int, seconds: float) -> None:
    """Count a part that was made."""
    _count(parts=1, rows=n_rows, busy_seconds=seconds)


def count_found() -> None:
    """Count a part that existed already."""
    _count(parts_found=1)


def count_rejected() -> None:
    """Count a file or work item that cannot be read."""
    _count(parts_rejected=1)


def _count(**more: float) -> None:
    with _lock:
        _register()
        for name, number in more.items():
            _done[name] += number
