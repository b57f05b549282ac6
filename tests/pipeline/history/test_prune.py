"""Old runs taken away: whole ones, never the newest; and whatever interrupts it, no run that looks finished lacks a part."""

import json
import os
import shutil
from pathlib import Path

import fsspec
import pytest

from leafledger import check_run, explain, list_runs, prune
from leafledger.pipeline.errors import InvalidRun, NotThere, UsageError
from leafledger.pipeline.stores import commit, storage
from leafledger.pipeline.stores.dialects import s3

TODAY = "2026-03-31"
NIGHTS = ("2026-01-01", "2026-01-02", "2026-03-29", "2026-03-30")


class Killed(BaseException):
    """The process is gone."""


@pytest.fixture(scope="module")
def night(example, tmp_path_factory):
    out = tmp_path_factory.mktemp("pruned") / "run"
    explain(example.model, f"{example.data}/month=1", out, scheduler="serial")
    return out


@pytest.fixture
def nights(night, tmp_path):
    """A folder of nights, two of them old."""
    for name in NIGHTS:
        shutil.copytree(night, tmp_path / "nights" / name)
    return tmp_path / "nights"


def names(folder):
    return [(run.name, run.state) for run in list_runs(folder)]


def test_old_runs_are_removed_whole(nights):
    """With ``dry_run`` they are only named; a day that is just old enough stays."""
    for dry in (True, False):
        found = prune(nights, keep="2d", date=TODAY, dry_run=dry)
        assert (found.before, [run.name for run in found.removed], found.kept) == ("2026-03-29", ["2026-01-01", "2026-01-02"], ())
        assert len(names(nights)) == (4 if dry else 2)
    assert sorted(path.name for path in nights.iterdir()) == ["2026-03-29", "2026-03-30"]
    assert all(check_run(nights / name).sound for name in ("2026-03-29", "2026-03-30"))
    assert prune(nights, keep="2d", date=TODAY).removed == ()


def test_what_stays_in_any_case(nights, night):
    """What ``latest`` names, within the folder or where it is said; the newest finished run; one without a day; one with another within."""
    shutil.copytree(night, nights / "other")
    shutil.copytree(night, nights / "2026-01-03")
    shutil.copytree(night, nights / "2026-01-03/again")
    told = {"date": "2026-01-01", "manifest": "0" * 64, "n_rows": 1, "share": 1.0}
    (nights / "notes.json").write_text("[]")
    (nights / "latest.json").write_text(json.dumps(told | {"run": str(nights / "2026-01-01")}))
    elsewhere = nights.parent / "elsewhere.json"
    elsewhere.write_text(json.dumps(told | {"run": str(nights / "2026-03-29")}))
    found = prune(nights, keep="1d", date="2027-01-01", latest=[str(elsewhere)])
    assert dict(found.kept) == {
        "other": "its name has no day",
        "2026-01-01": "it is the latest",
        "2026-01-03": f"{nights}/2026-01-03/again lies within it",
        "2026-03-29": "it is the latest",
        "2026-03-30": "no finished run is newer",
    }
    assert [run.name for run in found.removed] == ["2026-01-02"]
    assert {name for name, _ in names(nights)} == set(dict(found.kept))


def test_what_names_the_latest_may_be_called_anything(nights):
    """As `--latest nights/newest` is; files beside it that are something else, or large, are passed over."""
    told = {"date": "2026-01-01", "run": str(nights / "2026-01-01"), "manifest": "0" * 64, "n_rows": 1, "share": 1.0}
    (nights / "newest").write_text(json.dumps(told))
    (nights / "picture.png").write_bytes(bytes(range(256)))
    (nights / ".newest.lock").touch()
    found = prune(nights, keep="2d", date=TODAY)
    assert (dict(found.kept), [run.name for run in found.removed]) == ({"2026-01-01": "it is the latest"}, ["2026-01-02"])


@pytest.mark.parametrize(
    "damage", [lambda old: None, lambda old: (old / "manifest.json").write_text("{}"), lambda old: (old / "manifest.json").unlink()]
)
def test_a_run_s_own_data_are_not_removed_with_it(example, nights, damage):
    """Where a day's data and its run share a folder; also of a run that replaced another, is damaged or is not finished."""
    old, other = nights / "2026-01-01", nights / "2026-01-02"
    for run, n_rows in ((old, 40), (other, 30)):
        shutil.rmtree(run)
        (run / "flights").mkdir(parents=True)
        example.frame.head(n_rows).to_parquet(run / "flights" / "data.parquet")
        explain(example.model, run / "flights", run, scheduler="serial")
    shutil.copy(example.model, other / "model.txt")
    explain(other / "model.txt", example.data, other, scheduler="serial", if_changed="replace")
    shutil.rmtree(other / "flights")
    damage(old)
    for dry in (True, False):
        found = prune(nights, keep="2d", date=TODAY, dry_run=dry)
        assert (found.removed, found.held) == ((), ())
        assert dict(found.kept) == {"2026-01-01": f"{old}/flights lies within it", "2026-01-02": f"{other}/model.txt lies within it"}
    assert (old / "flights" / "data.parquet").is_file()
    assert (other / "model.txt").is_file()


def test_a_run_s_own_data_may_be_named_through_a_link(example, nights):
    """The folder itself may be, and so may they."""
    link, old = nights.parent / "link", nights / "2026-01-01"
    link.symlink_to(nights)
    shutil.rmtree(old)
    shutil.copytree(example.data, old / "flights")
    explain(example.model, link / "2026-01-01" / "flights", old, scheduler="serial")
    for folder in (nights, link):
        assert "2026-01-01" in dict(prune(folder, keep="2d", date=TODAY).kept)
    assert (old / "flights").is_dir()


def test_the_newest_of_every_job_stays(nights, night):
    """Also of one that has rested for long; names that differ behind their day are of one job."""
    for name in ("price/2025-11-01", "price/2025-11-02", "price/2025-11-02-again", "2025/10/01", "2025/10/02"):
        shutil.copytree(night, nights / name)
    (nights / "price/2025-11-02-again/manifest.json").unlink()
    found = prune(nights, keep="2d", date=TODAY)
    assert found.kept == (("price/2025-11-02", "no finished run is newer"),)
    assert [name for name, _ in names(nights)] == ["price/2025-11-02", "2026-03-29", "2026-03-30"]


@pytest.mark.parametrize("pointer", ["delay/latest.json", "delay/2026/newest.json", "latest.json"])
def test_what_objects_between_the_folder_and_runs_name_stays(night, tmp_path, pointer):
    """Wherever the run lies that they name."""
    for name in ("delay/2026/01/01", "delay/2026/01/02", "delay/2026/03/01", "risk/2026-01-01", "risk/2026-03-01"):
        shutil.copytree(night, tmp_path / name)
    for name in ("delay/2026/01/02", "risk/2026-01-01"):
        told = {"date": "2026-01-01", "run": str(tmp_path / name), "manifest": "0" * 64, "n_rows": 1, "share": 1.0}
        (tmp_path / pointer).write_text(json.dumps(told))
        found = prune(tmp_path, keep="30d", date=TODAY, dry_run=True)
        assert (name, "it is the latest") in found.kept
        assert len(found.removed) == 2
    found = prune(tmp_path, keep="30d", date=TODAY)
    assert sorted(run.name for run in found.removed) == ["delay/2026/01/01", "delay/2026/01/02"]
    assert check_run(tmp_path / "risk/2026-01-01").sound


@pytest.mark.parametrize(("folder", "named"), [("link", "nights"), ("nights", "link")])
def test_what_is_named_through_a_link_stays(nights, folder, named):
    """Whether the folder or the name goes through it."""
    above = nights.parent
    (above / "link").symlink_to(nights)
    told = {"date": "2026-01-01", "run": str(above / named / "2026-01-01"), "manifest": "0" * 64, "n_rows": 1, "share": 1.0}
    (nights / "latest.json").write_text(json.dumps(told))
    found = prune(above / folder, keep="30d", date=TODAY)
    assert ([run.name for run in found.removed], found.kept) == (["2026-01-02"], (("2026-01-01", "it is the latest"),))


@pytest.mark.slow
def test_what_is_named_in_a_bucket_stays(night, bucket):
    """Also by an object in a folder of it."""
    store = fsspec.filesystem("s3")
    for name in ("delay/2026-01-01", "delay/2026-01-02", "delay/2026-03-30"):
        store.put(f"{night}/", f"{bucket}/nights/{name}/", recursive=True)
    told = {"date": "2026-01-01", "run": f"{bucket}/nights/delay/2026-01-01", "manifest": "0" * 64, "n_rows": 1, "share": 1.0}
    store.pipe(f"{bucket}/nights/delay/latest.json", json.dumps(told).encode())
    found = prune(f"{bucket}/nights", keep="30d", date=TODAY)
    assert ([run.name for run in found.removed], found.kept) == (["delay/2026-01-02"], (("delay/2026-01-01", "it is the latest"),))


def test_what_another_one_removes_meanwhile_is_gone(nights):
    """Two at a time remove all that is old, and fail neither; whenever the other one does it."""
    whole = storage.list_folder
    for step in range(1, 100):
        calls = 0

        def removed(uri):
            nonlocal calls
            calls += 1
            if calls == step:  # noqa: B023 - it is called within the loop's turn
                shutil.rmtree(nights / "2026-01-02", ignore_errors=True)
            return whole(uri)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(storage, "list_folder", removed)
            assert [run.name for run in prune(nights, keep="30d", date=TODAY).removed] == ["2026-01-01", "2026-01-02"]
        if calls < step:
            break
        assert names(nights) == [("2026-03-29", "finished"), ("2026-03-30", "finished")]
        for old in ("2026-01-01", "2026-01-02"):
            shutil.copytree(nights / "2026-03-30", nights / old)
    assert step > 2


def test_unfinished_runs_go_when_they_are_old(nights):
    """And not before."""
    for name in ("2026-01-01", "2026-03-30"):
        (nights / name / "manifest.json").unlink()
    assert [run.name for run in prune(nights, keep="30d", date=TODAY).removed] == ["2026-01-01", "2026-01-02"]
    assert names(nights) == [("2026-03-29", "finished"), ("2026-03-30", "unfinished")]


def judge(folder):
    """Every run that has a manifest has all that it lists, and the young ones are there."""
    found = names(folder)
    assert "damaged" not in dict(found).values()
    assert {("2026-03-29", "finished"), ("2026-03-30", "finished")} <= set(found)


def kill_at(monkeypatch, owner, name, step):
    """End the process at one call of a function, before it does anything; how often it was called."""
    whole, called = getattr(owner, name), [0]

    def counted(*arguments, **given):
        called[0] += 1
        if called[0] == step:
            raise Killed
        return whole(*arguments, **given)

    monkeypatch.setattr(owner, name, counted)
    return called


@pytest.mark.parametrize("damage", ["cut short", "of 0.1"])
def test_runs_whose_manifest_cannot_be_read_go_when_they_are_old(nights, damage):
    """A damaged one, or one of version 0.1, which says neither the place nor the model: they keep no other one either."""
    path = nights / "2026-01-01" / "manifest.json"
    said = json.loads(path.read_text())
    older = json.dumps({name: value for name, value in said.items() if name not in ("place", "model")}, indent=1)
    path.write_text(path.read_text()[:-9] if damage == "cut short" else older)
    assert names(nights)[0] == ("2026-01-01", "damaged")
    assert [run.name for run in prune(nights, keep="30d", date=TODAY).removed] == ["2026-01-01", "2026-01-02"]
    assert names(nights) == [("2026-03-29", "finished"), ("2026-03-30", "finished")]
    assert not (nights / "2026-01-01").exists()


@pytest.mark.parametrize("name", ["unlink", "remove", "rmdir"])
def test_killed_at_every_step_in_a_folder(nights, name):
    """At every file and every folder that is deleted; the next one goes on."""
    step, steps = 0, 0
    while step == steps:
        step += 1
        with pytest.MonkeyPatch.context() as patched:
            called = kill_at(patched, os, name, step)
            try:
                prune(nights, keep="30d", date=TODAY)
            except Killed:
                steps += 1
        judge(nights)
        if called[0] < step:
            break
        for old in ("2026-01-01", "2026-01-02"):  # as it was, or half of the steps would never come
            shutil.rmtree(nights / old, ignore_errors=True)
            shutil.copytree(nights / "2026-03-30", nights / old)
    assert steps >= 2
    prune(nights, keep="30d", date=TODAY)
    assert names(nights) == [("2026-03-29", "finished"), ("2026-03-30", "finished")]
    assert not (nights / "2026-01-01").exists()


@pytest.mark.parametrize("name", ["unlink", "remove", "rmdir"])
def test_a_run_that_replaced_another_is_removed_whole_whatever_step_it_is_killed_at(example, nights, name):
    """Of its plan there are two: what was made of it afterwards lies beside that, and goes with it."""
    old, whole = nights / "2026-01-01", nights.parent / "whole"
    explain(example.model, f"{example.data}/month=2", old, scheduler="serial", if_changed="replace")
    for made in ("after/drift.json", "report/index.html", "after.json"):
        (old / made).parent.mkdir(exist_ok=True)
        (old / made).write_text("made")
    names = ["_replacements", "after", "after.json", "attributions", "manifest.json", "plan.json", "provenance.json", "report", "summary"]
    assert sorted(path.name for path in old.iterdir()) == [".manifest.json.lock", *names]
    shutil.copytree(old, whole)
    for step in range(1, 100):
        with pytest.MonkeyPatch.context() as patched:
            kill_at(patched, os, name, step)
            try:
                prune(nights, keep="30d", date=TODAY)
            except Killed:
                judge(nights)
            else:
                break
        prune(nights, keep="30d", date=TODAY)
        assert [path for path in old.rglob("*") if path.is_file()] == []
        shutil.rmtree(old, ignore_errors=True)
        shutil.copytree(whole, old)
    assert step > 2


@pytest.mark.slow
def test_killed_at_every_step_in_a_bucket(night, bucket, monkeypatch):
    """Before a request, or when the store did half of it."""
    store, whole = fsspec.filesystem("s3"), s3.call_store
    for name in NIGHTS:
        store.put(f"{night}/", f"{bucket}/nights/{name}/", recursive=True)
    for half in (False, True):
        for step in range(1, 40):
            called = 0

            def counted(filesystem, operation, *arguments, **given):
                nonlocal called
                called += arguments[0] == "delete_objects"
                if arguments[0] == "delete_objects" and called == step:  # noqa: B023 - it is called within the loop's turn
                    if half:  # noqa: B023 - likewise
                        filesystem.call_s3("delete_object", Bucket=given["Bucket"], **given["Delete"]["Objects"][0])
                    raise Killed
                return whole(filesystem, operation, *arguments, **given)

            monkeypatch.setattr(s3, "call_store", counted)
            try:
                prune(f"{bucket}/nights", keep="30d", date=TODAY)
            except Killed:
                store.invalidate_cache()
                judge(f"{bucket}/nights")
                continue
            break
        assert step > 2
        assert names(f"{bucket}/nights") == [("2026-03-29", "finished"), ("2026-03-30", "finished")]
        store.put(f"{night}/", f"{bucket}/nights/2026-01-01/", recursive=True)


def test_a_run_that_becomes_the_latest_meanwhile_stays(nights, monkeypatch):
    """It is looked at before every run."""
    whole, told = commit.remove, {"date": "2026-01-02", "manifest": "0" * 64, "n_rows": 1, "share": 1.0}

    def moved(uri):
        (nights / "latest.json").write_text(json.dumps(told | {"run": str(nights / "2026-01-02")}))
        whole(uri)

    monkeypatch.setattr(commit, "remove", moved)
    found = prune(nights, keep="30d", date=TODAY)
    assert ([run.name for run in found.removed], found.kept) == (["2026-01-01"], (("2026-01-02", "it is the latest"),))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"keep": "90"}, "keep is '90', expected a number of days of at least 1, as 90d"),
        ({"keep": "0d"}, "keep is '0d'"),
        ({"keep": 90}, "keep is 90"),
        ({"keep": "99999d", "latest": ["nowhere.json"]}, "nowhere.json: not there"),
        ({"keep": "1d", "dry_run": "yes"}, "dry_run"),
        ({"keep": "1d", "date": "2026-02-30"}, "2026-02-30"),
    ],
)
def test_mistakes_remove_nothing(nights, given, says):
    with pytest.raises((UsageError, InvalidRun), match=says):
        prune(nights, **given)
    assert len(names(nights)) == 4


def test_a_run_itself_and_no_folder(nights):
    with pytest.raises(UsageError, match="is a run itself, expected a folder of runs"):
        prune(nights / "2026-01-01", keep="1d")
    assert Path(nights / "2026-01-01/manifest.json").exists()
    with pytest.raises(NotThere):
        prune(nights / "nowhere", keep="1d")
