"""Fields have rows where they are, and boxes the quantiles of each value."""

import re

import numpy as np
import pyarrow as pa
import pytest

from leafledger.pipeline.finished.names import UNNAMED, Names
from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.report.counts.counts import CountedColumn, Values, count_rows, lay_edges
from leafledger.pipeline.report.figures.dependence import draw_dependence

RNG = np.random.default_rng(1)
X = np.where(RNG.random(3000) < 0.1, np.nan, RNG.uniform(0, 10, 3000))
PHI = np.where(np.isnan(X), -4, X - 5 + RNG.normal(0, 0.1, 3000))


def draw(values, column, phi=PHI, of_values="", words=UNNAMED):
    asked = CountedColumn("phi_x", (-6.0, 6.0), lay_edges((-6.0, 6.0), (np.nanmin([*phi, -6]), np.nanmax([*phi, 6]))), values)
    return draw_dependence("x", asked, count_rows(pa.table({"phi_x": phi, "value_x": column}), [asked])[0], "margin", of_values, words)


def test_the_mean_of_each_range_is_that_of_its_rows():
    figure = draw(Values(Feature("x"), "value_x", tuple(np.linspace(1, 9, 41).tolist())), X)
    rows = {row[0]: row for row in figure.table.rows}
    assert rows["missing"][1] == str(np.isnan(X).sum())
    assert rows["below 1"][1] == str((X < 1).sum())
    assert rows["above 9"][1] == str((X > 9).sum())
    inside = (X >= 1) & (X < 1.8)
    assert float(rows["1 to 1.8"][3].replace("−", "-")) == pytest.approx(PHI[inside].mean(), rel=1e-3)
    assert figure.kind == "plane"
    assert figure.drawing.across[0].text == "none"
    (middle,) = [tick.at for tick in figure.drawing.across if tick.text == "4"]
    assert middle == pytest.approx(100 * (1 - 25 / figure.drawing.width), abs=0.01)  # of 40 ranges, behind a strip of rows without a value
    assert sum(int(row[1].replace(",", "")) for row in figure.table.rows) == 3000


def test_the_highest_and_the_lowest_mean_are_those_of_the_table():
    """Ranges are named; one of a few rows is none of them."""
    x = np.where(X > 9, 9.5, X)
    x[:10], phi = 0.5, np.where(np.arange(3000) < 10, -60, PHI)
    x[10:][x[10:] < 1] = 1.1
    figure = draw(Values(Feature("x"), "value_x", tuple(np.linspace(1, 9, 41).tolist())), x, phi)
    rows = {row[0]: row for row in figure.table.rows}
    assert number(rows["below 1"][3]) == -60
    usual = {name: number(row[3]) for name, row in rows.items() if name not in ("below 1", "missing")}
    assert (max(usual, key=usual.get), min(usual, key=usual.get)) == ("above 9", "1 to 1.8")
    said = re.search(r" Highest mean: \+(\S+) \(above 9\); lowest: −(\S+) \(1 to 1.8\)\.", figure.description)
    assert [float(each) for each in said.groups()] == pytest.approx([usual["above 9"], -usual["1 to 1.8"]], abs=0.005)


def test_rows_are_called_as_they_are_elsewhere():
    figure = draw(Values(Feature("x"), "value_x", tuple(np.linspace(1, 9, 41).tolist())), X, words=Names(row="flight", rows="flights"))
    assert "the more flights;" in figure.description
    assert " flights without a value: mean " in figure.description
    assert "row" not in figure.description
    assert figure.table.heads[1] == "flights"
    boxes = draw(Values(Feature("x", True), "value_x", categories=("a", "b")), pa.array(["a", "b"] * 1500), words=Names(row="flight", rows="flights"))
    assert "row" not in boxes.description


def test_numbers_beside_missing_values_give_a_scale():
    """Where "none" takes the place of zero, there is more than one number left."""
    figure = draw(Values(Feature("x"), "value_x", tuple(np.linspace(-11, 197, 41).tolist())), X * 20 - 10)
    first, *others = [tick.text for tick in figure.drawing.across]
    assert first == "none"
    assert others == ["50", "100", "150"]


def test_the_axis_of_values_has_their_unit_where_it_is_known():
    values = Values(Feature("x"), "value_x", tuple(np.linspace(1, 9, 41).tolist()))
    assert [draw(values, X, of_values=unit).drawing.axis for unit in ("", "min")] == ["value of x", "value of x, min"]


def test_a_line_goes_through_whole_numbers():
    """Whose cells are alone, with empty ones between; one cell is a point."""
    x = RNG.integers(0, 14, 3000).astype(float)
    figure = draw(Values(Feature("x"), "value_x", tuple(np.linspace(0, 13.01, 41).tolist())), x, x - 6)
    path = figure.drawing.lines[0].path
    assert (path.count("M"), path.count("L")) == (1, 13)
    assert draw(Values(Feature("x"), "value_x", (0.0, 20.0)), X, np.zeros(3000)).drawing.lines[0].path.count("h0.01") == 1


def test_values_at_the_end_of_the_axis_are_not_above_it():
    """Where a tenth of the rows have one and the same value there."""
    x = np.where((X > 8) & (X < 9), 9.0, X)
    edges = (*np.linspace(1, 9, 41)[:-1].tolist(), float(np.nextafter(9, 10)))  # as choose_values lays them
    rows = {row[0]: row for row in draw(Values(Feature("x"), "value_x", edges), x).table.rows}
    assert rows["8.2 to 9"][1] == str((x == 9).sum())
    assert rows["above 9"][1] == str((x > 9).sum())


def test_few_numbers_are_boxes_in_their_order():
    column = RNG.integers(1, 4, 3000)
    figure = draw(Values(Feature("x"), "value_x", (0.9, 1.5, 2.5, 3.1), (1.0, 2.0, 3.0)), column.astype(float), -column.astype(float))
    assert [track.label for track in figure.drawing.tracks] == ["1", "2", "3"]
    assert [row[1] for row in figure.table.rows] == [f"{n:,}" for n in np.bincount(column)[1:]]


def test_categories_are_boxes_by_their_means():
    column = pa.array(np.array(["a", "b", "c", None], object)[RNG.integers(0, 4, 3000)])
    phi = np.array([{"a": -1.0, "b": 1.0, "c": 3.0, None: 0.0}[name] for name in column.to_pylist()])
    figure = draw(Values(Feature("x", True), "value_x", categories=("a", "b")), column, phi)
    assert [track.label for track in figure.drawing.tracks] == ["all others", "b", "a", "missing"]


def test_categories_are_not_taken_for_what_is_said_of_others():
    """Called as rows without a value are, or as those of no listed category."""
    column = pa.array(np.array(["missing", "all others", "c", None], object)[np.arange(3000) % 4])
    phi = np.array([{"missing": -1.0, "all others": 1.0, "c": 3.0, None: 0.0}[name] for name in column.to_pylist()])
    figure = draw(Values(Feature("x", True), "value_x", categories=("missing", "all others")), column, phi)
    assert [track.label for track in figure.drawing.tracks] == ["(all others)", "all others", "missing", "(missing)"]
    assert [number(row[3]) for row in figure.table.rows] == [3, 1, -1, 0]


def test_missing_values_are_as_dark_as_others_where_rows_are_as_many():
    """The darkest cell is the one with the most rows, wherever it is."""
    x = np.concatenate([np.full(2000, np.nan), np.repeat(np.linspace(0.05, 9.95, 40), 10)])
    figure = draw(Values(Feature("x"), "value_x", tuple(np.linspace(0, 10, 41).tolist())), x, np.zeros(x.size))
    assert {shape.kind for shape in figure.drawing.shapes if "M0 " in shape.path} == {"d6"}
    assert {shape.kind for shape in figure.drawing.shapes if "M0 " not in shape.path} == {"d2"}  # the cube root of 10 / 2000, times six


def test_without_values_there_is_nothing_to_draw():
    assert draw(None, X) is None
    assert draw(Values(Feature("x"), "value_x", (0.0, 1.0)), X, np.full(3000, np.nan)) is None


def test_of_a_value_that_all_rows_have_nothing_is_drawn():
    assert draw(Values(Feature("x"), "value_x", (1.9, 2.1), (2.0,)), np.full(3000, 2.0)) is None


def number(text):
    return float(text.replace("−", "-").replace(",", ""))


def test_boxes_of_rare_values_are_where_their_rows_are():
    """Of values that one row in a thousand has, too few for the axis that nearly all rows lie on."""
    flag = np.where(np.arange(40_000) % 1000, 0.0, 1.0)
    phi = np.where(flag == 1, 30, -0.03) + RNG.normal(0, 0.001, flag.size)
    texts = pa.array(np.where(np.arange(40_000) % 1000, "usual", "rare"))
    for values, column in (
        (Values(Feature("x"), "value_x", (-0.1, 0.5, 1.1), (0.0, 1.0)), flag),
        (Values(Feature("x", True), "value_x", categories=("usual",)), texts),
    ):
        figure = draw(values, column, phi)
        rare, usual = sorted(zip(figure.table.rows, figure.drawing.tracks, strict=True), key=lambda pair: number(pair[0][1]))
        assert [number(cell) for cell in rare[0][2:]] == pytest.approx([30, 30, 30], abs=0.01)
        assert [number(cell) for cell in usual[0][2:]] == pytest.approx([-0.03] * 3, abs=0.01)
        assert rare[1].marks[0].start > 99
        assert usual[1].marks[0].start < 1


def test_a_field_holds_the_means_and_says_how_many_rows_it_does_not():
    """Where a range's rows, or those without a value, lie beyond the ends of the axis, the field reaches as far as their mean."""
    x = RNG.uniform(0, 10, 40_000)
    x[x < 1] = RNG.uniform(0, 0.25, (x < 1).sum())
    x[::4000] = np.nan
    phi = np.where(np.isnan(x), 60, np.where(x < 1, -40, RNG.uniform(-5, 5, x.size)))
    phi[1], x[1] = 900, 5
    figure = draw(Values(Feature("x"), "value_x", tuple(np.linspace(0, 10, 41).tolist())), x, phi)
    assert {row[0]: number(row[3]) for row in figure.table.rows}["missing"] == 60
    assert " 1 row is outside the picture. On the left, 10 rows without a value: mean +60." in figure.description
    (low, *_, high), path = figure.drawing.upright, figure.drawing.lines[0].path
    first = float(path.removeprefix("M").split("L")[0].split()[1])
    at = number(low.text) + (number(high.text) - number(low.text)) * (100 - first / 40 * 100 - low.at) / (high.at - low.at)
    assert at == pytest.approx(-40, abs=0.1)
    assert [shape for shape in figure.drawing.shapes if "M0 " in shape.path]  # the strip of rows without a value


def test_ranges_of_large_and_of_near_numbers_have_names_of_their_own():
    """Days as YYYYMMDD, pressures within a few parts in a thousand, probabilities near one: no two rows of a table are called the same."""
    for low, high in ((20_240_101, 20_251_231), (1012.3, 1015.9), (0.9999, 0.99999)):
        x = RNG.uniform(low, high, 3000)
        figure = draw(Values(Feature("x"), "value_x", tuple(np.linspace(low, high, 41).tolist())), x)
        lower, upper = zip(*(row[0].split(" to ") for row in figure.table.rows if " to " in row[0]), strict=True)
        assert len(set(lower)) == len(lower) >= 10
        assert lower[1:] == upper[:-1]
        assert len({tick.text for tick in figure.drawing.across}) == len(figure.drawing.across) >= 2
        assert all(low <= number(tick.text) <= high for tick in figure.drawing.across)
    days = [float(day) for day in (20_250_101, 20_250_102)]
    figure = draw(Values(Feature("x"), "value_x", (days[0] - 0.1, days[0] + 0.5, days[1] + 0.1), tuple(days)), RNG.choice(days, 3000))
    assert [track.label for track in figure.drawing.tracks] == ["20,250,101", "20,250,102"]
