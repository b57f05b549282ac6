"""How a feature's attributions depend on its value: a field of counted rows for numbers, boxes for categories."""

import math

import numpy as np

from .counting import BELOW, MISSING, PHI, Counted, Counts, Values
from .figure import Figure, Mark, Plane, Shape, Table, Track, Tracks, write_path
from .scale import NARROW, Axis, Tick, shorten_name, write_number
from .swarm import find_quantile

LEVELS = 6  # of darkness
ROWS = 12  # of a table
GAP = 4  # columns that missing values take, of which two are empty
CATEGORY = 24  # characters of a category's name


def middles(own: tuple[float, float]) -> np.ndarray:
    """Find the middles of bins of attributions.

    Parameters
    ----------
    own : (float, float)
        Ends of the feature's own axis.

    Returns
    -------
    (PHI + 2,) float64
        The ends themselves for what lies beyond.
    """
    low, high = own
    edges = np.linspace(low, high, PHI + 1)
    return np.concatenate([[low], (edges[1:] + edges[:-1]) / 2, [high]])


def _mean(cells: np.ndarray, middle: np.ndarray) -> float:
    return float(cells @ middle / cells.sum()) if cells.sum() else math.nan


def _describe(name: str, cells: np.ndarray, own: tuple[float, float]) -> tuple[str, ...]:
    """A row of a table: how many rows, their mean attribution, and where most of them lie."""
    low, high = (find_quantile(cells, *own, q) for q in (0.05, 0.95))
    mean = _mean(cells, middles(own))
    return (name, f"{int(cells.sum()):,}", *(write_number(each, signed=True) for each in (low, mean, high)))


def _fields(cells: np.ndarray, offset: int) -> tuple[Shape, ...]:
    """Cells of a plane, each column's joined where they are equally dark."""
    largest = cells.max(initial=0)
    if not largest:
        return ()
    levels = np.ceil(LEVELS * np.cbrt(cells / largest)).astype(int)
    runs: dict[int, list[tuple[float, float, float, float]]] = {}
    for column, bins in enumerate(levels):
        start = 0
        for end in range(1, PHI + 1):
            if end == PHI or bins[end] != bins[start]:
                if bins[start]:
                    runs.setdefault(int(bins[start]), []).append((offset + column, PHI - end, 1, end - start))
                start = end
    return tuple(Shape(f"d{level}", write_path(pieces)) for level, pieces in sorted(runs.items()))


def _line(means: np.ndarray, own: Axis, offset: int) -> str:
    """Through the means of columns, broken where there are no rows."""
    path, drawing = [], False
    for column, mean in enumerate(means):
        if math.isnan(mean):
            drawing = False
            continue
        path.append(f"{'L' if drawing else 'M'}{offset + column + 0.5:g} {round(PHI * (1 - own.at(mean) / 100), 2):g}")
        if not drawing:
            path.append("h0.01")  # so that a single point is seen
        drawing = True
    return "".join(path)


def _tabulate(values: Values, counts: Counts, own: tuple[float, float]) -> Table:
    rows, edges, n = [], values.edges, len(values.edges) - 1
    each = -(-n // ROWS)
    cells = counts.own
    if cells[BELOW].sum():
        rows.append(_describe(f"below {write_number(edges[0])}", cells[BELOW], own))
    for first in range(0, n, each):
        last = min(first + each, n)
        some = cells[BELOW + 1 + first : BELOW + 1 + last].sum(axis=0)
        if some.sum():
            rows.append(_describe(f"{write_number(edges[first])} to {write_number(edges[last])}", some, own))
    if cells[-1].sum():
        rows.append(_describe(f"{write_number(edges[-1])} or more", cells[-1], own))
    if cells[MISSING].sum():
        rows.append(_describe("missing", cells[MISSING], own))
    return Table(("value", "rows", "5 %", "mean attribution", "95 %"), tuple(rows))


def _draw_numbers(name: str, asked: Counted, values: Values, counts: Counts, unit: str) -> Figure:
    inner = counts.own[BELOW + 1 : -1, 1:-1]
    has_missing = bool(counts.own[MISSING].sum())
    offset = GAP if has_missing else 0
    width = inner.shape[0] + offset
    middle, own, across = middles(asked.own), Axis(*asked.own), Axis(values.edges[0], values.edges[-1])
    shapes = list(_fields(inner, offset))
    if has_missing:
        lacking = np.ceil(LEVELS * np.cbrt(counts.own[MISSING, 1:-1] / counts.own[MISSING].max())).astype(int)
        shapes += [Shape(f"d{level}", write_path([(0, PHI - 1 - bin_, 2, 1)])) for bin_, level in enumerate(lacking.tolist()) if level]
    means = np.array([_mean(cells, middle) for cells in counts.own[BELOW + 1 : -1]])
    ticks = tuple(Tick(round((offset + tick.at / 100 * inner.shape[0]) / width * 100, 2), tick.text, tick.side) for tick in across.ticks(4, NARROW))
    ticks = tuple(tick for tick in ticks if not has_missing or tick.at > 22)
    if has_missing:
        ticks = (Tick(0, "none", "start"), *ticks)
    beyond = int(counts.own[BELOW].sum() + counts.own[-1].sum())
    said = f" {beyond:,} rows lie outside the field." if beyond else ""
    said += " The strip on the left is of rows without a value." if has_missing else ""
    plane = Plane(
        width,
        PHI,
        tuple(shapes),
        (Shape("mean", _line(means, own, offset)),),
        ticks,
        own.ticks(4),
        own.at(0) if asked.own[0] <= 0 <= asked.own[1] else None,
        f"value of {shorten_name(name, 32)}",
        f"attribution, {unit}",
        (("mean", "mean attribution"),),
    )
    title = f"How {shorten_name(name)} acts"
    description = f"Attribution against value: the darker, the more rows; the line is their mean.{said}"
    return Figure(title, description, plane, _tabulate(values, counts, asked.own), small=True)


def _list_boxes(asked: Counted, values: Values, counts: Counts) -> list[tuple[str, np.ndarray]]:
    """Names of values and their rows: numbers in their order, categories by their mean attributions."""
    if values.ordered:
        kept = [(write_number(point), cells) for point, cells in zip(values.points, counts.own[BELOW + 1 : -1], strict=True) if cells.sum()]
    else:
        middle = middles(asked.own)
        kept = [(text, cells) for text, cells in zip(values.categories, counts.own[1:-1], strict=True) if cells.sum()]
        kept += [("all others", counts.own[-1])] if counts.own[-1].sum() else []
        kept.sort(key=lambda pair: -_mean(pair[1], middle))
    return kept + ([("missing", counts.own[MISSING])] if counts.own[MISSING].sum() else [])


def _draw_boxes(name: str, asked: Counted, values: Values, counts: Counts, unit: str) -> Figure:
    kept = _list_boxes(asked, values, counts)
    axis = Axis(*asked.own)
    tracks = []
    for text, cells in kept:
        low, first, half, third, high = (axis.at(find_quantile(cells, *asked.own, q)) for q in (0.05, 0.25, 0.5, 0.75, 0.95))
        box = Mark(first, max(round(third - first, 2), 0.4), "box")
        tracks.append(Track(shorten_name(text, CATEGORY), (box,), ((low, high),), (half,), f"{int(cells.sum()):,}"))
    return Figure(
        f"How {shorten_name(name)} acts",
        "Attribution by value: a box holds half of the rows that have it, its whiskers nine tenths; the upright line is their median, the number how "
        "many they are.",
        Tracks(tuple(tracks), axis.ticks(4, NARROW), axis.at(0) if asked.own[0] <= 0 <= asked.own[1] else None, f"attribution, {unit}"),
        Table(("value", "rows", "5 %", "mean attribution", "95 %"), tuple(_describe(shorten_name(text), cells, asked.own) for text, cells in kept)),
        small=True,
    )


def draw_dependence(name: str, asked: Counted, counts: Counts, unit: str) -> Figure | None:
    """Draw a feature's attributions against its value.

    Parameters
    ----------
    name : str
        Of the feature.
    asked : Counted
    counts : Counts
    unit : str
        Of attributions.

    Returns
    -------
    Figure or None
        None where no values are kept, or all rows have the same.
    """
    if asked.values is None or (counts.own.sum(axis=1) > 0).sum() < 2:
        return None
    draw = _draw_numbers if asked.values.ordered and not asked.values.points else _draw_boxes
    return draw(name, asked, asked.values, counts, unit)
