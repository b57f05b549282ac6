"""The nearest change of one feature that carries a row's margin across a threshold.

As a function of one feature, a row's margin is a step function: the sum of the leaves whose other conditions the row passes. Trees of few comparisons
are looked up, see ``flips``. Any other is walked once for all features, and both ways where it asks for one of them; leaves are then intervals of the
feature's bins, or sets of its categories.
"""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..jit.lanes import WIDE
from ..trees.binning import BinTables, is_member
from ..trees.forest import Forest
from ..trees.margin import NODE_FEATURE, NODE_LEFT, NODE_LOWER, NODE_NUMBERS, NODE_SPAN, Descent, lay_out_descent
from .flips import Flips, choose_flips, find_codes, flip, prepare_flips
from .supported import Supported

BLOCK = 8  # rows that walk a tree one after the other: their steps fit a core's cache; a part of WIDE
ABOVE, BELOW, BETWEEN = 1, -1, 0  # sides of the threshold


class ChangeTables(NamedTuple):
    """The features to be changed, and the trees that ask for one of them: looked up, or walked."""

    feature: np.ndarray  # (features,) int32, positions among the used features
    asked: np.ndarray  # (used,) int64, positions among these features, -1 of others
    n_bins: np.ndarray  # (features,) int64, of numbers without the missing bin, of categories with unseen and missing
    start: np.ndarray  # (features + 1,) int64, feature f's steps are those from start[f] on, one more than it has bins
    categorical: np.ndarray  # (features,) bool
    flips: Flips
    tree: np.ndarray  # int32, those that are walked
    nodes: np.ndarray  # (4 * nodes,) int32, as Descent has them, but for features: -1 - feature at splits of categories
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
    every, asked = np.arange(forest.ensemble.root.size), np.full(bins.column.size, -1)
    asked[features] = np.arange(features.size)
    descent = lay_out_descent(forest.ensemble, forest.splits, forest.trace, every)
    nodes = descent.nodes.reshape(-1, NODE_NUMBERS).copy()
    nodes[:, NODE_FEATURE] = np.where(descent.members < 0, nodes[:, NODE_FEATURE], -1 - nodes[:, NODE_FEATURE])
    numbers = [np.isfinite(bins.threshold[bins.start[j] : bins.start[j + 1]]).sum() + 1 for j in features.tolist()]
    n_bins = np.where(bins.n_codes[features] > 0, bins.n_codes[features] + 2, np.array(numbers, np.int64))
    start, looked_up = np.cumsum([0, *(n_bins + 1)], dtype=np.int64), choose_flips(forest, asked)
    concerned = np.unique(forest.trace.tree[np.isin(forest.splits.feature, features)])
    return ChangeTables(
        feature=features.astype(np.int32),
        asked=asked,
        n_bins=n_bins,
        start=start,
        categorical=bins.n_codes[features] > 0,
        flips=prepare_flips(forest, asked, n_bins, start[:-1], np.flatnonzero(looked_up)),
        tree=concerned[~looked_up[concerned]],
        nodes=nodes.reshape(-1),
        descent=descent,
        at=np.array([at]),
        below=np.array([below]),
    )


@jit
def _sort_left(place: np.ndarray, first: int, last: int, words: np.ndarray, members: int) -> int:
    """Put those of the codes ``place[first:last]`` that go left before the others; return where the others start."""
    cut = first
    for k in range(first, last):
        code = place[k]
        if is_member(words, members, code):
            place[k] = place[cut]
            place[cut] = code
            cut += 1
    return cut


@jit
def _walk(
    rows: np.ndarray,
    n_rows: int,
    mask: int,
    tables: ChangeTables,
    place: np.ndarray,
    ends: np.ndarray,
    stack: np.ndarray,
    steps: np.ndarray,
) -> None:
    """Add, of every row and feature, what each leaf that a change of the feature alone leads to is more than the row's own.

    The row's own path is walked once for all features. Where it asks for one of them the other side waits on the ``stack``, with the bins that lead
    there, and is then walked with this feature open. ``rows (BLOCK * used,) int64`` are bins. Of numbers ``steps (BLOCK * all bins,)`` become the
    differences of adjacent bins, of categories the sums. ``place (all bins,)`` has codes in any order, from ``start`` of their feature on, and ``ends
    (2, features)`` bins up to which a path may go: all, before and after.
    """
    nodes, words, n_used, n_steps = tables.nodes, tables.descent.words, tables.asked.size, tables.start[tables.feature.size]
    for t in tables.tree:
        for i in range(n_rows):
            bins, at, size, own = i * n_used, i * n_steps, 0, 0.0
            node, f, first, last = np.int64(tables.descent.root[t]), np.int64(-1), np.int64(0), np.int64(0)  # f is open, none on the row's own path
            while True:
                v = NODE_NUMBERS * node
                left = np.int64(nodes[v + NODE_LEFT])
                if left == node:
                    value, step = tables.descent.value[node, 0], at + tables.start[f]
                    if f < 0:
                        own = value
                        for k in range(size):
                            ends[0, stack[1, k]], ends[1, stack[1, k]] = 0, tables.n_bins[stack[1, k]]
                    elif tables.categorical[f]:
                        for k in range(first, last):
                            steps[step + place[tables.start[f] + k]] += value - own
                    else:
                        steps[step + first] += value - own
                        steps[step + last] -= value - own
                    while size > 0 and stack[2, size - 1] == stack[3, size - 1]:
                        size -= 1
                    if size == 0:
                        break
                    size -= 1
                    node, f, first, last = stack[0, size], stack[1, size], stack[2, size], stack[3, size]
                    continue
                feature, lower, span = np.int64(nodes[v + NODE_FEATURE]), np.int64(nodes[v + NODE_LOWER]), np.int64(nodes[v + NODE_SPAN])
                members = np.int64(-1)
                if feature < 0:
                    feature, members = -1 - feature, tables.descent.members[node]
                bin_, other = rows[bins + feature], tables.asked[feature]
                if members >= 0:
                    bin_ = is_member(words, members, bin_)
                right = np.int64(((bin_ - lower) & mask) > (span & mask))
                if other < 0 or (f >= 0 and f != other):
                    node = left + right
                    continue
                if f < 0:
                    first, last = ends[0, other], ends[1, other]
                if members >= 0:
                    cut = _sort_left(place, tables.start[other] + first, tables.start[other] + last, words, members) - tables.start[other]
                else:
                    cut = min(max(lower + span + 1, first), last)  # bins up to lower + span go left, and perhaps the missing one, before bin 0
                if f < 0:
                    stack[0, size], stack[1, size] = left + 1 - right, other
                    stack[2, size], stack[3, size] = (first, cut) if right else (cut, last)
                    size += 1
                    ends[1 - right, other] = cut
                    node = left + right
                elif cut == first:
                    node = left + 1
                elif cut == last:
                    node = left
                else:
                    stack[0, size], stack[1, size], stack[2, size], stack[3, size] = left + 1, f, cut, last
                    size += 1
                    node, last = left, cut


@jit
def _side(margin: float, at: float, below: float) -> int:
    """Return on which side of the threshold a margin is."""
    return ABOVE if margin >= at else BELOW if margin < below else BETWEEN


@jit
def _look(
    steps: np.ndarray, rest: float, here: int, end: int, wanted: int, near: np.ndarray, far: np.ndarray, at: float, below: float
) -> tuple[int, float]:
    """Look from bin ``here`` towards ``end``, which is not looked at, for the first bin that crosses; return it, or ``end``, and until where."""
    towards = 1 if end > here else -1
    found = here + towards
    while found != end and (np.isnan(near[found]) or _side(rest + steps[found], at, below) != wanted):
        found += towards
    until, last, b = np.nan, found, found
    while b != end:
        if not np.isnan(near[b]):
            if _side(rest + steps[b], at, below) != wanted:
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
    at: float,
    below: float,
) -> tuple[float, float, float]:
    """Choose the nearest supported number that crosses, of equally near ones the smaller; return it, until where, and the margin there."""
    value, until, margin = np.nan, np.nan, np.nan
    if down:
        b, end = _look(steps, rest, here, -1, wanted, high, low, at, below)
        if b >= 0:
            value, until, margin = high[b], end, rest + steps[b]
    if up:
        b, end = _look(steps, rest, here, low.size, wanted, low, high, at, below)
        if b < low.size and not low[b] - x >= x - value:
            value, until, margin = low[b], end, rest + steps[b]
    return value, until, margin


@jit
def _choose_category(
    steps: np.ndarray, here: int, rest: float, wanted: int, codes: np.ndarray, at: float, below: float
) -> tuple[float, float, float]:
    """Choose the first of the supported ``codes`` that crosses."""
    for code in codes:
        margin = rest + steps[np.int64(code)]
        if code != here and _side(margin, at, below) == wanted:
            return code, np.nan, margin
    return np.nan, np.nan, np.nan


@jit
def find_nearest(bins: np.ndarray, values: np.ndarray, margin: np.ndarray, tables: ChangeTables, supported: Supported, out: Found) -> None:
    """Find the nearest change of each feature, alone, that carries a row's margin across the threshold.

    A row between ``below`` and ``at`` has none, nor has one whose number is missing, which is near to nothing.

    Parameters
    ----------
    bins : (used, at least n) unsigned integers
        a multiple of WIDE columns
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
    mask, n_steps, levels = np.int64(np.iinfo(bins.dtype).max), tables.start[n_features], 0
    at, below = tables.at[0], tables.below[0]
    for t in range(tables.descent.levels.size):
        levels = max(levels, int(tables.descent.levels[t]))
    rows, steps = np.zeros(BLOCK * max(n_used, 1), np.int64), np.zeros(BLOCK * n_steps)
    place, ends, stack = np.zeros(n_steps, np.int64), np.zeros((2, n_features), np.int64), np.zeros((4, 2 * levels + 1), np.int64)
    for f in range(n_features):
        ends[1, f] = tables.n_bins[f]
        for k in range(tables.n_bins[f]):
            place[tables.start[f] + k] = k
    codes, members = np.zeros((tables.flips.start.size - 1) * WIDE, np.uint16), np.zeros(WIDE, bins.dtype)
    for first in range(0, margin.size, BLOCK):
        size = min(BLOCK, margin.size - first)
        if first % WIDE == 0:
            find_codes(bins, first, tables.flips, codes, members)
        for j in range(n_used):
            for i in range(size):
                rows[i * n_used + j] = bins[j, first + i]
        steps[:] = 0.0
        for i in range(size):
            flip(codes, first % WIDE + i, tables.flips, steps[i * n_steps : (i + 1) * n_steps])
        _walk(rows, size, mask, tables, place, ends, stack, steps)
        for f in range(n_features):
            feature, n_bins, categorical = np.int64(tables.feature[f]), tables.n_bins[f], tables.categorical[f]
            begin, end = supported.start[f], supported.start[f + 1]
            low, high = supported.low[begin:end], supported.high[begin:end]
            for i in range(size):
                row, here, wanted = first + i, rows[i * n_used + feature], -_side(margin[first + i], at, below)
                mine = steps[i * n_steps + tables.start[f] : i * n_steps + tables.start[f] + n_bins]
                value, until, after = np.nan, np.nan, np.nan
                if categorical and wanted != BETWEEN:
                    value, until, after = _choose_category(mine, here, margin[row], wanted, low, at, below)
                elif not categorical and wanted != BETWEEN and here != mask:
                    for b in range(1, n_bins):
                        mine[b] += mine[b - 1]
                    rest, x = margin[row] - mine[here], values[feature, row]
                    up, down = supported.up[f], supported.down[f]
                    value, until, after = _choose_number(mine, x, here, rest, wanted, low, high, up, down, at, below)
                out.value[f, row], out.until[f, row], out.margin[f, row] = value, until, after
