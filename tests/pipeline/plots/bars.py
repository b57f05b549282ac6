"""A small figure."""

from leafledger.pipeline.report.figures.figure import Figure, Table, Track, Tracks, draw_bar
from leafledger.pipeline.report.figures.scale import Axis

AXIS = Axis(0.0, 10.0)
BARS = Figure("Bars", "They are bars.", Tracks((Track("a", (draw_bar(AXIS, 0, 5, "plain"),)),), AXIS.ticks(), 0.0, "size"), Table((), ()))
