"""What lies in a run's folder, under its name, and places of runs that take that of another, which are named by their plans."""

import pytest

from leafledger import check_run
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.runs.plan.existing_run import read_existing_run
from leafledger.pipeline.runs.records.derived import write_derived
from leafledger.pipeline.runs.records.folder import REPLACEMENTS, RunFolder, find_place, is_place
from leafledger.pipeline.stores import storage


def test_everything_is_found_by_its_name(changing, tmp_path):
    """In the folder itself, and in the place below it of a run that took that of another."""
    _, run, late = changing
    out = RunFolder(str(tmp_path / "run"))
    manifest = run(out.uri, digest_inputs=True)
    for uri in (out.manifest, out.plan, out.inputs, out.provenance, out.part(0), *map(out.listed, (*manifest.parts, *manifest.summaries))):
        assert storage.read(uri)
    assert out.part(3) == f"{out.parts}/part-00003.parquet"
    assert [out.listed(entry) for entry in manifest.parts] == [out.part(number) for number in range(len(manifest.parts))]
    assert out.at("") == out
    late()
    made = run(out.uri, if_changed="replace")
    there = out.at(made.place)
    assert there.uri.startswith(f"{out.replacements}/")
    assert [out.listed(entry) for entry in made.parts] == [there.part(number) for number in range(len(made.parts))]
    write_derived(out.uri, made.sha256, {"after/drift.json": b"{}"})
    assert storage.read(out.after)


def test_a_place_is_named_by_its_plan_and_by_what_it_replaces(changing, tmp_path):
    """Whatever that is, a run of the plan may lie there; elsewhere it may not."""
    out = str(tmp_path / "run")
    changing[1](out)
    plan = read_existing_run(out).plan
    places = [find_place(plan, replaced) for replaced in (None, "a" * 64, "b" * 64)]
    assert len({*places}) == 3
    assert all(is_place(plan, place) for place in ("", *places))
    for place in (f"{places[0]}-", f"{places[0]}-{'g' * 16}", places[0][:-1], f"{REPLACEMENTS}/{'0' * 16}"):
        assert not is_place(plan, place)


def test_a_place_that_is_not_the_plan_s_is_refused(changing, tmp_path):
    """`check` finds a manifest that leads to another folder."""
    _, run, late = changing
    out = tmp_path / "run"
    run(out)
    late()
    made = run(out, if_changed="replace")
    other = f"{REPLACEMENTS}/{'0' * 16}"
    (out / made.place).rename(out / other)
    (out / "manifest.json").write_text((out / "manifest.json").read_text().replace(made.place, other))
    with pytest.raises(InvalidRun, match=rf"manifest\.json: place is '{other}', expected {made.place.partition('-')[0]}-…, or none$"):
        check_run(out)
