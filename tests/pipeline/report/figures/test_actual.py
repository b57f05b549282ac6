"""Mean labels stand over the predictions they were made for, beside a line where both are equal."""

from leafledger.pipeline.report.figures.actual import draw_actual


def test_cells_are_points_of_the_line():
    figure = draw_actual([(10, 0.0, 5.0), (20, 10.0, 10.0), (5, 20.0, 18.0)], "prediction", "flights", "min")
    equal, mean = figure.drawing.lines
    assert (equal.path, mean.path) == ("M0 100L100 0", "M0 75L50 50L100 10")
    assert figure.table.rows == (("0", "5", "10"), ("10", "10", "20"), ("20", "18", "5"))
    assert figure.description.endswith("Farthest from it: 0 min where the mean label is 5 min.")


def test_a_single_cell_is_no_line():
    assert draw_actual([(10, 0.0, 5.0)], "prediction", "rows", "") is None
