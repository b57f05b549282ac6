"""A feature's attributions against its value, coloured by another feature: by its height, or with a line for each of its categories."""

import numpy as np

from ..errors import UsageError
from ..report.figures.figure import Figure, Plane, Shape, Table, write_path
from ..report.figures.scale import WHOLE, Axis, Tick, shorten_name, write_number
from ..report.figures.swarm import UNKNOWN, shade
from .material import find_ends, is_number

SIDE = 36  # cells of a plane either way
GAP = 4  # columns of missing values, two of them empty
LINES = ("mean", "l1", "l2")  # kinds of lines, of the largest categories
VALUES, PHI = 0.01, 0.002  # shares beyond either end of the axes
PLAIN = "d2"  # colour of cells that say only that there are rows
CATEGORY = 18  # characters of a category's name


def _place(numbers: np.ndarray, ends: tuple[float, float]) -> np.ndarray:
    """Return the cell of every number, -1 beyond the ends."""
    low, high = ends
    with np.errstate(invalid="ignore"):
        inside = (numbers >= low) & (numbers <= high)
    return np.where(inside, np.clip(np.floor((np.where(inside, numbers, low) - low) / (high - low) * SIDE), 0, SIDE - 1), -1).astype(np.int64)


def _rank(values: np.ndarray) -> np.ndarray:
    """Return the percentile of every value, the middle of those that are equal; NaN where it is missing."""
    known = ~np.isnan(values)
    found = np.full(values.size, np.nan)
    if known.any():
        distinct, number, counts = np.unique(values[known], return_inverse=True, return_counts=True)
        found[known] = ((np.cumsum(counts) - counts / 2) / known.sum())[number]
        found[known] = 0.5 if distinct.size == 1 else found[known]
    return found


def _draw_cells(columns: np.ndarray, rows: np.ndarray, height: np.ndarray | None) -> tuple[Shape, ...]:
    """Draw cells in the colour of the mean percentile of their rows."""
    runs: dict[str, list[tuple[float, float, float, float]]] = {}
    inside = (columns >= 0) & (rows >= 0)
    cell = columns * SIDE + rows
    for place in np.unique(cell[inside]).tolist():
        known = np.zeros(0) if height is None else height[inside & (cell == place)]
        known = known[~np.isnan(known)]
        kind = PLAIN if height is None else shade(float(known.mean())) if known.size else UNKNOWN
        runs.setdefault(kind, []).append((place // SIDE, SIDE - 1 - place % SIDE, 1, 1))
    return tuple(Shape(kind, write_path(pieces)) for kind, pieces in sorted(runs.items()))


def _draw_mean(columns: np.ndarray, phi: np.ndarray, axis: Axis) -> str:
    """Draw the mean of every column, across empty ones."""
    path: list[str] = []
    for column in np.unique(columns[columns >= 0]).tolist():
        y = SIDE * (1 - axis.at(float(phi[columns == column].mean())) / 100)
        path.append(f"{'L' if path else 'M'}{column + 0.5:g} {y:.2f}")
    return "".join(path)


def draw_coloured(name: str, values: np.ndarray, phi: np.ndarray, other: str, colour: np.ndarray, unit: str) -> Figure:
    """Draw attributions against a feature's numbers, with another one's values as colours; NaN, or None among texts, where missing."""
    if not is_number(values):
        raise UsageError(f"color is {shorten_name(other)!r}, but colours are for features with numbers, and {shorten_name(name)!r} has categories")
    there = ~np.isnan(phi)
    values, phi, colour = values[there], phi[there], colour[there]
    ends, own = find_ends(values, VALUES), find_ends(phi, PHI)
    lacking, axis = np.isnan(values), Axis(*own)
    offset = GAP if lacking.any() else 0
    columns, rows = _place(values, ends), _place(phi, own)
    columns = np.where(columns >= 0, columns + offset, np.where(lacking, 0, -1))
    numbers = is_number(colour)
    shapes = _draw_cells(columns, rows, _rank(colour) if numbers else None)
    groups: list[tuple[str, np.ndarray]] = []
    if numbers:
        middle = float(np.nanmedian(colour)) if not np.isnan(colour).all() else 0.0
        groups = [(f"{other} up to {write_number(middle)}", colour <= middle), (f"{other} above", colour > middle)]
    else:
        texts = np.array(["missing" if each is None else str(each) for each in colour], object)
        found, counts = np.unique(texts.astype(str), return_counts=True)
        groups = [(str(each), texts == each) for each in found[np.argsort(-counts, kind="stable")][: len(LINES)]]
    kinds = () if numbers else tuple(zip(LINES, (shorten_name(text, CATEGORY) for text, _ in groups), strict=False))
    inner = columns >= offset if offset else columns >= 0
    drawn = (
        ()
        if numbers
        else tuple(
            Shape(kind, _draw_mean(np.where(rows_of & inner, columns, -1), phi, axis)) for kind, (_, rows_of) in zip(LINES, groups, strict=False)
        )
    )
    width = SIDE + offset
    ticks = tuple(Tick(round((offset + tick.at / 100 * SIDE) / width * 100, 2), tick.text, tick.side) for tick in Axis(*ends).ticks(4))
    ticks = (Tick(0, "none", "start"), *(tick for tick in ticks if tick.at > 16)) if offset else ticks
    says = (
        "the mean height of its values among all rows" if numbers else f"the mean of its {'largest ' if len(kinds) == len(LINES) else ''}categories"
    )
    cells = tuple(
        (
            text,
            f"{int(rows_of.sum()):,}",
            *(write_number(float(phi[rows_of & some].mean()) if (rows_of & some).any() else None, signed=True) for some in _thirds(values)),
        )
        for text, rows_of in ((shorten_name(text, WHOLE), each) for text, each in groups)
    )
    return Figure(
        f"How {name} acts with {other}",
        f"Attribution against value. {'Colours are' if numbers else 'Lines are'} {says}."
        + (" The strip on the left is of rows without a value." if offset else ""),
        Plane(
            width,
            SIDE,
            shapes,
            drawn,
            ticks,
            axis.ticks(4),
            axis.at(0) if axis.low <= 0 <= axis.high else None,
            f"value of {name}",
            f"attribution, {unit}",
            kinds,
            shades=("low value", f"high value of {shorten_name(other, CATEGORY)}", "missing") if numbers else (),
        ),
        Table((other, "rows", f"mean attribution at low {name}", f"at high {name}"), cells),
    )


def _thirds(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows have values in the lowest and in the highest third."""
    known = values[~np.isnan(values)]
    low, high = np.quantile(known, (1 / 3, 2 / 3)) if known.size else (0.0, 0.0)
    return values <= low, values >= high
