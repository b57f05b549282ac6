"""A feature's attributions coloured by another one: its mean height in every cell, a line for each category."""

import numpy as np
import pytest

from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.plots.coloured import draw_coloured

RNG = np.random.default_rng(13)
VALUES = RNG.uniform(0, 10, 500)
OTHER = RNG.uniform(size=500)
PHI = np.where(OTHER > 0.5, VALUES, -VALUES)


def shades(figure):
    """Mean shade of the cells below and above the middle, from the paths' own corners."""
    found = {True: [], False: []}
    for shape in figure.drawing.shapes:
        for piece in shape.path.split("M")[1:]:
            top = float(piece.split("h")[0].split(" ")[1])
            found[top < figure.drawing.height / 2 - 1].append(int(shape.kind[1:]))
    return np.mean(found[True]), np.mean(found[False])


def test_cells_have_the_colour_of_their_rows():
    """Rows whose other value is high lie above here, so these cells are orange, and those below blue."""
    figure = draw_coloured("a", VALUES, PHI, "b", OTHER, "margin")
    above, below = shades(figure)
    assert above > 5 > 3 > below
    assert figure.drawing.shades == ("low value", "high value of b", "missing")
    low, high = figure.table.rows
    assert int(low[1]) + int(high[1]) == 500
    assert float(low[3].replace("−", "-")) < 0 < float(high[3])


def test_categories_have_lines_of_their_means():
    """The three largest, and what is missing counts as one."""
    sites = np.array(["Oslo", "Rome", None, "Bern"], object)[RNG.choice(4, 500, p=[0.4, 0.3, 0.2, 0.1])]
    figure = draw_coloured("a", VALUES, PHI, "site", sites, "margin")
    assert [name for _, name in figure.drawing.keys] == ["Oslo", "Rome", "missing"]
    assert [shape.kind for shape in figure.drawing.lines] == ["mean", "l1", "l2"]
    assert {shape.kind for shape in figure.drawing.shapes} == {"d2"}
    assert [int(row[1]) for row in figure.table.rows] == [(sites == "Oslo").sum(), (sites == "Rome").sum(), (sites == None).sum()]  # noqa: E711 - NumPy compares each element


def test_rows_without_a_value_have_a_strip_of_their_own():
    figure = draw_coloured("a", np.where(np.arange(500) < 50, np.nan, VALUES), PHI, "b", OTHER, "margin")
    assert figure.drawing.across[0].text == "none"
    assert "without a value" in figure.description
    columns = {float(piece.split(" ")[0]) for shape in figure.drawing.shapes for piece in shape.path.split("M")[1:]}
    assert 0.0 in columns
    assert not columns & {1.0, 2.0, 3.0}


def test_missing_colours_are_grey():
    figure = draw_coloured("a", VALUES, PHI, "b", np.full(500, np.nan), "margin")
    assert {shape.kind for shape in figure.drawing.shapes} == {"unknown"}


def test_categories_are_not_coloured():
    with pytest.raises(UsageError, match=r"^color is 'b', but colours are for features with numbers, and 'site' has categories$"):
        draw_coloured("site", np.array(["Oslo", None], object), np.zeros(2), "b", np.zeros(2), "margin")
