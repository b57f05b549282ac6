"""Which finished runs ``latest`` is moved to: not one of too few rows, nor one that is kept in the place of another or was replaced meanwhile."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from leafledger import explain, read_latest
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.runs import explain as explaining
from leafledger.pipeline.runs import stages as stages_
from tests.pipeline.conftest import FEATURES


@pytest.mark.slow
def test_a_run_of_too_few_rows_is_not_taken(example, tmp_path, capsys):
    """What is damaged, or not there at all, is no news: it is said, and the exit code is 3; without the option it is taken, and marked."""
    data, latest = tmp_path / "data", tmp_path / "latest.json"
    shutil.copytree(example.data, data)
    arguments = ["explain", example.model, str(data), "--scheduler", "serial", "--latest", str(latest), "--quiet"]
    assert main([*arguments, "--out", str(tmp_path / "a"), "--date", "2026-01-01", "--latest-requires", "1"]) == 0
    assert (read_latest(latest).n_rows, read_latest(latest).share) == (3000, 1.0)
    (data / "month=2" / "data.parquet").write_bytes(b"PAR1")
    later = [*arguments, "--out", str(tmp_path / "b"), "--date", "2026-01-02"]
    for _ in range(2):  # the second finds it finished
        capsys.readouterr()
        assert main([*later, "--latest-requires", "0.76"]) == 3
        assert f"{latest}: not moved, 75.00% of the rows are explained (" in capsys.readouterr().err
        assert read_latest(latest).run == str(tmp_path / "a")
    assert main([*later, "--latest-requires", "0.75"]) == 3
    found = read_latest(latest)
    assert (found.run, found.share) == (str(tmp_path / "b"), 0.75)
    assert found.n_rows < 3000


@pytest.mark.parametrize(("item_rows", "n_parts"), [(50, 12), (1000, 1)])
def test_a_file_that_cannot_be_read_counts_as_an_average_file(example, tmp_path, item_rows, n_parts):
    """Whether others have several parts each, or have one together."""
    data, latest = tmp_path / "data", tmp_path / "latest.json"
    data.mkdir()
    for k in range(4):
        example.frame[FEATURES][:200].to_parquet(data / f"{k}.parquet")
    (data / "2.parquet").write_bytes(b"PAR1")
    given = {"item_rows": item_rows, "latest": latest, "date": "2026-01-01", "scheduler": "serial"}
    made = explain(example.model, data, tmp_path / "run", **given)
    assert (len(made.parts), made.n_rows, made.n_files, made.share) == (n_parts, 600, 3, 0.75)
    assert read_latest(latest).share == 0.75


@pytest.fixture
def named(example, tmp_path):
    """``(explain, latest)``: what types the command for one night, which ``latest`` names and of whose data a file was damaged since."""
    data, latest = tmp_path / "data", tmp_path / "latest.json"
    shutil.copytree(example.data, data)
    arguments = ["explain", example.model, str(data), "--out", str(tmp_path / "run"), "--date", "2026-01-01", "--scheduler", "serial", "--quiet"]
    assert main([*arguments, "--latest", str(latest), "--latest-requires", "0.99"]) == 0
    (data / "month=2" / "data.parquet").write_bytes(b"PAR1")
    return lambda *given: main([*arguments, *given]), latest


@pytest.mark.slow
def test_a_run_of_too_few_rows_does_not_replace_the_one_that_is_named(named, capsys):
    """That is named by its folder, so that readers would take the other: it stays, by every attempt; who requires less has it replaced."""
    explain_night, latest = named
    before = read_latest(latest)
    capsys.readouterr()
    for _ in range(2):
        assert explain_night("--latest", str(latest), "--latest-requires", "0.99", "--replace") == 8
        said = capsys.readouterr().err
        assert f"{latest}: not moved, 75.00% of the rows are explained (" in said
        assert f"expected at least 99.00%; it names {before.run}, where the run of before stays" in said
        assert read_latest(latest) == before
        assert main(["check", "--latest", str(latest)]) == 0
    assert explain_night("--latest", str(latest), "--latest-requires", "0.75", "--replace") == 3
    assert read_latest(latest).share == 0.75
    assert main(["check", "--latest", str(latest)]) == 0


@pytest.mark.slow
def test_what_is_there_is_said_of_the_run_that_is_named(named, capsys):
    """It was replaced by a command that knew of no ``latest``; the next one that does says so, though it would not have taken the run."""
    explain_night, latest = named
    before = read_latest(latest)
    assert explain_night("--replace") == 3
    assert read_latest(latest) == before
    assert main(["check", "--latest", str(latest)]) == 1
    capsys.readouterr()
    assert explain_night("--latest", str(latest), "--latest-requires", "0.99") == 3
    assert f"{latest}: names this run, of which 75.00% of the rows are explained (" in capsys.readouterr().err
    found = read_latest(latest)
    assert (found.run, found.date, found.share) == (before.run, before.date, 0.75)
    assert found.manifest != before.manifest
    assert main(["check", "--latest", str(latest)]) == 0


def test_a_run_that_is_kept_stays_of_its_date(example, tmp_path):
    """What was asked for would be of a later one; under which the rows of before would be taken for that night's."""
    latest = tmp_path / "latest.json"
    given = {"scheduler": "serial", "latest": latest, "if_changed": "keep"}
    explain(example.model, f"{example.data}/month=2", tmp_path / "run", date="2026-01-01", **given)
    before = read_latest(latest)
    explain(example.model, f"{example.data}/month=3", tmp_path / "run", date="2026-01-02", **given)
    assert read_latest(latest) == before
    latest.unlink()  # as where the run was killed before it was named
    explain(example.model, f"{example.data}/month=3", tmp_path / "run", date="2026-01-01", **given)
    assert read_latest(latest) == before


def test_a_run_that_was_replaced_meanwhile_is_not_named(example, tmp_path, monkeypatch):
    """Another takes its place between its manifest and this: what is there is named, by its own SHA-256."""
    update_latest, made = stages_.update_latest, []
    given = {"scheduler": "serial", "date": "2026-01-01", "latest": tmp_path / "latest.json"}

    def overtaken(run, manifest):
        if not made:
            made.append(None)
            made[0] = explain(example.model, example.data, tmp_path / "run", if_changed="replace", precision="float64", **given)
        return update_latest(run, manifest)

    monkeypatch.setattr(explaining, "update_latest", overtaken)
    explain(example.model, example.data, tmp_path / "run", **given)
    assert read_latest(tmp_path / "latest.json").manifest == made[0].sha256


def test_a_run_of_no_rows_is_not_taken(example, tmp_path, capsys):
    """Where anything is required; nor is there anything then where nothing was before."""
    frame = pq.read_table(Path(example.data) / "month=1" / "data.parquet")
    (tmp_path / "data" / "month=1").mkdir(parents=True)
    pq.write_table(frame.slice(0, 0), tmp_path / "data" / "month=1" / "data.parquet")
    latest = tmp_path / "latest.json"
    arguments = ["explain", example.model, str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--scheduler", "serial", "--quiet"]
    arguments += ["--latest", str(latest), "--date", "2026-01-01"]
    assert main([*arguments, "--latest-requires", "0.001"]) == 3
    assert "not moved, 0.00% of the rows are explained (0), expected at least 0.10%" in capsys.readouterr().err
    assert not latest.exists()
    assert main(arguments) == 0
    assert (read_latest(latest).n_rows, read_latest(latest).share) == (0, 0.0)
