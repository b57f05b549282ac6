"""The command that gives reasons out writes what the function does."""

import json

import pandas as pd

from leafledger import explain
from leafledger.pipeline.command.cli import main


def test_a_table_and_letters_are_written(example, tmp_path, capsys):
    """Of rows with a value, by id; what is told is a count, or one document."""
    given = {"direction": "raises", "most": 2, "default": {"text": "By {feature}"}}
    explain(example.model, example.data, tmp_path / "run", ids=["flight"], reasons=given, scheduler="serial")
    asked = ["reasons", str(tmp_path / "run"), "--csv", str(tmp_path / "a.csv"), "--letters", str(tmp_path / "letters"), "--where", "flight=1234"]
    assert main(asked) == 0
    assert capsys.readouterr().out == (f"1 row, 0 without a reason\ntable: {tmp_path / 'a.csv'}\nletters: {tmp_path / 'letters'}\n")
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["flight=1234.txt"]
    assert pd.read_csv(tmp_path / "a.csv").shape == (1, 5)
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "n_rows": 1,
        "n_without": 0,
        "csv": str(tmp_path / "a.csv"),
        "letters": str(tmp_path / "letters"),
    }
    assert main(["reasons", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == "leafledger: nothing is to be written; give csv, a file, or letters, a folder\n"
