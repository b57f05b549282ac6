"""``latest`` names the finished run of the latest date, whoever comes when, in a folder as in a bucket."""

import hashlib
import json
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from leafledger import explain, read_latest
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import InvalidRun, StorageError, UsageError
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.records.latest import Latest, move_latest
from leafledger.pipeline.stores import storage
from leafledger.pipeline.stores.object_store import ObjectStore
from leafledger.pipeline.stores.open_store import open_filesystem


@pytest.fixture(params=["bucket", "folder"])
def root(request, tmp_path):
    """A place for runs."""
    return request.getfixturevalue("bucket") if request.param == "bucket" else str(tmp_path)


def finished(root, run, day):
    """A run as ``latest`` names it."""
    return Latest(day.isoformat(), storage.join(root, run), hashlib.sha256(run.encode()).hexdigest(), 10, 1.0)


@pytest.mark.slow
def test_it_moves_forward_only(example, root):
    """An earlier date's run, finished later, leaves it where it is; another run of the same date moves it; the manifest is told by its digest."""
    latest = storage.join(root, "runs", "latest.json")

    def named(run, day, **given):
        out = storage.join(root, "runs", run)
        explain(example.model, f"{example.data}/month=1/*.parquet", out, scheduler="serial", latest=latest, date=day, **given)
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
        ("[" * 100_000, "it is nested too deeply"),
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
    with pytest.raises(UsageError, match=r"names the run of the latest date, but no date was given; give --date YYYY-MM-DD, today or yesterday$"):
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
