"""The run that a folder holds already: found, refused, kept or replaced, also where another version wrote it, and never where it is damaged."""

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest

from leafledger import check_run, explain
from leafledger.pipeline.errors import InvalidRun, RunConflict, UsageError
from leafledger.pipeline.runs.plan.existing_run import read_existing_run, resolve_existing_run
from leafledger.pipeline.runs.records.folder import OWN, PLACES, PLAN, find_place
from leafledger.pipeline.runs.records.manifest import read_manifest
from leafledger.pipeline.stores import storage
from tests.pipeline.conftest import train
from tests.pipeline.running import contents


def test_it_is_said_where_a_run_is_made(changing, tmp_path):
    """In the folder itself, where there is none, or the same; below it, where it takes the place of another."""
    _, run, _ = changing
    out = str(tmp_path / "run")
    made = run(out)
    plan = read_existing_run(out).plan
    assert resolve_existing_run(str(tmp_path / "none"), plan, "refuse").place == ""
    assert resolve_existing_run(out, plan, "replace").finished == made
    other = dataclasses.replace(plan, precision="float64")
    found = resolve_existing_run(out, other, "replace")
    assert (found.place, found.finished, found.replaced.standing.manifest) == (find_place(other, made.sha256), None, made)
    assert storage.join(out, found.place).startswith(f"{out}/{PLACES}/")


def test_a_finished_run_without_its_plan_is_refused(changing, tmp_path):
    """In one line, whatever is to become of it."""
    _, run, _ = changing
    out = tmp_path / "run"
    run(out)
    (out / "plan.json").unlink()
    for if_changed in ("refuse", "replace", "keep"):
        with pytest.raises(InvalidRun, match=r"plan\.json: is missing, though the run is finished"):
            run(out, if_changed=if_changed)


def write_as_others_do(path):
    """A record of a version that had no field for the space."""
    written = json.loads(path.read_text())
    del written["space"]
    path.write_text(json.dumps(written | {"version": "0.0.1"}))


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.slow
def test_what_another_version_wrote_is_refused_or_replaced(changing, tmp_path, finished):
    """Though nothing of it can be read: the folder holds another run, which is not there any more afterwards."""
    _, run, late = changing
    out = tmp_path / "run"
    run(out)
    late()
    run(out, if_changed="replace")
    place = out / read_manifest(str(out)).place
    for path in (out / PLAN, place / f"{PLAN}{OWN}"):
        write_as_others_do(path)
    if finished:
        write_as_others_do(out / "manifest.json")
    else:
        (out / "manifest.json").unlink()
    for if_changed in ("refuse", "keep"):
        with pytest.raises(RunConflict, match=r"run: holds another run, different in version \(was '0\.0\.1', is '[\d.]+'\); choose another output"):
            run(out, if_changed=if_changed)
    made = run(out, if_changed="replace")
    assert check_run(out, deep=True).sound
    assert [path.name for path in (out / PLACES).iterdir()] == [made.place.rpartition("/")[2]]
    names = [part["uri"].rpartition("/")[2] for part in made.parts]
    assert sorted(path.name for path in (out / "attributions").iterdir()) == sorted(names)
    assert (out / PLAN).read_bytes() == (out / made.place / f"{PLAN}{OWN}").read_bytes()


@pytest.mark.parametrize("name", ["plan.json", "manifest.json"])
@pytest.mark.slow
def test_what_is_damaged_is_not_replaced(changing, tmp_path, name):
    """Nobody knows what it was: somebody has to look, whatever is asked for."""
    _, run, _ = changing
    out = tmp_path / "run"
    run(out)
    for text in ((out / name).read_text()[:-5], (out / name).read_text().replace('"space"', '"spaces"'), '{"version": 1}', "[]"):
        (out / name).write_text(text)
        for if_changed in ("refuse", "replace", "keep"):
            with pytest.raises(InvalidRun, match=rf"{name}: not a "):
                run(out, if_changed=if_changed)


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.slow
def test_a_run_in_a_folder_of_another_run_s_own_is_refused(changing, tmp_path, finished):
    """Readers of that run would find the rows of both; also through a link. Elsewhere in its folder it may lie."""
    _, run, _ = changing
    out = tmp_path / "run"
    made = run(out)
    if not finished:
        (out / "manifest.json").unlink()
    before = contents(out)
    (tmp_path / "link").symlink_to(out / "attributions")
    own = ("attributions", "attributions/more/deep", "summary/x", "_replacements/x", "replacements/x", "after/x")
    for place in (*(out / below for below in own), tmp_path / "link" / "x"):
        with pytest.raises(UsageError, match=rf"{place}: lies in [a-z_]+/ of the run in {out}, which is that run's own; choose another output$"):
            run(place)
    assert contents(out) == before
    assert run(out / "more" / "run").n_rows == made.n_rows
    assert run(tmp_path / "attributions" / "x").n_rows == made.n_rows


def test_another_model_at_the_same_place_is_said_in_words(example, tmp_path):
    """With the beginnings of both digests; one at another place by its name."""
    model, other = tmp_path / "model.txt", tmp_path / "other.txt"
    model.write_text(Path(example.model).read_text())
    explain(model, example.data, tmp_path / "run", scheduler="serial")
    train(example.frame, learning_rate=0.2).save_model(other)
    digests = [hashlib.sha256(path.read_bytes()).hexdigest()[:12] for path in (model, other)]
    with pytest.raises(RunConflict) as refusal:
        explain(other, example.data, tmp_path / "run", scheduler="serial")
    assert str(refusal.value) == (
        f"{tmp_path}/run: holds another run, different in model (was '{model}', is '{other}'); "
        "choose another output, or replace it with --if-changed replace"
    )
    model.write_bytes(other.read_bytes())
    with pytest.raises(RunConflict) as refusal:
        explain(model, example.data, tmp_path / "run", scheduler="serial")
    assert str(refusal.value) == (
        f"{tmp_path}/run: holds another run, different in the model, which is another one at the same place (SHA-256 was {digests[0]}, "
        f"is {digests[1]}); choose another output, or replace it with --if-changed replace"
    )
