"""The command that finds effects: its folder, its notes, its mistakes."""

import json
import re

import pyarrow.parquet as pq
import pytest

from leafledger.pipeline.command import cli


@pytest.mark.slow
def test_the_command_publishes_and_goes_on(example, tmp_path, capsys):
    """Tables, pictures and a line; again it finds what is there; pairs are two names with a comma."""
    out = tmp_path / "effects"
    arguments = ["effects", example.model, "--background", example.data, "--out", str(out), "--scheduler", "serial"]
    asked = ["--features", "distance", "delay", "--pairs", "distance,delay"]
    assert cli.main([*arguments, *asked, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("effects of 2 features and 1 pair in ")
    assert re.search(r"^background: \d+ files?, in two passes of \d+ items? in this process$", said, re.MULTILINE)
    assert not out.exists()
    assert cli.main([*arguments, *asked, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["planned"]["features"] == ["distance", "delay"]
    assert cli.main([*arguments, *asked]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(f"effects over 3,000 rows: {out}")
    assert "counting background" in said.err
    assert pq.read_table(out / "interactions.parquet").num_rows == 3
    assert (out / "figures" / "feature-00001.svg").read_text().startswith("<svg")
    assert json.loads((out / "effects.json").read_text())["pairs"] == [["distance", "delay"]]
    assert cli.main([*arguments, *asked]) == 0
    assert "found as they were" in capsys.readouterr().out
    assert cli.main([*arguments, *asked, "--dry-run"]) == 0
    assert "finished before: nothing to do" in capsys.readouterr().out
    assert cli.main(["check", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: sound, effects over 3,000 rows in 7 objects\n"
    assert cli.main(["check", str(out), "--deep", "--scheduler", "serial", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["sound"], said["again"], said["n_rows"]) == (True, True, 3000)
    assert cli.main([*arguments, "--pairs", "distance"]) == 2
    assert "pairs have 'distance', expected two features with a comma between them" in capsys.readouterr().err
    assert cli.main([*arguments, "--features", "distanc"]) == 2
    assert "did you mean 'distance'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_background_of_one_row_is_one_row(example, tmp_path, capsys):
    """It has effects too, and is called what it is."""
    single = tmp_path / "single.parquet"
    pq.write_table(pq.read_table(example.data).slice(0, 1), single)
    arguments = ["--background", str(single), "--out", str(tmp_path / "effects"), "--scheduler", "serial"]
    assert cli.main(["effects", example.model, *arguments, "--features", "distance"]) == 0
    assert capsys.readouterr().out.startswith("effects over 1 row: ")
