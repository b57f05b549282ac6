"""Manifest and plan of a finished run: both there, and of one run, or refused in one line."""

import json
import shutil

import pytest

from leafledger import check_run, drift, read_run
from leafledger.pipeline.errors import InvalidRun, NotFinished
from leafledger.pipeline.runs.execute.interrupted import recorded
from leafledger.pipeline.runs.records.current_run import read_finished
from leafledger.pipeline.runs.records.folder import MANIFEST, PLAN


@pytest.fixture
def run(serial, tmp_path):
    return shutil.copytree(serial[0], tmp_path / "run")


def test_a_finished_run_has_a_manifest_and_its_plan(run):
    """Of the same outputs."""
    manifest, plan = read_finished(str(run))
    assert manifest.n_rows == plan.n_rows == 3000
    assert len(manifest.base) == len(plan.outputs) == 1


def test_a_run_that_is_not_finished_has_none(run):
    """That is no damage; how far it is is said, in `check` too, unless its plan cannot be read."""
    (run / MANIFEST).unlink()
    (run / "attributions/part-00002.parquet").unlink()
    line = f"{run}: not a finished run, 3 of 4 parts are there; the command that explains it goes on from there"
    for read in (lambda: read_finished(str(run)), lambda: check_run(run), lambda: read_run(run)):
        with pytest.raises(NotFinished) as refusal:
            read()
        assert str(refusal.value) == line
    with (
        recorded(str(run), 2),
        pytest.raises(NotFinished, match=r"run: not a finished run, 3 of 4 parts are there; a process works on it: wait for it$"),
    ):
        check_run(run)
    shutil.rmtree(run / "attributions")
    with pytest.raises(NotFinished, match=r"run: not a finished run, 0 of 4 parts are there; the command that explains it goes on from there$"):
        check_run(run)
    for damage in (lambda: (run / PLAN).write_text("{}"), lambda: (run / PLAN).unlink()):
        damage()
        with pytest.raises(NotFinished, match=r"run: no manifest\.json there: not a finished run$"):
            read_finished(str(run))


@pytest.mark.parametrize("read", [lambda run: read_finished(str(run)), read_run, lambda run: drift(run, against=run.parent / "other")])
@pytest.mark.parametrize("name", ["base", "bound"])
def test_other_numbers_of_base_values_are_refused(run, serial, read, name):
    """One more, and none."""
    shutil.copytree(serial[0], run.parent / "other")
    text = (run / MANIFEST).read_text()
    number = json.dumps(json.loads(text)[name][0])
    before = f'"{name}": [\n  {number}\n ]'
    assert before in text
    for after in (f'"{name}": [\n  {number},\n  {number}\n ]', f'"{name}": []'):
        (run / MANIFEST).write_text(text.replace(before, after))
        with pytest.raises(InvalidRun, match=r"manifest\.json: has not one base value and one bound for every output$"):
            read(run)


@pytest.mark.parametrize("read", [lambda run: read_finished(str(run)), read_run, lambda run: drift(run, against=run.parent / "other")])
def test_a_plan_that_is_missing_is_damage(run, serial, read):
    """It was there when the run was published."""
    shutil.copytree(serial[0], run.parent / "other")
    (run / PLAN).unlink()
    with pytest.raises(InvalidRun, match=r"plan\.json: .*, though the run is finished$"):
        read(run)
