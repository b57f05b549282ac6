"""Which feature takes how much off every row's squared error: Shapley values of a boosted ensemble's loss, tree by tree (Q-SHAP).

Trees are taken in boosting order, each against the residual r that the trees before leave of the label (Jiang, Zhang and Zhang 2025, Section 4).
With m(S) the path-dependent game of a tree, absent players averaged by cover, the set S takes 2 r m(S) - m(S)^2 off the squared error: a player's
part is 2 r times its Shapley value of m less that of m^2. A tree's mean m(no player) belongs to nobody: it is taken off the leaves and off the
residual first, so that what remains is small beside it and labels far from 0 lose no digits.

Shapley values of m and m^2 depend on the row through the outcomes of the tree's comparisons alone. Where those are few they are looked up; else the
tree's game is expanded; else, where it has too many terms, leaves are taken in pairs.
"""

from typing import NamedTuple

import numpy as np

from .._jit import frozen, jit
from ..game_values import Quadrature, shapley
from ..lanes import LANES, QUAD, load, splat, store, take
from ..parameters import InvalidParameters
from ..trees.binning import padded
from ..trees.forest import Forest
from ..trees.lookup import LOOKUP_ROWS, LookupTables, look_up, make_codes, make_starts, outcomes, padded_width, worth_looking_up
from .expansions import Expansions, Terms, expand, find_terms, lay_out_expansions, together
from .leaf_pairs import make_pass, pair_leaves
from .preorder import FEATURE, LEFT, LOWER, MEMBERS, PLAYER, RIGHT, ROWS, SPAN, PreorderTrees, ask, number

ENTRIES_PER_NODE = 256  # a table of looked-up values is at most so many times as large as its tree
MOST_TERMS = 1 << 16  # of an expansion; its tables have about so many pairs of numbers
PAIR_COST = 4  # of a pair of leaves, in terms of an expansion


class Games(NamedTuple):
    """Trees whose values are computed: expanded, or taken by pairs of leaves."""

    trees: PreorderTrees
    expansion: np.ndarray  # (trees,) int32, number of the tree's expansion, -1 without one
    expansions: Expansions
    point_start: np.ndarray  # (trees + 1,) int64, tree t's are points[point_start[t]:point_start[t + 1]], none if it is expanded
    points: np.ndarray  # (points, 2) float64, t and its weight


class QshapTables(NamedTuple):
    """Trees in boosting order, computed or looked up."""

    games: Games
    table: np.ndarray  # (trees,) int32, number of the tree's table, -1 without one
    looked_up: LookupTables  # of each player the value of m and that of m squared, then the tree's own, less its mean
    base: np.ndarray  # (1,) float64
    start: np.ndarray  # (1,) float64, base and the first tree's mean: where the residual starts


class _Room(NamedTuple):
    """What a tree is worked on in."""

    members: np.ndarray  # (ROWS,) unsigned integers
    bits: np.ndarray
    work: np.ndarray
    once: np.ndarray
    twice: np.ndarray


def _outline(trees: PreorderTrees) -> list[Terms | None]:
    """The terms of every tree's expansion, None where pairs of leaves are fewer."""
    found = []
    for start, stop in zip(trees.start[:-1].tolist(), trees.start[1:].tolist(), strict=True):
        n = stop - start
        found.append(find_terms(trees.splits[start:stop], min(MOST_TERMS, PAIR_COST * (n + 1) ** 2)))
    return found


def _most_together(splits) -> int:
    """Most players on two paths of one tree."""
    n = len(splits)
    path = [0] * (2 * n + 1)
    for v, (left, right, player) in enumerate(splits[:, [LEFT, RIGHT, PLAYER]].tolist()):
        path[left] = path[right] = path[v] | 1 << player
    return together(path[n:])


def _gather(trees: PreorderTrees, terms: list[Terms | None], wanted) -> Games:
    """The games of the trees that are ``wanted (trees,) bool``."""
    expanded = [some for some, keep in zip(terms, wanted, strict=True) if keep and some is not None]
    here = np.array([some is not None for some in terms], bool) & wanted
    none = Quadrature(np.zeros(0), np.zeros(0))
    splits = np.split(trees.splits, trees.start[1:-1]) if len(terms) else []
    rules = [shapley(_most_together(part)) if keep and some is None else none for part, some, keep in zip(splits, terms, wanted, strict=True)]
    return Games(
        trees=trees,
        expansion=np.where(here, np.cumsum(here) - 1, -1).astype(np.int32),
        expansions=lay_out_expansions(expanded, [shapley(some.players) for some in expanded]),
        point_start=np.cumsum([0, *(rule.nodes.size for rule in rules)]),
        points=np.concatenate([np.zeros((0, 2)), *(np.stack(rule, axis=1) for rule in rules)]),
    )


@jit
def _make_room(games, bins):
    """Room for the largest tree."""
    splits, players, places = 1, 1, 1
    for t in range(games.trees.mean.size):
        splits = max(splits, games.trees.start[t + 1] - games.trees.start[t])
        players = max(players, games.trees.player_start[t + 1] - games.trees.player_start[t])
    for x in range(games.expansions.places.size):
        places = max(places, games.expansions.places[x])
    nodes = 2 * splits + 1
    room = _Room(
        np.empty(ROWS, bins.dtype),
        np.empty(splits * ROWS),
        np.empty(max(nodes, places) * ROWS),
        np.empty(players * ROWS),
        np.empty(players * ROWS),
    )
    return room, make_pass(nodes, players), make_pass(nodes, players), np.empty(nodes, np.int64), np.empty(players, np.int64)


@jit
def _evaluate(games, t, bins, n, row, room, outer, inner, parent, seen):
    """Shapley values of tree t and of its square, and at the first places of ``room.work`` its own value, for ROWS rows from ``row`` on."""
    ask(games.trees, t, bins, n, row, room.members, room.bits, room.work)
    x = games.expansion[t]
    if x >= 0:
        expand(games.trees, t, games.expansions, x, room.bits, room.work, room.once, room.twice)
    else:
        begin, end = games.point_start[t], games.point_start[t + 1]
        pair_leaves(games.trees, t, games.points, begin, end, room.bits, outer, inner, parent, seen, room.once, room.twice)


@jit
def _tabulate(bins, games, t, table):
    """Values of tree t, ``table (2 * players + 1, n)``."""
    n = bins.shape[1]
    players = games.trees.player_start[t + 1] - games.trees.player_start[t]
    room, outer, inner, parent, seen = _make_room(games, bins)
    for row in range(0, n, ROWS):
        _evaluate(games, t, bins.reshape(-1), n, row, room, outer, inner, parent, seen)
        for i in range(ROWS):
            for j in range(players):
                table[2 * j, row + i], table[2 * j + 1, row + i] = room.once[j * ROWS + i], room.twice[j * ROWS + i]
            table[2 * players, row + i] = room.work[i]


def _look_up(forest: Forest, trees: PreorderTrees, terms: list[Terms | None], chosen) -> LookupTables:
    """Tables of the trees that are ``chosen (trees,) bool``: their games with every outcome of a tree's comparisons as a row of data."""
    node = forest.trace.order[forest.ensemble.feature[forest.trace.order] >= 0]
    bits = trees.splits.copy()
    bits[:, FEATURE], bits[:, LOWER], bits[:, SPAN], bits[:, MEMBERS] = forest.comparisons.number[node], 1, 0, -1
    games = frozen(_gather(trees._replace(splits=bits), terms, chosen))
    tables = []
    for tree in np.flatnonzero(chosen):
        n_comparisons = int(np.diff(forest.comparisons.start)[tree])
        table = np.zeros((2 * int(np.diff(trees.player_start)[tree]) + 1, padded(2**n_comparisons)))
        _tabulate(outcomes(n_comparisons, table.shape[1], forest.bin_type), games, tree, table)
        tables.append(table[:, : 2**n_comparisons].T)
    return look_up(forest.splits, forest.comparisons, np.flatnonzero(chosen), [np.zeros(table.shape[1]) for table in tables], tables)


def prepare_qshap(forest: Forest) -> QshapTables:
    """Write the trees of a regression, which has one output, for ``add_losses``, or InvalidParameters."""
    n_outputs = forest.ensemble.base.size
    if n_outputs > 1:
        raise InvalidParameters(f"method 'r2' needs a model of one output, got {n_outputs}")
    trees = number(forest)
    terms = _outline(trees)
    chosen = worth_looking_up(forest.comparisons, 2 * np.diff(trees.start) + 1, 2 * np.diff(trees.player_start) + 1, ENTRIES_PER_NODE)
    base = forest.ensemble.base.astype(np.float64)
    return QshapTables(
        games=_gather(trees, terms, ~chosen),
        table=np.where(chosen, np.cumsum(chosen) - 1, -1).astype(np.int32),
        looked_up=_look_up(forest, trees, terms, chosen),
        base=base,
        start=base + trees.mean[:1].sum(),
    )


@jit
def _add_looked_up(tables, t, codes, starts, row, size, n, loss, residual):
    """Add tree t's part to the losses of ``size`` rows from ``row`` on, and take its value off their residuals.

    ``starts (LOOKUP_ROWS,)`` is to work in.
    """
    looked_up, trees, x = tables.looked_up, tables.games.trees, tables.table[t]
    first_player, first, width = trees.player_start[t], looked_up.first[x], looked_up.column[x + 1] - looked_up.column[x]
    make_starts(codes, padded_width(width), size, starts)
    for k in range(0, width, QUAD):
        one = trees.player[first_player + k // 2] * n + row if k < width - 1 else 0
        other = trees.player[first_player + k // 2 + 1] * n + row if k + 2 < width - 1 else 0
        for i in range(0, size, LANES):
            a, a_squared, b, b_squared = take(looked_up.values, first + k, starts, i)
            left = load(residual, row + i)
            if k < width - 1:
                store(loss, one + i, load(loss, one + i) + (left + left) * a - a_squared)
                if k + 2 < width - 1:
                    store(loss, other + i, load(loss, other + i) + (left + left) * b - b_squared)
                else:
                    store(residual, row + i, left - b)
            else:
                store(residual, row + i, left - a)


@jit
def _add_evaluated(trees, t, room, row, n, loss, residual):
    """The same for ROWS rows and values that were computed."""
    first_player = trees.player_start[t]
    left = load(residual, row)
    for j in range(trees.player_start[t + 1] - first_player):
        at = trees.player[first_player + j] * n + row
        store(loss, at, load(loss, at) + (left + left) * load(room.once, j * ROWS) - load(room.twice, j * ROWS))
    store(residual, row, left - load(room.work, 0))


@jit
def add_losses(bins, tables, loss, label, residual, remainder):
    """Add to ``loss`` what every player takes off every row's squared error.

    On every row the losses add up to ``(label - start)^2 - (label - margin)^2 + remainder``: with r the residual before a tree, r - mean what it is
    once the tree's mean is off, the tree's players share (r - mean)^2 - (r - mean - value)^2, and what the means of all trees but the first do is
    the remainder, the sum of (r - mean)^2 - r^2. The first tree's mean, in which a library may keep that of the labels, is part of ``tables.start``.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    tables : QshapTables
    loss : (1, players, n) float64, squared units of the label
    label : (n,) float64
    residual : (n,) float64, overwritten: label - margin
    remainder : (n,) float64, overwritten
    """
    n = bins.shape[1]
    trees = tables.games.trees
    flat_ranks, flat_loss = bins.reshape(-1), loss.reshape(-1)
    room, outer, inner, parent, seen = _make_room(tables.games, bins)
    codes, members, starts = np.empty(LOOKUP_ROWS, np.uint16), np.empty(LOOKUP_ROWS, bins.dtype), np.empty(LOOKUP_ROWS, np.uint32)
    for i in range(n):
        residual[i], remainder[i] = label[i] - tables.base[0], 0.0
    for row in range(0, n, LOOKUP_ROWS):
        size = min(LOOKUP_ROWS, n - row)
        for t in range(trees.mean.size):
            mean, counted = splat(trees.mean[t]), splat(trees.mean[t] if t > 0 else 0.0)
            for i in range(row, row + size, LANES):
                before = load(residual, i)
                store(remainder, i, load(remainder, i) + counted * (mean - before - before))
                store(residual, i, before - mean)
            if tables.table[t] >= 0:
                make_codes(flat_ranks, n, row, size, tables.looked_up, tables.table[t], codes, members)
                _add_looked_up(tables, t, codes, starts, row, size, n, flat_loss, residual)
            else:
                for i in range(row, row + size, ROWS):
                    _evaluate(tables.games, t, flat_ranks, n, i, room, outer, inner, parent, seen)
                    _add_evaluated(trees, t, room, i, n, flat_loss, residual)
