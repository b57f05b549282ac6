"""Beeswarm of every feature's attributions, drawn from counts and coloured by feature value."""

from collections.abc import Sequence

import numpy as np

from ...display.text import count
from ...finished.names import UNNAMED, Names
from ..counts.counts import MISSING, RANKS, SWARM, CountedColumn, Counts, percentiles_of
from .figure import Figure, Shape, Strip, Strips, Table, say_moved, write_path
from .scale import WHOLE, Axis, shorten_names, write_number

SHADES = 9  # colours from low to high values
UNKNOWN = "unknown"
RANKED = "Rank correlations are Spearman's, of {0} in {1} cells of about as many {0} each, and rounded: they may be off by 0.01."
THIN = 0.045  # minimal half height of a bin, to stay visible


def shade(percentile: float) -> str:
    """Choose the colour class of a percentile."""
    return UNKNOWN if np.isnan(percentile) else f"v{min(int(percentile * SHADES), SHADES - 1)}"


def colour_bins(counts: Counts, coloured: bool) -> np.ndarray:
    """Average the percentiles of values in every bin of attributions."""
    inner = counts.swarm[1:-1]
    if not coloured:
        return np.full(SWARM, np.nan)
    height = percentiles_of(counts.swarm.sum(axis=0))
    known = inner.copy()
    known[:, MISSING] = 0
    with np.errstate(invalid="ignore", divide="ignore"):
        return (known * np.nan_to_num(height)).sum(axis=1) / known.sum(axis=1)


def _draw_strip(label: str, counts: Counts, coloured: bool) -> Strip:
    rows = counts.swarm[1:-1].sum(axis=1)
    largest = rows.max(initial=0)
    heights = np.where(rows > 0, np.maximum(THIN, 0.94 * np.sqrt(rows / max(largest, 1))), 0).round(3)
    shades = [shade(each) for each in colour_bins(counts, coloured)]
    shapes = []
    for kind in dict.fromkeys(shades):
        runs = [(i, -heights[i], 1.04, 2 * heights[i]) for i in range(SWARM) if shades[i] == kind and rows[i]]
        if runs:
            shapes.append(Shape(kind, write_path(runs)))
    return Strip(label, tuple(shapes))


def correlate_ranks(ranks: np.ndarray) -> float:
    """Correlate the mean ranks of cells, Spearman's correlation of the rows; NaN where there is one cell of either."""
    cells = ranks.astype(np.float64)
    total, sides = cells.sum(), (cells.sum(axis=1), cells.sum(axis=0))
    if not total:
        return np.nan
    across, upright = ((np.cumsum(each) - each / 2) / total - 0.5 for each in sides)
    spread = np.sqrt((sides[0] * across**2).sum() * (sides[1] * upright**2).sum())
    return float(across @ cells @ upright / spread) if spread > 0 else np.nan


def _direction(counts: Counts) -> str:
    found = correlate_ranks(counts.ranks)
    return "–" if np.isnan(found) else write_number(round(found, 2) + 0.0, signed=True)


def _say_widest(names: Sequence[str], asked: Sequence[CountedColumn]) -> str:
    """Name the feature whose attributions differ most, and between what nine tenths of them lie."""
    apart = [each.quantiles[-1] - each.quantiles[0] for each in asked]
    if not apart or np.isnan(apart).all():
        return ""
    widest = int(np.nanargmax(apart))
    low, *_, high = asked[widest].quantiles
    ends = f"{write_number(low, True, 3)} to {write_number(high, True, 3)}"
    return f" The widest is {shorten_names(names)[widest]}: nine tenths of it lie from {ends}."


def draw_swarm(names: Sequence[str], asked: Sequence[CountedColumn], counts: Sequence[Counts], unit: str, words: Names = UNNAMED) -> Figure:
    """Draw the distributions of attributions, one below the other.

    Parameters
    ----------
    names : sequence of str
        Of the features or groups.
    asked : sequence of CountedColumn
        Of each, on one axis.
    counts : sequence of Counts
        Of each.
    unit : str
        Of attributions.
    words : Names
        What rows are called.
    """
    low, high = asked[0].shared
    axis = Axis(low, high)
    ordered = [each.values is not None and each.values.ordered for each in asked]
    strips = tuple(_draw_strip(name, each, colour) for name, each, colour in zip(shorten_names(names), counts, ordered, strict=True))
    rows = []
    for name, each, found in zip(shorten_names(names, WHOLE), asked, counts, strict=True):
        quantiles = (write_number(quantile, signed=True) for quantile in each.quantiles)
        beyond = int(found.swarm[0].sum() + found.swarm[-1].sum())
        rows.append((name, *quantiles, _direction(found), f"{beyond:,}"))
    any_colour = any(ordered)
    lacking = list(dict.fromkeys(each.lacking for each in asked if each.lacking))
    said = "Orange: high values of the feature, blue: low ones, grey: categories or missing. " if any_colour else ""
    said += f"Grey: {', or '.join(lacking)}. " if lacking else ""
    n_beyond = sum(int(each.swarm[0].sum() + each.swarm[-1].sum()) for each in counts)
    said += f"{count(n_beyond, 'attribution')} {'is' if n_beyond == 1 else 'are'} outside the picture. " if n_beyond else ""
    heads = ("feature", "5 %", "median", "95 %", "rank correlation with the value", f"{words.rows} outside the picture")
    return Figure(
        f"Which way features move {say_moved(unit)}",
        f"Each strip has a feature's attributions of all {words.rows}: the thicker, the more {words.rows}.{_say_widest(names, asked)} {said}".strip(),
        Strips(strips, SWARM, axis.ticks(), axis.at(0) if low <= 0 <= high else None, f"attribution, {unit}", any_colour),
        Table(heads, tuple(rows), RANKED.format(words.rows, RANKS), statistics=True),
    )
