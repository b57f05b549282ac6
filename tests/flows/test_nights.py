"""What follows a published night: compared with the one before and reported, before ``latest`` moves on."""

import json
import os
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import lightgbm
import pandas as pd
import pytest

from leafledger.flows.explain import explain
from tests.flows.reading import artifacts_of, stages_of


@pytest.fixture
def nights(example, tmp_path):
    """A folder for each of three days: that of the example, the same rows again, and rows that are two deviations higher in one feature."""
    frame = pd.concat([pd.read_parquet(path) for path in sorted(Path(example.data).rglob("*.parquet"))], ignore_index=True)
    shifted = frame.assign(distance=frame["distance"] + 2 * frame["distance"].std())
    for day, rows in zip(("01", "02", "03"), (frame, frame, shifted), strict=True):
        (tmp_path / "data" / f"2026-01-{day}").mkdir(parents=True)
        rows.to_parquet(tmp_path / "data" / f"2026-01-{day}" / "rows.parquet", index=False)
    lightgbm.train(
        {"verbosity": -1, "num_threads": 1, "num_leaves": 3}, lightgbm.Dataset(frame[["distance", "delay", "hour"]], frame["late"]), 2
    ).save_model(tmp_path / "other.txt")
    return tmp_path


def night(example, nights, day, **asked):
    """The state of the flow of a day."""
    places = asked.pop("model", example.model), str(nights / "data" / "{date}"), str(nights / "explained" / "{date}")
    given = {"latest": str(nights / "latest.json"), "ids": ["flight"], "values": True, "scheduler": "serial"} | asked
    return explain(*places, date=date(2026, 1, day), return_state=True, **given)


def test_a_night_is_compared_and_reported_before_latest_moves(server, client, example, nights):
    """The first is compared with nothing, the same rows again raise no alarm, shifted ones do: a state of their own, which is no failure."""
    asked = {"against": str(nights / "latest.json"), "report": True, "metrics_file": str(nights / "nights.prom")}
    first, same, shifted = (night(example, nights, day, **asked) for day in (1, 2, 3))
    assert [state.name for state in (first, same, shifted)] == ["Completed", "Completed", "Drifted"]
    assert all(state.is_completed() for state in (first, same, shifted))
    assert client.read_flow_run(shifted.state_details.flow_run_id).name == "2026-01-03"
    assert "alarm" not in same.message
    assert stages_of(client, shifted)[-4:] == ["publish", "drift", "report", "latest"]
    assert not (nights / "explained" / "2026-01-01" / "after" / "drift.json").exists()
    found = json.loads((nights / "explained" / "2026-01-03" / "after" / "drift.json").read_text())
    assert found["reference"] == str(nights / "explained" / "2026-01-02")
    assert len(found["alarms"]) > 1
    gauge = f'leafledger_drift_alarms{{run="{nights}/explained/{{date}}"}} {len(found["alarms"])}.0'
    assert gauge in (nights / "nights.prom").read_text().splitlines()
    said = f"{len(found['alarms'])} alarms against {nights / 'explained' / '2026-01-02'}: {found['alarms'][0]} and {len(found['alarms']) - 1} more"
    assert shifted.message.endswith(f"; {said}")
    shown = artifacts_of(client, shifted)
    page = nights / "explained" / "2026-01-03" / "report" / "index.html"
    assert page.as_uri() in shown["leafledger-report"].data
    assert "What changed" in page.read_text()
    assert found["alarms"][0].split(":")[0].replace("_", "") in shown["leafledger-drift"].data.replace("\\", "").replace("_", "")


def test_a_night_that_cannot_be_compared_is_published_all_the_same(server, client, example, nights, caplog):
    """With another method its attributions mean something else: state and log say so, and the night after is compared with this one."""
    latest = str(nights / "latest.json")
    assert night(example, nights, 1).name == "Completed"
    other = night(example, nights, 2, method="banzhaf", against=latest)
    assert (other.name, other.is_completed()) == ("PartlyDone", True)
    (said,) = {record.getMessage() for record in caplog.records if record.getMessage().startswith("not compared: ")}
    assert said.startswith(f"not compared: {nights}/explained/2026-01-02: method is banzhaf, ")
    assert other.message.endswith(f"; {said}")
    assert not (nights / "explained" / "2026-01-02" / "after" / "drift.json").exists()
    assert json.loads(Path(latest).read_text())["run"] == str(nights / "explained" / "2026-01-02")


@pytest.mark.parametrize("against", ["other.json", "explained/{date-1d}"])
def test_a_reference_that_is_not_there_is_said(server, client, example, nights, against):
    """Whether it will be there one night or never is nothing that the flow knows: unless it is that of ``latest``, somebody is told."""
    alone = night(example, nights, 1, against=str(nights / against))
    assert (alone.name, alone.is_completed()) == ("PartlyDone", True)
    assert f"not compared: {nights / against}".replace("{date-1d}", "2025-12-31") in alone.message
    assert json.loads((nights / "latest.json").read_text())["run"] == str(nights / "explained" / "2026-01-01")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"thresholds": {"psy": 1}}, "thresholds: has 'psy', expected false_discovery_rate, "),
        ({"thresholds": "wrong.toml"}, "wrong.toml: distance is 'far', expected a number from 0 to 1"),
        ({"against": None, "thresholds": {"psi": 1.0}}, "thresholds are of what is compared, but nothing is: against was not given"),
        ({"against": "explained/{dat}"}, "explained/{dat}: only {date}, "),
        *(
            pytest.param(*case, marks=pytest.mark.more)
            for case in (
                ({"thresholds": "{date}.toml"}, "2026-01-02.toml: cannot read"),
                ({"against": "explained/{date}"}, "explained/{date}: is the very run"),
            )
        ),
    ],
)
def test_a_mistake_in_what_is_compared_fails_the_night_at_once(server, client, example, nights, asked, says):
    """Before a row is explained; it would be the same every night, and nobody would hear of drift."""
    (nights / "wrong.toml").write_text('distance = "far"\n')
    given = {"against": "latest.json"} | asked
    state = night(example, nights, 2, **{name: str(nights / value) if isinstance(value, str) else value for name, value in given.items()})
    assert state.is_failed()
    assert says in state.message
    assert not (nights / "explained").exists()


def test_a_damaged_part_fails_the_night(server, client, example, nights):
    """A flipped byte of this run is no matter of settings: ``latest`` does not move on to it."""
    latest = nights / "latest.json"
    assert night(example, nights, 1).name == "Completed"
    assert night(example, nights, 2, latest=None).name == "Completed"
    (part,) = (nights / "explained" / "2026-01-02" / "attributions").iterdir()
    data = bytearray(part.read_bytes())
    data[len(data) // 3] ^= 1
    part.write_bytes(data)
    state = night(example, nights, 2, against=str(latest))
    assert state.is_failed()
    assert str(part) in state.message
    assert json.loads(latest.read_text())["run"] == str(nights / "explained" / "2026-01-01")


def test_a_run_of_too_few_rows_is_not_completed_in_full(server, client, example, nights):
    """``latest`` is not moved: the state has a name of its own, and its message is the line that the command ends with 3 for."""
    rows = nights / "data" / "2026-01-02" / "rows.parquet"
    pd.read_parquet(rows).iloc[:0].to_parquet(rows, index=False)
    assert night(example, nights, 1, latest_requires=0.001).name == "Completed"
    state = night(example, nights, 2, latest_requires=0.001)
    assert (state.name, state.is_completed()) == ("PartlyDone", True)
    assert state.message.endswith(f"; {nights}/latest.json: not moved, 0.00% of the rows are explained (0), expected at least 0.10%")
    assert json.loads((nights / "latest.json").read_text())["run"] == str(nights / "explained" / "2026-01-01")


def test_digests_that_come_too_late_are_said(server, client, example, nights, caplog):
    """A run that was finished before is not read again: a warning, as the command's."""
    assert night(example, nights, 1).name == "Completed"
    assert night(example, nights, 1, digest_inputs=True).name == "Completed"
    assert f"{nights}/explained/2026-01-01: was finished before, without digests of its inputs" in [each.getMessage() for each in caplog.records]


def test_a_finished_night_is_compared_and_reported_afterwards(server, client, example, nights):
    """A flow run that finds all parts done does what is left; with latest at the night itself, what was found before stands."""
    assert night(example, nights, 1).name == "Completed"
    assert night(example, nights, 3).name == "Completed"
    again = night(example, nights, 3, against=str(nights / "explained" / "{date-2d}"), report=True)
    assert again.name == "Drifted"
    assert "finished before" in again.message
    assert night(example, nights, 3, against=str(nights / "latest.json")).name == "Drifted"


def test_a_drifted_night_stays_one(server, client, example, nights):
    """The same flow run again, as Prefect's retry is, finds ``latest`` at the night itself, or at a later one, and says what it said."""
    latest = str(nights / "latest.json")
    assert night(example, nights, 1).name == "Completed"
    first, again = (night(example, nights, 3, against=latest) for _ in range(2))
    assert json.loads(Path(latest).read_text())["run"] == str(nights / "explained" / "2026-01-03")
    assert [first.name, again.name] == ["Drifted", "Drifted"]
    assert again.message.partition("; ")[2] == first.message.partition("; ")[2]
    found = json.loads(Path(latest).read_text())
    Path(latest).write_text(json.dumps(found | {"date": "2026-01-04", "run": str(nights / "explained" / "2026-01-04")}))
    assert night(example, nights, 3, against=latest).name == "Drifted"


def test_a_night_that_comes_late_is_not_compared_with_a_later_one(server, client, example, nights, caplog):
    """``latest`` names one of a day after: what changed since then is no question of this night's. It is published, and ``latest`` stays."""
    latest = str(nights / "latest.json")
    assert night(example, nights, 3).name == "Completed"
    late = night(example, nights, 2, against=latest)
    assert (late.name, "alarm" in late.message) == ("Completed", False)
    assert f"{latest}: names no earlier run, nothing is compared" in [record.getMessage() for record in caplog.records]
    assert not (nights / "explained" / "2026-01-02" / "after" / "drift.json").exists()
    assert json.loads(Path(latest).read_text())["run"] == str(nights / "explained" / "2026-01-03")


def test_a_new_model_is_said_beside_the_alarms(server, client, example, nights, caplog):
    """Whoever is told of a drift is told in the same line that the model is another one, which may be all that there is to it."""
    latest = str(nights / "latest.json")
    assert night(example, nights, 1).name == "Completed"
    other = night(example, nights, 2, model=str(nights / "other.txt"), against=latest)
    assert other.name == "Drifted"
    said = [record.getMessage() for record in caplog.records if record.getMessage().startswith("differs: the model is another one: SHA-256 ")]
    assert len(said) == 1
    assert other.message.endswith(f"; {said[0]}")


def test_thresholds_of_a_night_are_found_by_its_date(server, client, example, nights):
    """A file for each night, whose name has the date: what would be an alarm is none for the night whose file allows it, and is one for the next."""
    for day, distance in (("2026-01-02", 0.05), ("2026-01-03", 1.0)):
        (nights / f"{day}.toml").write_text(f"distance = {distance}\nshare = 1.0\nmean = 9.0\nndcg = 0.0\n")
    asked = {"against": str(nights / "explained" / "{date-1d}"), "thresholds": str(nights / "{date}.toml")}
    assert night(example, nights, 2).name == "Completed"
    shifted = night(example, nights, 3, **asked)
    assert (shifted.name, "alarm" in shifted.message) == ("Completed", False)
    assert json.loads((nights / "explained" / "2026-01-03" / "after" / "drift.json").read_text())["thresholds"]["distance"] == 1.0
    assert night(example, nights, 3, **asked | {"thresholds": str(nights / "{date-1d}.toml")}).name == "Drifted"


def test_a_day_that_does_not_exist_fails_before_the_flow_begins(server, client, example, nights):
    """Prefect reads parameters; what it says is the run's state, and names the parameter. Nothing is written."""
    places = example.model, str(nights / "data" / "{date}"), str(nights / "explained" / "{date}")
    state = explain(*places, date="2026-02-30", scheduler="serial", return_state=True)
    assert state.is_failed()
    assert "date.date: Input should be a valid date" in state.message
    assert not (nights / "explained").exists()


PROGRAM = """
import signal, sys
from leafledger.flows import artifacts
from leafledger.flows.explain import explain

artifacts.show_progress = lambda work: lambda done: signal.raise_signal(signal.SIGTERM)
model, data, out, file = sys.argv[1:]
explain(model, data, out, scheduler="serial", metrics_file=file, date="2026-01-01")
"""


@pytest.mark.slow
def test_a_flow_that_is_terminated_writes_its_metrics(server, example, nights):
    """Called like a function, it ends by the signal as it would without; the file says that the night is not finished. Prefect's own processes heed
    the signal in their way."""
    file = nights / "nights.prom"
    told = [sys.executable, "-c", PROGRAM, example.model, nights / "data/{date}", nights / "explained/{date}", file]
    done = subprocess.run(list(map(str, told)), env=os.environ | {"PREFECT_API_URL": server}, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGTERM, done.stderr
    assert f'leafledger_run_finished{{run="{nights}/explained/{{date}}"}} 0.0' in file.read_text().splitlines()
    assert not (nights / "explained/2026-01-01/manifest.json").exists()
