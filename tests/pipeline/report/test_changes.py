"""What changed is said in words, and the change of the mean is shared out among the features."""

import pytest

from leafledger.pipeline.finished.names import Name, Names
from leafledger.pipeline.report import changes
from leafledger.pipeline.report.changes import list_alarms, rename_document, say_change, write_changes, write_headline_of_change
from leafledger.pipeline.report.vocabulary import Vocabulary

WORDS = Vocabulary(Names(row="flight", rows="flights"), "margin", "prediction", "min")


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
        "differs": ["90 rows, 10% fewer than before (100)", "trees of the model: 2, before 1"],
        "alarms": ["value of a, as it is said elsewhere"],
        "thresholds": {"ndcg": 0.9},
    }
    return {**base, "outputs": [split], "shifts": shifts, **more}


def test_the_change_is_said_with_its_error():
    assert say_change(found(), WORDS) == "The mean prediction is 4 min; in monday it was 1 min (+3 ± 1 min)."
    unknown = say_change(found(outputs=[found()["outputs"][0] | {"mean": None, "reference_mean": None, "standard_error": None}]), WORDS)
    assert unknown == "Compared with monday: the mean prediction is not known."


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "The mean prediction rose from 1 min to 4 min, mostly by a"),
        ({"features": None}, "The mean prediction rose from 1 min to 4 min"),
        ({"mean": -2.0, "change": -3.0}, "The mean prediction fell from 1 min to −2 min"),
        ({"mean": 1.5, "change": 0.5}, "The mean prediction stayed at about 1.5 min, but other things changed"),
    ],
)
def test_the_headline_is_what_the_mean_did(change, said):
    """And the feature that made at least half of it, the same way; what is within its error stayed."""
    assert write_headline_of_change(found(outputs=[found()["outputs"][0] | change]), WORDS) == said


def test_a_calm_night_says_that_little_changed():
    """Where the mean stayed within its error; one that moved further is said, with or without an alarm."""
    still = [found()["outputs"][0] | {"mean": 1.5, "change": 0.5}]
    said = "Little changed: the mean prediction stayed at about 1.5 min"
    assert write_headline_of_change(found(alarms=[], shifts=[], outputs=still), WORDS) == said
    moved = "The mean prediction rose from 1 min to 4 min; no alarm"
    assert write_headline_of_change(found(alarms=[], shifts=[]), WORDS) == moved
    assert write_changes(found(alarms=[], shifts=[]), WORDS).text == ("No threshold of an alarm is crossed.",)


def test_means_that_differ_read_differently():
    """Days as whole numbers had both the mean 2.03e+07; that all rows have another one is expected of them."""
    days = shift("value", "day", 0.0, reference_mean=20260302.0, mean=20260303.0, distance=1.0, drifted=True, standard_error=0.0)
    section = write_changes(found(shifts=[days]), WORDS)
    assert section.items[0] == "day: all flights have 20,260,303, before all had 20,260,302; ignore it where that is so by construction."
    assert section.figures[-1].table.rows[0][4:6] == ("20,260,302", "20,260,303")
    assert "is 1.00001 min; in monday it was 1 min" in say_change(found(outputs=[found()["outputs"][0] | {"mean": 1.00001}]), WORDS)


def test_steps_go_from_the_mean_before_to_the_mean_now():
    section = write_changes(found(), WORDS)
    assert section.items == (
        "a: its values differ by at least 20% (mean 1, before 1). It moved the mean prediction by +5 min.",
        "no alarm: 90 flights, 10% fewer than before (100)",
        "no alarm: trees of the model: 2, before 1",
    )
    calm = write_changes(found(differs=["1 row, before 2"], alarms=[], shifts=[]), WORDS)
    assert calm.items == ("1 flight, before 2",)
    why, shares, moved = section.figures
    assert why.description.startswith("How much each feature contributed to the change from 1 min to 4 min, most by a (+5 min).")
    before, first, second, now = why.drawing.tracks
    assert (first.label, second.label) == ("a", "b")
    assert before.points[0] == first.marks[0].start == 0
    assert first.marks[0].width == 100
    assert now.points[0] == second.marks[0].start == pytest.approx(60)
    assert why.drawing.keys == (("up", "raises it"), ("down", "lowers it"))
    assert [track.points for track in shares.drawing.tracks] == [(pytest.approx(33.33),)] * 2
    assert [(track.label, track.marks[0].kind) for track in moved.drawing.tracks] == [
        ("values of a", "up"),
        ("attribution of b", "before"),
        ("attribution of a", "before"),
    ]


def test_alarms_that_move_predictions_most_come_first():
    """The prediction itself, then features, a line for each, by what they moved; the order of features and groups last, as said elsewhere."""
    shifts = [
        shift("phi", "b", -2.5, distance=0.4, drifted=True),
        shift("phi", "a", 1.0, drifted=True, distance=1.0),
        shift("missing", "b", -0.75, drifted=True, reference_mean=1.0, mean=0.25),
        shift("value", "c", 0.0, drifted=True, reference_mean=None, mean=None),
        shift("margin", "", 3.0, drifted=True),
        shift("mean margin", "", 3.0, drifted=True, distance=0.5),
        shift("value", "d", 0.0),
    ]
    said = ["of the six that drifted"] * 6 + ["order", "x=1: value of a"]
    lines = list_alarms(found(shifts=shifts, alarms=said), WORDS)
    assert lines == [
        "prediction: differs by at least 10% (mean 4 min, before 1 min)",
        (
            "b: its attributions differ by at least 40% (mean −1.5 min, before 1 min); 25% of the flights have none (before: 100%). "
            "It moved the mean prediction by −2.5 min."
        ),
        "a: its attributions differ by at least 100% (mean 2 min, before 1 min). It moved the mean prediction by +1 min.",
        "c: its values differ by at least 10%.",
        "order",
        "x=1: value of a",
    ]


def test_features_are_called_by_their_titles():
    """In alarms, figures and the headline; what is ignored is said once."""
    called = rename_document(found(), Names({"a": Name("departure delay", "min")}))
    assert write_headline_of_change(called, WORDS).endswith(", mostly by departure delay")
    assert list_alarms(called, WORDS)[0].startswith("departure delay: its values differ")
    ignoring = called | {"thresholds": {"ndcg": 0.9, "ignore": ["month"]}}
    assert write_changes(ignoring, WORDS).text[1] == "Not judged, since known to change: month."


def test_values_have_their_unit():
    called = rename_document(found(shifts=[shift("value", "a", 3.0, drifted=True)]), Names({"a": Name("departure delay", "min")}))
    assert list_alarms(called, WORDS) == ["departure delay: its values differ by at least 10% (mean 4 min, before 1 min)."]


def test_every_bar_has_the_threshold_of_its_alarm():
    """Missing values and new categories have one of their own; each is a line on its bar, a cell of its row, and in the description."""
    shifts = [
        shift("value", "a", 0.0, distance=0.2, drifted=True),
        shift("missing", "a", 0.0, distance=0.04),
        shift("value", "b", 0.0, distance=0.04),
    ]
    figure = write_changes(found(shifts=shifts, thresholds={"ndcg": 0.9, "distance": 0.05, "share": 0.01}), WORDS).figures[-1]
    assert figure.description.endswith("Black line: where alarms begin, 5.0%, 1.0% for missing values and new categories. Alarms come first.")
    at = {track.label: track.points[0] * 0.2 / figure.drawing.tracks[0].marks[0].width for track in figure.drawing.tracks}
    assert at == pytest.approx({"values of a": 0.05, "missing values of a": 0.01, "values of b": 0.05}, abs=1e-4)
    assert [cells[:4] for cells in figure.table.rows] == [
        ("values of a", "yes", "20%", "5.0%"),
        ("missing values of a", "no", "4.0%", "1.0%"),
        ("values of b", "no", "4.0%", "5.0%"),
    ]


def test_an_alarm_without_a_bar_is_told_beside_the_bars():
    """So that who counts bars in orange finds as many alarms as the page says."""
    mean = shift("mean prediction", "", 3.0, drifted=True)
    figure = write_changes(found(shifts=[*found()["shifts"], mean]), WORDS).figures[-1]
    assert figure.description.endswith("Alarms come first. The alarm of the mean has no bar.")
    assert all("mean" not in track.label for track in figure.drawing.tracks)


def test_shares_that_read_alike_are_no_change():
    """No largest change "from 78% to 78%"."""
    for share, said in ((0.7812, "Hardly any share changed."), (0.84, "Largest change: a, from 78% to 84%.")):
        shifts = [shift("phi", "a", 1.0, reference_share=0.7795, share=share), shift("phi", "b", 0.0, reference_share=0.2, share=0.2)]
        assert said in write_changes(found(shifts=shifts), WORDS).figures[1].description


def test_long_lists_are_cut_and_counted():
    items = write_changes(found(alarms=["x" * 1000] * 100, shifts=[]), WORDS).items
    assert len(items) == changes.ALARMS + 3
    assert len(items[0]) <= 300
    assert items[-3] == "… and 92 more things; after/drift.json has all alarms"  # of groups too, of which no figure tells


def test_attributions_that_do_not_add_up_are_not_drawn_as_steps():
    """What they changed by is no part of the change of the mean: of the other figures alone."""
    split = {**found()["outputs"][0], "base": None, "features": None, "rounding": None}
    titles = [figure.title for figure in write_changes(found(outputs=[split]), WORDS).figures]
    assert titles == ["How much each feature matters, before and now", "How different each column is"]


def test_what_is_not_known_is_not_drawn():
    split = {**found()["outputs"][0], "reference_mean": None, "mean": None, "change": None, "standard_error": None}
    assert [figure.title for figure in write_changes(found(outputs=[split], shifts=[]), WORDS).figures] == []
    assert say_change(found(outputs=[split]), WORDS).endswith("the mean prediction is not known.")
