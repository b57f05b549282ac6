"""Effects of features: steps where the thresholds are, bars where values are, categories by their means, nothing where nothing changes."""

import math
import re

import pytest

from leafledger.pipeline.report.figures.effect import HEIGHT, draw_effect


def row(value, kind="interval", lower=None, upper=None, category=None, share=0.0, error=None):
    return {"kind": kind, "lower": lower, "upper": upper, "category": category, "value": value, "share": share, "standard_error": error}


STEPS = [
    row(1.0, lower=-math.inf, upper=0.0, share=0.5),
    row(3.0, lower=0.0, upper=10.0, share=0.25),
    row(2.0, lower=10.0, upper=math.inf, share=0.2),
    row(0.5, "missing", share=0.05),
]


def test_numbers_are_steps():
    """As many as intervals, the missing value apart on the left; higher is higher; the table has all of them."""
    figure = draw_effect("x", STEPS, (-5.0, 15.0), "margin")
    path = figure.drawing.lines[0].path
    assert len(re.findall("H", path)) == 4
    assert path.startswith("M0 ")
    heights = [float(height) for height in re.findall(r"[ML][\d.]+ ([\d.]+)H", path)]
    missing, first, second, third = heights
    assert second < third < first < missing < HEIGHT
    assert [cells[0] for cells in figure.table.rows] == ["above −∞ to 0", "above 0 to 10", "above 10 to ∞", "missing"]
    assert figure.table.rows[1] == ("above 0 to 10", "25%", "3", "–")
    assert figure.drawing.across[0].text == "none"
    assert draw_effect("x", STEPS[:3], None, "margin").drawing.across[0].text != "none"


@pytest.mark.parametrize("ends", [None, (-5.0, 15.0)])
def test_bars_are_as_high_as_rows_are_dense(ends):
    """The same share on half of the width is a bar of twice the height."""
    rows = [row(1.0, lower=-math.inf, upper=0.0), row(2.0, lower=0.0, upper=10.0, share=0.5), row(3.0, lower=10.0, upper=15.0, share=0.5)]
    rows.append(row(4.0, lower=15.0, upper=math.inf))
    (shape,) = draw_effect("x", rows, ends, "margin").drawing.shapes
    tall = [float(height) for height in re.findall(r"v([\d.]+)h", shape.path)]
    assert tall[1] == pytest.approx(2 * tall[0], rel=0.02)


def test_steps_beyond_the_axis_do_not_count():
    """Neither are they drawn, nor do they stretch the axis of means."""
    inside = [row(1.0, lower=-math.inf, upper=0.0, share=0.5), row(2.0, lower=0.0, upper=10.0, share=0.5), row(99.0, lower=10.0, upper=math.inf)]
    figure = draw_effect("x", inside, (-5.0, 10.0), "margin")
    assert figure.drawing.lines[0].path.count("H") == 2
    assert max(float(tick.text) for tick in figure.drawing.upright) <= 2.0


def test_categories_are_ordered_by_their_means():
    """With two standard errors to either side; those without rows are left out; a few of many."""
    rows = [row(1.0, "category", category="a", share=0.5, error=0.1), row(2.0, "category", category="b", share=0.4)]
    rows += [row(3.0, "other", share=0.0), row(0.0, "missing", share=0.1)]
    figure = draw_effect("colour", rows, None, "margin")
    assert [track.label for track in figure.drawing.tracks] == ["b", "a", "missing"]
    low, high = figure.drawing.tracks[1].lines[0]
    assert high - low == pytest.approx(100 * 4 * 0.1 / 2.0, abs=0.1)
    many = [row(float(k), "category", category=str(k), share=(k + 1) / 100) for k in range(30)]
    assert [track.label for track in draw_effect("c", many, None, "margin").drawing.tracks] == [str(k) for k in range(29, 17, -1)]


def test_a_flat_effect_has_no_figure():
    """Nothing to see."""
    assert draw_effect("x", [row(1.0, "any", lower=-math.inf, upper=math.inf, share=1.0)], None, "margin") is None
