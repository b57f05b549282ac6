"""The nearest change of one feature that carries a row's margin across a threshold.

As a function of one feature, a row's margin is a step function: the sum of the leaves whose other conditions the row passes. Every tree that asks for
the feature is descended once, both ways where it asks; its leaves are then intervals of the feature's bins, or sets of its categories.
"""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..trees.binning import BinTables, is_member
from ..trees.forest import Forest
from ..trees.margin import NODE_FEATURE, NODE_LEFT, NODE_LOWER, NODE_NUMBERS, NODE_SPAN, Descent, lay_out_descent
from .supported import Supported

BLOCK = 16  # rows that walk a tree one after the other: their steps fit a core's cache
ABOVE, BELOW, BETWEEN = 1, -1, 0  # sides of the threshold


class ChangeTables(NamedTuple):
    """The features to be changed, and the trees that ask for each."""

    feature: np.ndarray  # (features,) int32, positions among the used features
    n_bins: np.ndarray  # (features,) int64, of numbers without the missing bin, of categories with unseen and missing
    categorical: np.ndarray  # (features,) bool
    start: np.ndarray  # (features + 1,) int64, feature f's trees are tree[start[f]:start[f + 1]]
    tree: np.ndarray  # int32
    descent: Descent  # of all trees
    at: np.ndarray  # (1,) float64, margins from here on are above the threshold
    below: np.ndarray  # (1,) float64, smaller margins are below it; not larger than ``at``


class Found(NamedTuple):
    """The nearest changes of a batch of rows."""

    value: np.ndarray  # (features, n) float64, a number or the code of a category; NaN where no change of the feature crosses
    until: np.ndarray  # (features, n) float64, the furthest supported number up to which all cross; NaN where all beyond do, and of categories
    margin: np.ndarray  # (features, n) float64, after the change


def prepare_changes(forest: Forest, bins: BinTables, features: np.ndarray, at: float, below: float) -> ChangeTables:
    """Make the tables of ``find_nearest``.

    Parameters
    ----------
    forest : Forest
        of one output
    features : (features,) int
        positions among the used features, of those of the data
    at, below : float
        margins from ``at`` on are above the threshold, those smaller than ``below`` are below it, and others are neither; margin units
    """
    every, asked = np.arange(forest.ensemble.root.size), forest.splits.feature >= 0
    pairs = np.unique(np.stack((forest.splits.feature[asked], forest.trace.tree[asked])), axis=1)
    trees = [pairs[1, pairs[0] == j] for j in features.tolist()]
    n_numbers = [np.isfinite(bins.threshold[bins.start[j] : bins.start[j + 1]]).sum() + 1 for j in features.tolist()]
    return ChangeTables(
        feature=features.astype(np.int32),
        n_bins=np.where(bins.n_codes[features] > 0, bins.n_codes[features] + 2, np.array(n_numbers, np.int64)),
        categorical=bins.n_codes[features] > 0,
        start=np.cumsum([0, *(each.size for each in trees)], dtype=np.int64),
        tree=np.concatenate([np.zeros(0, np.int32), *trees]).astype(np.int32),
        descent=lay_out_descent(forest.ensemble, forest.splits, forest.trace, every),
        at=np.array([at]),
        below=np.array([below]),
    )


@jit
def _add_tree(
    tree: int, row: np.ndarray, mask: int, feature: int, n_bins: int, tables: Descent, place: np.ndarray, stack: np.ndarray, steps: np.ndarray
) -> None:
    """Add a tree's leaves to the steps of one ``row (used,) int64`` of bins.

    Of numbers ``steps (n_bins + 1,)`` become the differences of adjacent bins, of categories the sums. ``place (at least n_bins,)`` has the codes in
    any order: a split of categories sorts those that go left before the others.
    """
    nodes = tables.nodes
    stack[0, 0], stack[1, 0], stack[2, 0] = tables.root[tree], 0, n_bins
    size = 1
    while size > 0:
        size -= 1
        node, first, last = stack[0, size], stack[1, size], stack[2, size]
        while nodes[NODE_NUMBERS * node + NODE_LEFT] != node:
            v = NODE_NUMBERS * node
            left, lower, span = np.int64(nodes[v + NODE_LEFT]), np.int64(nodes[v + NODE_LOWER]), np.int64(nodes[v + NODE_SPAN])
            if nodes[v + NODE_FEATURE] != feature:
                bin_ = row[nodes[v + NODE_FEATURE]]
                if tables.members[node] >= 0:
                    bin_ = is_member(tables.words, tables.members[node], bin_)
                node = left + (((bin_ - lower) & mask) > (span & mask))
                continue
            if tables.members[node] >= 0:
                cut = first
                for k in range(first, last):
                    code = place[k]
                    if is_member(tables.words, tables.members[node], code):
                        place[k] = place[cut]
                        place[cut] = code
                        cut += 1
            else:
                cut = min(max(lower + span + 1, first), last)  # bins up to lower + span go left, and perhaps the missing one, before bin 0
            if cut == first:
                node = left + 1
            elif cut == last:
                node = left
            else:
                stack[0, size], stack[1, size], stack[2, size] = left + 1, cut, last
                size += 1
                node, last = left, cut
        value = tables.value[node, 0]
        if place.size == 0:
            steps[first] += value
            steps[last] -= value
        else:
            for k in range(first, last):
                steps[place[k]] += value


@jit
def _side(margin: float, tables: ChangeTables) -> int:
    """Return on which side of the threshold a margin is."""
    return ABOVE if margin >= tables.at[0] else BELOW if margin < tables.below[0] else BETWEEN


@jit
def _look(
    steps: np.ndarray, rest: float, here: int, end: int, wanted: int, near: np.ndarray, far: np.ndarray, tables: ChangeTables
) -> tuple[int, float]:
    """Look from bin ``here`` towards ``end``, which is not looked at, for the first bin that crosses; return it, or ``end``, and until where."""
    towards = 1 if end > here else -1
    found = here + towards
    while found != end and (np.isnan(near[found]) or _side(rest + steps[found], tables) != wanted):
        found += towards
    until, last, b = np.nan, found, found
    while b != end:
        if not np.isnan(near[b]):
            if _side(rest + steps[b], tables) != wanted:
                until = far[last]
                break
            last = b
        b += towards
    return found, until


@jit
def _choose_number(
    steps: np.ndarray,
    x: float,
    here: int,
    rest: float,
    wanted: int,
    low: np.ndarray,
    high: np.ndarray,
    up: bool,
    down: bool,
    tables: ChangeTables,
) -> tuple[float, float, float]:
    """Choose the nearest supported number that crosses, of equally near ones the smaller; return it, until where, and the margin there."""
    value, until, margin = np.nan, np.nan, np.nan
    if down:
        b, end = _look(steps, rest, here, -1, wanted, high, low, tables)
        if b >= 0:
            value, until, margin = high[b], end, rest + steps[b]
    if up:
        b, end = _look(steps, rest, here, low.size, wanted, low, high, tables)
        if b < low.size and not low[b] - x >= x - value:
            value, until, margin = low[b], end, rest + steps[b]
    return value, until, margin


@jit
def _choose_category(steps: np.ndarray, here: int, rest: float, wanted: int, codes: np.ndarray, tables: ChangeTables) -> tuple[float, float, float]:
    """Choose the first of the supported ``codes`` that crosses."""
    for code in codes:
        margin = rest + steps[np.int64(code)]
        if code != here and _side(margin, tables) == wanted:
            return code, np.nan, margin
    return np.nan, np.nan, np.nan


@jit
def find_nearest(bins: np.ndarray, values: np.ndarray, margin: np.ndarray, tables: ChangeTables, supported: Supported, out: Found) -> None:
    """Find the nearest change of each feature, alone, that carries a row's margin across the threshold.

    A row between ``below`` and ``at`` has none, nor has one whose number is missing, which is near to nothing.

    Parameters
    ----------
    bins : (used, at least n) unsigned integers
    values : (used, at least n) float64
        as the library compares them
    margin : (n,) float64
        of the same rows, margin units
    supported : Supported
        values that features may take, by feature of the tables
    out : Found
        overwritten
    """
    n_used, n_features = bins.shape[0], tables.feature.size
    mask = np.int64(np.iinfo(bins.dtype).max)
    most_bins, levels = 0, 0
    for f in range(n_features):
        most_bins = max(most_bins, int(tables.n_bins[f]))
    for t in range(tables.descent.levels.size):
        levels = max(levels, int(tables.descent.levels[t]))
    rows, steps = np.zeros((BLOCK, max(n_used, 1)), np.int64), np.zeros((BLOCK, most_bins + 1))
    codes, no_codes, stack = np.arange(most_bins), np.zeros(0, np.int64), np.zeros((3, levels + 1), np.int64)
    for first in range(0, margin.size, BLOCK):
        size = min(BLOCK, margin.size - first)
        for j in range(n_used):
            for i in range(size):
                rows[i, j] = bins[j, first + i]
        for f in range(n_features):
            feature, n_bins, categorical = np.int64(tables.feature[f]), tables.n_bins[f], tables.categorical[f]
            place = codes[:n_bins] if categorical else no_codes
            if categorical:
                for k in range(n_bins):
                    place[k] = k
            steps[:] = 0.0
            for t in range(tables.start[f], tables.start[f + 1]):
                for i in range(size):
                    _add_tree(tables.tree[t], rows[i], mask, feature, n_bins, tables.descent, place, stack, steps[i])
            begin, end = supported.start[f], supported.start[f + 1]
            low, high = supported.low[begin:end], supported.high[begin:end]
            for i in range(size):
                row, here, wanted = first + i, rows[i, feature], -_side(margin[first + i], tables)
                value, until, after = np.nan, np.nan, np.nan
                if categorical and wanted != BETWEEN:
                    value, until, after = _choose_category(steps[i], here, margin[row] - steps[i, here], wanted, low, tables)
                elif not categorical and wanted != BETWEEN and here != mask:
                    for b in range(1, n_bins):
                        steps[i, b] += steps[i, b - 1]
                    rest, x = margin[row] - steps[i, here], values[feature, row]
                    up, down = supported.up[f], supported.down[f]
                    value, until, after = _choose_number(steps[i], x, here, rest, wanted, low, high, up, down, tables)
                out.value[f, row], out.until[f, row], out.margin[f, row] = value, until, after
