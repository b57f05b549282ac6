"""Pieces of figures are in percent of their axis, and say what is left out."""

from leafledger.pipeline.report.figures.figure import Figure, Mark, Matrix, Table, draw_bar, draw_whisker, say_left_out, write_path
from leafledger.pipeline.report.figures.scale import Axis


def test_bars_and_whiskers_are_in_percent():
    axis = Axis(-10, 10)
    assert draw_bar(axis, 5, 0, "plain") == Mark(50, 25, "plain")
    assert draw_whisker(axis, 0, 1) == ((45, 55),)
    assert draw_whisker(axis, 0, 0) == draw_whisker(axis, 0, float("nan")) == ()


def test_what_is_left_out_is_said():
    assert say_left_out(20, 10_000, "features") == "The first 20 of 10,000 features."
    assert say_left_out(3, 3, "features") == ""


def test_rectangles_are_one_path():
    assert write_path([(0, 1, 2, 3), (4, 5, 1, 1)]) == "M0 1h2v3h-2zM4 5h1v1h-1z"


def test_a_figure_says_which_drawing_it_has():
    assert Figure("t", "d", Matrix((), (), "", ""), Table((), ())).kind == "matrix"
