"""Probabilistic values of the path-dependent game: mean contributions to coalitions of a given size distribution.

phi_i = sum over coalitions S without i of sizes[|S|] / C(N - 1, |S|) (v(S + i) - v(S)) for N players (Weber 1988). Semivalues are integrals over
points of [0, 1] at which every player has the same probability (see ``quadrature``); the value of a single size, for one, is not. Written as a sum
over points its weights have both signs and grow like 2^N, and TreeProb (Li, Yu and Low 2026, Alg. 4), which takes complex roots of unity, loses all
digits in deep trees (their Fig. 2). The algorithm here neither evaluates at points nor divides.

A leaf's players 1..d, each with absent weight a and bit o, contribute products of a (absent) and o (present). Kept for players 1..p are

    pre[p][k] = mean over their coalitions of size k of that product = (p - k)/p a pre[p-1][k] + k/p o pre[p-1][k-1]

the coefficients of the product of all (1 - t) a + t o in the Bernstein basis. The rest of the path is kept as a functional on such means,

    U[d]   = leaf's value times the distribution of sizes among d players
    phi[p] += (o - a) sum over k of U[p][k] pre[p-1][k]
    U[p-1][k] = (m - k)/m a U[p][k] + (k + 1)/m o U[p][k + 1],     m = p - 1

Except for leaf values and signed distributions, everything is a convex combination of nonnegative numbers, so each mean has a relative error of a few
roundings per player at any depth, whatever the covers.

A leaf alone costs O(d^2), not the O(d) of a quadrature node, since removing a player from a product is a division, so that every player needs its own
prefix and functional. But leaves share them: with a path's players in the order of their last edges, successive leaves in preorder share a first part
of their lists, whose means are computed once and whose functionals are added up. Where no player is split on twice, a tree costs O(d) per edge, as in
TreeProb; a repeated player moves to the end of the list, and the means behind its old place are recomputed.
"""

from typing import NamedTuple

import numpy as np

from ..arrays.offsets32 import narrow
from ..game_values import thin_sizes
from ..jit.decorator import jit
from ..jit.lanes import LANES, aligned, inside, load, splat, store
from ..trees.binning import BATCH, BinnedSplits, child_intervals, copy_batch, is_member
from ..trees.ensemble import TreeEnsemble
from ..trees.paths import Trace

# Columns of ProbabilisticTables.steps: the action, the place in the list of players (from 1), and the node of the edge.
LIST_KIND, LIST_PLACE, LIST_NODE = range(3)
# Actions: compute an edge's bit; append its player to the list; remove it; append and remove a leaf's player at once.
LIST_COMPARE, LIST_APPEND, LIST_POP, LIST_LEAF = range(4)
# Columns of ProbabilisticTables.edges: level of the edge's bit; its player's row of phi; level of the edge whose bit is multiplied in (0, where all
# bits are 1, if none); and the bins that take the edge, see BinnedSplits.
EDGE_LEVEL, EDGE_ROW, EDGE_ABOVE, EDGE_FEATURE, EDGE_LOWER, EDGE_SPAN, EDGE_MEMBERS = range(7)
WORK_BYTES = 2**18  # of means and functionals, to stay in the second-level cache; fewer rows per batch otherwise


class Passes(NamedTuple):
    """Steps for each output: one pass for every tree and column of its leaf values."""

    start: np.ndarray  # (passes,) int64, pass w is steps start[w]:stop[w]
    stop: np.ndarray  # (passes,) int64
    column: np.ndarray  # (passes,) int32, of the leaf values
    output: np.ndarray  # (passes,) int32, ascending


class ProbabilisticTables(NamedTuple):
    """Steps over the trees' edges, and size distributions for every path length.

    Row p of a triangular table starts at p (p + 1) / 2 and has p + 1 entries.
    """

    passes: Passes
    most: np.ndarray  # (2,) int64, edges on the longest path, and distinct players on one
    steps: np.ndarray  # (steps, 3) int32
    edges: np.ndarray  # (nodes, 7) int32, for the edge into each node
    absent: np.ndarray  # (nodes,) float64, absent weight of the edge's player down to the edge
    value: np.ndarray  # (nodes, width) float64
    sizes: np.ndarray  # triangular float64, row d - 1: distribution of coalition sizes among d players
    shares: np.ndarray  # triangular float64, row m: (m - k) / m
    words: np.ndarray  # uint32


class _Workspace(NamedTuple):
    """Scratch arrays of a batch of ``width`` rows."""

    batch: np.ndarray  # (used + 1, width) flat, unsigned: bins, and in the last row membership in a category set
    bits: np.ndarray  # (levels + 1, width) flat float64: o of the edge into the pass's current node, by level
    means: np.ndarray  # (triangular, width) flat float64: pre[p] of every place in the list
    functionals: np.ndarray  # (triangular, width) flat float64: U[p + 1] at the position of pre[p]
    gained: np.ndarray  # (rows of phi, width) flat float64


@jit
def _emit(steps: np.ndarray, n: int, kind: int, place: int, node: int) -> int:
    """Write step n if there is room, and return n + 1."""
    if n < steps.shape[0]:
        steps[n, LIST_KIND], steps[n, LIST_PLACE], steps[n, LIST_NODE] = kind, place, node
    return n + 1


@jit
def _write_steps(trace: Trace, edges: np.ndarray, leaf: np.ndarray, n_levels: int, n_rows: int, steps: np.ndarray, start: np.ndarray) -> int:
    """Write the steps of all trees as far as there is room; return their number. ``start (trees + 1,)`` is overwritten."""
    path, listed, fresh = np.zeros(n_levels, np.int32), np.zeros(n_levels, np.int32), np.zeros(n_levels, np.int32)
    seen = np.full(n_rows, -1, np.int32)
    n = size = t = 0
    for v in trace.order:
        # Drop the edges whose bits the next edge overwrites; levels in the list ascend.
        while size > 0 and trace.level[listed[size]] >= trace.level[v]:
            n = _emit(steps, n, LIST_POP, size, listed[size])
            size -= 1
        if trace.level[v] == 0:
            start[t] = n
            t += 1
            continue
        path[trace.level[v]] = v
        n = _emit(steps, n, LIST_COMPARE, 0, v)
        if not leaf[v]:
            continue
        d = 0
        for level in range(trace.level[v], 0, -1):
            row = edges[path[level], EDGE_ROW]
            if seen[row] != v:
                seen[row] = v
                fresh[d] = path[level]
                d += 1
        keep = 0
        while keep < size and listed[keep + 1] == fresh[d - 1 - keep]:
            keep += 1
        while size > keep:
            n = _emit(steps, n, LIST_POP, size, listed[size])
            size -= 1
        while size < d - 1:
            size += 1
            listed[size] = fresh[d - size]
            n = _emit(steps, n, LIST_APPEND, size, listed[size])
        n = _emit(steps, n, LIST_LEAF, d, v)
    while size > 0:
        n = _emit(steps, n, LIST_POP, size, listed[size])
        size -= 1
    start[t] = n
    return n


def _edges(ensemble: TreeEnsemble, binned: BinnedSplits, trace: Trace, player: np.ndarray) -> np.ndarray:
    """Make the table of edges, ``(nodes, 7) int32``; the rows of roots are unused."""
    inner = np.flatnonzero(ensemble.feature >= 0)
    split = np.zeros(ensemble.feature.size, np.int32)
    split[ensemble.left[inner]] = split[ensemble.right[inner]] = inner
    goes_left = ensemble.left[split] == np.arange(split.size)
    above = trace.above[split]
    lower, span = child_intervals(binned, split, goes_left)
    numbers = (
        trace.level,
        player[split],
        np.where(above < 0, 0, trace.level[above]),
        binned.feature[split],
        lower,
        span,
        binned.members[split],
    )
    return narrow(np.stack(numbers, axis=1))


def prepare_probabilistic(ensemble: TreeEnsemble, binned: BinnedSplits, trace: Trace, player: np.ndarray, sizes: np.ndarray) -> ProbabilisticTables:
    """Lay out every tree as steps for the kernel.

    Parameters
    ----------
    trace : Trace
        made with ``player`` in place of features, so that splits of one player count as splits of one feature
    player : (nodes,) int32
        row of phi of the split's player, -1 at leaves
    sizes : (N,) float64
        probability that a player joins a coalition of k of the N - 1 others, players in no split counted; any finite numbers

    Raises
    ------
    ValueError
        a path has more players than the game
    """
    edges, start = _edges(ensemble, binned, trace, player), np.zeros(ensemble.root.size + 1, np.int64)
    arguments = trace, edges, ensemble.feature < 0, int(trace.levels.max(initial=0)) + 1, int(player.max(initial=-1)) + 1
    steps = np.zeros((_write_steps(*arguments, np.zeros((0, 3), np.int32), start), 3), np.int32)
    _write_steps(*arguments, steps, start)
    n_players = int(steps[:, LIST_PLACE].max(initial=0))
    if n_players > sizes.size:
        raise ValueError(f"a path has {n_players} distinct players, but the sizes are those of {sizes.size}")
    passes = [(int(output) + column, t, column) for t, output in enumerate(ensemble.output) for column in range(ensemble.value.shape[1])]
    output, tree, column = np.array(sorted(passes), np.int64).reshape(-1, 3).T
    return ProbabilisticTables(
        passes=Passes(start[tree], start[tree + 1], column.astype(np.int32), output.astype(np.int32)),
        most=np.array([trace.levels.max(initial=0), n_players], np.int64),
        steps=steps,
        edges=edges,
        absent=trace.absent,
        value=ensemble.value,
        sizes=thin_sizes(np.asarray(sizes, np.float64), n_players),
        shares=np.concatenate([np.zeros(0), *(np.arange(m, -1, -1) / max(m, 1) for m in range(n_players))]),
        words=binned.words,
    )


@jit
def _row(p: int) -> int:
    """Return where row p of a triangular table starts."""
    return p * (p + 1) // 2


def no_probabilistic(words: np.ndarray) -> ProbabilisticTables:
    """Make empty tables.

    Parameters
    ----------
    words : uint32
        the model's category sets, so that the record is of the same types as that of trees
    """
    integers, numbers = np.zeros(0, np.int64), np.zeros(0)
    return ProbabilisticTables(
        passes=Passes(integers, integers, np.zeros(0, np.int32), np.zeros(0, np.int32)),
        most=np.zeros(2, np.int64),
        steps=np.zeros((0, 3), np.int32),
        edges=np.zeros((0, 7), np.int32),
        absent=numbers,
        value=np.zeros((0, 1)),
        sizes=numbers,
        shares=numbers,
        words=words,
    )


@jit
def _compare(tables: ProbabilisticTables, node: int, work: _Workspace, width: int) -> None:
    """Compute an edge's bit."""
    edges, batch, bits = tables.edges, work.batch, work.bits
    compared, members = np.int64(edges[node, EDGE_FEATURE]) * width, np.int64(edges[node, EDGE_MEMBERS])
    if members >= 0:
        spare = batch.size - width
        for i in range(width):
            batch[spare + i] = is_member(tables.words, members, np.int64(batch[compared + i]))
        compared = np.int64(spare)
    lower, span = np.int64(edges[node, EDGE_LOWER]), np.int64(edges[node, EDGE_SPAN])
    below, above = np.int64(edges[node, EDGE_LEVEL]) * width, np.int64(edges[node, EDGE_ABOVE]) * width
    for i in range(0, width, LANES):
        store(bits, below + i, load(bits, above + i) * inside(batch, compared + i, lower, span))


@jit
def _descend(tables: ProbabilisticTables, node: int, p: int, work: _Workspace, width: int) -> None:
    """Append an edge's player at place p: compute pre[p] from pre[p - 1], and clear U[p]."""
    bits, means, functionals = work.bits, work.means, work.functionals
    slot, shares, absent = np.int64(tables.edges[node, EDGE_LEVEL]) * width, tables.shares, splat(tables.absent[node])
    share = _row(p)
    for i in range(0, width, LANES):
        o, here, below = load(bits, slot + i), _row(p - 1) * width + i, share * width + i
        before = splat(0.0)
        for k in range(p):
            mean = load(means, here)
            store(means, below, splat(shares[share + k]) * (absent * mean) + splat(shares[share + p - k]) * (o * before))
            store(functionals, here, splat(0.0))
            before = mean
            here += width
            below += width
        store(means, below, o * before)


@jit
def _ascend(tables: ProbabilisticTables, node: int, p: int, work: _Workspace, width: int) -> None:
    """Remove an edge's player, the last of p: add its phi, and U[p] to U[p - 1]."""
    bits, means, functionals, gained = work.bits, work.means, work.functionals, work.gained
    slot, shares, absent = np.int64(tables.edges[node, EDGE_LEVEL]) * width, tables.shares, splat(tables.absent[node])
    gain, share = np.int64(tables.edges[node, EDGE_ROW]) * width, _row(p - 1)
    for i in range(0, width, LANES):
        o, here, above = load(bits, slot + i), share * width + i, _row(p - 2) * width + i
        u = load(functionals, here)
        total = u * load(means, here)
        for k in range(p - 1):
            here += width
            following = load(functionals, here)
            total = total + following * load(means, here)
            passed = splat(shares[share + k]) * (absent * u) + splat(shares[share + p - 2 - k]) * (o * following)
            store(functionals, above, load(functionals, above) + passed)
            u = following
            above += width
        store(gained, gain + i, load(gained, gain + i) + (o - absent) * total)


@jit
def _add_leaf(tables: ProbabilisticTables, node: int, p: int, value: float, work: _Workspace, width: int) -> None:
    """Append and remove a leaf's player, with U[p] the leaf's value times the size distribution."""
    bits, means, functionals, gained = work.bits, work.means, work.functionals, work.gained
    slot, shares, sizes, a = np.int64(tables.edges[node, EDGE_LEVEL]) * width, tables.shares, tables.sizes, tables.absent[node]
    gain, share = np.int64(tables.edges[node, EDGE_ROW]) * width, _row(p - 1)
    for i in range(0, width, LANES):
        o, here, above = load(bits, slot + i), share * width + i, _row(p - 2) * width + i
        total = splat(sizes[share]) * load(means, here)
        for k in range(p - 1):
            here += width
            total = total + splat(sizes[share + k + 1]) * load(means, here)
            absent, present = shares[share + k] * a * sizes[share + k], shares[share + p - 2 - k] * sizes[share + k + 1]
            store(functionals, above, load(functionals, above) + splat(value * absent) + o * splat(value * present))
            above += width
        store(gained, gain + i, load(gained, gain + i) + (o - splat(a)) * (splat(value) * total))


@jit
def add_probabilistic(bins: np.ndarray, tables: ProbabilisticTables, phi: np.ndarray) -> None:
    """Add every row's attributions to ``phi``.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    phi : (outputs, rows, n) float64, margin units
    """
    n_used, n = bins.shape
    n_rows, n_means = phi.shape[1], _row(tables.most[1])
    width = BATCH
    while width > LANES and 16 * n_means * width > WORK_BYTES:
        width //= 2
    flat_phi, passes, steps = phi.reshape(-1), tables.passes, tables.steps
    batch, bits = np.zeros((n_used + 1) * width, bins.dtype), aligned((tables.most[0] + 1) * width)
    means, functionals, gained = aligned(n_means * width), aligned(n_means * width), aligned(n_rows * width)
    means[:width] = 1.0
    bits[:width] = 1.0
    work = _Workspace(batch, bits, means, functionals, gained)
    for row in range(0, n, width):
        copy_batch(bins, row, width, batch)
        for w in range(passes.start.size):
            for s in range(passes.start[w], passes.stop[w]):
                kind, p, node = steps[s, LIST_KIND], np.int64(steps[s, LIST_PLACE]), np.int64(steps[s, LIST_NODE])
                if kind == LIST_COMPARE:
                    _compare(tables, node, work, width)
                elif kind == LIST_APPEND:
                    _descend(tables, node, p, work, width)
                elif kind == LIST_POP:
                    _ascend(tables, node, p, work, width)
                else:
                    _add_leaf(tables, node, p, tables.value[node, passes.column[w]], work, width)
            if w + 1 == passes.start.size or passes.output[w + 1] != passes.output[w]:
                for j in range(n_rows):
                    at = (passes.output[w] * n_rows + j) * n + row
                    for i in range(0, width, LANES):
                        store(flat_phi, at + i, load(flat_phi, at + i) + load(gained, j * width + i))
                gained[:] = 0.0
