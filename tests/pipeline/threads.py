"""Clusters whose workers are threads of this process, so that what tests put in the place of work is what is done, and work items for them."""

from contextlib import contextmanager
from types import SimpleNamespace

import dask
import distributed
from distributed.scheduler import KilledWorker

from leafledger.pipeline.dataset.files.listing import WorkItem

ITEMS = tuple(WorkItem(k, f"f{k}.parquet", "", (0, 1), 0, 10, 0, ()) for k in range(6))


@contextmanager
def on_threads(n_workers=1, n_threads=4, **options):
    """A cluster that has the whole machine's memory, for a worker whose process has used up its own pauses."""
    given = {"processes": False, "dashboard_address": "127.0.0.1:0", "memory_limit": "auto"} | options
    with distributed.LocalCluster(n_workers=n_workers, threads_per_worker=n_threads, **given) as found:
        yield found


@contextmanager
def over_tcp():
    """A cluster of one worker over TCP, for tests that break it."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        on_threads(n_threads=1, protocol="tcp", host="127.0.0.1") as found,
    ):
        yield found


def killed(item):
    """What Dask raises of a task whose workers died."""
    return KilledWorker(f"part-{item.part}", SimpleNamespace(address="tcp://127.0.0.1:1"), 3)
