"""The command that says what changed: exit codes, a table, one JSON document, and names that stay text."""

import json

import pytest

from leafledger import explain
from pipeline.command.cli import main
from tests.pipeline.conftest import make_frame, write_data


@pytest.fixture(scope="module")
def nights(example, tmp_path_factory):
    folder = tmp_path_factory.mktemp("drifting")
    frame = make_frame()
    for name, night in {"a": frame, "b": frame.assign(delay=frame["delay"] + 30), "c": frame}.items():
        explain(example.model, write_data(night, folder / f"data-{name}"), folder / name, values=True, scheduler="serial")
    return folder


def test_drift_is_shown_and_has_an_exit_code(nights, capsys):
    """4 where a threshold is crossed, 0 where none is."""
    assert main(["drift", str(nights / "b"), "--against", str(nights / "a"), "--quiet"]) == 4
    assert capsys.readouterr() == ("", "")
    assert main(["drift", str(nights / "b"), "--against", str(nights / "a")]) == 4
    out, _ = capsys.readouterr()
    assert "drift: value of delay: mean" in out
    assert "mean margin" in out
    assert "drifted" in out
    assert main(["drift", str(nights / "c"), "--against", str(nights / "a"), "--both-ways"]) == 0
    out, _ = capsys.readouterr()
    assert "0 alarms in" in out
    assert "the data did +0, the model did +0" in out


def test_json_is_one_document(nights, capsys, tmp_path):
    """The same as drift.json; thresholds come from a file."""
    (tmp_path / "t.toml").write_text("distance = 1.0\nshare = 1.0\nndcg = 0.0\n")
    asked = ["drift", str(nights / "b"), "--against", str(nights / "a"), "--json", "--quiet"]
    assert main(asked) == 4
    assert json.loads(capsys.readouterr().out) == json.loads((nights / "b" / "after" / "drift.json").read_text())
    assert main([*asked, "--thresholds", str(tmp_path / "t.toml")]) == 0


def test_mistakes_are_one_line(nights, capsys):
    """No run, no reference, no such threshold."""
    for run, against, code in (("nothing", "a", 6), ("a", "nothing", 6), ("a", "a", 2)):
        assert main(["drift", str(nights / run), "--against", str(nights / against)]) == code
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
