"""``latest`` names the finished run of the latest date, whoever comes when, in a folder as in a bucket."""

import hashlib
import json
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from leafledger import explain, read_latest
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import InvalidRun, StorageError, UsageError
from leafledger.pipeline.runs import explain as explaining
from leafledger.pipeline.runs import stages as stages_
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.records.latest import Latest, move_latest
from leafledger.pipeline.stores import storage
from leafledger.pipeline.stores.object_store import ObjectStore
from leafledger.pipeline.stores.open_store import open_filesystem
from tests.pipeline.conftest import FEATURES


@pytest.fixture(params=["bucket", "folder"])
def root(request, tmp_path):
    """A place for runs."""
    return request.getfixturevalue("bucket") if request.param == "bucket" else str(tmp_path)


def finished(root, run, day):
    """A run as ``latest`` names it."""
    return Latest(day.isoformat(), storage.join(root, run), hashlib.sha256(run.encode()).hexdigest(), 10, 1.0)


def test_it_moves_forward_only(example, root):
    """An earlier date's run, finished later, leaves it where it is; another run of the same date moves it; the manifest is told by its digest."""
    latest = storage.join(root, "runs", "latest.json")

    def named(run, day, **given):
        out = storage.join(root, "runs", run)
        explain(example.model, example.data, out, scheduler="serial", latest=latest, date=day, **given)
        found = read_latest(latest)
        assert found.manifest == hashlib.sha256(storage.read(storage.join(found.run, "manifest.json"))).hexdigest()
        return found.date, found.run.removeprefix(storage.join(root, "runs/"))

    assert read_latest(latest) is None
    assert named("{date}", "2026-11-20") == ("2026-11-20", "2026-11-20")
    assert named("{date}", "2026-11-21") == ("2026-11-21", "2026-11-21")
    assert named("{date}", date(2026, 11, 19)) == ("2026-11-21", "2026-11-21")
    assert named("corrected", "2026-11-21", method="banzhaf") == ("2026-11-21", "corrected")
    assert named("{date}", "2026-11-20") == ("2026-11-21", "corrected")  # finished before
    assert named("{date}", "2026-11-21") == ("2026-11-21", "2026-11-21")


def test_it_is_moved_by_the_run_that_finds_nothing_to_do(example, tmp_path, capsys):
    """As after a crash between the manifest and it; the command line says what it names."""
    arguments = ["explain", example.model, example.data, "--out", f"{tmp_path}/{{date}}", "--scheduler", "serial"]
    latest = tmp_path / "latest.json"
    assert main([*arguments, "--date", "2026-11-20"]) == 0
    capsys.readouterr()
    arguments += ["--latest", str(latest)]
    assert main([*arguments, "--date", "2026-11-20"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{latest}: names it, of 2026-11-20"
    assert main([*arguments, "--date", "2026-11-21"]) == 0
    assert f"latest:       {latest}\n" in capsys.readouterr().out
    assert main([*arguments, "--date", "2026-11-19"]) == 0
    assert f"latest:       {latest} stays at {tmp_path}/2026-11-21, of 2026-11-21\n" in capsys.readouterr().out
    assert json.loads(latest.read_text())["run"] == f"{tmp_path}/2026-11-21"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".latest.json.lock", "2026-11-19", "2026-11-20", "2026-11-21", "latest.json"]


@pytest.mark.parametrize("seed", range(3))
def test_of_runs_that_end_at_once_the_latest_is_named(root, seed):
    """Whatever the order in which they come to it."""
    runs = [finished(root, f"run-{day}", date(2026, 1, 1) + timedelta(day)) for day in range(4)]
    random.Random(seed).shuffle(runs)
    uri = storage.join(root, "latest.json")
    with ThreadPoolExecutor(len(runs)) as threads:
        said = list(threads.map(lambda run: move_latest(uri, run), runs))
    found = read_latest(uri)
    assert (found.date, found.run) == ("2026-01-04", storage.join(root, "run-3"))
    assert all(answer.date >= run.date for answer, run in zip(said, runs, strict=True))


def test_who_is_overtaken_between_look_and_write_looks_again(bucket, monkeypatch):
    """What was written meanwhile is of a later date, and stays."""
    uri = f"{bucket}/latest.json"
    early, middle, late = (finished(bucket, f"run-{day}", date(2026, 1, day)) for day in (1, 2, 3))
    move_latest(uri, early)
    swap, swapped = ObjectStore._replace, []

    def overtaken(*arguments):
        if not swapped:
            swapped.append(True)
            move_latest(uri, late)
        return swap(*arguments)

    monkeypatch.setattr(ObjectStore, "_replace", overtaken)
    assert move_latest(uri, middle) == read_latest(uri) == late
    assert swapped == [True]


def test_who_is_always_overtaken_gives_up(bucket, monkeypatch):
    """In one line, not in a loop without end."""
    uri, run, swap, tries = f"{bucket}/latest.json", finished(bucket, "run", date(2026, 1, 2)), ObjectStore._replace, []

    def overtaken(store, path, held, made):
        tries.append(held)
        filesystem, path = open_filesystem(uri)
        filesystem.pipe_file(path, json.dumps({"date": "2026-01-01", "run": "other", "manifest": str(len(tries))}).encode())
        return swap(store, path, held, made)

    monkeypatch.setattr(ObjectStore, "_replace", overtaken)
    with pytest.raises(StorageError, match=r"latest\.json: cannot write: it was changed by others 5 times in a row"):
        move_latest(uri, run)


def test_what_a_killed_writer_left_is_in_nobodys_way(tmp_path):
    """In a folder, where a file that is moved into its place has a name before, another one for each writer."""
    run = finished(str(tmp_path), "run", date(2026, 1, 1))
    left = tmp_path / ".partial-0123456789abcdef"
    left.write_bytes(b"half of something longer than what is to come" * 100)
    assert move_latest(str(tmp_path / "latest.json"), run) == read_latest(str(tmp_path / "latest.json")) == run
    assert {path.name for path in tmp_path.iterdir()} == {".latest.json.lock", left.name, "latest.json"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Expecting value"),
        ("[" * 100_000, "maximum recursion depth"),
        ("[]", r"it is \[\], expected an object"),
        ('{"date": "2026-01-01", "run": "r"}', "it has no 'manifest'"),
        ('{"date": "2026-01-01", "run": "r", "manifest": 1}', "manifest is 1, expected a text"),
        ('{"date": "2026-01-01", "run": "r", "manifest": "m", "n_rows": 1}', "it has no 'share'"),
        ('{"date": "yesterday", "run": "r", "manifest": "m"}', "Invalid isoformat string: 'yesterday'"),
    ],
)
def test_something_else_in_its_place_is_refused_before_the_work(example, tmp_path, text, said):
    """And stays as it is."""
    latest = tmp_path / "latest.json"
    latest.write_text(text)
    with pytest.raises(InvalidRun, match=rf"latest\.json: does not name the latest run: {said}"):
        explain(example.model, example.data, tmp_path / "run", scheduler="serial", latest=latest, date="2026-01-01")
    assert latest.read_text() == text
    assert not (tmp_path / "run").exists()


def test_a_date_and_a_place_outside_the_run_are_needed(example, tmp_path):
    """Refused before anything is read."""
    with pytest.raises(UsageError, match="names the run of the latest date, but no date was given"):
        explain(example.model, example.data, tmp_path / "run", latest=tmp_path / "latest.json")
    with pytest.raises(UsageError, match="lies within the run, but runs of other dates are to move it"):
        explain(example.model, example.data, tmp_path / "run", latest=Path(tmp_path / "run" / "latest.json"), date="2026-01-01")


def test_a_store_without_compare_and_swap_is_for_a_single_writer(example, tmp_path):
    """Such as memory."""
    given = {"scheduler": "serial", "latest": "memory://nightly/latest.json", "date": "2026-01-01"}
    with pytest.raises(UsageError, match=r"memory://nightly/latest\.json: the store ignores conditions .* --single-writer"):
        explain(example.model, example.data, tmp_path / "run", **given)
    explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    with pytest.raises(UsageError, match=r"memory://nightly/latest\.json: the store ignores conditions .* --single-writer"):
        explain(example.model, example.data, tmp_path / "run", **given)  # which is finished
    explain(example.model, example.data, tmp_path / "run", single_writer=True, **given)
    assert read_latest("memory://nightly/latest.json").run == str(tmp_path / "run")


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


def test_a_run_that_is_replaced_while_it_is_named_does_not_stay_named(bucket):
    """Another takes its place after the object was read, and names itself; who asked before would write the digest of what is gone."""
    uri, mine = f"{bucket}/latest.json", Latest("2026-01-02", f"{bucket}/run", "mine", 1, 1.0)
    other, asked = replace(mine, manifest="other"), []

    def stands():
        asked.append(None)
        if len(asked) == 1:
            move_latest(uri, other)
            return True
        return False

    assert move_latest(uri, mine, stands=stands) == read_latest(uri) == other
    assert len(asked) == 2
    assert move_latest(f"{bucket}/none.json", mine, stands=lambda: False) is read_latest(f"{bucket}/none.json") is None


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


def test_what_an_earlier_version_wrote_is_read(tmp_path):
    """It did not say how many rows there were."""
    (tmp_path / "latest.json").write_text('{"date": "2026-01-01", "run": "r", "manifest": "m"}')
    assert read_latest(tmp_path / "latest.json") == Latest("2026-01-01", "r", "m", None, None)
    mine = finished(str(tmp_path), "run", date(2026, 1, 1))
    assert move_latest(str(tmp_path / "latest.json"), mine) == mine


@pytest.mark.parametrize("given", [-0.1, 1.1, True, "half", None, float("nan")])
def test_a_share_is_a_number_from_0_to_1(given):
    """Anything else is refused in one line."""
    with pytest.raises(UsageError, match=r"^latest_requires is .*, expected a number from 0 to 1$"):
        Options(latest_requires=given)
