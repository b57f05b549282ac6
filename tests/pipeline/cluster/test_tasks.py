"""One Dask task for every item: workers that die of one, and a scheduler that goes away, end the work in one line."""

import distributed
import pytest
from distributed.comm import CommClosedError

from leafledger.pipeline.cluster.requirements import need
from leafledger.pipeline.cluster.start_client import remote_client
from leafledger.pipeline.cluster.tasks import map_dask
from leafledger.pipeline.errors import ClusterLost, WorkersDied
from tests.pipeline.threads import ITEMS, killed, on_threads, over_tcp


def dies(task, item):
    raise killed(item)


@pytest.mark.slow
def test_workers_that_die_of_other_work_end_it():
    """With the item that they were given."""
    with (
        on_threads() as local,
        distributed.Client(local) as client,
        pytest.raises(WorkersDied, match=r"^f\d\.parquet: row groups \[0, 1\]: the workers that it was given to died$"),
    ):
        list(map_dask(client, dies, None, ITEMS, 0))


def test_a_scheduler_that_goes_away_while_a_result_is_fetched_is_said():
    """Its tasks were done."""

    async def go(**_):
        raise CommClosedError("gone")

    says = r"^the Dask cluster went away with 6 parts to do; run again to go on from there$"
    with over_tcp() as local:
        local.scheduler.handlers["gather"] = go
        with pytest.raises(ClusterLost, match=says), remote_client(local.scheduler_address, need(0), 5) as client:
            list(map_dask(client, describe, None, ITEMS, 0))


def describe(task, item):
    return item.uri


def test_a_run_whose_client_gave_up_ends_in_one_line():
    """When it looked in vain for a scheduler, nobody can be told that the tasks are not wanted any more."""

    def give_up(address):
        with remote_client(address, need(0), 5) as client:
            for _ in map_dask(client, describe, None, ITEMS, 0):
                client.sync(client._close)

    says = r"^the Dask cluster went away with \d parts to do; run again to go on from there$"
    with over_tcp() as local, pytest.raises(ClusterLost, match=says):
        give_up(local.scheduler_address)
