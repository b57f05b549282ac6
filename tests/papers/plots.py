"""Figures as pictures: a line for every column against the first label, as SVG that is the same whenever it is drawn by the same Matplotlib."""

import io
import re

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas

from tests.papers.figures import Figure

STYLE = {"svg.fonttype": "none", "svg.hashsalt": "papers", "font.size": 9, "font.family": "sans-serif"}
SIZE = (7.2, 3.6)  # inches
MARKERS = "osv^D<>pPX*"
LOWEST = 1e-17  # where an error of 0 is drawn


def draw_plot(figure: Figure) -> str:
    """``figure.plot`` names what the numbers are; both axes are logarithmic where ``figure.plot`` starts with "log-log: ", else the vertical one."""
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=SIZE, layout="constrained")
        axes = canvas.add_subplot()
        columns = list(dict.fromkeys(name for line in figure.lines for name in line.numbers))
        for k, column in enumerate(columns):
            found = figure.column(column)
            y = np.array([number if number < np.inf else np.nan for number in found.values()])
            if "error" in figure.plot:
                y = np.maximum(y, LOWEST)
            dashed = "--" if "ours" not in column else "-"
            axes.plot(list(found), y, dashed, label=column, marker=MARKERS[k % len(MARKERS)], markersize=4, linewidth=1.2)
        both, _, label = figure.plot.rpartition(": ")
        axes.set_yscale("log")
        if both:
            axes.set_xscale("log")
        axes.set_xlabel(figure.headings[0])
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        canvas.legend(loc="outside right upper", fontsize=8)
        found = io.StringIO()
        canvas.savefig(found, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r"[ \t]+\n", "\n", found.getvalue())
