"""The command that says what changed: exit codes, a table, one JSON document, and names that stay text."""

import json
import re
import shutil
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from leafledger import drift, explain
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.command.commands.drifting import show_drift
from leafledger.pipeline.runs.formats.numbers import FORMAT
from tests.pipeline.conftest import make_frame, train, write_data


@pytest.fixture(scope="module")
def nights(example, tmp_path_factory):
    folder = tmp_path_factory.mktemp("drifting")
    frame = make_frame()
    for name, night in {"a": frame, "b": frame.assign(delay=frame["delay"] + 30), "c": frame}.items():
        explain(example.model, write_data(night, folder / f"data-{name}"), folder / name, values=True, scheduler="serial")
    return folder


@pytest.mark.slow
def test_drift_is_shown_and_has_an_exit_code(nights, capsys):
    """4 where a threshold is crossed, 0 where none is."""
    assert main(["drift", str(nights / "b"), "--against", str(nights / "a"), "--quiet"]) == 4
    assert capsys.readouterr() == ("", "")
    assert main(["drift", str(nights / "b"), "--against", str(nights / "a")]) == 4
    out, _ = capsys.readouterr()
    assert "drift: value of delay: differs by " in out
    assert "mean prediction" in out
    assert " alarm" in out
    assert main(["drift", str(nights / "c"), "--against", str(nights / "a"), "--both-ways"]) == 0
    out, _ = capsys.readouterr()
    assert "0 alarms; compared were the prediction, 4 attributions" in out
    assert "the data did +0, the model did +0" in out


def test_features_are_called_by_their_names(nights, capsys, tmp_path):
    """In the table and in alarms, a line for each thing, with units; the record keeps the names of the data, and the count stays."""
    named = {"features": {"delay": {"title": "departure delay", "unit": "min"}}, "prediction": {"title": "arrival", "unit": "min"}}
    (tmp_path / "names.json").write_text(json.dumps(named))
    asked = ["drift", str(nights / "b"), "--against", str(nights / "a")]
    assert main([*asked, "--names", str(tmp_path / "names.json")]) == 4
    out, _ = capsys.readouterr()
    assert re.search(r"^mean arrival \S+ → \S+ min, ", out, re.MULTILINE)
    assert re.search(r"^│ departure delay +│", out, re.MULTILINE)
    (line,) = re.findall(r"^drift: departure delay: .*", out, re.MULTILINE)
    assert re.search(r"its values differ by at least \S+ \(mean \S+ min, before \S+ min\)", line)
    found = json.loads((nights / "b" / "after" / "drift.json").read_text())
    assert f"{len(found['alarms'])} alarms; compared were" in out
    assert {shift["feature"] for shift in found["shifts"]} == {"", "distance", "delay", "carrier", "month"}


@pytest.mark.slow
def test_names_have_room_beside_any_numbers(nights, capsys, tmp_path):
    """Long numbers, and two columns more, took all of it: the first column was empty."""
    train(make_frame().assign(delay=lambda frame: frame["delay"] * 1.2345)).save_model(tmp_path / "other.txt")
    explain(tmp_path / "other.txt", nights / "data-b", tmp_path / "other", values=True, scheduler="serial")
    assert main(["drift", str(tmp_path / "other"), "--against", str(nights / "a"), "--both-ways", "--scheduler", "serial", "--quiet"]) == 4
    found = drift(tmp_path / "other", against=nights / "a", both_ways=True, scheduler="serial")
    long = [replace(shift, change=-1.2345e-7, change_abs=-1.2345e-7, data=-1.2345e-7, model=-1.2345e-7) for shift in found.shifts]
    show_drift(Console(), replace(found, shifts=tuple(long)))
    assert re.search(r"^│ delay +│", capsys.readouterr().out, re.MULTILINE)


def test_json_is_one_document(nights, capsys, tmp_path):
    """The same as drift.json, which has the number of its format besides; thresholds come from a file."""
    (tmp_path / "t.toml").write_text("distance = 1.0\nshare = 1.0\nmean = 9.0\nndcg = 0.0\n")
    asked = ["drift", str(nights / "b"), "--against", str(nights / "a"), "--json", "--quiet"]
    assert main(asked) == 4
    kept = json.loads((nights / "b" / "after" / "drift.json").read_text())
    assert {"format_version": FORMAT, **json.loads(capsys.readouterr().out)} == kept
    assert main([*asked, "--thresholds", str(tmp_path / "t.toml")]) == 0


def test_a_log_has_no_bar(nights, capsys, monkeypatch, tmp_path):
    """Every line is one of the log, whoever looks on."""
    run = shutil.copytree(nights / "c", tmp_path / "run")
    shutil.rmtree(run / "after", ignore_errors=True)  # what was measured before
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["drift", str(run), "--against", str(nights / "a"), "--log-format", "json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {line["level"] for line in lines} == {"info"}


@pytest.mark.slow
def test_groups_are_shown_first_those_that_are_new(nights, example, capsys):
    """What the mix did and what happened within groups, then every group; names of groups stay text."""
    frame = make_frame()
    frame.loc[:99, "carrier"] = "[b]<i>"
    explain(example.model, write_data(frame, nights / "data-d"), nights / "d", values=True, scheduler="serial")
    assert main(["drift", str(nights / "d"), "--against", str(nights / "a"), "--by", "carrier", "month"]) == 4
    out, _ = capsys.readouterr()
    assert out.splitlines()[1].startswith("differs: groups by carrier, month that are new: carrier=[b]<i>, month=")
    assert "within groups" in out
    assert re.search(r" alarms?; compared were the prediction, 4 attributions, .* and \d+ groups$", out.rstrip())
    assert "│ carrier=[b]<i>, month=" in out
    assert "drift: groups of carrier, month" not in out  # they moved by less than the threshold
    assert main(["drift", str(nights / "d"), "--against", str(nights / "a"), "--by", "flight"]) == 2
    assert "by has 'flight', of which it has no column" in capsys.readouterr().err


def test_mistakes_are_one_line(nights, capsys):
    """No run, no reference, no such threshold."""
    for run, against, code in (("nothing", "a", 6), ("a", "nothing", 6), ("a", "a", 2)):
        assert main(["drift", str(nights / run), "--against", str(nights / against)]) == code
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
