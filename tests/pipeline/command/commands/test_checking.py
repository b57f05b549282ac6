"""The command that verifies a run: the one that is named, that of a date, or the newest."""

import json
import shutil

import pytest

from leafledger import explain
from leafledger.pipeline.command import cli


@pytest.fixture(scope="module")
def nights(example, tmp_path_factory):
    """A folder of two nights, and which of them is the newest."""
    folder = tmp_path_factory.mktemp("nights")
    for date in ("2026-03-01", "2026-03-02"):
        explain(example.model, example.data, folder / "{date}", date=date, latest=folder / "latest.json", scheduler="serial", global_only=True)
    return folder


def checked(capsys, *arguments):
    code = cli.main(["check", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_run_of_a_date_and_the_newest(nights, capsys):
    """Both as `check` says of the run that they are."""
    code, said, _ = checked(capsys, nights / "2026-03-02")
    assert code == 0
    assert said.startswith(f"{nights}/2026-03-02: sound, 3,000 rows")
    assert checked(capsys, nights / "{date}", "--date", "2026-03-02") == (0, said, "")
    assert checked(capsys, "--latest", nights / "latest.json") == (0, said, "")
    assert checked(capsys, "--latest", nights / "{date}/../latest.json", "--date", "2026-03-01")[0] == 0


def test_what_the_newest_is_no_more(nights, tmp_path, capsys):
    """Another manifest, or other counts, than the one it was moved to has, a run that is gone, no such object yet, and one that is something else."""
    named = json.loads((nights / "latest.json").read_text())
    other = tmp_path / "latest.json"
    other.write_text(json.dumps(named | {"manifest": "0" * 64}))
    code, said, log = checked(capsys, "--latest", other)
    assert (code, said) == (1, "")
    assert f"names {nights}/2026-03-02 with manifest 000000000000, but there it is {named['manifest'][:12]}" in log
    for name, said, there in (("n_rows", 3001, "3000"), ("share", 0.5, "1.0")):
        other.write_text(json.dumps(named | {name: said}))
        says = f"leafledger: {other}: names {nights}/2026-03-02 with {name} {said}, but there it is {there}\n"
        assert checked(capsys, "--latest", other) == (1, "", says)
    other.write_text(json.dumps({name: named[name] for name in ("date", "run", "manifest")}))  # as version 0.1 wrote it
    assert checked(capsys, "--latest", other)[0] == 0
    other.write_text(json.dumps(named | {"run": str(tmp_path / "gone")}))
    assert checked(capsys, "--latest", other) == (1, "", f"leafledger: {other}: names {tmp_path}/gone, which has no manifest.json\n")
    other.write_text("[]")
    assert checked(capsys, "--latest", other)[0] == 1
    other.unlink()
    assert checked(capsys, "--latest", other) == (6, "", f"leafledger: {other}: not there: no run was finished yet\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "check takes either a run or --latest, got neither"),
        (("run", "--latest", "latest.json"), "check takes either a run or --latest, got both"),
        (("{date}",), "{date}: has a {date} to fill in, but no date was given; give --date YYYY-MM-DD, today or yesterday"),
        (("{date}", "--date", "2026-02-30"), "2026-02-30"),
        (("{night}", "--date", "2026-02-28"), "{night}: only {date}"),
    ],
)
def test_mistakes_are_one_line(capsys, arguments, says):
    code, said, log = checked(capsys, *arguments)
    assert (code, said, log.count("\n")) == (2, "", 1)
    assert says in log


def test_a_part_that_is_gone_is_damage_not_a_night_to_come(nights, tmp_path, capsys):
    """Readers that wait for what is not there yet would wait for ever."""
    shutil.copytree(nights / "2026-03-01", tmp_path / "run")
    (tmp_path / "run/attributions/part-00001.parquet").unlink()
    code, _, log = checked(capsys, tmp_path / "run")
    assert code == 1
    assert log == f"leafledger: {tmp_path}/run/attributions/part-00001.parquet: cannot read: no such file or object, though the run is finished\n"
