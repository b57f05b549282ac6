"""Statistics of a background: for every subtree, the number of background rows with each code; counts are additive.

Instead of rows, the model's own leaf weights can serve as background where every leaf determines all comparisons of its tree, as in symmetric trees
(Filom et al. 2024, Section 3.3).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidParameters
from ..jit.decorator import jit
from ..trees.forest import Forest
from ..trees.lookup import LOOKUP_ROWS, MARK_BIT, WORD_BITS, make_codes
from .subtrees import Partitioning, Subtrees

DENSE_BITS = 16  # pattern width up to which counting beats sorting


class Background(NamedTuple):
    """Counts of background rows (int64), or sums of leaf weights (float64)."""

    counts: np.ndarray  # rows with each code of each coded subtree, concatenated
    start: np.ndarray  # (deep subtrees + 1,) int64, deep subtree u's patterns are patterns[start[u]:start[u + 1]]
    patterns: np.ndarray  # (patterns, words) int64: codes that occur, ascending, the lowest word first
    times: np.ndarray  # (patterns,) rows with each pattern

    def total(self, counts: np.ndarray) -> Any:
        """Return how many rows there are.

        Parameters
        ----------
        counts : (codes,) or (patterns,) int64 or float64
            of all codes or patterns of a subtree

        Returns
        -------
        int64 or float64
        """
        return counts.sum()

    def merge(self, others: Sequence["Background"]) -> "Background":
        """Add the counts of other parts: integers, so the same in any order and grouping.

        Parameters
        ----------
        others : sequence of Background
            of the same partitioning

        Returns
        -------
        Background
            of all parts; patterns are distinct and ascending again
        """
        return _merge((self, *others))


def first_codes(subtrees: Subtrees) -> np.ndarray:
    """Return where each coded subtree's counts start, and the end of the last."""
    return np.concatenate(([0], np.cumsum(1 << subtrees.bits)))


def n_words(deep: Subtrees) -> int:
    """Return the number of words of a pattern, the same for all deep subtrees."""
    return -(-max(1, int(deep.bits.max(initial=0))) // WORD_BITS)


@jit
def _count(bins: np.ndarray, subtrees: Subtrees, first: np.ndarray, n_rows: int, counts: np.ndarray) -> None:
    """Count the codes of the first ``n_rows`` rows into ``counts``, which start at ``first`` for each coded subtree."""
    n = bins.shape[1]
    flat = bins.reshape(-1)
    codes, members = np.empty(LOOKUP_ROWS, np.uint16), np.empty(LOOKUP_ROWS, bins.dtype)
    for row in range(0, n, LOOKUP_ROWS):
        size = min(LOOKUP_ROWS, n - row)
        for u in range(subtrees.bits.size):
            make_codes(flat, n, row, size, subtrees, u, codes, members)
            for i in range(min(size, n_rows - row)):
                counts[first[u] + codes[i]] += 1


@jit
def pattern_rows(bins: np.ndarray, subtrees: Subtrees, u: int, n_words: int, out: np.ndarray) -> None:
    """Write the pattern of every row at a deep subtree.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    u : int
        the subtree
    n_words : int
        of a pattern
    out : (n, words) int64, overwritten
    """
    n = bins.shape[1]
    flat = bins.reshape(-1)
    patterns, members = np.empty(n_words * LOOKUP_ROWS, np.int64), np.empty(LOOKUP_ROWS, bins.dtype)
    for row in range(0, n, LOOKUP_ROWS):
        size = min(LOOKUP_ROWS, n - row)
        make_codes(flat, n, row, size, subtrees, u, patterns, members)
        for i in range(size):
            for w in range(n_words):
                out[row + i, w] = patterns[w * LOOKUP_ROWS + i]


def distinct(subtree: np.ndarray, patterns: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sort patterns and sum the counts of equal ones."""
    order = np.lexsort((*patterns.T, subtree))
    subtree, patterns = subtree[order], patterns[order]
    new = np.append(True, (subtree[1:] != subtree[:-1]) | (patterns[1:] != patterns[:-1]).any(axis=1))[: subtree.size]
    first = np.flatnonzero(new)
    return subtree[first], patterns[first], np.add.reduceat(times[order], first) if first.size else times


def _collect(n_subtrees: int, words: int, subtree: np.ndarray, patterns: np.ndarray, times: np.ndarray, counts: np.ndarray) -> Background:
    """Build a background from patterns in any order."""
    subtree, patterns, times = distinct(subtree, patterns.reshape(-1, words), times)
    return Background(counts, np.searchsorted(subtree, np.arange(n_subtrees + 1)), patterns, times)


def count_background(bins: np.ndarray, partitioning: Partitioning, n_rows: int) -> Background:
    """Count the codes of background rows at every subtree.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    n_rows : int
        how many of the rows count, the first

    Returns
    -------
    Background
        counts are int64
    """
    first, words = first_codes(partitioning.coded), n_words(partitioning.deep)
    counts = np.zeros(first[-1], np.int64)
    _count(bins, partitioning.coded, first, n_rows, counts)
    found, times = [np.zeros((0, words), np.int64)], [np.zeros(0, np.int64)]
    rows = np.empty((bins.shape[1], words), np.int64)
    for u in range(partitioning.deep.size):
        pattern_rows(bins, partitioning.deep, u, words, rows)
        if partitioning.deep.bits[u] <= DENSE_BITS:
            some = np.bincount(rows[:n_rows, 0])
            found.append(np.flatnonzero(some)[:, None] * np.eye(1, words, dtype=np.int64))
            times.append(some[some > 0])
        else:
            patterns, some = np.unique(rows[:n_rows], axis=0, return_counts=True)
            found.append(patterns)
            times.append(some)
    subtree = np.repeat(np.arange(partitioning.deep.size), [some.size for some in times[1:]])
    return _collect(partitioning.deep.size, words, subtree, np.concatenate(found), np.concatenate(times), counts)


def _merge(backgrounds: Sequence[Background]) -> Background:
    sizes = [np.diff(background.start) for background in backgrounds]
    patterns = np.concatenate([background.patterns for background in backgrounds])
    return _collect(
        n_subtrees=sizes[0].size,
        words=patterns.shape[1],
        subtree=np.concatenate([np.repeat(np.arange(size.size), size) for size in sizes]),
        patterns=patterns,
        times=np.concatenate([background.times for background in backgrounds]),
        counts=np.sum([background.counts for background in backgrounds], axis=0),
    )


def list_outcomes(forest: Forest, tree: int) -> tuple[np.ndarray, np.ndarray]:
    """List the leaves of a symmetric tree with nonzero weight, and their outcomes of comparisons."""
    ensemble, comparisons = forest.ensemble, forest.comparisons
    n_comparisons = int(comparisons.start[tree + 1] - comparisons.start[tree])
    leaves, outcomes = [], []
    pending = [(int(ensemble.root[tree]), np.full(n_comparisons, -1, np.int8))]
    while pending:
        v, known = pending.pop()
        if ensemble.cover[v] <= 0:
            continue
        if ensemble.left[v] < 0:
            if (known < 0).any():
                raise InvalidParameters(
                    f"tree {tree}, node {v}: a leaf does not say how its rows compare at every split of the tree, as leaves of symmetric trees do; "
                    "a background of rows is needed"
                )
            leaves.append(v)
            outcomes.append(known > 0)
            continue
        for outcome, child in ((1, ensemble.left[v]), (0, ensemble.right[v])):
            below = known.copy()
            below[comparisons.number[v]] = outcome
            pending.append((int(child), below))
    if not leaves:
        raise InvalidParameters(f"tree {tree}: its leaves have no weights, the model cannot be its own background")
    return np.array(leaves), np.array(outcomes)


def check_weights(forest: Forest) -> None:
    """Refuse a model whose leaf weights cannot serve as background."""
    ensemble, level, tree, levels = forest.ensemble, forest.trace.level, forest.trace.tree, forest.trace.levels
    inner = ensemble.feature >= 0
    place, number = np.cumsum(levels)[tree] - levels[tree] + level, forest.comparisons.number
    least, most = np.full(int(levels.sum()), number.max(initial=0)), np.zeros(int(levels.sum()), number.dtype)
    np.minimum.at(least, place[inner], number[inner])
    np.maximum.at(most, place[inner], number[inner])
    doubtful = np.bincount(tree[inner], (least < most)[place[inner]], minlength=levels.size) > 0  # different comparisons on one level
    doubtful |= np.bincount(tree[~inner], (level < levels[tree])[~inner], minlength=levels.size) > 0  # leaves of different depths
    for each in np.flatnonzero(doubtful | ~(ensemble.cover[ensemble.root] > 0)):
        list_outcomes(forest, int(each))


def _codes(subtrees: Subtrees, u: int, outcomes: np.ndarray, words: int) -> np.ndarray:
    """Return the codes at subtree u of rows with ``outcomes (rows, comparisons) bool``, ``(rows, words) int64``."""
    codes = np.zeros((len(outcomes), words), np.int64)
    for m in range(subtrees.start[u], subtrees.start[u + 1]):
        bit = int(subtrees.marks[m, MARK_BIT])
        codes[:, bit // WORD_BITS] |= (outcomes[:, subtrees.comparison[m] >> 1] == (subtrees.comparison[m] & 1)).astype(np.int64) << bit % WORD_BITS
    return codes


def weigh_leaves(forest: Forest, partitioning: Partitioning) -> Background:
    """Use the model's own leaf weights as background (Filom et al. 2024, Section 3.3)."""
    tree_of = forest.trace.tree
    first, words = first_codes(partitioning.coded), n_words(partitioning.deep)
    counts = np.zeros(first[-1])
    leaves = [list_outcomes(forest, tree) for tree in range(forest.ensemble.root.size)]
    for u in range(partitioning.coded.size):
        nodes, outcomes = leaves[tree_of[partitioning.coded.leaves.node[partitioning.coded.leaves.start[u]]]]
        np.add.at(counts, first[u] + _codes(partitioning.coded, u, outcomes, 1)[:, 0], forest.ensemble.cover[nodes])
    found, times, subtree = [np.zeros((0, words), np.int64)], [np.zeros(0)], [np.zeros(0, np.int64)]
    for u in range(partitioning.deep.size):
        nodes, outcomes = leaves[tree_of[partitioning.deep.leaves.node[u]]]
        found.append(_codes(partitioning.deep, u, outcomes, words))
        times.append(forest.ensemble.cover[nodes])
        subtree.append(np.full(nodes.size, u))
    return _collect(partitioning.deep.size, words, np.concatenate(subtree), np.concatenate(found), np.concatenate(times), counts)
