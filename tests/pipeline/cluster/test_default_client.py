"""What else a process computes with Dask, beside a run and after it."""

import dask
import distributed
import pytest

from leafledger.pipeline.cluster.placement import make_placement
from leafledger.pipeline.cluster.requirements import need
from leafledger.pipeline.cluster.start_client import local_client, remote_client


def look():
    """There is no default client, and nothing asks for one."""
    assert dask.config.get("scheduler", None) is None
    with pytest.raises(ValueError, match="No clients found"):
        distributed.default_client()


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_what_else_is_computed_with_dask_stays_where_it_was():
    """Neither a cluster of this machine nor one that is there already becomes the default, whichever of them ends first."""
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0", memory_limit="auto") as there:
        first, second = local_client(make_placement(workers=1), 1), remote_client(there.scheduler_address, need(0), 60)
        for one in (first, second):
            one.__enter__()
            look()
        for one in (first, second):
            one.__exit__(None, None, None)
            look()
