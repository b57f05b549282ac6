"""A Prefect server that goes away in the middle of a flow run, and flow runs that are killed: what they published stays, and the next one goes on."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest

from tests.faults.proxy import Rule, afterwards
from tests.faults.verdict import ID, committed, contents
from tests.flows.conftest import free_port, run_server, server

__all__ = ["server"]  # a fixture

AWAY_SECONDS = 3  # and as long as a server takes to start


@pytest.mark.long
def test_a_server_that_goes_away_for_a_while_costs_nothing(runner, tally, tmp_path, monkeypatch):
    """It is killed when the rows are about to be explained; the flow run completes all the same."""
    from prefect import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    import leafledger.flows.explain
    import leafledger.flows.stages
    from leafledger.pipeline.runs.stages import map_run

    out, port = str(tmp_path / "run"), free_port()
    with ExitStack() as servers:
        url, process = servers.enter_context(run_server(port))

        def come_back():
            time.sleep(AWAY_SECONDS)
            servers.enter_context(run_server(port))

        back = threading.Thread(target=come_back)

        def map_without(run, tables, progress):
            process.kill()
            process.wait()
            tally.faults["Prefect server SIGKILL"] += 1
            back.start()
            return map_run(run, tables, progress)

        monkeypatch.setattr(leafledger.flows.stages, "map_run", map_without)
        with temporary_settings({PREFECT_API_URL: url}):
            state = leafledger.flows.explain.explain(runner.model, runner.data, out, ids=[ID], scheduler="serial", return_state=True)
            back.join()
            with get_client(sync_client=True) as client:
                told = client.read_flow_run(state.state_details.flow_run_id).state
        assert state.is_completed()
        assert told.is_completed()
    runner.judge(out)


FLOW = (
    "import sys; from leafledger.flows.explain import explain; explain(sys.argv[1], sys.argv[2], sys.argv[3], ids=[sys.argv[4]], scheduler='serial')"
)


@pytest.mark.long
@pytest.mark.parametrize("step", ["plan", "_tables/.*npy", "part-00000", "part-00003", "summary", "manifest"])
def test_a_flow_killed_at_a_step_of_the_commit(runner, proxy, bucket, server, step):
    """Twice in a row, at once after the store has something new: the next flow run does what is missing."""
    out, left, codes = f"{bucket}/run", {}, []

    def run(pattern=None):
        """A flow run in a process of its own, killed where the pattern is written."""
        processes, rules = [], []
        if pattern is not None:
            fault = afterwards(lambda: processes[0].kill())
            fault.__name__ = "flow SIGKILL afterwards"
            rules = [Rule(f"PUT .*{pattern}", fault)]
        with proxy.broken(*rules):
            command = [sys.executable, "-c", FLOW, runner.model, runner.data, out, ID]
            processes.append(subprocess.Popen(command, env=os.environ | {"PREFECT_API_URL": server}, stderr=subprocess.DEVNULL))
            codes.append(processes[0].wait())

    for pattern in (step, "(part|summary|manifest)"):
        run(pattern)
        now = committed(out)
        assert now.items() >= left.items()
        left = now
    run()
    assert codes == [-signal.SIGKILL, 0 if step == "manifest" else -signal.SIGKILL, 0]
    assert "manifest.json" in contents(out)
    runner.judge(out, left)
