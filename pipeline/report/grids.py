"""Grids on which rows are counted, chosen from measured distributions so that nearly all rows fit."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from leafledger.kernels.methods import METHODS

from ..drift.measure.columns import lists_categories
from ..drift.measure.distribution import Categories, Distribution
from ..drift.measure.measured_run import Measured
from ..models.model import Feature
from ..runs.columns.top_attributions import feature_of
from .counts.counts import BINS, QUANTILES, RANKS, CountedColumn, Values, lay_edges
from .figures.histogram import BINS as HISTOGRAM
from .figures.scale import make_axis

SHARED = 0.01  # share of attributions beyond either end of the shared axis,
OWN = 0.002  # of a feature's own axis,
VALUES = 0.01  # and of its values
WIDE = 0.1  # share of rows in a cell of several numbers, above which ranks are not known
POINTS = 12  # distinct numbers drawn singly
CATEGORIES = 10

UNKEPT = "values are not kept beside these attributions; explain --values keeps them"
SEVERAL = "a group of several features has no value of its own"
COMBINED = "a combination of features has no value of its own"
MISSING = "all values are missing"
MANY = "there are too many categories to count"


def find_ends(found: Sequence[Distribution], share: float) -> tuple[float, float]:
    """Choose the ends of an axis."""
    ends = [min(max(each.quantile(q), each.low), each.high) for each in found if each.n for q in (share, 1 - share)]
    if ends and min(ends) == max(ends):
        ends = [end for each in found if each.n for end in (each.low, each.high)]
    axis = make_axis(ends)
    return axis.low, axis.high


def _points(found: Distribution) -> np.ndarray:
    """Return the values themselves if few and finite."""
    points = found.points
    return points if points is not None and 0 < points.size <= POINTS and np.isfinite(points).all() else np.zeros(0)


def choose_values(feature: Feature, column: str, found: Distribution | Categories | None) -> Values | None:
    """Choose the bins of a feature's values."""
    if found is None or not found.there:
        return None
    if isinstance(found, Categories):
        if found.counts is None or not (found.counts or lists_categories(feature)):
            return None
        largest = sorted(found.counts, key=lambda pair: (-pair[1], pair[0]))[:CATEGORIES]
        return Values(feature, column, categories=tuple(name for name, _ in largest) or ("",))
    points = _points(found)
    if points.size:
        edges = (*points, np.nextafter(points[-1], math.inf))  # not their middles, which round to one of two neighbours
        return Values(feature, column, tuple(map(float, edges)), points=tuple(map(float, points)))
    low, high = find_ends([found], VALUES)
    inner = np.linspace(low, high, BINS + 1)[:-1]
    return Values(feature, column, tuple(map(float, (*inner, np.nextafter(high, math.inf)))))


def find_rank_edges(found: Distribution) -> tuple[float, ...] | None:
    """Choose lower edges, but the first, of cells of about as many rows; frequent values have their own. None if these are not told apart."""
    lower, upper = found.edges()
    share = found.counts / max(found.there, 1)
    if (share[(upper > lower) & (upper > np.finfo(np.float64).tiny)] > WIDE).any():
        return None
    number = np.floor((np.cumsum(share) - share) * RANKS)
    starts = (np.diff(number) > 0) | (share[1:] * RANKS >= 1) | (share.size <= RANKS)
    return tuple(map(float, lower[1:][starts]))


def _rank(values: Values | None, known: Distribution | Categories | None, phi: Distribution) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Choose the cells of ranks of ordered values and of their attributions."""
    if values is None or not values.ordered or not isinstance(known, Distribution):
        return None
    of_values, of_phi = find_rank_edges(known), find_rank_edges(phi)
    return None if of_values is None or of_phi is None else (of_values, of_phi)


def _say_lacking(kept: bool, name: str, combinations: Sequence[str], feature: str, found: Distribution | Categories | None) -> str:
    """Explain why a player's values have no bins."""
    if not kept:
        return UNKEPT
    if name in combinations:
        return COMBINED
    if not feature:
        return SEVERAL
    return MANY if found is not None and found.there else MISSING


def bin_totals(now: Distribution, before: Distribution | None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Choose the bins of a histogram that hold nearly all rows of both runs, and return them with the shares of the rows in each."""
    known = [each for each in (now, before) if each is not None and each.n]
    edges = np.linspace(*find_ends(known, OWN), HISTOGRAM + 1)
    inner = np.concatenate((edges[:-1], [np.nextafter(edges[-1], math.inf)]))
    shares = [None if each is None or not each.n else np.diff(each.cdf(inner)) for each in (now, before)]
    return edges, np.zeros(HISTOGRAM) if shares[0] is None else shares[0], shares[1]


def choose_grids(measured: Measured, output: str, names: Sequence[str], columns: Mapping[str, str]) -> tuple[CountedColumn, ...]:
    """Choose the grids of an output's first features."""
    plan = measured.plan
    features = {feature.name: feature for feature in plan.features}
    values = dict(zip(features, plan.value_columns, strict=True)) if plan.values else {}
    found = {name: phi for name in names if (phi := measured.phi(output, name)) is not None}
    if not found:
        return ()
    shared = find_ends(list(found.values()), SHARED)
    groups, grids = plan.groups if METHODS[plan.method].phi.of_groups else (), []
    for name, phi in found.items():
        feature = feature_of(name, groups)
        known = measured.value(feature)
        chosen = choose_values(features[feature], values[feature], known) if feature in values else None
        lacking = "" if chosen else _say_lacking(plan.values, name, plan.combinations, feature, known)
        own, quantiles = lay_edges(find_ends([phi], OWN), find_ends([phi], 0.0)), tuple(phi.quantile(q) for q in QUANTILES)
        grids.append(CountedColumn(columns[name], shared, own, chosen, lacking, quantiles, _rank(chosen, known, phi)))
    return tuple(grids)
