"""Workers of local clusters that are forked of one process that has imported everything: to import it takes each of them seconds."""

import multiprocessing
from contextlib import contextmanager

import dask

IMPORTED = ("leafledger.pipeline.drift.measure.measure_part", "leafledger.pipeline.runs.execute.make_part")


@contextmanager
def forked_workers(**environment):
    """Clusters that start inside have such workers, whose environment is that of the first of them, but for the variables named here.

    These are as they are when a cluster starts, or as given here where there are none.
    """
    multiprocessing.set_forkserver_preload(["distributed", *IMPORTED])
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver", "distributed.nanny.environ": environment}):
        yield
