"""The histogram has the shares of rows as bars and as a table, and the other run as a line."""

import numpy as np

from leafledger.pipeline.report.figures.histogram import draw_histogram

EDGES = np.linspace(0.0, 60.0, 61)


def test_bars_and_table_have_the_shares():
    now, before = np.zeros(60), np.zeros(60)
    now[[0, 30]], before[0] = (0.25, 0.75), 1.0
    figure = draw_histogram(EDGES, now, before, ("prediction", "flights", "min", "monday"), "What it shows.")
    assert (figure.title, figure.description) == ("Distribution of the prediction", "What it shows.")
    assert figure.drawing.shapes[0].path == "M0 75h1v25h-1zM30 25h1v75h-1z"
    assert figure.drawing.lines[0].path.startswith("M0 100V0H1V100H2")
    assert figure.drawing.keys == (("l2", "monday"),)
    assert figure.table.heads == ("prediction", "flights before", "flights now")
    assert [row for row in figure.table.rows if row[1:] != ("0%", "0%")] == [("0 to 5", "100%", "25%"), ("30 to 35", "0%", "75%")]


def test_a_run_alone_has_no_line():
    figure = draw_histogram(EDGES, np.full(60, 1 / 60), None, ("margin", "rows", "", ""), "")
    assert (figure.drawing.lines, figure.drawing.keys, figure.table.heads) == ((), (), ("margin", "rows now"))
