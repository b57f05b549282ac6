"""What a run removes, mends and says of other runs' objects in its folder: never a part that is somebody's, and with a cure that works."""

import json
import re
import shutil

import pytest

from leafledger import check_run, list_runs
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import InvalidRun, RunConflict
from leafledger.pipeline.runs.publish import publish as publish_
from leafledger.pipeline.runs.publish import replacement as replacement_
from leafledger.pipeline.runs.records.manifest import read_manifest
from tests.pipeline.running import contents
from tests.pipeline.runs.publish.killing import KilledError


@pytest.mark.slow
def test_who_loses_the_place_removes_no_part_of_who_got_it(changing, tmp_path, monkeypatch):
    """An unfinished run is replaced in the moment before its own manifest: it is refused, and the other's parts are all there."""
    _, run, _ = changing
    out, check_there, made = tmp_path / "run", publish_.check_there, []

    def overtaken(*given):
        check_there(*given)
        if not made:
            made.append(None)
            made[0] = run(out, if_changed="replace", precision="float64")

    monkeypatch.setattr(publish_, "check_there", overtaken)
    with pytest.raises(InvalidRun, match=r"manifest\.json: exists already and differs from what this run computed"):
        run(out)
    assert read_manifest(str(out)) == made[0]
    report = check_run(out, all_rows=True)
    assert (report.sound, report.left) == (True, ())


def test_a_first_run_removes_parts_of_who_came_too_late(changing, tmp_path, monkeypatch):
    """They were put there to replace an unfinished run, by a command that was killed then; the run got its manifest first."""
    _, run, _ = changing
    out, check_there, made = tmp_path / "run", publish_.check_there, []

    def disturbed(*given):
        check_there(*given)
        if not made:
            made.append(None)
            with monkeypatch.context() as patch:
                patch.setattr(replacement_, "swap_manifest", _die)
                with pytest.raises(KilledError):
                    run(out, if_changed="replace", precision="float64")

    monkeypatch.setattr(publish_, "check_there", disturbed)
    first = run(out)
    assert first.place == ""
    assert sorted(f"attributions/{path.name}" for path in (out / "attributions").iterdir()) == [entry["uri"] for entry in first.parts]
    assert check_run(out, deep=True).left == ()


def _die(*_):
    raise KilledError


@pytest.mark.parametrize("name", ["summary/importance.parquet", "summary/inputs.json", "plan.json", "provenance.json"])
@pytest.mark.parametrize("spoil", [lambda path: path.unlink(), lambda path: path.write_bytes(b"{}")], ids=["missing", "other"])
def test_the_same_command_restores_the_copies_of_a_run_that_replaced_another(replaced, tmp_path, name, spoil):
    """`check` says which is not as it was, and to give the command again, which puts it right."""
    out, made, again = replaced
    before = contents(out)
    spoil(out / name)
    assert check_run(out).left == (f"{name} is not that of the run that took this place; give the command of that run again",)
    assert again() == made
    assert check_run(out).left == ()
    assert contents(out) == before


@pytest.fixture
def replaced(changing, tmp_path):
    """A run that replaced another: its folder, its manifest, and its command."""
    _, run, late = changing
    out = tmp_path / "run"
    run(out)
    late()
    return out, run(out, if_changed="replace"), lambda: run(out)


@pytest.mark.slow
def test_a_replacement_that_was_killed_is_finished_or_removed_by_hand(changing, tmp_path, monkeypatch):
    """`check` and `runs` say how, each of both ways ends with one run's parts; the old run's command leaves them alone, as a timer may give it."""
    _, run, _ = changing
    out = tmp_path / "runs" / "2026-01-01"
    old = run(out)
    for finished in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(replacement_, "swap_manifest", _die)
            with pytest.raises(KilledError):
                run(out, if_changed="replace", precision="float64")
        for how in ("refuse", "replace"):
            assert run(out, if_changed=how) == old
        (line,) = check_run(out).left
        assert [each.left for each in list_runs(out.parent)] == [line]
        cure = r"; a replacement is under way, or was interrupted: give the new run's command again, or, if it was given up for good, remove (\S+)$"
        pattern = re.search(cure, line)[1]
        if finished:
            made = run(out, if_changed="replace", precision="float64")
        else:
            for path in out.glob(pattern):
                path.unlink()
            made = old
        assert (read_manifest(str(out)), check_run(out, all_rows=True).left) == (made, ())
        assert sorted(f"attributions/{path.name}" for path in (out / "attributions").iterdir()) == sorted(entry["uri"] for entry in made.parts)


@pytest.mark.slow
def test_who_comes_too_late_leaves_nothing_beside_the_parts(changing, tmp_path, monkeypatch):
    """Of two that replace one run the slower has put its parts there already: they go again, and those of the other stay."""
    _, run, late = changing
    out, swap, made = tmp_path / "run", replacement_.swap_manifest, []
    run(out)
    late()

    def overtaken(*given):
        if not made:
            made.append(None)
            made[0] = run(out, if_changed="replace", precision="float64")
        swap(*given)

    monkeypatch.setattr(replacement_, "swap_manifest", overtaken)
    with pytest.raises(RunConflict, match="another run took this place meanwhile; run the same again"):
        run(out, if_changed="replace")
    report = check_run(out, all_rows=True)
    assert (report.sound, report.left) == (True, ())
    assert read_manifest(str(out)) == made[0]
    assert run(out, if_changed="replace").place.endswith(f"-{made[0].sha256[:16]}")
    assert check_run(out).left == ()


@pytest.mark.slow
def test_what_is_left_of_another_run_is_said(changing, tmp_path, capsys):
    """Parts that readers of the folder would count, and a summary that is another run's; `runs` says it of parts; neither calls the run damaged."""
    _, run, late = changing
    out = tmp_path / "run"
    run(out)
    late()
    made = run(out, if_changed="replace")
    part = out / made.parts[0]["uri"]
    shutil.copy(part, part.with_name("part-00007.parquet"))
    (out / "summary" / "importance.json").write_text("[]")
    assert main(["check", str(out), "--json"]) == 3
    said = json.loads((found := capsys.readouterr()).out)
    strays = "attributions/ holds 1 part of another run, such as part-00007.parquet, so that readers of the folder find rows twice"
    lines = [
        f"{strays}; an exchange is under way, or was interrupted: give the command of the run that is there again",
        "summary/importance.json is not that of the run that took this place; give the command of that run again",
    ]
    assert (said["sound"], said["left"]) == (True, lines)
    assert found.err.splitlines() == [f"leafledger: {out}: {line}" for line in lines]
    assert main(["runs", str(tmp_path), "--json"]) == 0
    assert [(each["state"], each["left"]) for each in json.loads(capsys.readouterr().out)["runs"]] == [("finished", lines[0])]
    assert main(["runs", str(tmp_path)]) == 0
    assert capsys.readouterr().err == f"leafledger: {out}: {lines[0]}\n"
    assert run(out) == made
    assert check_run(out).left == ()


@pytest.mark.slow
def test_a_removal_that_was_interrupted_leaves_no_part_to_the_run_that_is_made_anew(changing, tmp_path):
    """It has the plan, and no manifest: parts of the same plan by other names are not counted beside those that it makes."""
    _, run, late = changing
    out = tmp_path / "run"
    run(out)
    late()
    made = run(out, if_changed="replace")
    (out / "manifest.json").unlink()
    again = run(out)
    assert again.place == ""
    assert again.n_rows == made.n_rows
    assert sorted(path.name for path in (out / "attributions").iterdir()) == [f"part-{number:05d}.parquet" for number in range(4)]
    assert check_run(out, deep=True).sound
