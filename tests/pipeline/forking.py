"""Workers of local clusters that are forked of one process that has imported everything: to import it takes each of them seconds."""

from contextlib import contextmanager

import dask
from distributed.utils import get_mp_context

IMPORTED = ["tests.pipeline.preloaded"]
FORKED = {"distributed.worker.multiprocessing-method": "forkserver"}


@contextmanager
def forked_workers(**environment):
    """Clusters that start inside have such workers, whose environment is that of the first of them, but for the variables named here.

    These are as they are when a cluster starts, or as given here where there are none.
    """
    with dask.config.set({**FORKED, "distributed.nanny.environ": environment}):
        get_mp_context().set_forkserver_preload(IMPORTED)  # the first time it is asked for, Dask sets another list
        yield
