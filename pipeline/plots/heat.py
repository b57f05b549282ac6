"""Heat map of attributions: a line of colours for every feature, over all rows from the lowest prediction to the highest."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..display.text import count
from ..report.figures.figure import Figure, Shape, Strip, Strips, Table, write_path
from ..report.figures.scale import WHOLE, Axis, shorten_names, write_number
from ..report.figures.swarm import SHADES, UNKNOWN

COLUMNS = 120  # of a line
SHARE = 0.02  # of attributions that are beyond the last colours
TENTH = 10


def _average(values: np.ndarray, n: int) -> np.ndarray:
    """Average values ``(rows, players)`` in n columns of about as many rows; NaN where none is known."""
    bounds = np.linspace(0, len(values), n + 1).round().astype(int)
    found = np.full((n, values.shape[1]), np.nan)
    for column, (first, last) in enumerate(pairwise(bounds)):
        known = ~np.isnan(values[first:last])
        sums = np.where(known, values[first:last], 0).sum(axis=0)
        found[column] = np.divide(sums, known.sum(axis=0), out=np.full(values.shape[1], np.nan), where=known.any(axis=0))
    return found


def _shade(value: float, largest: float) -> str:
    if np.isnan(value):
        return UNKNOWN
    return f"v{min(int((value / largest + 1) / 2 * SHADES), SHADES - 1) if value > -largest else 0}"


def _draw_line(label: str, values: np.ndarray, largest: float, text: str) -> Strip:
    shades = [_shade(value, largest) for value in values]
    shapes = []
    for kind in dict.fromkeys(shades):
        runs, start = [], 0
        for end in range(1, len(shades) + 1):
            if end == len(shades) or shades[end] != shades[start]:
                if shades[start] == kind:
                    runs.append((start, -0.9, end - start, 1.8))
                start = end
        shapes.append(Shape(kind, write_path(runs)))
    return Strip(label, tuple(shapes), text)


def draw_heat(names: Sequence[str], phi: np.ndarray, totals: np.ndarray, unit: str) -> Figure:
    """Draw attributions by row and feature."""
    n = min(COLUMNS, len(phi))
    ordered = phi[np.argsort(totals, kind="stable")]
    cells = _average(ordered, n)
    known = np.abs(cells[~np.isnan(cells)])
    largest = float(np.quantile(known, 1 - SHARE)) if known.size else 0.0
    largest = largest or float(known.max(initial=0.0)) or 1.0
    lines = tuple(_draw_line(name, cells[:, j], largest, "") for j, name in enumerate(shorten_names(names)))
    ends = _average(ordered, min(TENTH, len(phi)))
    rows = tuple(
        (name, *(write_number(float(each), signed=True) for each in (ends[0, j], ends[-1, j]))) for j, name in enumerate(shorten_names(names, WHOLE))
    )
    mean = f"each column is the mean of about {count(round(len(phi) / n), 'row')}" if len(phi) > n else "each column is a row"
    size = write_number(largest, digits=2)
    return Figure(
        "How rows come to their predictions",
        f"Attributions by colour, rows from the lowest {unit} on the left to the highest on the right; {mean}.",
        Strips(
            lines,
            n,
            Axis(0, len(phi)).ticks(),
            None,
            f"rows, by {unit}",
            coloured=True,
            shades=(f"−{size}", f"+{size}", "label missing" if np.isnan(cells).any() else ""),
        ),
        Table(("feature", "lowest tenth, mean", "highest tenth, mean"), rows),
    )
