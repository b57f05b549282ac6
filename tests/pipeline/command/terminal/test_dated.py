"""Days are filled into the places of every command that names a run, as explain fills them in."""

import json
import time
from datetime import UTC, date, datetime, timedelta

import pytest

from leafledger import explain
from leafledger.pipeline.command import cli
from leafledger.pipeline.command.terminal.dated import fill_day
from leafledger.pipeline.errors import UsageError


@pytest.fixture(scope="module")
def nights(example, tmp_path_factory):
    """Two nights of the same rows."""
    folder = tmp_path_factory.mktemp("nights")
    for day in ("2026-02-28", "2026-03-01"):
        explain(example.model, example.data, folder / "{date:%Y/%m-%d}", date=day, ids=["flight"], scheduler="serial")
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


@pytest.mark.parametrize(("zone", "today"), [("Etc/GMT+12", date(2026, 2, 28)), ("Etc/GMT-14", date(2026, 3, 2))])
@pytest.mark.slow
def test_today_and_yesterday_are_local_days(zone, today, example, tmp_path, monkeypatch, capsys):
    """By this machine's clock in its time zone: at noon in London it is still the day before elsewhere, or already the next one. Every command
    means the same by them, and a range may end with one."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    noon = datetime(2026, 3, 1, 11, 59, tzinfo=UTC).timestamp()

    class Local(date):
        @classmethod
        def today(cls):
            return cls.fromtimestamp(noon)

    monkeypatch.setattr("leafledger.pipeline.arguments.readers.Date", Local)
    yesterday = today - timedelta(days=1)
    try:
        night = str(tmp_path / "{date}")
        told = ["explain", example.model, example.data, "--out", night, "--scheduler", "serial", "--quiet"]
        assert [cli.main([*told, "--date", day]) for day in ("today", "yesterday")] == [0, 0]
        assert {path.name for path in tmp_path.iterdir()} == {str(today), str(yesterday)}
        code, found = document(capsys, "drift", night, "--against", tmp_path / "{date-1d}", "--date", "today")
        assert (code, found["run"], found["reference"]) == (0, f"{tmp_path}/{today}", f"{tmp_path}/{yesterday}")
        assert document(capsys, "check", night, "--date", "yesterday")[1]["run"] == f"{tmp_path}/{yesterday}"
        code, found = document(capsys, *told, "--dates", f"{yesterday}..today")
        assert (code, [each["run"] for each in found["runs"]]) == (0, [f"{tmp_path}/{yesterday}", f"{tmp_path}/{today}"])
        assert document(capsys, "prune", tmp_path, "--keep", "1d", "--date", "today", "--dry-run")[1]["before"] == str(yesterday)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_day_is_read_once(nights, capsys, monkeypatch):
    """A command that works over midnight compares the night that it began with, and the one before that."""
    days = iter([date(2026, 3, 1), date(2026, 3, 2)])
    monkeypatch.setattr("leafledger.pipeline.arguments.readers.Date", type("Clock", (date,), {"today": classmethod(lambda _: next(days))}))
    night, before = nights / "{date:%Y/%m-%d}", nights / "{date-1d:%Y/%m-%d}"
    code, found = document(capsys, "drift", night, "--against", before, "--date", "today")
    assert (code, found["run"], found["reference"]) == (0, f"{nights}/2026/03-01", f"{nights}/2026/02-28")


@pytest.mark.parametrize("command", ["drift", "report", "show", "check"])
def test_days_that_do_not_exist_are_refused(command, nights, capsys):
    """In one line, as a place with a date and no day."""
    more = ["--against", str(nights)] if command == "drift" else []
    missing = f"{nights}/{{date}}: has a {{date}} to fill in, but no date was given; give --date YYYY-MM-DD, today or yesterday"
    wrong = "date is '2026-02-30', expected YYYY-MM-DD, today or yesterday"
    for given, says in (([], missing), (["--date", "2026-02-30"], wrong)):
        assert cli.main([command, f"{nights}/{{date}}", *more, *given]) == 2
        assert capsys.readouterr().err == f"leafledger: {says}\n"


def test_what_is_no_day_is_not_filled_in():
    with pytest.raises(UsageError, match=r"only \{date\}"):
        fill_day("{night}", date(2026, 3, 1))
    assert fill_day("explained", None) == "explained"
