"""A heat map: lines in the order of names, rows from the lowest prediction to the highest, colours from low to high."""

import numpy as np
import pytest

from leafledger.pipeline.plots.heat import COLUMNS, draw_heat


def line(strip):
    """Kinds of all columns of a line."""
    found = {}
    for shape in strip.shapes:
        for piece in shape.path.split("M")[1:]:
            start, wide = float(piece.split(" ")[0]), float(piece.split("h")[1].split("v")[0])
            found |= dict.fromkeys(range(int(start), int(start + wide)), shape.kind)
    return [found[column] for column in range(len(found))]


def test_rows_go_from_the_lowest_prediction_to_the_highest():
    """One row in every column where there are few."""
    phi = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 0.0]])
    figure = draw_heat(["a", "b"], phi, np.array([9.0, 1.0, 5.0]), "margin")
    assert [strip.label for strip in figure.drawing.strips] == ["a", "b"]
    assert line(figure.drawing.strips[0]) == ["v0", "v4", "v8"]
    assert line(figure.drawing.strips[1]) == ["v4", "v4", "v4"]
    assert "each column is a row" in figure.description


def test_many_rows_are_averaged():
    phi = np.repeat(np.linspace(-1, 1, COLUMNS), 10)[:, None]
    figure = draw_heat(["a"], phi, phi[:, 0], "margin")
    kinds = line(figure.drawing.strips[0])
    assert len(kinds) == COLUMNS
    assert [int(kind[1]) for kind in kinds] == sorted(int(kind[1]) for kind in kinds)
    assert "about 10 rows" in figure.description
    low, high = (float(text.replace("−", "-")) for text in figure.table.rows[0][1:])
    assert (low, high) == (pytest.approx(-0.9, abs=0.02), pytest.approx(0.9, abs=0.02))


def test_rows_without_a_label_are_grey():
    figure = draw_heat(["a"], np.array([[1.0], [np.nan]]), np.array([1.0, np.nan]), "loss")
    assert line(figure.drawing.strips[0]) == ["v8", "unknown"]
    assert figure.drawing.shades[2] == "label missing"


def test_nothing_is_the_middle():
    assert line(draw_heat(["a"], np.zeros((4, 1)), np.zeros(4), "margin").drawing.strips[0]) == ["v4"] * 4
