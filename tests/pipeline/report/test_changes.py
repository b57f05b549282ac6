"""What changed is said in words, and the change of the mean is shared out among the features."""

import pytest

from pipeline.report.changes import say_change, write_changes


def shift(kind, feature, change, **more):
    numbers = dict.fromkeys(("corrected", "psi", "psi_expected", "wasserstein", "standard_error", "standard_error_abs"), 0.1)
    means = {"reference_mean": 1.0, "mean": 1.0 + change, "reference_mean_abs": 1.0, "mean_abs": 2.0, "reference_share": 0.25, "share": 0.75}
    known = {"kind": kind, "output": "" if kind == "value" else "0", "feature": feature, "change": change, "reference_rank": 2, "rank": 1}
    return {**numbers, **means, **known, "distance": 0.1, "drifted": False, **more}


def found(**more):
    split = {"output": "0", "reference_mean": 1.0, "mean": 4.0, "change": 3.0, "standard_error": 0.5, "base": 0.0, "features": 3.0, "rounding": 0.0}
    shifts = [
        shift("phi", "a", 5.0),
        shift("phi", "b", -2.0, distance=0.4),
        shift("value", "a", 0.0, distance=0.2, drifted=True),
        shift("value", "b", 0.0, distance=None),
    ]
    base = {
        "reference": "runs/monday",
        "reference_n_rows": 100,
        "n_rows": 90,
        "space": "margin",
        "differs": ["90 rows, there were 100"],
        "alarms": ["value of a"],
    }
    return {**base, "outputs": [split], "shifts": shifts, **more}


def test_the_change_is_said_with_its_error():
    said = say_change(found())
    assert said == "Compared with monday of 100 rows, its mean margin is 4, it was 1 (change +3, standard error 0.5). 1 alarm: see what changed."
    assert say_change(found(alarms=[])).endswith("No threshold is crossed.")


def test_steps_go_from_the_mean_before_to_the_mean_now():
    section = write_changes(found())
    assert section.items == ("90 rows, there were 100", "Alarm: value of a")
    why, shares, moved = section.figures
    before, first, second, now = why.drawing.tracks
    assert (first.label, second.label) == ("a", "b")
    assert before.points[0] == first.marks[0].start == 0
    assert first.marks[0].width == 100
    assert now.points[0] == second.marks[0].start == pytest.approx(60)
    assert [track.points for track in shares.drawing.tracks] == [(pytest.approx(33.33),)] * 2
    assert [(track.label, track.marks[0].kind) for track in moved.drawing.tracks] == [
        ("value of a", "up"),
        ("attribution of b", "before"),
        ("attribution of a", "before"),
    ]


def test_long_lists_are_cut_and_counted():
    items = write_changes(found(alarms=["x" * 1000] * 100)).items
    assert len(items) == 7
    assert len(items[1]) <= 300
    assert items[-1].startswith("… and 95 more alarms")


def test_what_is_not_known_is_not_drawn():
    split = {**found()["outputs"][0], "reference_mean": None, "mean": None, "change": None, "standard_error": None}
    assert [figure.title for figure in write_changes(found(outputs=[split], shifts=[])).figures] == []
    assert "it was –" in say_change(found(outputs=[split]))
