"""A run in the place of another: by the manifest readers see one or the other whole, whatever ends it; in the end the folder is as any other."""

import dataclasses
import json
import re
import shutil

import pandas
import pytest

from leafledger import check_run, list_runs, prune, read_latest, read_run
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import InvalidRun, RunConflict
from leafledger.pipeline.runs import explain as explaining
from leafledger.pipeline.runs import stages
from leafledger.pipeline.runs.plan.existing_run import read_existing_run
from leafledger.pipeline.runs.publish import publish as publish_
from leafledger.pipeline.runs.publish import replacement as replacement_
from leafledger.pipeline.runs.publish.replacement import swap_manifest
from leafledger.pipeline.runs.records.derived import read_derived, write_derived
from leafledger.pipeline.runs.records.folder import OWN, PLACES, PROVENANCE, REPLACEMENTS, find_place, name_file
from leafledger.pipeline.runs.records.manifest import read_manifest
from tests.more import more
from tests.pipeline.running import contents
from tests.pipeline.runs.publish.killing import NEVER, WRITES, KilledError, kill_writes

TAG = re.compile(r"-[0-9a-f]{16}(-[0-9a-f]{16})?(?=\.parquet)")  # of the parts of a run that took the place of another


def rows(out):
    """All rows as readers find them, by the manifest."""
    return read_run(out).attributions()


def shown(out):
    """What lies in a run's folder but for the places of runs, parts without their tags; two of one name are none."""
    found = [(TAG.sub("", name), data) for name, data in contents(out).items() if not name.startswith(f"{PLACES}/")]
    assert len({name for name, _ in found}) == len(found)
    return dict(found)


@pytest.mark.slow
def test_what_changed_is_refused_kept_or_replaced(changing, tmp_path, caplog):
    """By default it is refused; kept, it is as it was; replaced, it is what a new run in an empty folder would be, and `check` finds it sound."""
    _, run, late = changing
    out = tmp_path / "run"
    before = run(out)
    late()
    with pytest.raises(
        RunConflict, match=r"run: holds another run, different in input files \(.*month=2/data\.parquet\); choose another output, or "
    ):
        run(out)
    assert run(out, if_changed="keep") == before
    assert caplog.messages[-1].startswith(f"{out}: kept, though what is asked for now differs in input files")
    made, fresh = run(out, if_changed="replace"), run(tmp_path / "fresh")
    assert made.place == find_place(read_existing_run(str(out)).plan, before.sha256)
    assert dataclasses.replace(made, place="", parts=(), summaries=()) == dataclasses.replace(fresh, parts=(), summaries=())
    assert [entry["sha256"] for entry in made.parts + made.summaries] == [entry["sha256"] for entry in fresh.parts + fresh.summaries]
    assert rows(out).equals(rows(tmp_path / "fresh"))
    assert rows(out).num_rows == before.n_rows - 10
    left, there = shown(out), shown(tmp_path / "fresh")
    assert left.keys() == there.keys()
    assert {name for name in left if left[name] != there[name]} == {"manifest.json"}
    assert (out / PROVENANCE).read_bytes() == (out / made.place / f"{PROVENANCE}{OWN}").read_bytes()
    assert {path.suffix for path in (out / PLACES).rglob("*") if path.is_file()} == {OWN}
    report = check_run(out, all_rows=True)
    assert report.sound
    assert report.left == ()
    assert run(out) == run(out, if_changed="replace") == made


@pytest.mark.slow
def test_an_older_run_may_come_back(changing, tmp_path):
    """Each takes the place of the one before, of which nothing stays."""
    data, run, late = changing
    out, kept = tmp_path / "run", tmp_path / "kept.parquet"
    shutil.copy2(data / "month=2" / "data.parquet", kept)
    first = run(out)
    late()
    second = run(out, if_changed="replace")
    shutil.copy2(kept, data / "month=2" / "data.parquet")
    run(tmp_path / "fresh")
    third = run(out, if_changed="replace")
    assert len({first.place, second.place, third.place}) == 3
    assert [path.name for path in (out / PLACES).iterdir()] == [third.place.rpartition("/")[2]]
    assert shown(out).keys() == shown(tmp_path / "fresh").keys()
    assert rows(out).equals(rows(tmp_path / "fresh"))


def test_what_was_made_of_a_run_goes_with_it(changing, tmp_path):
    """Its drift and its report are of rows that are there no more; what is made of the new one stays."""
    _, run, late = changing
    out = tmp_path / "run"
    before = run(out)
    write_derived(str(out), before.sha256, {"after/drift.json": b"{}", "report/index.html": b"<p>"})
    late()
    made = run(out, if_changed="replace")
    assert {name.partition("/")[0] for name in contents(out)} == {"manifest.json", "plan.json", "attributions", "summary", PLACES}
    write_derived(str(out), made.sha256, {"after/drift.json": b"[]"})
    assert run(out, if_changed="replace") == made
    assert read_derived(str(out), made.sha256, "after/drift.json") == b"[]"


@pytest.mark.slow
def test_an_unfinished_run_is_replaced(changing, tmp_path, monkeypatch):
    """It has no manifest; readers see none until the new one has."""
    _, run, late = changing
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(stages, "publish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(out)
    late()
    with pytest.raises(RunConflict):
        run(out, if_changed="keep")
    made = run(out, if_changed="replace")
    assert made.place
    names = [".manifest.json.lock", PLACES, "attributions", "manifest.json", "plan.json", "provenance.json", "summary"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert check_run(out).left == ()
    assert check_run(out, deep=True).sound


@pytest.fixture(params=["folder", *more("bucket")])
def place(request, tmp_path):
    """Where runs go."""
    return str(tmp_path / "runs") if request.param == "folder" else f"{request.getfixturevalue('bucket')}/runs"


@pytest.mark.slow
def test_killed_at_every_step_readers_see_one_or_the_other(changing, place, monkeypatch, one_in):
    """Before and after every write and every removal; the next attempt goes on from there, and ends with what an undisturbed one makes."""
    _, run, late = changing
    run(f"{place}/old", latest=f"{place}/latest.json", date="2026-11-23")
    old = rows(f"{place}/old")
    late()
    run(f"{place}/fresh")
    new, (left, steps) = rows(f"{place}/fresh"), kill_writes(monkeypatch)
    seen = []
    for n in range(0, 200, one_in(11) if place.startswith("s3") else 1):
        left[0] = n
        try:
            made = run(f"{place}/old", if_changed="replace", latest=f"{place}/latest.json", date="2026-11-23")
        except KilledError:
            left[0] = NEVER
            found = rows(f"{place}/old")
            assert found.equals(old) or found.equals(new)
            seen.append(found.equals(new))
            named = read_latest(f"{place}/latest.json")
            assert read_manifest(named.run) is not None
            assert check_run(f"{place}/old").parts
        else:
            break
    assert seen == sorted(seen)  # never back
    assert {True, False} == set(seen)
    assert {*steps} == {*WRITES} or (one_in(11) > 1 and place.startswith("s3"))
    assert rows(f"{place}/old").equals(new)
    assert read_latest(f"{place}/latest.json").manifest == made.sha256
    names = [TAG.sub("", uri.removeprefix(f"{place}/old/")) for uri in listed(f"{place}/old") if PLACES not in uri]
    assert (
        sorted({*names, PROVENANCE})
        == sorted({*names} | {PROVENANCE})
        == sorted(uri.removeprefix(f"{place}/fresh/") for uri in listed(f"{place}/fresh"))
    )
    assert check_run(f"{place}/old").left == ()


def listed(uri):
    """Every object below a place, but for files that are only locked."""
    from leafledger.pipeline.stores.open_store import open_filesystem

    filesystem, path = open_filesystem(uri)
    filesystem.invalidate_cache()
    return [uri + found[len(path) :] for found in sorted(filesystem.find(path)) if not found.endswith(".lock")]


def test_of_two_that_replace_one_the_second_is_refused(changing, tmp_path):
    """It was made to replace a run that is not there any more; made again, it takes the place of the other."""
    _, run, late = changing
    out = tmp_path / "run"
    before = run(out)
    late()
    mine = run(out, if_changed="replace")
    with pytest.raises(RunConflict, match=r"manifest\.json: another run took this place meanwhile; run the same again$"):
        swap_manifest(str(out), dataclasses.replace(mine, place=f"{PLACES}/0"), before.sha256, False)
    swap_manifest(str(out), mine, before.sha256, False)  # it is there already
    assert read_manifest(str(out)) == mine


@pytest.mark.slow
def test_a_command_with_nothing_to_do_leaves_a_replacement_that_is_being_made(changing, tmp_path, monkeypatch):
    """The timer tries a night again while somebody replaces it, which was replaced once already: what is made takes its place whole."""
    _, run, late = changing
    out = tmp_path / "run"
    run(out)
    late()
    standing, publish = run(out, if_changed="replace"), publish_.publish

    def disturbed(*given):
        assert run(out) == run(out, if_changed="replace") == run(out, if_changed="keep", top=1) == standing
        return publish(*given)

    monkeypatch.setattr(stages, "publish", disturbed)
    made = run(out, if_changed="replace", precision="float64")
    assert read_manifest(str(out)) == made
    assert check_run(out, all_rows=True).sound
    assert [path.name for path in (out / PLACES).iterdir()] == [made.place.rpartition("/")[2]]


@pytest.mark.slow
def test_who_is_replaced_before_it_has_tidied_up_removes_nothing(changing, tmp_path, monkeypatch):
    """Another run takes its place between its manifest and its removals, and begins to be replaced itself: both are of others by then."""
    _, run, late = changing
    out, finish_replacement, made = tmp_path / "run", replacement_.finish_replacement, []
    run(out)
    late()

    def overtaken(place, manifest):
        if not made:
            made.append(None)
            made[0] = run(out, if_changed="replace", precision="float64")
            with monkeypatch.context() as patch:
                patch.setattr(stages, "publish", lambda *_: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    run(out, if_changed="replace", top=1)
        finish_replacement(place, manifest)

    monkeypatch.setattr(explaining, "finish_replacement", overtaken)
    run(out, if_changed="replace")
    assert read_manifest(str(out)) == made[0]
    assert check_run(out, all_rows=True).sound
    begun = [path for path in (out / PLACES).iterdir() if path.name not in made[0].place]
    assert [path.name.partition("-")[2] for path in begun] == [made[0].sha256[:16]]
    assert run(out, if_changed="replace", values=True).place.endswith(f"-{made[0].sha256[:16]}")
    assert len([*(out / PLACES).iterdir()]) == 1  # what was given up went with the run that it was to replace


@pytest.mark.slow
def test_a_run_whose_parts_are_gone_takes_no_place(changing, tmp_path, monkeypatch):
    """Whoever removed them: the run that is there stays, and the same command makes them anew."""
    _, run, late = changing
    out, publish = tmp_path / "run", publish_.publish
    before = run(out)
    late()
    place = None

    def robbed(*given):
        nonlocal place
        place = given[1]
        shutil.rmtree(out / place / "parts")
        return publish(*given)

    with monkeypatch.context() as patch:
        patch.setattr(stages, "publish", robbed)
        with pytest.raises(InvalidRun, match=r"attributions/part-00001-.*\.parquet: was removed while the run was made; run the same again$"):
            run(out, if_changed="replace")
    assert read_manifest(str(out)) == before
    assert check_run(out).parts == len(before.parts)
    assert run(out, if_changed="replace").place == place
    assert check_run(out, deep=True).sound


def test_nights_that_were_replaced_are_listed_and_pruned_whole(changing, tmp_path):
    """As any other; what lies below a run is not taken for runs of its own."""
    _, run, late = changing
    for day in ("2026-01-01", "2026-11-22"):
        run(tmp_path / "runs" / day)
    late()
    made = run(tmp_path / "runs" / "2026-01-01", if_changed="replace")
    assert [(each.name, each.state, each.n_rows) for each in list_runs(tmp_path / "runs")] == [
        ("2026-01-01", "finished", made.n_rows),
        ("2026-11-22", "finished", made.n_rows + 10),
    ]
    assert [each.name for each in prune(tmp_path / "runs", keep="30d", date="2026-11-23").removed] == ["2026-01-01"]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["2026-11-22"]


@pytest.mark.slow
def test_the_command_line_says_what_becomes_of_the_run_there(example, changing, tmp_path, capsys):
    """`plan` beforehand, `explain` afterwards, in words and as JSON."""
    data, run, late = changing
    out = tmp_path / "run"
    run(out)
    late()
    arguments = [str(example.model), str(data), "--out", str(out), "--id", "flight", "--scheduler", "serial"]
    assert main(["plan", *arguments]) == 7
    assert "choose another output, or replace it with --if-changed replace" in capsys.readouterr().err
    assert main(["plan", *arguments, "--if-changed", "replace"]) == 0
    assert "(takes the place of another run: what is asked for differs in input files" in capsys.readouterr().out
    assert main(["explain", *arguments, "--if-changed", "keep"]) == 0
    assert f"{out}: kept as it is; what is asked for differs in input files" in capsys.readouterr().out
    assert main(["--log-format", "text", "explain", *arguments, "--if-changed", "keep", "--quiet"]) == 0
    assert f" INFO {out} kept as it is, what is asked for differs in input files (" in capsys.readouterr().err
    assert main(["explain", *arguments, "--replace", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["place"], said["kept"]) == (read_manifest(str(out)).place, "")
    assert main(["show", str(out), "--where", f"flight={rows(out)['flight'][0]}", "--verify"]) == 0


def as_earlier(out, manifest):
    """Let a run that took the place of another lie as versions up to 0.2 put it: all but its manifest in ``replacements``, nothing beside it."""
    tag = manifest.place.rpartition("/")[2]
    place = f"{REPLACEMENTS}/{tag}"
    (out / PLACES).rename(out / REPLACEMENTS)
    for path in sorted((out / place).rglob(f"*{OWN}")):
        path.rename(path.with_name(path.name.removesuffix(OWN)))
    (out / place / "attributions").mkdir()
    for entry in manifest.parts:
        (out / entry["uri"]).rename(out / place / "attributions" / f"part-{entry['part']:05d}.parquet")
    parts = [{**entry, "uri": f"{place}/attributions/part-{entry['part']:05d}.parquet"} for entry in manifest.parts]
    summaries = [{**entry, "uri": f"{place}/summary/{name_file(entry['uri'])}"} for entry in manifest.summaries]
    earlier = dataclasses.replace(manifest, place=place, parts=tuple(parts), summaries=tuple(summaries))
    (out / "manifest.json").write_text(earlier.text)
    (out / place / PROVENANCE).unlink()
    for name in ("plan.json", PROVENANCE, "attributions", "summary"):
        shutil.rmtree(out / name) if (out / name).is_dir() else (out / name).unlink()
    return earlier


@pytest.mark.slow
def test_a_run_that_an_earlier_version_put_in_the_place_of_another(changing, tmp_path):
    """Its parts lie in a folder of their own for good: it is read, listed and found finished there; replaced, even by the same, as any other."""
    _, run, late = changing
    out = tmp_path / "runs" / "2026-01-01"
    run(out)
    late()
    made = run(out, if_changed="replace")
    before = rows(out)
    earlier = as_earlier(out, made)
    (out / "attributions").mkdir()
    (out / "attributions" / "part-00000.parquet").write_bytes(b"left of the first run, for the command was interrupted")
    (out / "plan.json").write_text("{}")
    assert rows(out).equals(before)
    assert check_run(out, all_rows=True).sound
    assert [each.state for each in list_runs(out.parent)] == ["finished"]
    assert run(out) == earlier
    assert {name.partition("/")[0] for name in contents(out)} == {"manifest.json", REPLACEMENTS}
    again = run(out, if_changed="replace")
    assert again.place.endswith(f"-{earlier.sha256[:16]}")
    assert not (out / REPLACEMENTS).exists()
    assert rows(out).equals(before)
    assert pandas.read_parquet(out / "attributions")["flight"].tolist() == before["flight"].to_pylist()
    report = check_run(out, all_rows=True)
    assert (report.sound, report.left) == (True, ())
    run(tmp_path / "runs" / "2026-03-01")
    shutil.rmtree(out)
    run(out)
    late()
    as_earlier(out, run(out, if_changed="replace"))
    assert [each.name for each in prune(out.parent, keep="30d", date="2026-03-02").removed] == ["2026-01-01"]
    assert [path.name for path in out.parent.iterdir()] == ["2026-03-01"]
