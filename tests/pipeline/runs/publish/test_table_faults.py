"""Whatever ends a run in between, and whoever else writes: every run's rows are in the table once, or it is said why not."""

import os
import subprocess
import sys
import threading
import time
from datetime import date
from pathlib import Path

import pytest

from leafledger import prune
from leafledger.pipeline.errors import SchemaMismatch, StorageError
from leafledger.pipeline.runs import explain as explaining
from leafledger.pipeline.runs.publish import table_commit as table_commit_
from leafledger.pipeline.runs.records.derived import TABLE, write_derived
from leafledger.pipeline.runs.records.manifest import read_manifest
from leafledger.pipeline.stores import commit, storage
from tests.more import diagonal
from tests.pipeline.runs.publish.tabling import Delta, Iceberg, expected, plain


class KilledError(BaseException):
    """No error handler stops it, as none stops SIGKILL."""


@pytest.fixture
def killing(kind, monkeypatch):
    """``(left, steps)``: after how many writes what runs is killed, right before the next one; and at which it was."""
    left, steps = [10**6], []

    def die(name):
        if not left[0]:
            steps.append(name)
            raise KilledError
        left[0] -= 1

    def wrap(owner, name, called):
        function = getattr(owner, name)

        def step(*given, **named):
            die(called)
            return function(*given, **named)

        monkeypatch.setattr(owner, name, step)

    for name in ("create", "copy", "update", "remove"):
        wrap(commit, name, name)
    for owner, name in kind.log:
        wrap(owner, name, "log")
    return left, steps


@pytest.fixture(scope="module")
def s3_endpoint():
    """A moto server in a process of its own: a library that writes a log lets no other thread of this one work meanwhile."""
    with subprocess.Popen([sys.executable, "-m", "tests.moto_store"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        yield server.stdout.readline().strip()
        server.stdin.close()


def list_parts(root):
    """The parts of the run that is there, as its manifest has them, and their rows."""
    manifest = read_manifest(f"{root}/date=2026-11-22")
    return {} if manifest is None else {f"{root}/date=2026-11-22/{part['uri']}": part["n_rows"] for part in manifest.parts}


@pytest.mark.parametrize(
    ("place", "replaced"),
    [
        ("folder", True),
        ("bucket", False),
        pytest.param("folder", False, marks=pytest.mark.more),
        pytest.param("bucket", True, marks=pytest.mark.long),
    ],
)
@pytest.mark.slow
def test_killed_at_every_step_rows_are_there_once(example, night, kind, tmp_path, killing, place, replaced, request, one_in):
    """Where there is no table yet, and where a run takes another's place: readers see one run whole; the next attempt ends with its rows."""
    (run, _, _), (left, steps), data = night, killing, f"{example.data}/month=[23]"
    place = str(tmp_path / "runs") if place == "folder" else f"{request.getfixturevalue('bucket')}/runs"
    for n in range(0, 300, one_in(5 if replaced else 6)):
        there, killed = kind(f"{place}/{n}"), False
        if replaced:
            run("2026-11-22", there.root, data=f"{example.data}/month=1")
        before, commits = there.list_live(), there.count_commits() if replaced or (n and kind is Iceberg) else 0
        left[0] = n
        try:
            run("2026-11-22", there.root, if_changed="replace", data=data)
        except KilledError:
            killed = True
        left[0] = 10**6
        live = there.list_live()
        assert live in (before, list_parts(there.root))
        assert all(storage.exists(path) for path in live)
        run("2026-11-22", there.root, if_changed="replace", data=data)
        assert there.list_live() == list_parts(there.root)
        assert there.count_commits() == commits + 1
        if not killed:
            break
    assert {*steps} == {"create", "update", "remove", "log", *(["copy"] if replaced else [])} or one_in(6) > 1


@pytest.mark.parametrize(("replaced", "afterwards"), diagonal([False, True], ["pruned", "replaced"]))
@pytest.mark.slow
def test_killed_at_every_step_a_run_can_go(example, night, kind, tmp_path, killing, monkeypatch, replaced, afterwards, one_in):
    """Once its manifest is there; whatever removes it next, `prune` or a run in its place without a table: the table names nothing that is gone."""
    (run, _, _), (left, steps), commit_table, armed = night, killing, table_commit_.commit_table, []

    def begin(*given):
        left[0] = armed.pop() if armed else left[0]
        commit_table(*given)

    monkeypatch.setattr(explaining, "commit_table", begin)
    for n in range(one_in(2) - 1, 100, one_in(4)) if replaced else range(100):
        there, killed = kind(f"{tmp_path}/runs/{n}"), False
        run("2026-12-30", there.root, data=f"{example.data}/month=1", table=None)
        if replaced:
            run("2026-11-22", there.root, data=f"{example.data}/month=1")
        armed.append(n)
        try:
            run("2026-11-22", there.root, if_changed="replace", data=f"{example.data}/month=[23]")
        except KilledError:
            killed = True
        left[0] = 10**6
        assert all(storage.exists(path) for path in there.list_live())
        if afterwards == "pruned":
            assert prune(there.root, keep="30d", date="2026-12-31").kept == ()
        else:
            run("2026-11-22", there.root, if_changed="replace", data=f"{example.data}/month=3", table=None)
        assert there.list_live() == {}
        if not killed:
            break
    assert {"update", "log", *(["remove"] if replaced else [])} <= {*steps}


def run_together(run, days, owner, name, monkeypatch):
    """Run two days at once, which wait for each other before either writes the log by ``owner.name``; how many came there."""
    together, wrapped, met = threading.Barrier(2), getattr(owner, name), []

    def meet(*given, **named):
        if len(met) < 2:
            met.append(True)
            together.wait(30)
        return wrapped(*given, **named)

    monkeypatch.setattr(owner, name, meet)
    runs = [threading.Thread(target=run, args=(day,)) for day in days]
    for each in runs:
        each.start()
    for each in runs:
        each.join()
    return len(met)


@pytest.mark.slow
def test_two_at_once_commit_once(night, kind, monkeypatch):
    """Both have looked when the first commits; the second is refused by the log, looks again and finds it done."""
    run, _, there = night
    run("2026-11-21")
    run("2026-11-22", table=None)
    assert run_together(run, ("2026-11-22", "2026-11-22"), *kind.log[-1], monkeypatch) == 2
    assert there.count_commits() == 2
    assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-11-21", f"{there.root}/date=2026-11-22"))


@pytest.mark.slow
def test_two_at_once_make_one_table(night, kind, monkeypatch):
    """Neither has found one; the second is refused, looks again and adds its own night."""
    run, _, there = night
    days = ("2026-11-21", "2026-11-22")
    for day in days:
        run(day, table=None)
    assert run_together(run, days, *kind.log[0], monkeypatch) == 2
    assert plain(there.by_polars()).equals(expected(*(f"{there.root}/date={day}" for day in days)))


@pytest.mark.parametrize("kind", ["delta"], indirect=True)
def test_others_that_clean_the_folder_take_nothing(night):
    """Delta's own cleaning removes all that its log does not name, as manifests; not before a hundred years here."""
    run, late, there = night
    run("2026-11-22")
    late()
    run("2026-11-22", if_changed="replace")
    left = {path for path in Path(there.root).rglob("*") if path.is_file()}
    for path in left:
        os.utime(path, (0, time.time() - 60 * 86_400))  # older than what Delta keeps by default
    assert there.open().vacuum(dry_run=False, full=True) == []
    with pytest.raises(Exception, match="Invalid retention period"):
        there.open().vacuum(retention_hours=0, dry_run=False, full=True)
    assert left <= {path for path in Path(there.root).rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_store_that_fails_leaves_a_finished_run(night, kind, monkeypatch):
    """In one line; the next attempt commits it."""
    run, _, there = night

    def fail(*_, **__):
        raise OSError("away\n   0: <unknown>")

    with monkeypatch.context() as patch:
        patch.setattr(*kind.log[0], fail)
        with pytest.raises(StorageError, match=rf"^{there.uri}: cannot write: away[^\n]*$"):
            run("2026-11-22")
    assert read_manifest(f"{there.root}/date=2026-11-22") is not None
    run("2026-11-22")
    assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-11-22"))


def rewrite(there):
    """All files of a table, by others: none of them is a run's any more."""
    if isinstance(there, Delta):
        there.open().optimize.compact()
    else:
        there.open().overwrite(there.open().scan().to_arrow())


@pytest.mark.slow
def test_rows_that_others_rewrote_are_not_replaced(night):
    """They are in files that are none of the run's; again is still nothing to do."""
    run, late, there = night
    made = run("2026-11-22")
    rewrite(there)
    assert run("2026-11-22") == made
    late()
    said = rf"^{there.uri}: {len(made.parts)} files of a run in {there.root}/date=2026-11-22 were committed, 0 count now"
    with pytest.raises(SchemaMismatch, match=said):
        run("2026-11-22", if_changed="replace")


@pytest.mark.slow
def test_rows_that_others_rewrote_are_not_there_twice(night):
    """A run that replaces theirs without a table is told, and so is the next one with it: rows are there once, and can be read."""
    run, late, there = night
    run("2026-11-22")
    rewrite(there)
    before = plain(there.by_polars())
    late()
    for table in (None, there.table, None):
        with pytest.raises(SchemaMismatch, match=r"files of a run in .* were committed, 0 count now"):
            run("2026-11-22", if_changed="replace", table=table)
        assert plain(there.by_polars()).equals(before)


@pytest.mark.slow
def test_a_run_whose_rows_others_rewrote_is_not_pruned(night):
    """Delta's library writes the new files into the run's folder: all rows can be read afterwards; without what says its table, it goes."""
    run, _, there = night
    for day in ("2026-01-01", "2026-01-02", "2026-11-22"):
        run(day)
    rewrite(there)
    run("2026-01-03")
    before = plain(there.by_polars())
    found = prune(there.root, keep="30d", date="2026-11-23")
    assert [each.name for each in found.removed] == ["date=2026-01-03"]
    assert found.held == ("date=2026-01-01", "date=2026-01-02") == tuple(dict(found.kept))
    assert "it cannot be taken out of its table: " in dict(found.kept)["date=2026-01-01"]
    days = [day for day in before["date"].unique().to_pylist() if day != date(2026, 1, 3)]
    assert sorted(plain(there.by_polars())["date"].unique().to_pylist()) == sorted(days)
    assert read_manifest(f"{there.root}/date=2026-01-01") is not None


@pytest.mark.parametrize(("before", "into"), diagonal([True, False], [(True, True), (True, False), (False, True)]))
@pytest.mark.slow
def test_who_is_overtaken_while_it_commits_changes_nothing(night, kind, monkeypatch, before, into):
    """Another run takes its place, whole, at its first write of the log: the table has the files of the run that stands, and no others."""
    (mine, theirs), (run, late, there) = into, night
    run("2026-11-21")
    if before:
        run("2026-11-22")
        late()
    (owner, name), made = kind.log[-1], []
    wrapped = getattr(owner, name)

    def overtaken(*given, **named):
        if not made:
            made.append(None)
            made[0] = run("2026-11-22", if_changed="replace", values=True, table=there.table if theirs else None)
        return wrapped(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, overtaken)
        run("2026-11-22", if_changed="replace", table=there.table if mine else None)
    live = {uri: n_rows for uri, n_rows in there.list_live().items() if "2026-11-22" in uri}
    if made:
        assert read_manifest(f"{there.root}/date=2026-11-22") == made[0]
    assert live == (list_parts(there.root) if made and theirs else {})
    assert all(storage.exists(uri) for uri in there.list_live())


@pytest.mark.slow
def test_a_damaged_record_keeps_no_other_run(night):
    """Its run stays, rather than a table with files that are gone; the others go."""
    run, _, there = night
    damaged = {"date=2026-01-02": '{"format": "delta"}', "date=2026-01-03": '{"format": "hudi", "uri": "x"}', "date=2026-01-05": "["}
    for day in ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05", "2026-11-22"):
        run(day)
    for name, text in damaged.items():
        write_derived(f"{there.root}/{name}", read_manifest(f"{there.root}/{name}").sha256, {TABLE: text.encode()})
    found = prune(there.root, keep="30d", date="2026-11-23")
    assert [each.name for each in found.removed] == ["date=2026-01-01", "date=2026-01-04"]
    assert found.held == tuple(damaged) == tuple(dict(found.kept))
    for name, why in found.kept:
        assert why.startswith(f"it cannot be taken out of its table: {there.root}/{name}/{TABLE}: does not name a table: ")
    assert plain(there.by_polars()).equals(expected(*(f"{there.root}/{name}" for name in damaged), f"{there.root}/date=2026-11-22"))


@pytest.mark.slow
def test_a_run_whose_manifest_is_damaged_leaves_the_table_first(night):
    """Its record says which table that is, whatever became of its manifest."""
    run, _, there = night
    for day in ("2026-01-01", "2026-11-22"):
        run(day)
    Path(there.root, "date=2026-01-01", "manifest.json").write_text("{")
    assert [each.state for each in prune(there.root, keep="30d", date="2026-11-23").removed] == ["damaged"]
    assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-11-22"))
