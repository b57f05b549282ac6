"""Deep leaves of a game against a background on a card, a row per thread: see ``marginal.subsets`` and ``marginal.patterns``.

All threads of a block are at the same leaf, and at the same pattern, at any time: what they read of tables is the same, but for sums over subsets.
Patterns that a row meets are passed one by one, since threads that skip others would wait for those that do not. A row's sums are added in the order
of leaves and of patterns.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import float64, int64

from ..trees.lookup import MARK_BIT, WORD_BITS
from .decorator import cuda, inlined, kernel
from .lookup import outcome


@inlined
def add_gain(gain: Any, leaf: Any, player: Any, column: Any, target: Any, value: Any, output: Any, n: Any, n_phi: Any, row: Any, out: Any) -> None:
    """Add what one of a leaf's own players contributes to every output, given it as a fraction of the leaf's value."""
    at = (np.int64(output[leaf]) * n_phi + target[column[leaf] + player]) * n + row
    for k in range(value.shape[1]):
        out[at + k * n_phi * n] += value[leaf, k] * gain


@kernel
def add_subsets(
    bins: Any,
    n: Any,
    marks: Any,
    start: Any,
    sets: Any,
    column: Any,
    target: Any,
    value: Any,
    output: Any,
    players: Any,
    first: Any,
    sums: Any,
    top: Any,
    n_phi: Any,
    n_rows: Any,
    out: Any,
) -> None:
    """Add the attributions of leaves with sums over subsets to ``out (outputs * n_phi * n,) float64``."""
    row = cuda.grid(1)
    if row >= n_rows:
        return
    for leaf in range(first.size):
        failed = 0
        for m in range(start[leaf], start[leaf + 1]):
            failed |= outcome(bins, n, row, marks, m, sets, top) << marks[m, MARK_BIT]
        at, passed = first[leaf], ((1 << players[leaf]) - 1) & ~failed
        joined = sums[at + passed, 0]
        for p in range(column[leaf + 1] - column[leaf]):
            add_gain(joined - sums[at + (passed & ~(1 << p)), 1], leaf, p, column, target, value, output, n, n_phi, row, out)


@cache
def make_patterns(n_words: int, most: int) -> Any:
    """Make the kernel for patterns of so many words, of leaves with at most so many own players."""

    def add_patterns(
        bins: Any,
        n: Any,
        marks: Any,
        start: Any,
        sets: Any,
        column: Any,
        target: Any,
        value: Any,
        output: Any,
        own: Any,
        first: Any,
        patterns: Any,
        share: Any,
        across: Any,
        within: Any,
        top: Any,
        n_phi: Any,
        n_rows: Any,
        out: Any,
    ) -> None:
        """Add the attributions of leaves with patterns to ``out (outputs * n_phi * n,) float64``."""
        row = cuda.grid(1)
        if row >= n_rows:
            return
        failed, gained = cuda.local.array(n_words, int64), cuda.local.array(most, float64)
        for leaf in range(output.size):
            for w in range(n_words):
                failed[w] = 0
            for m in range(start[leaf], start[leaf + 1]):
                bit = np.int64(marks[m, MARK_BIT])
                failed[bit // WORD_BITS] |= outcome(bins, n, row, marks, m, sets, top) << bit % WORD_BITS
            a_own, a_other = 0, 0
            for w in range(n_words):
                a_own += cuda.popc(failed[w] & own[leaf, w])
                a_other += cuda.popc(failed[w] & ~own[leaf, w])
            n_own, lost = column[leaf + 1] - column[leaf], 0.0
            for p in range(n_own):
                gained[p] = 0.0
            for j in range(first[leaf], first[leaf + 1]):
                met, b_own, b_other = False, 0, 0
                for w in range(n_words):
                    met |= patterns[j, w] & failed[w] != 0
                    b_own += cuda.popc(patterns[j, w] & own[leaf, w])
                    b_other += cuda.popc(patterns[j, w] & ~own[leaf, w])
                if met:
                    continue
                weight = share[j] * across[b_other, a_other]
                if a_own > 0:
                    lost += weight * within[b_own, a_own - 1]
                if b_own > 0:
                    weight *= within[b_own - 1, a_own]
                    for p in range(n_own):
                        if patterns[j, p // WORD_BITS] >> p % WORD_BITS & 1:
                            gained[p] += weight
            for p in range(n_own):
                fails = failed[p // WORD_BITS] >> p % WORD_BITS & 1
                add_gain(-lost if fails else gained[p], leaf, p, column, target, value, output, n, n_phi, row, out)

    return kernel(add_patterns)
