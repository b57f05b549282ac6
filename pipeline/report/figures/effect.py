"""Effect of a feature: what the model predicts on average as it changes, with the histogram of the background's values."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .dependence import CATEGORY, GAP, ROWS
from .figure import Figure, Mark, Plane, Shape, Table, Track, Tracks, write_path
from .scale import NARROW, WHOLE, Tick, make_axis, shorten_names, write_number, write_share

HEIGHT, WIDTH = 40, 100  # of the box
BARS = 8  # height of the histogram
THIN = 0.5  # width of its thinnest bar: an interval may hold one value alone
ERRORS = 2  # standard errors to either side
HEADS = ("value", "rows", "mean", "standard error")
SAID = "Mean of the model with the feature set to each value and everything else as in the background{bars}: of the model, not of the world."
Row = Mapping[str, Any]


def _error(row: Row) -> float:
    return row["standard_error"] or 0.0


def _name(row: Row) -> str:
    """Name a state that is no interval."""
    return row["category"] if row["category"] is not None else "other" if row["kind"] == "other" else "missing"


def _tabulate(rows: Sequence[Row], names: Sequence[str]) -> Table:
    cells = []
    for name, row in zip(names, rows, strict=True):
        cells.append((name, write_share(row["share"]), write_number(row["value"]), write_number(row["standard_error"])))
    return Table(HEADS, tuple(cells))


def _draw_numbers(name: str, rows: Sequence[Row], ends: tuple[float, float] | None, unit: str) -> Figure:
    steps, lacking = [row for row in rows if row["kind"] == "interval"], [row for row in rows if row["kind"] == "missing" and row["share"]]
    inner = ends or tuple(find(row[end] for row in steps if math.isfinite(row[end])) for find, end in ((min, "upper"), (max, "lower")))
    room = (inner[1] - inner[0]) / 20 if ends is None else 0.0
    across = make_axis((inner[0] - room, inner[1] + room))
    seen = [row for row in steps if row["lower"] < across.high and row["upper"] > across.low]
    own = make_axis(row["value"] for row in (*seen, *lacking))
    offset, largest = (GAP if lacking else 0), max(row["share"] or 0.0 for row in (*steps, *lacking))
    heights = {id(row): round((HEIGHT - BARS) * (1 - own.at(row["value"]) / 100) + 0.5, 2) for row in (*seen, *lacking)}
    bars, path, mean = list[tuple[float, float, float]](), list[str](), ""
    for row in seen:
        low, high = (round(offset + across.at(row[end]) / 100 * (WIDTH - offset), 2) for end in ("lower", "upper"))
        if high > low:
            path.append(f"{'L' if path else 'M'}{low:g} {heights[id(row)]:g}H{high:g}")
        if row["share"]:
            bars.append((low, max(high, low + THIN), row["share"] / max(high - low, THIN)))
    tallest, runs = max((height for _, _, height in bars), default=0.0), []
    for low, high, part in bars:
        tall = round(BARS * part / tallest, 2)
        runs.append((low, round(HEIGHT - tall, 2), round(high - low, 2), tall))
    for row in lacking:
        tall = round(BARS * row["share"] / largest, 2)
        mean += f"M0 {heights[id(row)]:g}H{GAP / 2:g}"
        runs.append((0.0, HEIGHT - tall, GAP / 2, tall))
    shapes = (Shape("d2", write_path(runs)),) if runs else ()
    ticks = [Tick(round(offset + tick.at / 100 * (WIDTH - offset), 2), tick.text, tick.side) for tick in across.ticks(4, NARROW)]
    if lacking:
        ticks = [Tick(0, "none", "start"), *(tick for tick in ticks if tick.at > 22)]
    upright = tuple(Tick(round(BARS / HEIGHT * 100 + tick.at * (1 - BARS / HEIGHT), 2), tick.text, tick.side) for tick in own.ticks(4))
    plane = Plane(
        WIDTH,
        HEIGHT,
        shapes,
        (Shape("mean", mean + "".join(path)),),
        tuple(ticks),
        upright,
        None,
        f"value of {name}",
        f"mean, {unit}",
    )
    shown = [steps[k] for k in sorted({round(k) for k in np.linspace(0, len(steps) - 1, min(ROWS, len(steps)))})]
    names = [f"above {write_number(row['lower'])} to {write_number(row['upper'])}" for row in shown] + ["missing"] * len(lacking)
    said = SAID.format(bars="; the bars are where its values lie")
    return Figure(f"Effect of {name}", said, plane, _tabulate([*shown, *lacking], names), small=True)


def _draw_categories(name: str, rows: Sequence[Row], unit: str) -> Figure:
    kept = sorted((row for row in rows if row["share"] or row["share"] is None), key=lambda row: -row["value"])
    left = sorted(sorted(kept, key=lambda row: -(row["share"] or 0.0))[:ROWS], key=lambda row: -row["value"])
    axis = make_axis(row["value"] + side * ERRORS * _error(row) for row in left for side in (-1, 1))
    names, tracks = [_name(row) for row in left], []
    for text, row in zip(shorten_names(names, CATEGORY), left, strict=True):
        whisker = axis.at(row["value"] - ERRORS * _error(row)), axis.at(row["value"] + ERRORS * _error(row))
        tracks.append(Track(text, (Mark(axis.at(row["value"]), 0.4, "box"),), (whisker,), (axis.at(row["value"]),), write_share(row["share"])))
    drawing = Tracks(tuple(tracks), axis.ticks(4, NARROW), axis.at(0) if axis.low <= 0 <= axis.high else None, f"mean, {unit}")
    said = SAID.format(bars=", with two standard errors to either side")
    return Figure(f"Effect of {name}", said, drawing, _tabulate(left, shorten_names(names, WHOLE)), small=True)


def draw_effect(name: str, rows: Sequence[Row], ends: tuple[float, float] | None, unit: str) -> Figure | None:
    """Draw a feature's effect.

    Parameters
    ----------
    name : str
        Of the feature, as it is written.
    rows : sequence of mapping
        Of ``curves.parquet``, of one feature and output.
    ends : (float, float) or None
        Of the axis of values that its attributions are drawn on.
    unit : str
        Of the curve.

    Returns
    -------
    Figure or None
        None where the curve is flat.
    """
    if len({row["value"] for row in rows}) < 2:
        return None
    if not any(row["kind"] == "interval" and (math.isfinite(row["lower"]) or math.isfinite(row["upper"])) for row in rows):
        return _draw_categories(name, rows, unit)
    return _draw_numbers(name, rows, ends, unit)
