"""Days are filled into the places of every command that names a run, as explain fills them in."""

import json

import pytest

from leafledger import explain
from leafledger.pipeline.command import cli
from leafledger.pipeline.command.terminal.dated import fill_day
from leafledger.pipeline.errors import UsageError


@pytest.fixture(scope="module")
def nights(example, tmp_path_factory):
    """Two nights of the same rows."""
    folder = tmp_path_factory.mktemp("nights")
    for date in ("2026-02-28", "2026-03-01"):
        explain(example.model, example.data, folder / "{date:%Y/%m-%d}", date=date, ids=["flight"], scheduler="serial")
    return folder


def document(capsys, *arguments):
    capsys.readouterr()
    code = cli.main([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_commands_take_the_run_of_a_day(nights, example, tmp_path, capsys):
    """And the one before it, over the end of a month."""
    night, before = nights / "{date:%Y/%m-%d}", nights / "{date-1d:%Y/%m-%d}"
    day = ("--date", "2026-03-01")
    code, found = document(capsys, "drift", night, "--against", before, *day)
    assert (code, found["run"], found["reference"]) == (0, f"{nights}/2026/03-01", f"{nights}/2026/02-28")
    code, found = document(capsys, "report", before, *day)
    assert (code, found["run"]) == (0, f"{nights}/2026/02-28")
    code, found = document(capsys, "show", night, "--where", "flight=1", "--html", tmp_path / "{date:%j}.html", *day)
    assert (code, found["run"]) == (0, f"{nights}/2026/03-01")
    assert (tmp_path / "060.html").exists()
    code, found = document(capsys, "check", before, *day)
    assert (code, found["run"]) == (0, f"{nights}/2026/02-28")
    rankings = ("--methods", f"shapley,run:{before}", "--out", tmp_path / "{date-1d:%Y%m%d}.parquet", "--gap-rows", "20")
    code, found = document(capsys, "compare", example.model, example.data, *rankings, *day)
    assert (code, found["measures"]) == (0, f"{tmp_path}/20260228.parquet")
    assert (tmp_path / "20260228.features.parquet").exists()
    assert {f"run:{nights}/2026/02-28"} == {row["ranking"] for row in found["table"]} - {"shapley"}


@pytest.mark.parametrize("command", ["drift", "report", "show", "check"])
def test_days_that_do_not_exist_are_refused(command, nights, capsys):
    """In one line, as a place with a date and no day."""
    more = ["--against", str(nights)] if command == "drift" else []
    for given, says in (([], "has a {date} to fill in, but no date was given"), (["--date", "2026-02-30"], "2026-02-30")):
        assert cli.main([command, f"{nights}/{{date}}", *more, *given]) == 2
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        assert says in captured.err


def test_what_is_no_day_is_not_filled_in():
    with pytest.raises(UsageError, match=r"only \{date\}"):
        fill_day("{night}", "2026-03-01")
    assert fill_day("explained", None) == "explained"
