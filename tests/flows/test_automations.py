"""infra/automations.yaml: Prefect takes it as it is, and tells of nights that failed, left rows out or drifted, and of no others."""

import shutil
from datetime import date
from pathlib import Path

import pandas as pd
import pytest
import yaml

from flows.explain import explain
from tests.flows.conftest import call_prefect, wait_for
from tests.flows.telling import FILE, automated, receive

TOLD_SECONDS = 600  # until a notification comes, beside other work


@pytest.fixture
def told():
    """A web server on the loopback address, and what was sent to it."""
    with receive() as found:
        yield found


@pytest.fixture
def automation(server, client, tmp_path, told):
    """The automation of the file, whose block is one that sends to ``told``."""
    with automated(client, tmp_path, told[0]) as found:
        yield found


def test_the_file_is_taken_as_it_is(server, client):
    """Every word of it is one that Prefect knows, and comes back."""
    call_prefect(f"prefect automation create --from-file {FILE}")
    (found,) = client.request("POST", "/automations/filter").json()
    client.request("DELETE", "/automations/{id}", path_params={"id": found["id"]})
    (written,) = yaml.safe_load(FILE.read_text())["automations"]
    for part in ("name", "description"):
        assert found[part] == written[part]
    trigger = found["trigger"]
    assert set(trigger.pop("expect")) == set(written["trigger"].pop("expect"))
    assert written["trigger"].items() <= trigger.items()
    assert found["actions"] == written["actions"]


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
