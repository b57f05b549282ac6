"""What lies in a run's folder, under its name, and places of runs that take that of another, which are named by their plans."""

import pytest

from leafledger import check_run
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.runs.plan.existing_run import read_existing_run
from leafledger.pipeline.runs.records.derived import write_derived
from leafledger.pipeline.runs.records.folder import PLACES, REPLACEMENTS, RunFolder, find_place, find_strays, is_place, may_stay, name_part
from leafledger.pipeline.stores import storage


def test_everything_is_found_by_its_name(changing, tmp_path):
    """In the folder itself; of a run that took the place of another its records in that place, its parts beside those of the other."""
    _, run, late = changing
    out = RunFolder(str(tmp_path / "run"))
    manifest = run(out.uri, digest_inputs=True)
    for uri in (out.manifest, out.plan, out.inputs, out.provenance, out.part(0), *map(out.listed, (*manifest.parts, *manifest.summaries))):
        assert storage.read(uri)
    assert out.part(3) == f"{out.parts}/part-00003.parquet"
    assert [out.listed(entry) for entry in manifest.parts] == [out.part(number) for number in range(len(manifest.parts))]
    assert out.at("") == out
    assert out.run == out.uri
    late()
    made = run(out.uri, if_changed="replace", digest_inputs=True)
    there, tag = out.at(made.place), made.place.rpartition("/")[2]
    assert there.uri.startswith(f"{out.uri}/{PLACES}/")
    assert there.run == out.uri
    assert there.part(3) == f"{there.uri}/parts/part-00003.parquet.own"
    for uri in (there.plan, there.inputs, there.provenance, *map(out.listed, (*made.parts, *made.summaries))):
        assert storage.read(uri)
    stays = "attributions/part-00000.parquet"
    assert [entry["uri"] for entry in made.parts][:2] == [stays, f"attributions/part-00001-{tag}.parquet"]
    assert made.summary("importance.json")["uri"] == f"{made.place}/summary/importance.json.own"
    write_derived(out.uri, made.sha256, {"after/drift.json": b"{}"})
    assert storage.read(out.after)


def test_parts_of_other_runs_are_told_by_their_names():
    """Those that the manifest does not list; of a run that is made to replace it only where all are asked for. Other files are nobody's parts."""
    sha, other = "a" * 64, "b" * 64
    mine = [{"uri": name_part(f"{PLACES}/{'c' * 16}-{other[:16]}", number)} for number in (0, 1)]
    theirs = ["part-00000.parquet", f"part-00000-{'d' * 16}.parquet", f"part-00000-{'d' * 16}-{other[:16]}.parquet"]
    pending = [f"part-00000-{'d' * 16}-{sha[:16]}.parquet"]
    others = ["part-00000-73f7-c000.snappy.parquet", "part-0.parquet", ".partial-1", "part-00000.parquet.own"]
    names = [each["uri"].rpartition("/")[2] for each in mine] + theirs + pending + others
    assert find_strays(names, mine, sha) == sorted(theirs)
    assert find_strays(names, mine) == sorted(theirs + pending)


def test_a_part_stays_if_its_name_has_its_number():
    """So that in the order of their names parts are in the order of the rows; a part in an earlier version's place does not stay there."""
    tagged = name_part(f"{PLACES}/{'c' * 16}", 3)
    assert may_stay(tagged, 3)
    assert may_stay("attributions/part-00003.parquet", 3)
    assert may_stay("attributions/part-123456.parquet", 123456)
    for uri, number in ((tagged, 4), (f"{REPLACEMENTS}/{'c' * 16}/{tagged}", 3), (f"{tagged}.own", 3), ("attributions/part-000003.parquet", 3)):
        assert not may_stay(uri, number)


def test_a_place_is_named_by_its_plan_and_by_what_it_replaces(changing, tmp_path):
    """Whatever that is, a run of the plan may lie there; elsewhere it may not."""
    out = str(tmp_path / "run")
    changing[1](out)
    plan = read_existing_run(out).plan
    places = [find_place(plan, replaced) for replaced in (None, "a" * 64, "b" * 64)]
    assert len({*places}) == 3
    assert all(is_place(plan, place) for place in ("", *places))
    assert all(is_place(plan, place.replace(PLACES, REPLACEMENTS)) for place in places)  # as versions up to 0.2 had it
    for place in (f"{places[0]}-", f"{places[0]}-{'g' * 16}", places[0][:-1], f"{PLACES}/{'0' * 16}", f"other/{places[0]}"):
        assert not is_place(plan, place)


def test_a_place_that_is_not_the_plan_s_is_refused(changing, tmp_path):
    """`check` finds a manifest that leads to another folder."""
    _, run, late = changing
    out = tmp_path / "run"
    run(out)
    late()
    made = run(out, if_changed="replace")
    other = f"{PLACES}/{'0' * 16}"
    (out / made.place).rename(out / other)
    (out / "manifest.json").write_text((out / "manifest.json").read_text().replace(made.place, other))
    with pytest.raises(InvalidRun, match=rf"manifest\.json: place is '{other}', expected {made.place.partition('-')[0]}-…, or none$"):
        check_run(out)
