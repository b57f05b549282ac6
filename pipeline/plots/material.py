"""Counts of attributions in memory, on the grids that a report's figures are drawn from."""

from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.methods import METHODS

from ..models.model import Feature
from ..report.counts.counts import BINS, QUANTILES, RANKS, CountedColumn, Counts, Values, count_rows, lay_edges
from ..report.figures.scale import make_axis
from ..report.grids import CATEGORIES, COMBINED, OWN, POINTS, SEVERAL, SHARED, VALUES

NUMBERS = "biuf"  # kinds of numeric dtypes
PHI, VALUE = "phi", "value"  # columns of the table that is counted
UNKEPT = "values are not kept beside these attributions"
MISSING = "all values are missing"


def read_values(found: Any, name: str, truth: bool = False) -> np.ndarray | None:
    """Return a player's values as numbers, NaN where missing, or as texts, None where missing; None where it has no values.

    Truth values are numbers, 0 and 1, for what colours high and low ones; with ``truth`` they are texts, as people read them.
    """
    import pandas as pd

    held = found.values(name)
    if held is None:
        return None
    missing = np.asarray(pd.isna(held))
    if truth and all(isinstance(value, bool | np.bool_) for value in held[~missing]):
        return np.array([None if lacks else str(value) for value, lacks in zip(held.tolist(), missing.tolist(), strict=True)], object)
    if held.dtype.kind in NUMBERS:
        return held.astype(np.float64)
    if any(isinstance(value, str) for value in held[~missing]):
        return np.array([None if lacks else str(value) for value, lacks in zip(held.tolist(), missing.tolist(), strict=True)], object)
    try:
        return np.where(missing, np.nan, held).astype(np.float64)
    except (TypeError, ValueError):  # dates and others
        return np.array([None if lacks else str(value) for value, lacks in zip(held.tolist(), missing.tolist(), strict=True)], object)


def is_number(values: np.ndarray | None) -> bool:
    """Return whether values have an order."""
    return values is not None and values.dtype.kind == "f"


def find_ends(numbers: np.ndarray, share: float) -> tuple[float, float]:
    """Choose the ends of an axis that leaves out a share of numbers on either side."""
    known = numbers[np.isfinite(numbers)]
    ends = np.quantile(known, (share, 1 - share)) if known.size else np.zeros(0)
    ends = np.array((known.min(), known.max())) if known.size and ends[0] == ends[1] else ends
    axis = make_axis(ends.tolist())
    return axis.low, axis.high


def share_axis(found: Any, output: int) -> tuple[float, float]:
    """Choose the ends of the axis that all players share."""
    each = [find_ends(found.phi[:, output, j], SHARED) for j in range(len(found.names))]
    axis = make_axis([end for ends in each for end in ends])
    return axis.low, axis.high


def _choose_values(values: np.ndarray | None) -> Values | None:
    """Choose the bins of values."""
    if values is None:
        return None
    if not is_number(values):
        names, counts = np.unique(values[values != None].astype(str), return_counts=True)  # noqa: E711 - element by element
        largest = tuple(map(str, names[np.argsort(-counts, kind="stable")][:CATEGORIES]))
        return Values(Feature(VALUE, categorical=True), VALUE, categories=largest) if largest else None
    known = values[np.isfinite(values)]
    if not known.size:
        return None
    points = np.unique(known)
    if points.size <= POINTS:
        edges = (*points, np.nextafter(points[-1], np.inf))
        return Values(Feature(VALUE), VALUE, tuple(map(float, edges)), points=tuple(map(float, points)))
    low, high = find_ends(known, VALUES)
    edges = (*np.linspace(low, high, BINS + 1)[:-1], np.nextafter(high, np.inf))
    return Values(Feature(VALUE), VALUE, tuple(map(float, edges)))


def _rank(numbers: np.ndarray) -> tuple[float, ...]:
    """Choose the lower edges, but the first, of cells of about as many rows."""
    edges = np.unique(np.quantile(numbers[~np.isnan(numbers)], np.linspace(0, 1, RANKS + 1)[1:-1], method="higher"))
    return tuple(map(float, edges))


def _say_lacking(found: Any, name: str, values: np.ndarray | None) -> str:
    if values is not None:
        return MISSING
    if name in found.features or found.rows is None:
        return UNKEPT
    members = dict(found.groups).get(name, ()) if METHODS[found.method].phi.of_groups else ()
    return SEVERAL if len(members) > 1 else COMBINED


def count_player(found: Any, name: str, output: int, shared: tuple[float, float], truth: bool = False) -> tuple[CountedColumn, Counts]:
    """Count a player's attributions to an output by its values, as `read_values` reads them."""
    phi, values = found.phi[:, output, found.names.index(name)], read_values(found, name, truth)
    chosen = _choose_values(values)
    known = phi[~np.isnan(phi)]
    quantiles = tuple(map(float, np.quantile(known, QUANTILES))) if known.size else (float("nan"),) * len(QUANTILES)
    ranked = (_rank(values), _rank(phi)) if chosen is not None and chosen.ordered and values is not None and known.size else None
    lacking = "" if chosen is not None else _say_lacking(found, name, values)
    asked = CountedColumn(PHI, shared, lay_edges(find_ends(phi, OWN), find_ends(phi, 0.0)), chosen, lacking, quantiles, ranked)
    columns = {PHI: pa.array(phi)} | ({} if chosen is None or values is None else {VALUE: pa.array(values, from_pandas=True)})
    (counts,) = count_rows(pa.table(columns), (asked,))
    return asked, counts
