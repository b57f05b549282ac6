"""Strips are as high as rows are many, and coloured as high as values are."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import spearmanr

from leafledger.kernels.distributions.column_distribution import count_column
from leafledger.kernels.distributions.histogram import finish_histogram, start_histogram
from leafledger.pipeline.drift.measure.distribution import Distribution
from leafledger.pipeline.finished.names import Names
from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.report.counts.counts import CountedColumn, Values, count_rows, lay_edges
from leafledger.pipeline.report.figures.swarm import colour_bins, correlate_ranks, draw_swarm, shade
from leafledger.pipeline.report.grids import UNKEPT, find_rank_edges

N = 4000


def distribution_of(numbers):
    """As a run is measured."""
    tally = start_histogram()
    found = [float(each[0]) for each in count_column(np.ascontiguousarray(numbers), tally)]
    return Distribution(*map(int, found[:3]), *found[3:], finish_histogram(tally))


def counted(phi, values=None):
    edges = None if values is None else Values(Feature("x"), "value_x", tuple(np.linspace(-3, 3, 41).tolist()))
    ranked = None if values is None else tuple(find_rank_edges(distribution_of(each)) for each in (values, phi))
    asked = CountedColumn("phi_x", (-3.0, 3.0), lay_edges((-3.0, 3.0), (-9.0, 9.0)), edges, "" if edges else UNKEPT, ranked=ranked)
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


@pytest.mark.parametrize(("n", "said"), [(1, "1 attribution is outside the picture"), (2, "2 attributions are outside the picture")])
def test_what_lies_beyond_the_axis_is_counted(n, said):
    asked, counts = counted(np.concatenate((np.zeros(9), np.full(n, 5.0))))
    assert said in draw_swarm(["x"], [asked], [counts], "margin").description
    named = draw_swarm(["x"], [asked], [counts], "margin", Names(row="flight", rows="flights"))
    assert "all flights: the thicker, the more flights." in named.description
    assert named.table.heads[-1] == "flights outside the picture"
    assert "of flights in 100 cells" in named.table.note


def draw(rng, kind):
    """Values and attributions of rows: skewed, in steps, mostly zero, some without a value."""
    plain = rng.normal(size=N)
    values = {
        "skewed": rng.lognormal(3, 2, N),
        "few": rng.integers(0, 5, N).astype(float),
        "zero": np.where(rng.random(N) < 0.6, 0, plain),
    }
    chosen = values.get(kind, plain)
    phi = {"steps": np.round(chosen), "falls": -np.sign(chosen) * np.abs(chosen) ** 3}.get(kind, np.tanh(chosen - chosen.mean()) + rng.normal(size=N))
    chosen[rng.random(N) < 0.2] = np.nan
    return chosen, phi


@pytest.mark.parametrize("kind", ["skewed", "few", "zero", "steps", "falls", "plain"])
def test_rank_correlations_are_those_of_the_rows(kind):
    """SciPy's of the same rows, to the two digits that the table has, also where nearly all rows lie in one of the cells that are drawn."""
    for seed in range(5):
        values, phi = draw(np.random.default_rng(seed), kind)
        known = ~np.isnan(values)
        expected = spearmanr(values[known], phi[known]).statistic
        asked, counts = counted(phi, values)
        assert correlate_ranks(counts.ranks) == pytest.approx(expected, abs=0.005)
        figure = draw_swarm(["x"], [asked], [counts], "margin")
        assert float(figure.table.rows[0][4].replace("−", "-")) == pytest.approx(expected, abs=0.011)
        assert "may be off by 0.01" in figure.table.note


def test_a_direction_that_hides_in_a_cell_of_the_figure_is_told():
    """Most values are in one cell of those that are drawn, and attributions fall with them there; the few others make no direction."""
    values = np.concatenate([np.linspace(0, 0.01, N * 9 // 10), np.linspace(0.5, 2.9, N - N * 9 // 10)])
    phi = np.where(values < 0.1, -200 * values, values)
    _, counts = counted(phi, values)
    assert correlate_ranks(counts.ranks) == pytest.approx(spearmanr(values, phi).statistic, abs=0.005)
    assert correlate_ranks(counts.ranks) < -0.4


def test_without_two_values_or_two_attributions_there_is_no_direction():
    for values, phi in ((np.full(N, 2.0), np.arange(N) / N), (np.arange(N) / N, np.full(N, 2.0)), (np.full(N, np.nan), np.arange(N) / N)):
        asked, counts = counted(phi, values)
        assert draw_swarm(["x"], [asked], [counts], "margin").table.rows[0][4] == "–"
