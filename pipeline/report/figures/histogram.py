"""Histogram of predictions, with that of another run as a line."""

import itertools
from collections.abc import Sequence

import numpy as np

from .figure import Figure, Plane, Shape, Table, write_path
from .scale import NARROW, make_axis, write_apart, write_number, write_share

HEIGHT = 100  # of the box
BINS = 60
ROWS = 12  # rows of the table


def _steps(heights: np.ndarray) -> str:
    """Return the outline of bars."""
    return "M0 100" + "".join(f"V{HEIGHT - height:.4g}H{i + 1}" for i, height in enumerate(heights)) + f"V{HEIGHT}"


def draw_histogram(edges: np.ndarray, now: np.ndarray, before: np.ndarray | None, names: Sequence[str], text: str) -> Figure:
    """Draw how many rows have which predictions.

    Parameters
    ----------
    edges : (BINS + 1,) float64
        Of bins, ascending.
    now, before : (BINS,) float64
        Shares of the rows of this run, and of the other if there is one.
    names : sequence of str
        What is predicted, what rows are called, its unit, and the name of the other run.
    text : str
        What the figure shows, in a sentence.
    """
    total, rows, unit, reference = names
    largest = max(now.max(initial=0.0), 0.0 if before is None else before.max(initial=0.0)) or 1.0
    bars = write_path(
        [(i, round(HEIGHT * (1 - share / largest), 2), 1.0, round(HEIGHT * share / largest, 2)) for i, share in enumerate(now) if share]
    )
    lines = () if before is None else (Shape("l2", _steps(HEIGHT * before / largest)),)
    across, upright = make_axis((edges[0], edges[-1])), make_axis((0.0, largest), zero=True)
    ends = [*range(0, now.size, -(-now.size // ROWS)), now.size]
    texts = write_apart([float(edges[end]) for end in ends])
    cells = []
    for k, (first, last) in enumerate(itertools.pairwise(ends)):
        shares = [now] if before is None else [before, now]
        cells.append((f"{texts[k]} to {texts[k + 1]}", *(write_share(float(each[first:last].sum())) for each in shares)))
    heads = (total, f"{rows} now") if before is None else (total, f"{rows} before", f"{rows} now")
    plane = Plane(
        now.size,
        HEIGHT,
        (Shape("d3", bars),) if bars else (),
        lines,
        across.ticks(4, NARROW),
        upright.percent(),
        None,
        f"{total}, {unit}" if unit else total,
        f"share of {rows}, %",
        () if before is None else (("l2", reference),),
    )
    return Figure(f"Distribution of the {total}", text, plane, Table(heads, tuple(cells)))


def say_middle(low: float, high: float, unit: str) -> str:
    """Say between what half of the rows lie."""
    return f"half of them between {write_number(low, digits=3)} and {write_number(high, digits=3)}{f' {unit}' if unit else ''}"
