"""infra/automations.yaml: Prefect takes it as it is; it tells of nights that failed, left something out or drifted, of silent and late ones, of no
others."""

import shutil
import time
from datetime import UTC, date, datetime
from pathlib import Path

import pandas as pd
import pytest
import yaml
from prefect.events import emit_event
from prefect.states import Completed, Late, Running, Scheduled

from leafledger.flows.explain import HEARD_SECONDS, explain
from tests.flows.telling import FILE, automated, receive, tell, wait_or_repeat


@pytest.fixture
def told():
    """A web server on the loopback address, and what was sent to it."""
    with receive() as found:
        yield found


@pytest.fixture
def automation(client, tmp_path, told):
    """The automation that tells, and sends to ``told``."""
    with automated(client, tmp_path, tell(told[0])) as found:
        yield found["leafledger-nights"]


def test_the_file_is_taken_as_it_is(client, tmp_path):
    """Every word of it is one that Prefect knows, and comes back."""
    file = {each["name"]: each for each in yaml.safe_load(FILE.read_text())["automations"]}
    with automated(client, tmp_path) as found:
        pass
    assert found.keys() == file.keys() == {"leafledger-nights", "leafledger-silent", "leafledger-late"}
    for name, written in file.items():
        assert found[name]["description"] == written["description"]
        trigger = found[name]["trigger"]
        for events in ("after", "expect"):
            assert set(trigger.pop(events)) == set(written["trigger"].pop(events, ()))
        assert written["trigger"].items() <= trigger.items()
        for action, expected in zip(found[name]["actions"], written["actions"], strict=True):
            assert expected.items() <= action.items()


def test_whoever_wants_to_know_is_told(automation, told, example, tmp_path):
    """A night that is explained in full says nothing; one that drifted, one that left rows out, one that is refused, and one without what it is to be
    compared with say their own line."""
    rows = pd.concat(map(pd.read_parquet, sorted(Path(example.data).glob("*.parquet"))), ignore_index=True)
    for day, shift in ((1, 0), (2, 2), (3, 2)):
        (tmp_path / f"data/2026-01-0{day}").mkdir(parents=True)
        rows.assign(distance=rows["distance"] + shift).to_parquet(tmp_path / f"data/2026-01-0{day}/rows.parquet")
    shutil.copy(example.model, tmp_path / "data/2026-01-03/damaged.parquet")
    places = example.model, str(tmp_path / "data/{date}"), str(tmp_path / "explained/{date}")
    nights = {"Completed": (1, None), "Drifted": (2, "explained/{date-1d}"), "PartlyRejected": (3, None), "Failed": (4, None)}
    nights["PartlyDone"] = (1, "none")
    said, (_, received) = [], told

    def untold():
        heard = {each["subject"].rpartition(": ")[2] for each in received}
        return nights.keys() - heard - {"Completed"}

    def explain_nights(names):
        for name in names:
            day, against = nights[name]
            asked = {} if against is None else {"against": str(tmp_path / against)}
            state = explain(*places, date=date(2026, 1, day), scheduler="serial", return_state=True, **asked)
            assert state.name == name
            said.append({"subject": f"explain 2026-01-0{day}: {name}", "body": state.message})

    explain_nights(nights)
    wait_or_repeat(lambda: not untold(), lambda: explain_nights(untold()))
    assert all(each in said[1:] for each in received)  # some of them twice


def test_a_flow_run_of_which_nothing_is_heard_crashes(client, tmp_path):
    """One that ended in a state of the flow's own stays what it is."""

    def change(written):
        written["leafledger-silent"]["trigger"]["within"] = 10  # the least that Prefect takes

    with automated(client, tmp_path, change):
        silent, ended = (client.create_flow_run(explain, parameters={"model": "", "data": "", "out": ""}, state=Running()) for _ in range(2))

        def beat(run):
            flow = {"prefect.resource.id": f"prefect.flow.{run.flow_id}", "prefect.resource.role": "flow", "prefect.resource.name": explain.name}
            emit_event("prefect.flow-run.heartbeat", resource={"prefect.resource.id": f"prefect.flow-run.{run.id}"}, related=[flow])
            time.sleep(HEARD_SECONDS)

        beat(ended)
        client.set_flow_run_state(ended.id, Completed(name="Drifted"))
        time.sleep(HEARD_SECONDS)
        beat(silent)
        wait_or_repeat(lambda: client.read_flow_run(silent.id).state.is_crashed(), lambda: beat(silent))
        message = client.read_flow_run(silent.id).state.message
        assert "\n" not in message
        assert message.endswith("the same run again goes on from there.")
        assert client.read_flow_run(ended.id).state.name == "Drifted"


def test_of_a_flow_run_that_nobody_begins_somebody_is_told(client, told, tmp_path):
    """One that is late and begins after all says nothing."""
    url, received = told

    def change(written):
        tell(url)(written)
        written["leafledger-late"]["trigger"]["within"] = 10  # the least that Prefect takes

    with automated(client, tmp_path, change):
        due = Scheduled(scheduled_time=datetime(2026, 1, 5, 3, tzinfo=UTC))
        asleep, begun = (client.create_flow_run(explain, parameters={"model": "", "data": "", "out": ""}, state=due) for _ in range(2))

        def change_state(run, state):
            client.set_flow_run_state(run.id, state, force=True)
            time.sleep(HEARD_SECONDS)

        late = Late(scheduled_time=due.state_details.scheduled_time)
        for run, state in ((begun, late), (begun, Running()), (asleep, late)):
            change_state(run, state)
        wait_or_repeat(lambda: received, lambda: change_state(asleep, late))
        time.sleep(10)
        assert {each["subject"] for each in received} == {f"explain {asleep.name}: Late"}
        assert received[0]["body"].startswith("Due at 2026-01-05 03:00:00")
        client.set_flow_run_state(begun.id, Completed())
