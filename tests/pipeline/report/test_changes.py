"""What changed is said in words, and the change of the mean is shared out among the features."""

import pytest

from leafledger.pipeline.report import changes
from leafledger.pipeline.report.changes import say_change, write_changes


def shift(kind, feature, change, **more):
    numbers = dict.fromkeys(("corrected", "psi", "psi_expected", "wasserstein", "standard_error", "standard_error_abs"), 0.1)
    means = {"reference_mean": 1.0, "mean": 1.0 + change, "reference_mean_abs": 1.0, "mean_abs": 2.0, "reference_share": 0.25, "share": 0.75}
    known = {"kind": kind, "output": "" if kind == "value" else "0", "feature": feature, "change": change, "reference_rank": 2, "rank": 1}
    return {**numbers, **means, **known, "distance": 0.1, "drifted": False, **more}


def found(**more):
    split = {"output": "0", "reference_mean": 1.0, "mean": 4.0, "change": 3.0, "standard_error": 0.5, "base": 0.0, "features": 3.0}
    split |= {"rounding": 0.0, "ndcg": 0.95}
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
        "alarms": ["value of a, as it is said elsewhere"],
        "thresholds": {"ndcg": 0.9},
    }
    return {**base, "outputs": [split], "shifts": shifts, **more}


def test_the_change_is_said_with_its_error():
    said = say_change(found())
    assert said == "Compared with monday (100 rows), the mean margin is 4, it was 1 (change +3, standard error 0.5). 1 alarm: see what changed."
    assert say_change(found(alarms=[])).endswith("No threshold is crossed.")
    unknown = say_change(found(outputs=[found()["outputs"][0] | {"mean": None, "reference_mean": None, "standard_error": None}]))
    assert unknown == "Compared with monday (100 rows), what the mean margin is, is not known. 1 alarm: see what changed."


def test_means_that_differ_read_differently():
    """Days as whole numbers had both the mean 2.03e+07."""
    days = shift("value", "day", 0.0, reference_mean=20260302.0, mean=20260303.0, distance=1.0, drifted=True)
    section = write_changes(found(shifts=[days]))
    assert any(item.endswith("; mean 20,260,303, was 20,260,302 (PSI 0.1, by chance 0.1)") for item in section.items)
    assert section.figures[-1].table.rows[0][7:9] == ("20,260,302", "20,260,303")
    assert "is 1.00001, it was 1 (" in say_change(found(outputs=[found()["outputs"][0] | {"mean": 1.00001}]))


def test_steps_go_from_the_mean_before_to_the_mean_now():
    section = write_changes(found())
    assert section.items == (
        "90 rows, there were 100",
        "Alarm: value of a: at least 20% of the rows have another one; mean 1, was 1 (PSI 0.1, by chance 0.1)",
    )
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


def test_alarms_are_in_the_words_of_the_figures(monkeypatch):
    """The order of the features first, groups last, both as they are said elsewhere; what is not known is left out."""
    monkeypatch.setattr(changes, "ALARMS", 6)
    outputs = [{**found()["outputs"][0], "ndcg": ndcg} for ndcg in (0.8, None)]
    shifts = [
        shift("phi", "b", -2.5, distance=0.4, drifted=True, psi=None),
        shift("phi", "a", 1.0, drifted=True, distance=1.0),
        shift("missing", "a", -0.75, drifted=True),
        shift("value", "c", 0.0, drifted=True, reference_mean=None, mean=None, psi=0.03271, psi_expected=7.7e-5),
    ]
    said = ["order", "phi of b", "phi of a", "missing of a", "value of c", "x=1: value of a"]
    items = write_changes(found(outputs=outputs, shifts=shifts, alarms=said)).items
    assert items[1:] == (
        "Alarm: order",
        "Alarm: attribution of b, output 0: at least 40% of the rows have another one; mean −1.5, was 1",
        "Alarm: attribution of a, output 0: all rows have another one; mean 2, was 1 (PSI 0.1, by chance 0.1)",
        "Alarm: missing values of a, output 0: 25% of the rows, were 100%",
        "Alarm: value of c: at least 10% of the rows have another one (PSI 0.0327, by chance 7.7e-05)",
        "Alarm: x=1: value of a",
    )
    assert [track.label for track in write_changes(found(shifts=shifts[:1])).figures[-1].drawing.tracks] == ["attribution of b"]


def test_long_lists_are_cut_and_counted():
    items = write_changes(found(alarms=["x" * 1000] * 100, shifts=[])).items
    assert len(items) == 7
    assert len(items[1]) <= 300
    assert items[-1] == "… and 95 more alarms; after/drift.json has all"  # of groups too, of which no figure tells


def test_attributions_that_do_not_add_up_are_not_drawn_as_steps():
    """What they changed by is no part of the change of the mean: of the other figures alone."""
    split = {**found()["outputs"][0], "base": None, "features": None, "rounding": None}
    titles = [figure.title for figure in write_changes(found(outputs=[split])).figures]
    assert titles == ["How much each feature matters, before and now", "Which columns moved"]


def test_what_is_not_known_is_not_drawn():
    split = {**found()["outputs"][0], "reference_mean": None, "mean": None, "change": None, "standard_error": None}
    assert [figure.title for figure in write_changes(found(outputs=[split], shifts=[])).figures] == []
    assert "what the mean margin is, is not known." in say_change(found(outputs=[split]))
