"""A waterfall begins at the base value, and each step where the one before ended."""

import math

import numpy as np
import pytest

from leafledger.pipeline.display.waterfall import Step
from leafledger.pipeline.report.figures.waterfalls import STEPS, draw_waterfall
from tests.pipeline.showing import one, shown


def test_steps_join_up():
    row = one([Step("a", 3, 4.0), Step("b", None, -2.0)], base=1.0, total=3.0)
    figure = draw_waterfall(shown(row).wording, row, row.outputs[0], "Highest margin")
    base, first, second, total = figure.drawing.tracks
    assert figure.small  # several stand beside each other
    assert base.points[0] == first.marks[0].start
    assert first.marks[0].start + first.marks[0].width == pytest.approx(second.marks[0].start + second.marks[0].width)
    assert total.points[0] == second.marks[0].start
    assert [track.label for track in figure.drawing.tracks] == ["base value", "a = 3", "b", "margin"]
    assert [mark.kind for track in figure.drawing.tracks for mark in track.marks] == ["up", "down"]
    assert figure.table.rows == (("base value", "1"), ("a = 3", "+4"), ("b", "−2"), ("margin", "3"))
    assert figure.table.heads == ("feature", "attribution")


@pytest.mark.parametrize(("base", "total"), [(-2.0, 1.0), (0.0, 3.0), (10.0, 13.0)])
def test_zero_is_marked_where_the_axis_reaches_it(base, total):
    """Between the points of the numbers that it lies between, and nowhere else."""
    row = one([Step("a", None, 3.0)], base=base, total=total)
    drawing = draw_waterfall(shown(row).wording, row, row.outputs[0], "Highest").drawing
    start, end = drawing.tracks[0].points[0], drawing.tracks[-1].points[0]
    if base > 0:
        assert drawing.zero is None
    else:
        assert drawing.zero == pytest.approx(start + (end - start) * -base / (total - base), abs=0.01)  # percent, written with two digits


def test_ends_that_differ_read_differently():
    """Both would be 2.026e+07."""
    row = one([Step("a", None, 2.0)], base=20260105.0, total=20260107.0)
    figure = draw_waterfall(shown(row).wording, row, row.outputs[0], "Highest")
    assert [track.text for track in figure.drawing.tracks] == ["20,260,105", "+2", "20,260,107"]
    assert (figure.table.rows[0][1], figure.table.rows[-1][1]) == ("20,260,105", "20,260,107")
    assert figure.description.startswith("Row 5 of part 2: margin 20,260,107.")
    named = draw_waterfall(shown(row).wording, row, row.outputs[0], "Highest", called="flight")
    assert named.description.startswith("Flight 5 of part 2: margin ")
    row = one([Step("a", None, 0.0)], base=1.7543253, total=float(np.float32(1.7543253)))  # which single precision alone makes another number
    assert [track.text for track in draw_waterfall(shown(row).wording, row, row.outputs[0], "Highest").drawing.tracks] == ["1.754", "0", "1.754"]


def test_many_steps_are_shortened_and_still_add_up():
    row = one([Step(f"f{j}", None, 1.0) for j in range(100)], base=0.0, total=100.0)
    figure = draw_waterfall(shown(row).wording, row, row.outputs[0], "Highest")
    assert figure.drawing.tracks[-2].label == "92 others"
    assert figure.drawing.tracks[-2].text == "+92"


def test_steps_that_do_not_add_up_are_counted_where_they_are_left_out():
    row = one([Step(f"f{j}", None, 1.0) for j in range(14)], base=0.0, total=5.0)
    figure = draw_waterfall(shown(row, additive=False).wording, row, row.outputs[0], "Highest")
    assert len(figure.drawing.tracks) == STEPS
    assert figure.description.endswith(" Left out: 6 more.")
    few = one([Step("a", None, 1.0)], base=0.0, total=5.0)
    assert "Left out" not in draw_waterfall(shown(few, additive=False).wording, few, few.outputs[0], "Highest").description


def test_players_that_differ_in_their_middles_differ():
    """Whatever their values, which may be equal."""
    names = [f"{'customer_' * 6}{middle}{'_of_the_last_twelve_months' * 3}" for middle in ("debit", "credit")]
    row = one([Step(name, "x" * 100, 1.0) for name in names], base=0.0, total=2.0)
    figure = draw_waterfall(shown(row).wording, row, row.outputs[0], "Highest")
    assert len({track.label for track in figure.drawing.tracks}) == 4
    assert [cells[0].partition(" = ")[0] for cells in figure.table.rows[1:-1]] == names
    assert all(len(cells[0]) < 200 for cells in figure.table.rows)


def test_ranks_stand_alone():
    row = one([Step("a", None, 1.0), Step("b", None, math.nan)], base=0.0, total=5.0)
    figure = draw_waterfall(shown(row, additive=False, ranks=True).wording, row, row.outputs[0], "Highest")
    assert [(track.label, track.text) for track in figure.drawing.tracks] == [("a", "1")]
