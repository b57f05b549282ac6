"""Gradients of the path-dependent game's multilinear extension at one point per row, in one pass over each tree.

Where player j is present with probability z_j, independently of the others, the expected margin f(z) is the sum over leaves of the value times the
product over the path's players of F = (1 - z) a + z o (Owen 1972; Li, Yu and Low 2026, Section 4), with a and o as in ``quadrature``. The walk is
that of ``quadrature`` with numbers of the rows in place of the tree's constants:

* a player's first split on a path takes factors as they are, r = F for the first child and 1 - r, which is F of the second;
* a split of a player that was split on above divides by F' there. Where o' = 0 that ratio is a / a', whatever z; where o' = 1, F' is (1 - z) a' + z:
  one division, which is safe since z keeps a distance of INSIDE from 0 and 1, at the cost of no more than a rounding of f.

So the sum below a root is the tree's f(z), and the players' gains are its gradient. The points z and 1 - z can be walked together.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..arrays.offsets32 import narrow
from ..jit.decorator import frozen, jit
from ..jit.lanes import LANES, aligned, constant, inside, load, splat, store, zeros
from ..trees.binning import BinnedSplits, copy_batch, is_member
from ..trees.ensemble import TreeEnsemble
from .games import Game
from .walks import (
    STEP_ABOVE,
    STEP_FEATURE,
    STEP_KIND,
    STEP_LOWER,
    STEP_PLACE,
    STEP_SPAN,
    WALK_DOWN,
    WALK_DOWN_AGAIN,
    WALK_LEAVES,
    WALK_LEAVES_AGAIN,
    WALK_UP,
    WALK_UP_LEAF,
    WALK_UP_LEAF_AGAIN,
    lay_out_steps,
    order_splits,
)

GRADIENT_ROWS = 64  # rows of a batch: stacks of both points stay in the first-level cache
INSIDE = 2.0**-53  # distance of probabilities from 0 and 1
# Columns of GradientTables.steps after those from STEP_KIND to STEP_SPAN: the split's player, and the start of its constants.
GRADIENT_PLAYER, GRADIENT_CONSTANTS = 6, 7
# A split's constants: a of both children and of the edge above, both children's share of it, the difference of the leaves' values, and the second
# leaf's.
CONSTANT_SHARE, CONSTANT_SHARE_SECOND, CONSTANT_SHARE_ABOVE, CONSTANT_PART, CONSTANT_PART_SECOND, CONSTANT_STEP, CONSTANT_LEAF = range(7)
N_CONSTANTS = 7


class GradientTables(NamedTuple):
    """Trees of every output as walks with scalar leaves; trees with a leaf value for each output occur once for each."""

    start: np.ndarray  # (walks,) int64, walk w is steps start[w]:stop[w]
    stop: np.ndarray  # (walks,) int64
    output: np.ndarray  # (outputs + 1,) int64, output k's walks are output[k]:output[k + 1]
    base: np.ndarray  # (outputs,) float64, base values plus margins of trees without splits
    most: np.ndarray  # (2,) int64, levels of splits in a walk, and players
    steps: np.ndarray  # (steps, 8) int32
    constants: np.ndarray  # (splits * N_CONSTANTS,) float64
    members: np.ndarray  # (sets, 2) int32: category sets as rows beside the bins, 1 for members; used feature, and first word
    words: np.ndarray  # uint32


def compare_rows(game: Game) -> tuple[BinnedSplits, np.ndarray]:
    """Turn categorical splits into comparisons of set membership with 1, in extra rows after the used features.

    Returns
    -------
    splits : BinnedSplits
    sets : (sets, 2) int32
        those rows: the used feature, and the first word of the set
    """
    splits = game.splits
    nodes = np.flatnonzero(splits.members >= 0)
    sets, row = np.unique(np.stack((splits.feature[nodes], splits.members[nodes]), axis=1), axis=0, return_inverse=True)
    feature, lower, span = splits.feature.copy(), splits.lower.copy(), splits.span.copy()
    feature[nodes], lower[nodes], span[nodes] = game.n_used + row.reshape(-1), 1, 0
    return splits._replace(feature=feature, lower=lower, span=span), narrow(sets).reshape(-1, 2)


def trees_by_output(ensemble: TreeEnsemble) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """List the trees with splits by output; trees with a leaf value for each output occur once for each.

    Returns
    -------
    trees : (walks,) int64
    column : (walks,) int64
        which number of its leaves each is about
    output : (outputs + 1,) int64
        output k's are trees[output[k]:output[k + 1]]
    base : (outputs,) float64
        margin of the trees without splits, and before any
    """
    wide, alone, base = ensemble.value.shape[1] > 1, ensemble.feature[ensemble.root] < 0, ensemble.base.astype(np.float64)
    trees = []
    for k in range(base.size):
        mine = (ensemble.output == k) | wide
        trees.append(np.flatnonzero(mine & ~alone))
        base[k] += ensemble.value[ensemble.root[mine & alone], k if wide else 0].sum()
    sizes = [len(some) for some in trees]
    return np.concatenate(trees), np.repeat(np.arange(base.size) * wide, sizes), np.cumsum([0, *sizes]), base


def prepare_gradient(game: Game) -> GradientTables:
    """Lay out the trees of a game for the walk.

    Parameters
    ----------
    game : Game
        whose points do not matter
    """
    ensemble, trace, splits = game.ensemble, game.trace, order_splits(game)
    binned, members = compare_rows(game)
    tree, column, output, base = trees_by_output(ensemble)
    leaf = ensemble.feature < 0
    steps = lay_out_steps(game, splits, binned, tree)
    node, first, second = steps.node, steps.first, steps.second
    above = trace.above[node]
    a_above = np.where(above < 0, 1.0, trace.absent[above])
    a, a_second = trace.absent[first], trace.absent[second]
    values = [np.where(leaf[child], ensemble.value[child, column[steps.walk]], 0.0) for child in (first, second)]
    parts = [np.divide(some, a_above, out=np.zeros(node.size), where=a_above > 0) for some in (a, a_second)]
    return frozen(
        GradientTables(
            start=steps.start,
            stop=steps.stop,
            output=output,
            base=base,
            most=np.array([steps.levels[0], game.n_rows], np.int64),
            steps=narrow(np.column_stack((steps.columns, game.gain[node[steps.split]], N_CONSTANTS * steps.split))),
            constants=np.stack((a, a_second, a_above, *parts, values[0] - values[1], values[1]), axis=1).reshape(-1),
            members=members,
            words=binned.words,
        )
    )


class Stacks(NamedTuple):
    """Scratch arrays of a walk."""

    batch: np.ndarray  # (used + sets, GRADIENT_ROWS) flat, unsigned: bins, and memberships
    bits: np.ndarray  # float64, by place: o of the edge into the node
    inverse: np.ndarray  # by place: o' / F' at the split above
    above: np.ndarray  # by place: products of the factors above
    below: np.ndarray  # by place: sums below


@jit
def make_stacks(bins: np.ndarray, tables: GradientTables) -> Stacks:
    """Allocate the stacks of walks.

    Parameters
    ----------
    bins : (used, n) unsigned integers
    """
    places = 2 * (tables.most[0] + 1) * GRADIENT_ROWS
    batch = np.zeros((bins.shape[0] + len(tables.members)) * GRADIENT_ROWS, bins.dtype)
    return Stacks(batch, aligned(places, 1.0), aligned(2 * places), aligned(2 * places), aligned(2 * places))


@jit
def take_batch(bins: np.ndarray, tables: GradientTables, row: int, batch: np.ndarray) -> None:
    """Copy a batch of rows, and compute its set memberships.

    Parameters
    ----------
    bins : (used, n) unsigned integers
    row : int, the first of GRADIENT_ROWS rows
    batch : of Stacks, overwritten
    """
    n_used = bins.shape[0]
    copy_batch(bins, row, GRADIENT_ROWS, batch)
    for m in range(len(tables.members)):
        feature, word = tables.members[m]
        for i in range(GRADIENT_ROWS):
            batch[(n_used + m) * GRADIENT_ROWS + i] = is_member(tables.words, word, np.int64(batch[feature * GRADIENT_ROWS + i]))


def _make_walker(Q: int) -> Callable[..., None]:
    """Make the walk at Q = 1 point, z, or at two, z and 1 - z."""
    STACK = Q * GRADIENT_ROWS

    @jit
    def walk_trees(stacks: Stacks, tables: GradientTables, k: int, z: np.ndarray, gained: np.ndarray, margin: np.ndarray) -> None:
        """Add output k's mean gradient over the points to ``gained``, and write the margins there.

        Parameters
        ----------
        stacks : of ``make_stacks``, with a batch in it
        tables : GradientTables
        k : the output
        z : (players * GRADIENT_ROWS,) float64, probabilities between INSIDE and 1 - INSIDE, player by player
        gained : (players * GRADIENT_ROWS,) float64
        margin : (Q * GRADIENT_ROWS,) float64, overwritten by f(z), and f(1 - z)
        """
        batch, bits, inverse, S, G = stacks
        steps, constants = tables.steps, tables.constants
        one = splat(1.0)
        margin[:STACK] = tables.base[k]
        for w in range(tables.output[k], tables.output[k + 1]):
            S[:STACK] = 1 / Q
            for s in range(tables.start[w], tables.stop[w]):
                kind, c = steps[s, STEP_KIND], steps[s, GRADIENT_CONSTANTS]
                place, player = steps[s, STEP_PLACE], steps[s, GRADIENT_PLAYER] * GRADIENT_ROWS
                first, second = 2 * (place // 2) + 2, 2 * (place // 2) + 3
                here, S_first, S_second = place * STACK, first * STACK, second * STACK
                compared = steps[s, STEP_FEATURE] * GRADIENT_ROWS
                lower, span = np.int64(steps[s, STEP_LOWER]), np.int64(steps[s, STEP_SPAN])
                o_above, o_first, o_second = steps[s, STEP_ABOVE] * GRADIENT_ROWS, first * GRADIENT_ROWS, second * GRADIENT_ROWS
                if kind == WALK_DOWN:
                    for i in range(0, GRADIENT_ROWS, LANES):
                        o = inside(batch, compared + i, lower, span)
                        other = one - o
                        store(bits, o_first + i, o)
                        store(bits, o_second + i, other)
                        present = load(z, player + i)
                        absent = one - present
                        for q in range(Q):
                            at = q * GRADIENT_ROWS + i
                            product = load(S, here + at)
                            store(S, S_first + at, product * (absent * constant(constants, c + CONSTANT_SHARE) + present * o))
                            store(S, S_second + at, product * (absent * constant(constants, c + CONSTANT_SHARE_SECOND) + present * other))
                            present, absent = absent, present
                elif kind == WALK_UP:
                    for i in range(0, GRADIENT_ROWS, LANES):
                        o, present, total = load(bits, o_first + i), load(z, player + i), splat(0.0)
                        absent, a = one - present, constant(constants, c + CONSTANT_SHARE)
                        for q in range(Q):
                            at = q * GRADIENT_ROWS + i
                            under = load(G, S_second + at)
                            step = load(G, S_first + at) - under
                            total = total + load(S, here + at) * step
                            store(G, here + at, under + (absent * a + present * o) * step)
                            present, absent = absent, present
                        store(gained, player + i, load(gained, player + i) + (o - a) * total)
                elif kind == WALK_UP_LEAF:
                    for i in range(0, GRADIENT_ROWS, LANES):
                        o, present, total = load(bits, o_first + i), load(z, player + i), splat(0.0)
                        absent, a, under = one - present, constant(constants, c + CONSTANT_SHARE), constant(constants, c + CONSTANT_LEAF)
                        for q in range(Q):
                            at = q * GRADIENT_ROWS + i
                            step = load(G, S_first + at) - under
                            total = total + load(S, here + at) * step
                            store(G, here + at, under + (absent * a + present * o) * step)
                            present, absent = absent, present
                        store(gained, player + i, load(gained, player + i) + (o - a) * total)
                elif kind == WALK_LEAVES:
                    for i in range(0, GRADIENT_ROWS, LANES):
                        o, present, total = inside(batch, compared + i, lower, span), load(z, player + i), splat(0.0)
                        absent, a = one - present, constant(constants, c + CONSTANT_SHARE)
                        step, under = constant(constants, c + CONSTANT_STEP), constant(constants, c + CONSTANT_LEAF)
                        for q in range(Q):
                            at = q * GRADIENT_ROWS + i
                            total = total + load(S, here + at)
                            store(G, here + at, under + (absent * a + present * o) * step)
                            present, absent = absent, present
                        store(gained, player + i, load(gained, player + i) + (o - a) * step * total)
                elif kind == WALK_DOWN_AGAIN:
                    for i in range(0, GRADIENT_ROWS, LANES):
                        over = load(bits, o_above + i)
                        o = over * inside(batch, compared + i, lower, span)
                        other, failed = over - o, one - over
                        store(bits, o_first + i, o)
                        store(bits, o_second + i, other)
                        present = load(z, player + i)
                        absent = one - present
                        for q in range(Q):
                            at = q * GRADIENT_ROWS + i
                            product = load(S, here + at)
                            ratio = over / (absent * constant(constants, c + CONSTANT_SHARE_ABOVE) + present)
                            store(inverse, S_first + at, ratio)
                            share = ratio * (absent * constant(constants, c + CONSTANT_SHARE) + present * o)
                            store(S, S_first + at, product * (share + failed * constant(constants, c + CONSTANT_PART)))
                            share = ratio * (absent * constant(constants, c + CONSTANT_SHARE_SECOND) + present * other)
                            store(S, S_second + at, product * (share + failed * constant(constants, c + CONSTANT_PART_SECOND)))
                            present, absent = absent, present
                elif kind == WALK_LEAVES_AGAIN:
                    for i in range(0, GRADIENT_ROWS, LANES):
                        over, present, total = load(bits, o_above + i), load(z, player + i), splat(0.0)
                        o = over * inside(batch, compared + i, lower, span)
                        absent, failed, a = one - present, one - over, constant(constants, c + CONSTANT_SHARE)
                        step, under = constant(constants, c + CONSTANT_STEP), constant(constants, c + CONSTANT_LEAF)
                        for q in range(Q):
                            at = q * GRADIENT_ROWS + i
                            ratio = over / (absent * constant(constants, c + CONSTANT_SHARE_ABOVE) + present)
                            share = ratio * (absent * a + present * o) + failed * constant(constants, c + CONSTANT_PART)
                            total = total + load(S, here + at) * ratio * ratio
                            store(G, here + at, under + share * step)
                            present, absent = absent, present
                        change = (o * constant(constants, c + CONSTANT_SHARE_ABOVE) - over * a) * step
                        store(gained, player + i, load(gained, player + i) + change * total)
                else:
                    last = kind == WALK_UP_LEAF_AGAIN
                    for i in range(0, GRADIENT_ROWS, LANES):
                        over, o, present, total = load(bits, o_above + i), load(bits, o_first + i), load(z, player + i), splat(0.0)
                        absent, failed, a = one - present, one - over, constant(constants, c + CONSTANT_SHARE)
                        for q in range(Q):
                            at = q * GRADIENT_ROWS + i
                            under = constant(constants, c + CONSTANT_LEAF) if last else load(G, S_second + at)
                            step = load(G, S_first + at) - under
                            ratio = load(inverse, S_first + at)
                            share = ratio * (absent * a + present * o) + failed * constant(constants, c + CONSTANT_PART)
                            total = total + load(S, here + at) * step * ratio * ratio
                            store(G, here + at, under + share * step)
                            present, absent = absent, present
                        change = o * constant(constants, c + CONSTANT_SHARE_ABOVE) - over * a
                        store(gained, player + i, load(gained, player + i) + change * total)
            for i in range(0, STACK, LANES):
                store(margin, i, load(margin, i) + load(G, i))

    return walk_trees


walk_one, walk_two = _make_walker(1), _make_walker(2)


def add_gradients(bins: np.ndarray, tables: GradientTables, z: np.ndarray, phi: np.ndarray, margin: np.ndarray) -> None:
    """Add the gradient at every row's own point, and the expected margin there.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    z : (outputs, players, n) float64, probabilities
    phi : (outputs, players, n) float64, margin units
    margin : (outputs, n) float64
    """
    n = bins.shape[1]
    stacks, n_players = make_stacks(bins, tables), tables.most[1]
    point, gained, value = zeros(n_players * GRADIENT_ROWS), zeros(n_players * GRADIENT_ROWS), zeros(GRADIENT_ROWS)
    for row in range(0, n, GRADIENT_ROWS):
        take_batch(bins, tables, row, stacks[0])
        for k in range(tables.base.size):
            point.reshape(-1, GRADIENT_ROWS)[:] = np.clip(z[k, :, row : row + GRADIENT_ROWS], INSIDE, 1 - INSIDE)
            gained[:] = 0.0
            walk_one(stacks, tables, k, point, gained, value)
            phi[k, :, row : row + GRADIENT_ROWS] += gained.reshape(-1, GRADIENT_ROWS)
            margin[k, row : row + GRADIENT_ROWS] += value
