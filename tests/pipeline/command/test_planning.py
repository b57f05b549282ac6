"""The command that shows what a run would do; what it shows of groups, labels and parameters is with the other commands."""

import json

from pipeline.command import cli


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
