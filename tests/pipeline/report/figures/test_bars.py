"""Bars say what the summaries say, with the errors that NumPy finds."""

import numpy as np
import pytest

from leafledger.kernels.arrays.ordering import SCORE, SIZE
from leafledger.pipeline.report.figures.bars import draw_groups, draw_importance, draw_inputs, draw_ranks, draw_shares, error_of_size, tabulate_inputs


def moments(name, phi, rank, share=0.5):
    size = np.abs(phi).mean() if phi.size else np.nan
    some = (
        {"mean_abs": size, "mean": phi.mean(), "std": phi.std(), "min": phi.min(), "max": phi.max()} if phi.size else dict.fromkeys(("mean", "std"))
    )
    return {"output": "0", "feature": name, "rank": rank, "share": share} | {"mean_abs": size} | some


def test_the_error_of_a_mean_size_is_that_of_the_sizes():
    phi = np.random.default_rng(1).normal(0.3, 2, 500)
    assert error_of_size(moments("a", phi, 1), 500) == pytest.approx(np.abs(phi).std(ddof=1) / np.sqrt(500))
    assert error_of_size(moments("a", np.array([1.0, -3.0]), 1), 2) == pytest.approx(1.0)
    assert np.isnan(error_of_size(moments("a", phi, 1), 1))


def test_the_first_features_are_drawn_and_the_others_added_up():
    rng = np.random.default_rng(2)
    rows = [moments(f"f{j}", rng.normal(0, 100 - j, 50), j + 1, share=0.01) for j in range(100)]
    figure = draw_importance(rows[::-1], 50, "margin", {}, 3)
    assert [track.label for track in figure.drawing.tracks] == ["f0", "f1", "f2"]
    assert all(track.lines for track in figure.drawing.tracks)
    assert figure.table.rows[-1][:4] == ("97 others together", "–", "–", "97%")
    assert "The first 3 of 100 features." in figure.description


def test_names_that_differ_in_their_middles_differ_in_every_figure():
    names = [f"{'customer_' * 6}{middle}{'_of_the_last_twelve_months' * 3}" for middle in ("debit", "credit")]
    numbers = {"share": 0.5, "mean_abs": 1.0, "mean": 1.0, "std": 0.5, "min": 0, "max": 2, "r2": 0.3, "standard_error": 0.1}
    rows = [{"feature": name, "rank": i + 1, "rows": 10, "missing": 3, "unseen": 0, "below": 0, "above": 0} | numbers for i, name in enumerate(names)]
    for figure in (draw_importance(rows, 10, "margin", {}), draw_shares(rows), draw_ranks(rows, SIZE), draw_inputs(rows)):
        assert len({track.label for track in figure.drawing.tracks}) == 2
        assert {row[0] for row in figure.table.rows} == set(names)


def test_errors_of_the_background_are_added_in_quadrature():
    phi = np.random.default_rng(3).normal(0, 1, 100)
    own = error_of_size(moments("a", phi, 1), 100)
    figure = draw_importance([moments("a", phi, 1)], 100, "margin", {"a": 1.0})
    assert float(figure.table.rows[0][2]) == pytest.approx(np.hypot(own, 1.0), rel=1e-3)
    assert "background" in figure.description


def test_negative_shares_of_r2_go_to_the_left():
    rows = [{"feature": "a", "r2": 0.5, "standard_error": 0.1, "rank": 1}, {"feature": "b", "r2": -0.25, "standard_error": None, "rank": 2}]
    up, down = draw_shares(rows).drawing.tracks
    assert down.marks[0].start + down.marks[0].width == pytest.approx(up.marks[0].start, abs=0.02)
    assert (down.marks[0].start, down.lines) == (0, ())


def test_scores_of_rankings_are_in_the_table_alone():
    rows = [{"feature": name, "mean": 1.5, "std": 0.5, "min": 1, "max": 2, "rank": rank} for name, rank in (("a", 1), ("area", 0))]
    figure = draw_ranks(rows, SIZE)
    assert [track.label for track in figure.drawing.tracks] == ["a"]
    assert [row[0] for row in figure.table.rows] == ["a", "area"]


def test_a_ranking_by_sign_is_none_by_what_matters():
    """A feature without any effect is behind all that raise the output, and before all that lower it."""
    rows = [{"feature": "a", "mean": 1.5, "std": 0.5, "min": 1, "max": 2, "rank": 1}]
    assert "the shorter the bar, the more it matters." in draw_ranks(rows, SIZE).description
    assert "what lowers it most comes last" in draw_ranks(rows, SCORE).description
    assert "matters" not in draw_ranks(rows, SCORE).description


def test_groups_are_named_by_their_values():
    rows = [{"carrier": None, "feature": name, "total_r2": 0.5, "total_standard_error": 0.1, "n": 7} for name in "ab"]
    figure = draw_groups(rows, ["carrier"])
    assert [(track.label, track.text) for track in figure.drawing.tracks] == [("–", "0.5")]
    assert figure.drawing.tracks[0].lines != ()
    sure = draw_groups([row | {"total_standard_error": None} for row in rows], ["carrier"]).drawing.tracks[0]
    assert [(mark.start, mark.width) for mark in sure.marks] == [(0, 100)]
    assert sure.lines == ()


def test_the_largest_groups_are_drawn():
    """By their rows, in whatever order the summary has them."""
    rows = [{"by": f"g{n:02}", "feature": "a", "total_r2": 0.5, "total_standard_error": 0.1, "n": n} for n in range(30)]
    figure = draw_groups(rows, ["by"], most=20)
    assert [track.label for track in figure.drawing.tracks] == [f"g{n:02}" for n in range(29, 9, -1)]


def test_rows_of_groups_are_those_that_count():
    """A row without weight may have a label, and is not among them."""
    figure = draw_groups([{"by": "x", "feature": "a", "total_r2": 0.5, "total_standard_error": 0.1, "n": 7}], ["by"])
    assert (figure.table.heads[-1], figure.table.rows[0][-1]) == ("rows that count", "7")
    assert "Rows count that have a label, and no weight of 0." in figure.description


def test_inputs_are_shares_of_rows():
    rows = [
        {"feature": name, "rows": 200, "missing": missing, "unseen": unseen, "below": 0, "above": 1}
        for name, missing, unseen in [("a", 20, 20), ("b", 0, 0)]
    ]
    figure = draw_inputs(rows, called="flights")
    assert figure.description.startswith("Share of flights without a value, ")
    assert [track.text for track in figure.drawing.tracks] == ["20%"]
    assert [mark.width for mark in figure.drawing.tracks[0].marks] == [50, 50]
    assert draw_inputs(rows[1:]) is None
    assert tabulate_inputs(rows, 1).note == "The first 1 of 2 features."
    assert tabulate_inputs(rows, 1).heads[-2:] == ("below the model's smallest threshold", "above its largest")


def test_categories_that_training_may_have_seen_are_no_unseen_ones():
    """Where the model's file does not tell, nothing is drawn, and a dash says so."""
    rows = [{"feature": name, "rows": 200, "missing": missing, "unseen": None, "below": 0, "above": 0} for name, missing in (("a", 20), ("b", 0))]
    figure = draw_inputs(rows)
    assert [track.text for track in figure.drawing.tracks] == ["10%"]
    assert [row[:3] for row in figure.table.rows] == [("a", "20", "–"), ("b", "0", "–")]
    assert figure.table.note == "A dash: the model’s file does not tell which categories training saw."
    assert draw_inputs(rows[1:]) is None
