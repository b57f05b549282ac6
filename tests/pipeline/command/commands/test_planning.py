"""The command that shows what a run would do; what it shows of groups, labels and parameters is with the other commands."""

import json

import pytest

from leafledger.pipeline.command import cli
from leafledger.pipeline.errors import Exit
from tests.pipeline.conftest import write_data


@pytest.mark.slow
def test_a_plan_leaves_nothing_and_knows_a_finished_run(example, serial, tmp_path, capsys):
    """As lines and as a document."""
    out, _ = serial
    told = ["plan", example.model, example.data, "--out"]
    same = [str(out), "--id", "flight", "name"]
    assert cli.main([*told, *same]) == 0
    assert "(finished before: nothing to do)" in capsys.readouterr().out
    assert cli.main([*told, *same, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["finished"] is True
    assert cli.main([*told, str(tmp_path / "run"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["finished"], found["n_items"], found["method"]) == (False, 4, "shapley")
    assert 0 < found["memory"] < found["memory_allowed"]
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_plan_says_in_both_forms_what_becomes_of_the_run_that_is_there(example, serial, capsys):
    """A script that reads "finished" would take the run that is kept for the one that it asked for."""
    out, _ = serial
    told = ["plan", example.model, example.data, "--out", str(out), "--id", "flight", "name", "--method", "banzhaf", "--if-changed"]
    for what, said, finished in (
        ("keep", "kept as it is: what is asked for differs in", True),
        ("replace", "takes the place of another run: what is asked for differs in", False),
    ):
        assert cli.main([*told, what, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["finished"] is finished
        assert (found["kept"] != "", found["replaces"] is not None) == (finished, not finished)
        assert cli.main([*told, what]) == 0
        assert f"({said} {found['kept'] or found['replaces']})" in capsys.readouterr().out
        assert "method" in (found["kept"] or found["replaces"])


@pytest.mark.slow
def test_a_forecast_is_said_where_it_is_asked_for(example, serial, tmp_path, capsys):
    """As lines and as numbers; there is none of a run that is finished, and nothing is left of it."""
    out, _ = serial
    told = ["plan", example.model, example.data, "--scheduler", "serial", "--out"]
    asked = [*told, str(tmp_path / "nights" / "run"), "--forecast"]
    assert cli.main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    said = {line.split()[0]: line for line in lines}
    assert " on 1 thread (planning " in said["time"]
    assert "CPU hours" in said["processors"]
    assert cli.main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["forecast"]
    assert f" in {found['objects']} objects" in said["written"]
    assert found["seconds"] > 0 < found["cpu_seconds"]
    assert list(tmp_path.iterdir()) == []
    assert cli.main([*told, str(tmp_path / "run"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["forecast"] is None
    assert cli.main([*told, str(out), "--id", "flight", "name", "--forecast", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["forecast"] is None


def test_data_of_which_no_row_can_be_read_have_no_forecast(example, tmp_path, capsys):
    """One line, and the exit code of data that are refused."""
    data = write_data(example.frame, tmp_path / "data")
    for path in (tmp_path / "data").rglob("*.parquet"):
        content = path.read_bytes()
        path.write_bytes(content[:4] + bytes(len(content) // 2) + content[4 + len(content) // 2 :])
    assert cli.main(["plan", example.model, data, "--scheduler", "serial", "--out", str(tmp_path / "run"), "--forecast"]) == Exit.REFUSED
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
