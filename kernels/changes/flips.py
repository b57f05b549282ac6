"""Steps of rows at trees of few comparisons, as symmetric ones: looked up, where other trees are walked.

The outcomes of a tree's comparisons form a code, the row of a table of leaf values (see ``lookup``). As a number rises, comparisons of its feature
turn out otherwise one after the other: each flips a bit of the code, and the step there is the difference of two leaf values.
"""

from typing import NamedTuple

import numpy as np

from ..arrays.ordering import group_starts
from ..jit.decorator import jit
from ..jit.lanes import WIDE
from ..trees.forest import Forest
from ..trees.lookup import MARK_BIT, MARK_FEATURE, MARK_LOWER, MARK_MEMBERS, MARK_SPAN, LookupTables, make_codes, worth_looking_up
from ..trees.margin import look_up_trees


class Flips(NamedTuple):
    """Bits that flip as one of the asked features rises, in every tree that is looked up."""

    looked_up: LookupTables
    start: np.ndarray  # (tables + 1,) int64, table t's flips are those from start[t] on: by feature, then ascending
    bit: np.ndarray  # (flips,) int64, that is cleared: rows go right from here on
    left: np.ndarray  # (flips,) int64, at the first of a feature all of its bits, 0 at others
    step: np.ndarray  # (flips,) int64, position of the step among those of all features


def choose_flips(forest: Forest, asked: np.ndarray) -> np.ndarray:
    """Choose the trees ``(trees,) bool`` that are looked up: of few comparisons, none of categories of a feature that is ``asked (used,)`` for."""
    trace, splits, n_trees = forest.trace, forest.splits, forest.ensemble.root.size
    n_nodes = np.bincount(trace.tree, minlength=n_trees)
    wanted = (forest.ensemble.feature >= 0) & np.isin(splits.feature, np.flatnonzero(asked >= 0))
    of_numbers, of_categories = (
        np.bincount(trace.tree, wanted & of_kind, minlength=n_trees) > 0 for of_kind in (splits.members < 0, splits.members >= 0)
    )
    return of_numbers & ~of_categories & worth_looking_up(forest.comparisons, n_nodes, np.ones(n_trees, np.int64))


def prepare_flips(forest: Forest, asked: np.ndarray, n_bins: np.ndarray, first: np.ndarray, trees: np.ndarray) -> Flips:
    """Make the tables of ``trees (tables,)``, of features that have ``n_bins (features,)`` and steps from ``first (features,)`` on."""
    looked_up = look_up_trees(forest.ensemble, forest.splits, forest.comparisons, trees)
    marks, table = looked_up.marks.astype(np.int64), np.repeat(np.arange(trees.size), np.diff(looked_up.start))
    feature = asked[marks[:, MARK_FEATURE]]
    kept = np.flatnonzero((feature >= 0) & (marks[:, MARK_MEMBERS] < 0))
    feature, table, marks = feature[kept], table[kept], marks[kept]
    at = np.clip(marks[:, MARK_LOWER] + marks[:, MARK_SPAN] + 1, 0, n_bins[feature])  # bins before go left, and perhaps the missing one
    order = np.lexsort((at, feature, table))
    feature, table, at, bit = feature[order], table[order], at[order], 1 << marks[order, MARK_BIT]
    left, new = np.zeros(bit.size, np.int64), np.append(True, (np.diff(feature) != 0) | (np.diff(table) != 0))[: bit.size]
    left[new] = np.add.reduceat(bit, np.flatnonzero(new)) if bit.size else 0
    return Flips(looked_up, group_starts(table, trees.size), bit, left, first[feature] + at)


@jit
def find_codes(bins: np.ndarray, first: int, flips: Flips, codes: np.ndarray, members: np.ndarray) -> None:
    """Find the codes of WIDE rows of ``bins (used, n)`` at every table, ``codes (tables * WIDE,) uint16``; ``members (WIDE,)`` is to work in."""
    flat, n = bins.reshape(-1), bins.shape[1]
    for t in range(flips.start.size - 1):
        make_codes(flat, n, first, WIDE, flips.looked_up, t, codes[t * WIDE : (t + 1) * WIDE], members)


@jit
def flip(codes: np.ndarray, row: int, flips: Flips, steps: np.ndarray) -> None:
    """Add a row's ``steps (all features' bins,)``: by how much its margin rises at each bin of a feature from the one before."""
    values = flips.looked_up.values
    for t in range(flips.start.size - 1):
        table, own = flips.looked_up.first[t], np.int64(codes[t * WIDE + row])
        code, before = own, 0.0
        for k in range(flips.start[t], flips.start[t + 1]):
            if flips.left[k] > 0:
                code = own | flips.left[k]
                before = values[table + code]
            code ^= flips.bit[k]
            after = values[table + code]
            steps[flips.step[k]] += after - before
            before = after
