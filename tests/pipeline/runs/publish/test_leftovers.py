"""What a run removes, mends and says of other runs' objects in its folder: never a part that is somebody's, and with a cure that works."""

import pytest

from leafledger import check_run
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.runs.publish import publish as publish_
from leafledger.pipeline.runs.publish import replacement as replacement_
from leafledger.pipeline.runs.records.manifest import read_manifest
from tests.pipeline.runs.publish.killing import KilledError


def test_who_loses_the_place_removes_no_part_of_who_got_it(changing, tmp_path, monkeypatch):
    """An unfinished run is replaced in the moment before its own manifest: it is refused, and the other's parts are all there."""
    _, run, late = changing
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
