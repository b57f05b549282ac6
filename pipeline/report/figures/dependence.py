"""Dependence of a feature's attributions on its value: a heat map for numbers, boxes for categories."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ...finished.names import UNNAMED, Names
from ..counts.counts import BELOW, MISSING, PHI, TAIL, CountedColumn, Counts, Values
from .figure import Figure, Mark, Plane, Shape, Table, Track, Tracks, write_path
from .scale import NARROW, WHOLE, Axis, Tick, make_axis, shorten_names, write_apart, write_number
from .spread import Spread, find_spread

LEVELS = 6  # levels of darkness
ROWS = 12  # rows of a table
GAP = 4  # columns of missing values, two of them empty
CATEGORY = 24  # characters of a category's name
FEW = 30  # rows of a value below which its mean is not told
APART = 22  # percent of the axis from which numbers do not run into "none"


def _describe(name: str, spread: Spread) -> tuple[str, ...]:
    """Return a table row: number of rows, mean attribution, and central range."""
    low, high = (spread.quantile(q) for q in (0.05, 0.95))
    return (name, f"{spread.n:,}", *(write_number(each, signed=True) for each in (low, spread.mean, high)))


def _choose_cells(edges: Sequence[float], means: np.ndarray) -> slice:
    """Return the range of attribution bins: the feature's own axis, extended to hold every mean."""
    low, high = np.nanmin([edges[TAIL], *means]), np.nanmax([edges[TAIL + PHI], *means])
    return slice(max(int(np.searchsorted(edges, low, "right")) - 1, 0), int(np.searchsorted(edges, high)))


def _heights(edges: Sequence[float], axis: Axis) -> list[float]:
    """Return the vertical positions of attributions, from above."""
    return [round(PHI * (1 - axis.at(edge) / 100), 2) for edge in edges]


def _fields(cells: np.ndarray, largest: int, heights: Sequence[float], offset: int, wide: int = 1) -> tuple[Shape, ...]:
    """Return cells of a plane, equal neighbours of a column joined; darkness relative to the largest count."""
    if not largest:
        return ()
    levels = np.ceil(LEVELS * np.cbrt(cells / largest)).astype(int)
    runs: dict[int, list[tuple[float, float, float, float]]] = {}
    for column, bins in enumerate(levels):
        start = 0
        for end in range(1, bins.size + 1):
            if end == bins.size or bins[end] != bins[start]:
                if bins[start]:
                    tall = round(heights[start] - heights[end], 2)
                    runs.setdefault(int(bins[start]), []).append((offset + column, heights[end], wide, tall))
                start = end
    return tuple(Shape(f"d{level}", write_path(pieces)) for level, pieces in sorted(runs.items()))


def _line(means: np.ndarray, axis: Axis, offset: int) -> str:
    """Return the path through the means of columns, across empty ones: whole numbers leave every other column empty."""
    points = [f"{offset + column + 0.5:g} {_heights([mean], axis)[0]:g}" for column, mean in enumerate(means) if not math.isnan(mean)]
    return f"M{'L'.join(points)}{'h0.01' * (len(points) == 1)}"  # makes a single point visible


def _head(words: Names) -> tuple[str, ...]:
    return ("value", words.rows, "5 %", "mean attribution", "95 %")


def _list_ranges(asked: CountedColumn, values: Values, counts: Counts) -> list[tuple[str, Spread]]:
    """List ranges of numbers with their rows."""
    n = len(values.edges) - 1
    ends = [*range(0, n, -(-n // ROWS)), n]
    texts = write_apart([values.edges[end] for end in ends])
    found = [(f"below {texts[0]}", slice(BELOW, BELOW + 1))]
    for (first, last), (lower, upper) in zip(pairwise(ends), pairwise(texts), strict=True):
        found.append((f"{lower} to {upper}", slice(BELOW + 1 + first, BELOW + 1 + last)))
    found.append((f"above {texts[-1]}", slice(-1, None)))
    return [(name, spread) for name, spread in ((name, find_spread(asked, counts, bins)) for name, bins in found) if spread.n]


def _place_numbers(across: Axis, offset: int, width: int) -> tuple[Tick, ...]:
    """Return the ticks of the horizontal axis, more of them where "none" takes the place of all but one."""
    for n in (4, 8):
        found = [Tick(round((offset + tick.at / 100 * (width - offset)) / width * 100, 2), tick.text, tick.side) for tick in across.ticks(n, NARROW)]
        if not offset:
            return tuple(found)
        kept = [tick for tick in found if tick.at > APART]
        if len(kept) > 1:
            break
    return (Tick(0, "none", "start"), *kept)


def _draw_numbers(name: str, asked: CountedColumn, values: Values, counts: Counts, unit: str, of_values: str, words: Names) -> Figure:
    means = np.array([find_spread(asked, counts, slice(at, at + 1)).mean for at in range(values.n_bins)])
    seen = [MISSING, *range(BELOW + 1, values.n_bins - 1)]
    cells = _choose_cells(asked.own, means[seen])
    edges = asked.own[cells.start : cells.stop + 1]
    inner, lacking = counts.own[BELOW + 1 : -1, cells], counts.own[MISSING : MISSING + 1, cells]
    has_missing = bool(counts.own[MISSING].sum())
    offset = GAP if has_missing else 0
    width = inner.shape[0] + offset
    own, across = Axis(edges[0], edges[-1]), Axis(values.edges[0], values.edges[-1])
    heights = _heights(edges, own)
    largest = max(inner.max(initial=0), lacking.max(initial=0))
    shapes = _fields(inner, largest, heights, offset) + _fields(lacking, largest, heights, 0, GAP // 2)
    beyond = int(counts.own.sum() - inner.sum() - lacking.sum())
    said = f" {words.count(beyond)} {'is' if beyond == 1 else 'are'} outside the picture." if beyond else ""
    ranges, missing = _list_ranges(asked, values, counts), find_spread(asked, counts, slice(MISSING, MISSING + 1))
    if has_missing:
        said += f" On the left, {words.count(missing.n)} without a value: mean {write_number(missing.mean, True, 3)}."
    plane = Plane(
        width,
        PHI,
        shapes,
        (Shape("mean", _line(means[BELOW + 1 : -1], own, offset)),),
        _place_numbers(across, offset, width),
        own.ticks(4),
        own.at(0) if own.low <= 0 <= own.high else None,
        f"value of {name}{f', {of_values}' if of_values else ''}",
        f"attribution, {unit}",
        (("mean", "mean attribution"),),
    )
    title = f"How {name} acts"
    description = f"Attribution by value: the stronger the colour, the more {words.rows}; the line is their mean.{_say_means(ranges)}{said}"
    listed = [*ranges, ("missing", missing)] if has_missing else ranges
    return Figure(title, description, plane, Table(_head(words), tuple(_describe(text, spread) for text, spread in listed)), small=True)


def _unlike(text: str, names: Sequence[str]) -> str:
    """Return a description of rows that is no value's name."""
    return _unlike(f"({text})", names) if text in names else text


def _list_boxes(asked: CountedColumn, values: Values, counts: Counts) -> list[tuple[str, Spread]]:
    """List values with their rows: numbers in order, categories by mean attribution."""
    if values.ordered:
        bins = [(text, slice(at, at + 1)) for at, text in enumerate(write_apart(values.points), BELOW + 1)]
    else:
        bins = [(text, slice(at, at + 1)) for at, text in enumerate((*values.categories, _unlike("all others", values.categories)), MISSING + 1)]
    found = [(text, find_spread(asked, counts, each)) for text, each in bins]
    kept = [(text, spread) for text, spread in found if spread.n]
    if not values.ordered:
        kept.sort(key=lambda pair: -pair[1].mean)
    missing = find_spread(asked, counts, slice(MISSING, MISSING + 1))
    return kept + ([(_unlike("missing", values.categories), missing)] if missing.n else [])


def _draw_boxes(name: str, asked: CountedColumn, values: Values, counts: Counts, unit: str, words: Names) -> Figure:
    kept = _list_boxes(asked, values, counts)
    axis = make_axis(spread.quantile(q) for _, spread in kept for q in (0.05, 0.95))
    tracks, names = [], [text for text, _ in kept]
    for text, (_, spread) in zip(shorten_names(names, CATEGORY), kept, strict=True):
        low, first, half, third, high = (axis.at(spread.quantile(q)) for q in (0.05, 0.25, 0.5, 0.75, 0.95))
        box = Mark(first, max(round(third - first, 2), 0.4), "box")
        tracks.append(Track(text, (box,), ((low, high),), (half,), f"{spread.n:,}"))
    rows = words.rows
    return Figure(
        f"How {name} acts",
        f"Attribution by value. Box: middle half of a value's {rows}; thin line: 90%; black line: median; number: {rows}.{_say_means(kept)}",
        Tracks(tuple(tracks), axis.ticks(4, NARROW), axis.at(0) if axis.low <= 0 <= axis.high else None, f"attribution, {unit}"),
        Table(_head(words), tuple(_describe(text, spread) for text, (_, spread) in zip(shorten_names(names, WHOLE), kept, strict=True))),
        small=True,
    )


def _say_means(kept: Sequence[tuple[str, Spread]]) -> str:
    """Name the values of the table with the highest and the lowest mean, of those that are not rare."""
    usual = [pair for pair in kept if pair[1].n >= FEW]
    if len(usual) < 2:
        return ""
    high, low = (choose(usual, key=lambda pair: pair[1].mean) for choose in (max, min))
    said = (f"{write_number(spread.mean, True, 3)} ({shorten_names([text], CATEGORY)[0]})" for text, spread in (high, low))
    return " Highest mean: {}; lowest: {}.".format(*said)


def draw_dependence(name: str, asked: CountedColumn, counts: Counts, unit: str, of_values: str = "", words: Names = UNNAMED) -> Figure | None:
    """Draw a feature's attributions against its value.

    Parameters
    ----------
    name : str
        Of the feature, as it is written.
    unit : str
        Of attributions,
    of_values : str
        and of the feature's values, if known.
    words : Names
        What rows are called.

    Returns
    -------
    Figure or None
        None where no values are kept, or all rows have the same.
    """
    if asked.values is None or (counts.own.sum(axis=1) > 0).sum() < 2:
        return None
    if asked.values.ordered and not asked.values.points:
        return _draw_numbers(name, asked, asked.values, counts, unit, of_values, words)
    return _draw_boxes(name, asked, asked.values, counts, unit, words)
