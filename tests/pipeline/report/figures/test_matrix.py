"""Matrices have every pair once, and lines every step that fits."""

import math

from leafledger.pipeline.report.figures.matrix import draw_interactions, draw_lines


def pair(first, second, size, rank):
    return {"first": first, "second": second, "mean_abs": size, "mean": 0.0, "min": 0.0, "max": 0.0, "rank": rank}


def test_darkness_is_the_root_of_the_size():
    figure = draw_interactions([pair("a", "b", 4.0, 1), pair("c", "a", 1.0, 2), pair("b", "c", 0.0, 3)], "margin")
    assert figure.drawing.names == ("a", "b", "c")
    assert figure.drawing.cells == ((-1,), (6, -1), (3, 0, -1))
    assert "a and b interact most" in figure.description


def test_names_that_differ_in_their_middles_differ():
    names = [f"{'customer_' * 6}{middle}{'_of_the_last_twelve_months' * 3}" for middle in ("debit", "credit", "balance")]
    figure = draw_interactions([pair(names[0], names[1], 4.0, 1), pair(names[0], names[2], 1.0, 2)], "margin")
    assert len(set(figure.drawing.names)) == 3
    assert [row[0] for row in figure.table.rows] == [f"{names[0]} and {names[1]}", f"{names[0]} and {names[2]}"]


def test_the_strongest_of_many_are_shown():
    rows = [pair(f"f{i}", f"f{j}", 1.0 / (1 + i + j), i * 100 + j + 1) for i in range(100) for j in range(i)]
    figure = draw_interactions(rows, "margin")
    assert len(figure.drawing.names) == 10
    assert len(figure.table.rows) == 20
    assert draw_interactions([pair("a", "b", 0.0, 1)], "margin") is None
    assert draw_interactions([], "margin") is None


def test_lines_go_through_their_points():
    figure = draw_lines("t", "d", {"up": [(0, 0.0), (10, 5.0)], "down": [(0, 5.0), (5, math.nan), (10, 0.0)]}, "step", "value")
    assert [shape.path for shape in figure.drawing.lines] == ["M0 100L100 0", "M0 0L100 100"]
    assert figure.table.rows == (("0", "0", "5"), ("10", "5", "0"))
    assert draw_lines("t", "d", {"up": [(0, math.nan)]}, "step", "value") is None


def test_a_long_line_keeps_both_ends():
    figure = draw_lines("t", "d", {"up": [(i, float(i)) for i in range(10_000)]}, "step", "value")
    assert figure.drawing.lines[0].path.count("L") == 399
    assert len(figure.table.rows) == 40
    assert figure.drawing.lines[0].path.endswith("L100 0")
