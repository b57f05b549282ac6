"""The runs of a folder: what each says of itself, what is not finished, and what is damaged."""

import hashlib
import json
import os
import shutil
from datetime import UTC, datetime

import pytest
import s3fs

from leafledger import explain, list_runs
from leafledger.pipeline.errors import NotThere, UsageError
from leafledger.pipeline.history import listed_runs as listed
from leafledger.pipeline.history.listed_runs import find_day
from leafledger.pipeline.runs.execute import interrupted
from leafledger.pipeline.runs.records.derived import write_derived
from leafledger.pipeline.stores import storage
from tests.pipeline.conftest import damage, write_small


def drifted(run, alarms, manifest=None):
    """What another command writes of a run that it compared."""
    digest = hashlib.sha256((run / "manifest.json").read_bytes()).hexdigest()
    (run / "after").mkdir(exist_ok=True)
    (run / "after/drift.json").write_text(json.dumps({"manifest": manifest or digest, "alarms": alarms}))


@pytest.fixture(scope="module")
def night(example, tmp_path_factory):
    out = tmp_path_factory.mktemp("listed") / "run"
    return out, explain(example.model, example.data, out, method="r2", label="delay", scheduler="serial")


def test_runs_are_listed_by_date_with_what_they_say_of_themselves(night, tmp_path):
    """As their manifests have it; what lies within a run, is hidden or is no run is none."""
    run, manifest = night
    for name in ("flights/2026/03/02", "b/20260301", "c", "_hidden/2026-03-05"):
        shutil.copytree(run, tmp_path / name)
    shutil.copytree(run, tmp_path / "c" / "2026-03-09")
    (tmp_path / "empty").mkdir()
    found = list_runs(tmp_path)
    assert [(each.name, each.date, each.state) for each in found] == [
        ("c", None, "finished"),
        ("b/20260301", "2026-03-01", "finished"),
        ("flights/2026/03/02", "2026-03-02", "finished"),
    ]
    one = found[1]
    assert (one.run, one.manifest, one.n_rows, one.n_parts, one.n_rejected) == (str(tmp_path / "b/20260301"), manifest.sha256, 3000, 4, 0)
    assert (one.model_digest, one.method, one.residual) == (manifest.model_digest, "r2", manifest.residual)
    assert one.r2 == manifest.totals["r2"]["total_r2"]
    assert (one.alarms, one.report, one.why) == (None, False, None)
    (alone,) = list_runs(run)
    assert (alone.name, alone.run, alone.state) == ("", str(run), "finished")


def test_drift_and_report_are_those_of_this_very_run(night, tmp_path):
    """What was said of another run that stood there, and what is no such document, says nothing."""
    run = tmp_path / "2026-03-01"
    shutil.copytree(night[0], run)
    for alarms, manifest, found in ((["a", "b"], None, ("a", "b")), ([], None, ()), (["a"], "0" * 64, None), ("a", None, None)):
        drifted(run, alarms, manifest)
        assert list_runs(tmp_path)[0].alarms == found
    (run / "after/drift.json").write_text("{")
    assert list_runs(tmp_path)[0].alarms is None
    (run / "report").mkdir()
    (run / "report/index.html").write_text("page")
    assert not list_runs(tmp_path)[0].report
    write_derived(str(run), night[1].sha256, {"report/index.html": b"a page"})
    listed_there = (run / "after.json").read_text()
    for text, found in ((listed_there.replace(night[1].sha256, "0" * 64), False), (listed_there, True)):
        (run / "after.json").write_text(text)
        assert list_runs(tmp_path)[0].report == found
    (run / "report/index.html").unlink()
    assert not list_runs(tmp_path)[0].report
    (run / "after.json").write_text("{")
    assert [(each.state, each.report) for each in list_runs(tmp_path)] == [("finished", False)]


def test_an_unfinished_run_says_how_far_it_came(night, tmp_path):
    run = tmp_path / "2026-03-01"
    shutil.copytree(night[0], run)
    (run / "manifest.json").unlink()
    (run / "attributions/part-00002.parquet").unlink()
    (found,) = list_runs(tmp_path)
    there = sum(part["n_rows"] for part in night[1].parts if part["part"] != 2)
    assert (found.state, found.n_parts, found.n_planned, found.manifest) == ("unfinished", 3, 4, None)
    assert (found.n_rows, found.n_rows_planned) == (there, 3000)
    assert 0 < there < 3000
    assert found.working is None
    for name, time in (("part-00000.parquet", 1_750_000_000), ("part-00001.parquet", 1_764_278_103), ("part-00003.parquet", 1_760_000_000)):
        os.utime(run / "attributions" / name, (time, time))
    (found,) = list_runs(tmp_path)
    assert found.last_part == "2025-11-27T21:15:03+00:00"
    assert found.progress == "unfinished, 3 of 4 parts, the last 2025-11-27 21:15:03 UTC"
    shutil.rmtree(run / "attributions")
    (found,) = list_runs(tmp_path)
    assert (found.n_parts, found.n_rows, found.last_part) == (0, 0, None)
    assert found.progress == "unfinished, 0 of 4 parts"


def test_a_run_that_works_is_told_from_one_that_died(night, tmp_path):
    """By the record of its process; of another machine's process nobody knows, nor of a record that is none."""
    run = tmp_path / "2026-03-01"
    shutil.copytree(night[0], run)
    (run / "manifest.json").unlink()
    shutil.rmtree(run / "attributions")
    with interrupted.recorded(str(run), 2):
        written = json.loads((run / "attempt.json").read_text())
        (found,) = list_runs(tmp_path)
        assert (found.working, found.progress) == (True, "works, 0 of 4 parts")
    assert list_runs(tmp_path)[0].working is None
    for changes, working in (({"process": 2**22 + 1}, False), ({"began": 1.0}, False), ({"host": "elsewhere"}, None)):
        (run / "attempt.json").write_text(json.dumps(written | changes))
        assert list_runs(tmp_path)[0].working is working
    (run / "attempt.json").write_text(json.dumps(written | {"began": 1.0}))
    assert list_runs(tmp_path)[0].progress == "died, 0 of 4 parts"
    (run / "attempt.json").write_text("{")
    assert list_runs(tmp_path)[0].working is None


@pytest.mark.slow
def test_the_time_of_the_last_part_is_that_of_a_bucket_too(night, bucket):
    """As the store lists it."""
    began = datetime.now(UTC).replace(microsecond=0)
    filesystem = s3fs.S3FileSystem()
    filesystem.put(str(night[0]), f"{bucket}/2026-03-01", recursive=True)
    filesystem.rm(f"{bucket}/2026-03-01/manifest.json")
    (found,) = list_runs(bucket)
    assert (found.state, found.n_parts, found.n_rows) == ("unfinished", 4, 3000)
    assert began <= datetime.fromisoformat(found.last_part) <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda run: (run / "attributions/part-00001.parquet").unlink(), "attributions/part-00001.parquet: is missing, the manifest says"),
        (lambda run: (run / "summary/r2.json").write_text("[]"), "summary/r2.json: has 2 bytes, the manifest says"),
        (lambda run: (run / "manifest.json").write_text("{"), "manifest.json: not a manifest"),
        (lambda run: (run / "plan.json").write_text("{}"), "plan.json: is not the one that the manifest names"),
        (lambda run: (run / "plan.json").unlink(), "though the run is finished"),
        (lambda run: ((run / "manifest.json").unlink(), (run / "plan.json").write_text("{}")), "plan.json"),
    ],
)
def test_a_damaged_run_says_what(night, tmp_path, damage, why):
    """And the others are listed all the same."""
    for name in ("2026-03-01", "2026-03-02"):
        shutil.copytree(night[0], tmp_path / name)
    damage(tmp_path / "2026-03-01")
    first, second = list_runs(tmp_path)
    assert (first.state, second.state) == ("damaged", "finished")
    assert why in first.why
    assert "\n" not in first.why


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(NotThere, match="nowhere: cannot list: no such file or object"):
        list_runs(tmp_path / "nowhere")


def test_a_file_is_refused(tmp_path, bucket):
    """An empty folder has no runs."""
    import fsspec

    (tmp_path / "file").write_text("text")
    (tmp_path / "empty").mkdir()
    fsspec.filesystem("s3").pipe(f"{bucket}/file", b"text")
    for uri in (str(tmp_path / "file"), f"{bucket}/file"):
        with pytest.raises(UsageError, match=f"{uri}: is not a folder, expected a folder of runs"):
            list_runs(uri)
    assert list_runs(tmp_path / "empty") == ()


@pytest.mark.parametrize("step", ["list_folder", "_is_run", "_read", "read_manifest", "_check_there", "_has_page"])
@pytest.mark.parametrize("left", [False, True])
def test_a_run_that_is_removed_meanwhile_is_not_listed(night, tmp_path, monkeypatch, step, left):
    """Whenever that is; of which the plan is still there is unfinished."""
    for name in ("a/2026-03-01", "b/2026-03-02"):
        shutil.copytree(night[0], tmp_path / name)
        (tmp_path / name / "report").mkdir()
        (tmp_path / name / "after.json").write_text("{}")
    whole, gone = getattr(listed, step), tmp_path / "a/2026-03-01"
    plan = (gone / "plan.json").read_bytes()

    def removed(*given):
        if str(gone) in given or gone.name in str(given[1:2]):
            shutil.rmtree(gone, ignore_errors=True)
            if left:
                gone.mkdir()
                (gone / "plan.json").write_bytes(plan)
        return whole(*given)

    monkeypatch.setattr(listed, step, removed)
    states = {run.name: run.state for run in list_runs(tmp_path)}
    assert states == {"b/2026-03-02": "finished"} | ({"a/2026-03-01": "unfinished"} if left else {})


def test_a_folder_that_is_removed_meanwhile_is_passed_over(night, tmp_path, monkeypatch):
    """The others are listed."""
    for name in ("a/2026-03-01", "b/2026-03-02"):
        shutil.copytree(night[0], tmp_path / name)
    whole = storage.list_folder

    def removed(uri):
        if uri == str(tmp_path / "a"):
            shutil.rmtree(uri)
        return whole(uri)

    monkeypatch.setattr(listed, "list_folder", removed)
    assert [run.name for run in list_runs(tmp_path)] == ["b/2026-03-02"]


def test_runs_of_a_bucket(night, bucket):
    """As of a folder."""
    import fsspec

    store = fsspec.filesystem("s3")
    store.put(f"{night[0]}/", f"{bucket}/nights/2026-03-01/", recursive=True)
    (found,) = list_runs(f"{bucket}/nights")
    assert (found.run, found.date, found.state, found.n_rows) == (f"{bucket}/nights/2026-03-01", "2026-03-01", "finished", 3000)
    with pytest.raises(NotThere):
        list_runs(f"{bucket}/none")


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("2026-03-02", "2026-03-02"),
        ("flights/2026/03/02", "2026-03-02"),
        ("run20260302", "2026-03-02"),
        ("day=2026-03-02/again", "2026-03-02"),
        ("2026-02-30", None),
        ("2026-03-02/2026-03-03", None),
        ("120260302", None),
        ("model=10451207", None),
        ("0001/02/03", None),
        ("flights", None),
    ],
)
def test_a_day_in_a_name(name, day):
    """None where there are several, or a number only looks like one."""
    assert find_day(name) == day


@pytest.mark.parametrize("above", ["_replacements", "replacements"])
def test_what_is_left_of_a_run_that_replaced_another_is_that_run(night, tmp_path, above):
    """Not one called as the place below it; a folder of runs may be called as the folder of such places was."""
    left, other = tmp_path / "2026-03-01", tmp_path / "replacements" / "2026-03-02"
    shutil.copytree(night[0], left / above / "0123456789abcdef")
    shutil.copytree(night[0], other)
    assert [(run.name, run.state, run.n_planned) for run in list_runs(tmp_path)] == [
        ("2026-03-01", "unfinished", None),
        ("replacements/2026-03-02", "finished", 4),
    ]


def test_files_that_are_left_out_of_parts_are_no_parts(example, tmp_path):
    """Of joined files, as many parts are planned as the plan has; one of which nothing can be read counts too."""
    data = write_small(example.frame, tmp_path / "data")
    for name in ("03", "07"):
        damage(data / "month=1" / f"{name}.parquet")
    manifest = explain(example.model, data, tmp_path / "runs" / "2026-03-01", item_rows=100, scheduler="serial")
    plan = json.loads((tmp_path / "runs/2026-03-01/plan.json").read_text())
    (found,) = list_runs(tmp_path / "runs")
    assert (found.n_parts, found.n_planned, found.n_rejected) == (len(manifest.parts), len(plan["items"]), 2)
    assert found.n_parts < found.n_planned < found.n_parts + found.n_rejected
