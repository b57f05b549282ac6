"""infra/automations.yaml: Prefect takes it as it is, and tells of nights that failed, left rows out or drifted, and of no others."""

import json
import os
import shutil
import subprocess
import sys
import threading
from datetime import date
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pandas as pd
import pytest
import yaml
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.events import emit_event
from prefect.states import Completed, Running

from flows.explain import explain
from tests.flows.conftest import wait_for

FILE = Path(__file__).parents[2] / "infra" / "automations.yaml"
TOLD_SECONDS = 120  # until a notification comes, beside other work


@pytest.fixture
def told():
    """A web server on the loopback address, and what was sent to it."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    received = []
    with HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        threading.Thread(target=receiver.serve_forever).start()
        yield f"http://127.0.0.1:{receiver.server_port}", received
        receiver.shutdown()


def create(server, path):
    """What ``prefect automation create`` makes of a file."""
    command = [sys.executable, "-m", "prefect", "automation", "create", "--from-file", str(path)]
    subprocess.run(command, env=os.environ | {"PREFECT_API_URL": server}, check=True, capture_output=True)


@pytest.fixture
def automations(server, client, tmp_path):
    """A function that puts the file's automations on the server, changed by another one: what the server has then, by name."""

    def put(change):
        written = yaml.safe_load(FILE.read_text())
        change({each["name"]: each for each in written["automations"]})
        (tmp_path / "automations.yaml").write_text(yaml.safe_dump(written))
        create(server, tmp_path / "automations.yaml")
        return {each["name"]: each for each in client.request("POST", "/automations/filter").json()}

    yield put
    for each in client.request("POST", "/automations/filter").json():
        client.request("DELETE", "/automations/{id}", path_params={"id": each["id"]})


@pytest.fixture
def automation(automations, told):
    """The automation that tells, whose block is one that sends to ``told``."""
    url, _ = told
    fields = {"subject": "{{subject}}", "body": "{{body}}"}
    block = CustomWebhookNotificationBlock(name="told", url=url, json_data=fields).save("told", overwrite=True)

    def change(written):
        (action,) = written["leafledger-nights"]["actions"]
        action["block_document_id"] = str(block)

    return automations(change)["leafledger-nights"]


def test_the_file_is_taken_as_it_is(automations):
    """Every word of it is one that Prefect knows, and comes back."""
    found, file = automations(lambda written: None), {each["name"]: each for each in yaml.safe_load(FILE.read_text())["automations"]}
    assert found.keys() == file.keys() == {"leafledger-nights", "leafledger-silent"}
    for name, written in file.items():
        assert found[name]["description"] == written["description"]
        trigger = found[name]["trigger"]
        for events in ("after", "expect"):
            assert set(trigger.pop(events)) == set(written["trigger"].pop(events, ()))
        assert written["trigger"].items() <= trigger.items()
        for action, expected in zip(found[name]["actions"], written["actions"], strict=True):
            assert expected.items() <= action.items()


def test_whoever_wants_to_know_is_told(automation, told, example, tmp_path):
    """A night that is explained in full says nothing; one that drifted, one that left rows out and one that is refused say their own line."""
    rows = pd.concat(map(pd.read_parquet, sorted(Path(example.data).glob("*.parquet"))), ignore_index=True)
    for day, shift in ((1, 0), (2, 2), (3, 2)):
        (tmp_path / f"data/2026-01-0{day}").mkdir(parents=True)
        rows.assign(distance=rows["distance"] + shift).to_parquet(tmp_path / f"data/2026-01-0{day}/rows.parquet")
    shutil.copy(example.model, tmp_path / "data/2026-01-03/damaged.parquet")
    places = example.model, str(tmp_path / "data/{date}"), str(tmp_path / "explained/{date}")
    ended = []
    for day, asked in ((1, {}), (2, {"against": str(tmp_path / "explained/{date-1d}")}), (3, {}), (4, {})):
        ended.append(explain(*places, date=date(2026, 1, day), scheduler="serial", return_state=True, **asked))
    assert [state.name for state in ended] == ["Completed", "Drifted", "PartlyRejected", "Failed"]
    _, received = told
    wait_for(lambda: len(received) >= 3, TOLD_SECONDS)
    expected = {f"explain 2026-01-0{day}: {state.name}": state.message for day, state in enumerate(ended, 1) if day > 1}
    assert {each["subject"]: each["body"] for each in received} == expected
    assert len(received) == 3


def test_a_flow_run_of_which_nothing_is_heard_crashes(automations, client):
    """One that ended in a state of the flow's own stays what it is."""

    def change(written):
        written["leafledger-silent"]["trigger"]["within"] = 10  # the least that Prefect takes

    automations(change)
    silent, ended = (client.create_flow_run(explain, parameters={"model": "", "data": "", "out": ""}, state=Running()) for _ in range(2))
    for run in (silent, ended):
        flow = {"prefect.resource.id": f"prefect.flow.{run.flow_id}", "prefect.resource.role": "flow", "prefect.resource.name": explain.name}
        emit_event("prefect.flow-run.heartbeat", resource={"prefect.resource.id": f"prefect.flow-run.{run.id}"}, related=[flow])
    client.set_flow_run_state(ended.id, Completed(name="Drifted"))
    wait_for(lambda: client.read_flow_run(silent.id).state.is_crashed(), TOLD_SECONDS)
    message = client.read_flow_run(silent.id).state.message
    assert "\n" not in message
    assert message.endswith("the same run again goes on from there.")
    assert client.read_flow_run(ended.id).state.name == "Drifted"
