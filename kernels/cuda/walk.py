"""Kernel for semivalues of the path-dependent game on a card: a row per thread, and the recursion of ``quadrature`` over splits.

The recursion is unrolled by level, as device functions inlined into each other: the products S and sums G of all levels stay in registers, which have
no addresses. A level's function visits its two children in a loop, so that the next level's code is there once. All threads of a block are at the
same split at any time; only numbers differ. A row's sums are added in the order of splits, so that its bits do not depend on which others there are.

Rows of phi of a tree's output are summed in shared memory, a column per thread.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import float64

from .decorator import cuda, fetch, inlined, kernel
from .splits import (
    A_ABOVE,
    A_SECOND,
    ABOVE_AT,
    AGAIN,
    BOTH_LEAVES,
    CATEGORICAL,
    FEATURE_AT,
    FIRST_NUMBER,
    HIGH_AT,
    KIND,
    LEAF,
    MEAN,
    NEITHER,
    NONE,
    NONE_SECOND,
    PLAIN,
    SECOND,
    SECOND_LEAF,
    A,
)

REGISTERS = 96  # of a thread: more would keep all levels in registers, but too few warps would be there to hide how long loads take


@inlined
def low_half(word: Any) -> Any:
    return np.uint32(word & 0xFFFFFFFF)


@inlined
def high_half(word: Any) -> Any:
    return np.uint32(word >> HIGH_AT & 0xFFFFFFFF)


@inlined
def goes_first(bins: Any, row: Any, n: Any, interval: Any, split: Any, sets: Any, top: Any) -> Any:
    """Return whether a row goes to the first child of a split, given the two words of its record."""
    bin_ = np.uint32(bins[np.uint32(np.uint32(split >> FEATURE_AT) * n + row)])
    low, high = low_half(interval), high_half(interval)
    if np.uint32(split & CATEGORICAL):
        member = np.uint32(sets[np.uint32(low + np.uint32(bin_ >> 5))] >> np.uint32(bin_ & 31)) & 1
        return member == high
    return np.uint32(np.uint32(bin_ - low) & top) <= high


@inlined
def number(words: Any, at: Any) -> Any:
    """Load a number of a record."""
    return fetch(words, at).view(np.float64)


class Lanes(NamedTuple):
    """Operations on four numbers, one for each quadrature node; those beyond the nodes are 0, and the compiler leaves them out."""

    load: Callable[..., Any]  # ``(array, at)``, adjacent numbers
    every: Callable[..., Any]  # ``x``, copied
    choose: Callable[..., Any]  # ``(condition, x, y)``, of four numbers and a single one
    along: Callable[..., Any]  # ``(t, slope, start)``
    times: Callable[..., Any]
    plus: Callable[..., Any]
    less: Callable[..., Any]
    dot: Callable[..., Any]


@cache
def _make_lanes(Q: int) -> Lanes:
    """Make the operations for Q nodes."""

    @inlined
    def load(words: Any, at: Any) -> Any:
        second, third = number(words, at + 1) if Q > 1 else 0.0, number(words, at + 2) if Q > 2 else 0.0
        return number(words, at), second, third, number(words, at + 3) if Q > 3 else 0.0

    @inlined
    def every(x: Any) -> Any:
        return x, x if Q > 1 else 0.0, x if Q > 2 else 0.0, x if Q > 3 else 0.0

    @inlined
    def choose(condition: Any, x: Any, y: Any) -> Any:
        first, second = cuda.selp(condition, x[0], y), cuda.selp(condition, x[1], y) if Q > 1 else 0.0
        return first, second, cuda.selp(condition, x[2], y) if Q > 2 else 0.0, cuda.selp(condition, x[3], y) if Q > 3 else 0.0

    @inlined
    def along(t: Any, slope: Any, start: Any) -> Any:
        first, second = t[0] * slope + start, t[1] * slope + start if Q > 1 else 0.0
        return first, second, t[2] * slope + start if Q > 2 else 0.0, t[3] * slope + start if Q > 3 else 0.0

    @inlined
    def times(x: Any, y: Any) -> Any:
        return x[0] * y[0], x[1] * y[1] if Q > 1 else 0.0, x[2] * y[2] if Q > 2 else 0.0, x[3] * y[3] if Q > 3 else 0.0

    @inlined
    def plus(x: Any, y: Any) -> Any:
        return x[0] + y[0], x[1] + y[1] if Q > 1 else 0.0, x[2] + y[2] if Q > 2 else 0.0, x[3] + y[3] if Q > 3 else 0.0

    @inlined
    def less(x: Any, y: Any) -> Any:
        return x[0] - y[0], x[1] - y[1] if Q > 1 else 0.0, x[2] - y[2] if Q > 2 else 0.0, x[3] - y[3] if Q > 3 else 0.0

    @inlined
    def dot(x: Any, y: Any) -> Any:
        total = x[0] * y[0]
        if Q > 1:
            total += x[1] * y[1]
        if Q > 2:
            rest = x[2] * y[2]
            if Q > 3:
                rest += x[3] * y[3]
            total += rest
        return total

    return Lanes(load, every, choose, along, times, plus, less, dot)


def _make_visit(level: int, levels: int, Q: int) -> Callable[..., Any]:
    """Make the function that visits a split of a level and all below; it returns where the next record starts, the bits o down to it, and G.

    What is needed after the children were visited is loaded again, or found in the bits: registers are dear, and each level's are taken all the time.
    """
    load, every, choose, along, times, plus, less, dot = _make_lanes(Q)
    below: Any = _make_visit(level + 1, levels, Q) if level + 1 < levels else None
    LOWEST, BIT, Bits = below is None, level + 1, np.uint32 if levels < 32 else np.uint64
    INVERSE = FIRST_NUMBER + 5
    LEAF_AGAIN = INVERSE + Q

    @inlined
    def visit_leaves(at: Any, split: Any, o: Any, step: Any, absent: Any, to: Any, S: Any, bits: Any, t: Any, words: Any, gained: Any) -> Any:
        """Visit a split whose children are leaves; ``step`` is a' D, and ``absent`` a D."""
        change = cuda.selp(o, step, 0.0) - absent
        if np.uint32(split & AGAIN):
            above, inverse = Bits(Bits(bits >> Bits(split >> ABOVE_AT & 63)) & 1) != Bits(0), load(words, at + INVERSE)
            plain, second, none = number(words, at + PLAIN), number(words, at + SECOND), number(words, at + NEITHER)
            gained[to] += cuda.selp(above, change, 0.0) * dot(times(S, inverse), inverse)
            G = plus(times(inverse, along(t, cuda.selp(o, plain, 0.0) - absent, absent)), every(second))
            return np.uint32(at + LEAF_AGAIN), bits, choose(above, G, none)
        gained[to] += change * dot(S, every(1.0))
        return np.uint32(at + MEAN + 1), bits, along(t, change, number(words, at + MEAN))

    @inlined
    def visit(
        at: Any, S: Any, bits: Any, t: Any, words: Any, sets: Any, bins: Any, row: Any, n: Any, top: Any, gained: Any, place: Any, stride: Any
    ) -> Any:
        """Visit a split."""
        at = np.int64(at)
        interval, word = fetch(words, at), fetch(words, at + 1)
        absent, other = number(words, at + A), number(words, at + A_SECOND)
        split = low_half(word)
        o = goes_first(bins, row, n, interval, split, sets, top)
        if LOWEST or np.uint32(split & KIND) == np.uint32(BOTH_LEAVES):
            return visit_leaves(at, split, o, absent, other, np.uint32(high_half(word) * stride + place), S, bits, t, words, gained)
        after, second = np.uint32(at + LEAF + (split & AGAIN) // AGAIN * (LEAF_AGAIN - LEAF) + (split & KIND)), False
        G = G_first = every(0.0)
        while True:
            if np.uint32(split & AGAIN):
                above, none = Bits(Bits(bits >> Bits(split >> ABOVE_AT & 63)) & 1) != Bits(0), number(words, at + (NONE_SECOND if second else NONE))
                o = o and above
                share = along(t, cuda.selp(o, 1.0, 0.0) - absent, absent)
                share = choose(above, times(share, load(words, at + INVERSE)), none)
            else:
                share = along(t, cuda.selp(o, 1.0, 0.0) - absent, absent)
            bits = Bits(Bits(bits & ~Bits(1 << BIT)) | Bits(Bits(o) << Bits(BIT)))
            after, bits, G = below(after, times(S, share), bits, t, words, sets, bins, row, n, top, gained, place, stride)
            if second:
                break
            G_first = G
            split, absent = low_half(fetch(words, at + 1)), number(words, at + A_SECOND)
            if np.uint32(split & KIND) == np.uint32(SECOND_LEAF):
                G = every(number(words, at + (LEAF_AGAIN if np.uint32(split & AGAIN) else LEAF)))
                break
            second, o = True, Bits(bits & Bits(1 << BIT)) == Bits(0)
        word, a = fetch(words, at + 1), number(words, at + A)
        split, to = low_half(word), np.uint32(high_half(word) * stride + place)
        step = less(G_first, G)
        o = (Bits(bits & Bits(1 << BIT)) != Bits(0)) != second
        share = along(t, cuda.selp(o, 1.0, 0.0) - a, a)
        if np.uint32(split & AGAIN):
            above, inverse = Bits(Bits(bits >> Bits(split >> ABOVE_AT & 63)) & 1) != Bits(0), load(words, at + INVERSE)
            change = cuda.selp(o, number(words, at + A_ABOVE), 0.0) - a
            gained[to] += cuda.selp(above, change, 0.0) * dot(times(S, inverse), times(step, inverse))
            return after, bits, plus(G, times(choose(above, times(share, inverse), number(words, at + NONE)), step))
        gained[to] += (cuda.selp(o, 1.0, 0.0) - a) * dot(S, step)
        return after, bits, plus(G, times(share, step))

    return visit


@cache
def make_walk(levels: int, Q: int, shared: bool, registers: int | None = REGISTERS) -> Any:
    """Make the kernel for trees of at most so many levels of splits, at Q nodes; with room for a block's sums in ``shared`` memory, or without."""
    visit = _make_visit(0, levels, Q)
    load, Bits = _make_lanes(Q).load, np.uint32 if levels < 32 else np.uint64

    def walk(
        bins: Any, n: Any, start: Any, output: Any, nodes: Any, weights: Any, words: Any, sets: Any, top: Any, n_phi: Any, n_rows: Any, phi: Any
    ) -> None:
        """Add the attributions of a block's rows to ``phi (outputs * n_phi * n,) float64``."""
        thread, n_threads = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
        row, n, top = np.uint32(cuda.blockIdx.x * n_threads + thread), np.uint32(n), np.uint32(top)
        if row >= n_rows:
            return
        gained, place, stride = phi, row, n
        if shared:
            gained, place, stride = cuda.shared.array(0, float64), thread, n_threads
            for j in range(n_phi):
                gained[np.uint32(j * stride + place)] = 0.0
        for w in range(start.size):
            t, S = load(nodes, w * Q), load(weights, w * Q)
            first = np.uint32(output[w] * n_phi * n + row)
            if not shared:
                place = first
            visit(start[w], S, Bits(1), t, words, sets, bins, row, n, top, gained, place, stride)
            if shared and (w + 1 == start.size or output[w + 1] != output[w]):
                for j in range(n_phi):
                    phi[np.uint32(first + j * n)] += gained[np.uint32(j * stride + place)]
                    gained[np.uint32(j * stride + place)] = 0.0

    return kernel(walk, registers)
