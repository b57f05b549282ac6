"""A Prefect server that goes away in the middle of a flow run: the run goes on, and what became of it is known when the server is back."""

import threading
import time
from contextlib import ExitStack

import pytest

from tests.faults.verdict import ID
from tests.flows.conftest import free_port, run_server

AWAY_SECONDS = 3  # and as long as a server takes to start


@pytest.mark.long
def test_a_server_that_goes_away_for_a_while_costs_nothing(runner, tally, tmp_path, monkeypatch):
    """It is killed when the rows are about to be explained; the flow run completes all the same."""
    from prefect import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    import flows.explain
    from pipeline.run import map_run

    out, port = str(tmp_path / "run"), free_port()
    with ExitStack() as servers:
        url, process = servers.enter_context(run_server(port))

        def come_back():
            time.sleep(AWAY_SECONDS)
            servers.enter_context(run_server(port))

        back = threading.Thread(target=come_back)

        def map_without(run, tables, watch):
            process.kill()
            process.wait()
            tally.faults["Prefect server SIGKILL"] += 1
            back.start()
            return map_run(run, tables, watch)

        monkeypatch.setattr(flows.explain, "map_run", map_without)
        with temporary_settings({PREFECT_API_URL: url}):
            state = flows.explain.explain(runner.model, runner.data, out, ids=[ID], scheduler="serial", return_state=True)
            back.join()
            with get_client(sync_client=True) as client:
                told = client.read_flow_run(state.state_details.flow_run_id).state
        assert state.is_completed()
        assert told.is_completed()
    runner.judge(out)
