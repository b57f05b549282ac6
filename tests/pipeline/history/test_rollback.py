"""A run that was replaced and kept is put back: every row, in the table too, whatever ends it; where nothing is kept that is one line."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from leafledger import check_run, explain, forget, list_runs, prune, read_latest, read_manifest, read_run, rollback
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import InvalidRun, NotFinished, UsageError
from leafledger.pipeline.runs.records.folder import KEPT
from tests.more import more
from tests.pipeline.forgetting.people import PERSON, holders, objects, plain, read_parts, without, write_people
from tests.pipeline.runs.publish.killing import NEVER, KilledError, kill_writes

DAY = "2026-11-01"


@pytest.fixture(scope="module")
def people(example, tmp_path_factory):
    return write_people(example, tmp_path_factory.mktemp("people") / "data")


def make(example, people, root, **more):
    """A night, and once more by another method."""
    given = {"ids": ["customer", "account"], "item_rows": "file", "scheduler": "serial", "date": DAY, "latest": f"{root}/latest.json"} | more
    run = f"{root}/date={DAY}"
    explain(example.model, people, run, **given)
    before = read_parts(run), read_run(run).summary("importance")
    explain(example.model, people, run, method="banzhaf", keep_replaced=True, if_changed="replace", **given)
    return run, *before


def assert_back(run, rows, importance):
    """It is the run of before, but for its place; nothing else is left."""
    assert read_parts(run).equals(rows)
    assert plain(read_run(run).attributions()).equals(rows)
    assert read_run(run).summary("importance").equals(importance)
    assert (read_manifest(run).method, read_run(run).plan.method) == ("shapley", "shapley")
    found = check_run(run, all_rows=True)
    assert (found.sound, found.left, found.kept) == (True, (), None)
    assert read_run(run).provenance() is not None
    latest = read_latest(f"{run}/../latest.json")
    assert latest.manifest == read_manifest(run).sha256
    assert not [name for name in objects(run) if name.startswith(KEPT)]


@pytest.fixture
def night(example, people, tmp_path):
    return make(example, people, tmp_path / "runs")


@pytest.mark.slow
def test_a_run_is_put_back(night, capsys):
    """By the command; what is kept is told with its bytes until then, and afterwards nothing is."""
    run, rows, _ = night
    n = sum(len(data) for name, data in objects(run).items() if name.startswith(KEPT))
    keeps = f"keeps the run that it replaced, 3,000 rows and {n:,} bytes; leafledger rollback puts it back"
    assert check_run(run, deep=True).kept == keeps
    assert [each.n_kept_bytes for each in list_runs(run)] == [n]
    assert main(["check", run]) == 0
    assert f"{run}: {keeps}\n" in capsys.readouterr().out
    assert main(["runs", f"{run}/.."]) == 0
    assert f"date={DAY} keeps the run that it replaced: {n:,} bytes\n" in capsys.readouterr().out
    assert main(["rollback", run]) == 0
    made, lines = read_manifest(run), capsys.readouterr().out.splitlines()
    assert lines == [
        f"{run}: the run of before is put back: 3,000 rows in 3 parts, SHA-256 of manifest.json {made.sha256}",
        f"{run.rpartition('/')[0]}/latest.json names the run by its new manifest",
        "what was found of drift, and a report, are not kept: leafledger drift and leafledger report make them again",
    ]
    assert_back(*night)
    assert main(["rollback", run]) == 2
    said = "nothing is kept of what it replaced: it was put back before, or explain was to keep none; explain keeps it with --keep-replaced"
    assert capsys.readouterr().err == f"leafledger: {run}: {said}\n"
    assert rows.num_rows == 3000


def test_the_same_command_finds_it_finished(example, people, night):
    """Of the run of before; the other one is told what it differs in, as ever."""
    run, *_ = night
    made = rollback(run).manifest
    given = {"ids": ["customer", "account"], "item_rows": "file", "scheduler": "serial", "date": DAY}
    assert explain(example.model, people, run, **given) == made


def test_only_the_last_is_kept(example, people, night):
    """Replaced once more, what the first replaced goes; and without the option nothing is kept at all."""
    run, *_ = night
    given = {"ids": ["customer", "account"], "item_rows": "file", "scheduler": "serial", "date": DAY, "if_changed": "replace"}
    second = read_manifest(run).sha256
    explain(example.model, people, run, method="beta", keep_replaced=True, **given)
    assert {name.split("/")[1] for name in objects(run) if name.startswith(KEPT)} == {second[:16]}
    rollback(run)
    assert read_manifest(run).method == "banzhaf"
    explain(example.model, people, run, method="beta", **given)
    with pytest.raises(UsageError, match=r"nothing is kept"):
        rollback(run)


def test_parts_that_both_have_stay(example, people, tmp_path):
    """Where one file changed: its part alone is exchanged, there and back."""
    data, run = shutil.copytree(people, tmp_path / "data"), str(tmp_path / "runs" / "run")
    given = {"ids": ["customer"], "item_rows": "file", "scheduler": "serial"}
    explain(example.model, data, run, **given)
    rows, parts = read_parts(run), read_manifest(run).parts
    shutil.copy(data / "0.parquet", data / "2.parquet")
    explain(example.model, data, run, if_changed="replace", keep_replaced=True, **given)
    made = rollback(run).manifest
    assert read_parts(run).equals(rows)
    assert made.parts[:2] == parts[:2]
    assert made.parts[2]["sha256"] == parts[2]["sha256"]
    assert check_run(run, deep=True).left == ()


@pytest.mark.slow
@pytest.mark.parametrize("place", ["folder", *more("bucket")])
def test_whatever_ends_it_the_same_command_finishes(example, people, tmp_path, place, request, monkeypatch, one_in):
    """Again and again, each time a little later: in the end it is back, and is not put back once more."""
    root = str(tmp_path / "runs") if place == "folder" else f"{request.getfixturevalue('bucket')}/runs"
    run, rows, _ = make(example, people, root)
    after, (left, steps) = read_parts(run), kill_writes(monkeypatch)
    for moment in range(0, 200, one_in(9) if place == "bucket" else 1):
        left[0] = moment
        try:
            rollback(run)
        except KilledError:
            left[0] = NEVER
            found = plain(read_run(run).attributions())
            assert found.equals(rows) or found.equals(after)
        except UsageError:  # the attempt before was killed when all was done
            break
        else:
            break
    assert steps
    left[0] = NEVER
    assert read_parts(run).equals(rows)
    assert (check_run(run, deep=True).sound, check_run(run).left) == (True, ())
    assert read_latest(f"{root}/latest.json").manifest == read_manifest(run).sha256
    with pytest.raises(UsageError, match=r"nothing is kept"):
        rollback(run)


def test_what_was_interrupted_is_finished_and_not_undone(night, monkeypatch):
    """Killed once the run was back: the same command does what is left, and says so."""
    run, *_ = night
    with monkeypatch.context() as patched:
        patched.setattr("leafledger.pipeline.history.rollback.settle", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rollback(run)
    found = rollback(run)
    assert found.finished_before
    assert_back(*night)


@pytest.mark.slow
def test_keeping_may_be_interrupted_too(example, people, tmp_path, monkeypatch):
    """The run of before is there until the new one is; what is kept then is whole."""
    run, given = str(tmp_path / "runs" / "run"), {"ids": ["customer"], "item_rows": "file", "scheduler": "serial"}
    explain(example.model, people, run, **given)
    rows, (left, _) = read_parts(run), kill_writes(monkeypatch)
    for moment in range(0, 200, 3):
        left[0] = moment
        try:
            explain(example.model, people, run, method="banzhaf", keep_replaced=True, if_changed="replace", **given)
        except KilledError:
            left[0] = NEVER
            assert check_run(run).sound
        else:
            break
    left[0] = NEVER
    assert read_manifest(run).method == "banzhaf"
    rollback(run)
    assert read_parts(run).equals(rows)
    assert (check_run(run, deep=True).sound, check_run(run).left) == (True, ())


@pytest.mark.slow
def test_tables_go_back_too(example, people, tmp_path, kind):
    there = kind(tmp_path / "runs")
    run, rows, importance = make(example, people, tmp_path / "runs", table=kind.table)
    assert sum(there.list_live().values()) == 3000
    rollback(run)
    assert_back(run, rows, importance)
    assert {path.rpartition("/")[2] for path in there.list_live()} == {part["uri"].rpartition("/")[2] for part in read_manifest(run).parts}
    assert sorted(there.by_polars()["account"].to_pylist()) == sorted(rows["account"].to_pylist())


def test_damaged_ones_are_not_put_back(night):
    """The run stays as it is, and check says so as well."""
    run, *_ = night
    name = next(name for name in objects(run) if name.startswith(KEPT) and name.endswith("part-00001.parquet.own"))
    data, before = objects(run)[name], read_manifest(run)
    Path(f"{run}/{name}").write_bytes(data[:-1] + b"x")
    with pytest.raises(InvalidRun, match=rf"part-00001\.parquet\.own: SHA-256 is .*; {run} stays as it is$"):
        rollback(run)
    assert read_manifest(run) == before
    Path(f"{run}/{name}").write_bytes(data[:-1])
    with pytest.raises(InvalidRun, match=r"part-00001\.parquet\.own: is missing, or has other bytes than its manifest says; remove "):
        check_run(run)


@pytest.mark.slow
def test_a_person_is_forgotten_in_what_is_kept_too(example, people, night, tmp_path):
    """It goes with the exchange, which is told as before; and where the run of now has no such row, it goes by itself."""
    run, *_ = night
    dry, kept = forget(f"{run}/..", {"customer": PERSON}, dry_run=True), [f"{run}/_kept/{path.name}" for path in Path(run, "_kept").iterdir()]
    found = forget(f"{run}/..", {"customer": PERSON})
    assert (found.proved, found.n_rows) == (True, 6)
    assert len(kept) == 1
    assert [*dry.kept] == [*found.kept] == kept
    assert holders(f"{run}/..", PERSON) == []
    data, out = shutil.copytree(people, tmp_path / "data"), str(tmp_path / "other" / "run")
    given = {"ids": ["account"], "scheduler": "serial", "if_changed": "replace"}
    explain(example.model, data, out, **given)
    for path in data.iterdir():
        pq.write_table(without(plain(pq.read_table(path)), customer=PERSON), path)
    explain(example.model, data, out, keep_replaced=True, **given)
    assert len(holders(out, 4_000_000_123)) == 1
    dry = forget(out, {"account": 4_000_000_123}, dry_run=True)
    assert (dry.n_rows, len(dry.kept), [each.what for each in dry.holding]) == (0, 1, ["6 rows"])
    found = forget(out, {"account": 4_000_000_123})
    assert (found.proved, found.kept) == (True, dry.kept)
    assert holders(out, 4_000_000_123) == []
    assert check_run(out).kept is None


def test_prune_says_what_it_takes_along(night, capsys):
    run, *_ = night
    folder = run.rpartition("/")[0]
    shutil.copytree(run, f"{folder}/date=2026-11-02")
    n = list_runs(run)[0].n_kept_bytes
    Path(f"{folder}/latest.json").unlink()
    assert main(["prune", folder, "--keep", "1d", "--date", "2026-12-01"]) == 0
    assert capsys.readouterr().out.startswith(f"removed date={DAY}: finished, 3,000 rows, and {n:,} bytes kept of what it replaced\n")
    assert prune(folder, keep="1d", date="2026-12-01").removed == ()


def test_where_there_is_no_run(tmp_path):
    with pytest.raises(NotFinished, match=r"no manifest\.json there: not a finished run$"):
        rollback(tmp_path)
