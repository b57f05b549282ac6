"""Strips are as high as rows are many, and coloured as high as values are."""

import numpy as np
import pyarrow as pa
import pytest

from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.report.counts.counts import CountedColumn, Values, count_rows, lay_edges
from leafledger.pipeline.report.figures.swarm import colour_bins, draw_swarm, shade
from leafledger.pipeline.report.grids import UNKEPT

N = 4000


def counted(phi, values=None):
    edges = None if values is None else Values(Feature("x"), "value_x", tuple(np.linspace(-3, 3, 41).tolist()))
    asked = CountedColumn("phi_x", (-3.0, 3.0), lay_edges((-3.0, 3.0), (-9.0, 9.0)), edges, "" if edges else UNKEPT)
    return asked, count_rows(pa.table({"phi_x": phi, "value_x": phi if values is None else values}), [asked])[0]


def test_colours_follow_values():
    """Where attributions rise with values, colours do; where they fall, colours fall; missing values have none."""
    phi = np.random.default_rng(2).uniform(-2.9, 2.9, N)
    rising, falling = (colour_bins(counted(phi, sign * phi)[1], True) for sign in (1, -1))
    assert (np.diff(rising[5:-5]) > -1e-9).all()
    assert (np.diff(falling[5:-5]) < 1e-9).all()
    assert rising[-5] - rising[5] > 0.8
    assert falling[5] - falling[-5] > 0.8
    assert np.isnan(colour_bins(counted(phi, np.full(N, np.nan))[1], True)).all()
    assert [shade(each) for each in (0, 0.5, 1, np.nan)] == ["v0", "v4", "v8", "unknown"]


def test_the_table_says_which_way_attributions_go():
    phi = np.random.default_rng(3).normal(size=N)
    found = [counted(phi, phi), counted(phi, -phi), counted(phi)]
    figure = draw_swarm(["up", "down", "unkept"], [each for each, _ in found], [counts for _, counts in found], "margin")
    assert [float(row[4].replace("−", "-")) for row in figure.table.rows[:2]] == pytest.approx([1, -1], abs=0.01)
    assert figure.table.rows[2][4] == "–"
    assert "explain --values keeps them" in figure.description
    beyond = int((np.abs(phi) > 3).sum())
    assert [row[5] for row in figure.table.rows] == [str(beyond)] * 3
    assert {shape.kind for shape in figure.drawing.strips[2].shapes} == {"unknown"}


@pytest.mark.parametrize(("n", "said"), [(1, "1 attribution lies beyond the axis"), (2, "2 attributions lie beyond the axis")])
def test_what_lies_beyond_the_axis_is_counted(n, said):
    asked, counts = counted(np.concatenate((np.zeros(9), np.full(n, 5.0))))
    assert said in draw_swarm(["x"], [asked], [counts], "margin").description


@pytest.mark.parametrize(("share", "said"), [(0.4, True), (0.6, False)])
def test_ranks_are_not_told_of_rows_that_lie_together(share, said):
    """Which way most attributions go cannot be seen where one cell has most of them."""
    rng = np.random.default_rng(4)
    values = rng.normal(size=N)
    phi = np.where(np.arange(N) < share * N, -1e-3 * values, values)
    found = [counted(phi, values)]
    row = draw_swarm(["x"], [found[0][0]], [found[0][1]], "margin").table.rows[0]
    assert (row[4] != "–") == said


def test_ranks_are_not_told_of_values_that_lie_together():
    """Most values are in one cell, and attributions fall with them there; the few others make no direction."""
    values = np.concatenate([np.linspace(0, 0.01, N * 9 // 10), np.linspace(0.5, 2.9, N - N * 9 // 10)])
    phi = np.where(values < 0.1, -200 * values, values)
    asked, counts = counted(phi, values)
    assert draw_swarm(["x"], [asked], [counts], "margin").table.rows[0][4] == "–"
