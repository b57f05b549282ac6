"""Q-SHAP: Shapley values of a boosted ensemble's squared-error reduction, tree by tree.

Trees are taken in boosting order, each against the residual r that the trees before leave of the label (Jiang, Zhang and Zhang 2025, Section 4). With
m(S) the path-dependent game of a tree, absent players averaged by cover, the set S reduces the squared error by 2 r m(S) - m(S)^2: a player's loss is
2 r times its Shapley value of m less that of m^2. A tree's mean, m of the empty set, belongs to no player: it is subtracted from the leaves and the
residual first, so that labels far from 0 lose no digits.

Shapley values of m and m^2 depend on the row only through the outcomes of the tree's comparisons. Where these are few, the values are looked up;
otherwise the tree's game is expanded (see ``expansions``), or, with too many terms, computed by pairs of leaves (see ``leaf_pairs``).
"""

from typing import NamedTuple

import numpy as np

from ..errors import InvalidParameters
from ..game_values import Quadrature, shapley
from ..jit.decorator import frozen, jit
from ..jit.lanes import LANES, QUAD, aligned, load, splat, store, take
from ..trees.binning import padded
from ..trees.forest import Forest
from ..trees.lookup import LOOKUP_ROWS, LookupTables, look_up, make_codes, make_starts, outcomes, padded_width, worth_looking_up
from .expansions import Expansions, Terms, expand, find_terms, lay_out_expansions, most_on_two_paths
from .leaf_pairs import Passes, make_passes, pair_leaves
from .preorder import (
    PREORDER_FEATURE,
    PREORDER_LEFT,
    PREORDER_LOWER,
    PREORDER_MEMBERS,
    PREORDER_PLAYER,
    PREORDER_RIGHT,
    PREORDER_SPAN,
    PreorderTrees,
    Workspace,
    descend,
    lay_out_preorder,
)

ENTRIES_PER_NODE = 256  # largest size of a table of looked-up values, relative to its tree
MOST_TERMS = 1 << 16  # of an expansion; its tables have about as many pairs of numbers
PAIR_COST = 4  # cost of a pair of leaves, in terms of an expansion


class ComputedTrees(NamedTuple):
    """Trees computed from an expansion, or by pairs of leaves at quadrature points."""

    trees: PreorderTrees
    expansion: np.ndarray  # (trees,) int32, number of the tree's expansion, -1 if none
    expansions: Expansions
    point_start: np.ndarray  # (trees + 1,) int64, tree t has points[point_start[t]:point_start[t + 1]], none if it is expanded
    points: np.ndarray  # (points, 2) float64, t and its weight


class QshapTables(NamedTuple):
    """Trees in boosting order, computed or looked up."""

    computed: ComputedTrees
    table: np.ndarray  # (trees,) int32, number of the tree's table, -1 if none
    looked_up: LookupTables  # for each player the Shapley values of m and m squared, then the tree's value less its mean
    base: np.ndarray  # (1,) float64
    start: np.ndarray  # (1,) float64, base plus the first tree's mean: the initial prediction


def _outline(trees: PreorderTrees) -> list[Terms | None]:
    """Find the terms of every tree's expansion, None where pairs of leaves are cheaper."""
    found = []
    for start, stop in zip(trees.start[:-1].tolist(), trees.start[1:].tolist(), strict=True):
        n = stop - start
        found.append(find_terms(trees.splits[start:stop], min(MOST_TERMS, PAIR_COST * (n + 1) ** 2)))
    return found


def _most_together(splits: np.ndarray) -> int:
    """Return the most players on two paths of one tree."""
    n = len(splits)
    path = [0] * (2 * n + 1)
    for v, (left, right, player) in enumerate(splits[:, [PREORDER_LEFT, PREORDER_RIGHT, PREORDER_PLAYER]].tolist()):
        path[left] = path[right] = path[v] | 1 << player
    return most_on_two_paths(path[n:])


def _gather(trees: PreorderTrees, terms: list[Terms | None], wanted: np.ndarray) -> ComputedTrees:
    """Lay out the expansions or points of the trees that are ``wanted (trees,) bool``."""
    expanded = [some for some, keep in zip(terms, wanted, strict=True) if keep and some is not None]
    here = np.array([some is not None for some in terms], bool) & wanted
    none = Quadrature(np.zeros(0), np.zeros(0))
    splits = np.split(trees.splits, trees.start[1:-1]) if len(terms) else []
    rules = [shapley(_most_together(part)) if keep and some is None else none for part, some, keep in zip(splits, terms, wanted, strict=True)]
    return ComputedTrees(
        trees=trees,
        expansion=np.where(here, np.cumsum(here) - 1, -1).astype(np.int32),
        expansions=lay_out_expansions(expanded, [shapley(some.players) for some in expanded]),
        point_start=np.cumsum([0, *(rule.nodes.size for rule in rules)]),
        points=np.concatenate([np.zeros((0, 2)), *(np.stack(rule, axis=1) for rule in rules)]),
    )


@jit
def _make_room(computed: ComputedTrees, bins: np.ndarray) -> tuple[Workspace, Passes]:
    """Allocate scratch arrays for the largest tree."""
    splits, players, places = 1, 1, 1
    for t in range(computed.trees.mean.size):
        splits = max(splits, computed.trees.start[t + 1] - computed.trees.start[t])
        players = max(players, computed.trees.player_start[t + 1] - computed.trees.player_start[t])
    for x in range(computed.expansions.places.size):
        places = max(places, computed.expansions.places[x])
    nodes = 2 * splits + 1
    work = Workspace(
        np.empty(LANES, bins.dtype),
        aligned(splits * LANES),
        aligned(max(nodes, places) * LANES),
        aligned(players * LANES),
        aligned(players * LANES),
    )
    return work, make_passes(nodes, players)


@jit
def _compute(computed: ComputedTrees, t: int, bins: np.ndarray, n: int, row: int, work: Workspace, passes: Passes) -> None:
    """Compute the Shapley values of tree t and its square for LANES rows from ``row`` on, and the tree's value, in ``work.values``' first place."""
    descend(computed.trees, t, bins, n, row, work)
    x = computed.expansion[t]
    if x >= 0:
        expand(computed.trees, t, computed.expansions, x, work)
    else:
        pair_leaves(computed.trees, t, computed.points[computed.point_start[t] : computed.point_start[t + 1]], work, passes)


@jit
def _tabulate(bins: np.ndarray, computed: ComputedTrees, t: int, table: np.ndarray) -> None:
    """Write the values of tree t for every row to ``table (2 * players + 1, n)``."""
    n = bins.shape[1]
    players = computed.trees.player_start[t + 1] - computed.trees.player_start[t]
    work, passes = _make_room(computed, bins)
    for row in range(0, n, LANES):
        _compute(computed, t, bins.reshape(-1), n, row, work, passes)
        for i in range(LANES):
            for j in range(players):
                table[2 * j, row + i], table[2 * j + 1, row + i] = work.phi[j * LANES + i], work.phi_of_square[j * LANES + i]
            table[2 * players, row + i] = work.values[i]


def _look_up(forest: Forest, trees: PreorderTrees, terms: list[Terms | None], chosen: np.ndarray) -> LookupTables:
    """Make tables of the ``chosen (trees,) bool``, from rows with every combination of outcomes of a tree's comparisons."""
    node = forest.trace.order[forest.stored.feature[forest.trace.order] >= 0]
    splits = trees.splits.copy()  # with comparisons of outcomes, as bins 0 and 1
    splits[:, PREORDER_FEATURE], splits[:, PREORDER_LOWER] = forest.comparisons.number[node], 1
    splits[:, PREORDER_SPAN], splits[:, PREORDER_MEMBERS] = 0, -1
    computed = frozen(_gather(trees._replace(splits=splits), terms, chosen))
    tables = []
    for tree in np.flatnonzero(chosen):
        n_comparisons = int(np.diff(forest.comparisons.start)[tree])
        table = np.zeros((2 * int(np.diff(trees.player_start)[tree]) + 1, padded(2**n_comparisons)))
        _tabulate(outcomes(n_comparisons, table.shape[1], forest.bin_type), computed, tree, table)
        tables.append(table[:, : 2**n_comparisons].T)
    return look_up(forest.splits, forest.comparisons, np.flatnonzero(chosen), [np.zeros(table.shape[1]) for table in tables], tables)


def prepare_qshap(forest: Forest) -> QshapTables:
    """Lay out the trees of a regression for ``add_losses``."""
    n_outputs = forest.stored.base.size
    if n_outputs > 1:
        raise InvalidParameters(f"method 'r2' needs a model of one output, got {n_outputs}")
    trees = lay_out_preorder(forest)
    terms = _outline(trees)
    chosen = worth_looking_up(forest.comparisons, 2 * np.diff(trees.start) + 1, 2 * np.diff(trees.player_start) + 1, ENTRIES_PER_NODE)
    base = forest.stored.base.astype(np.float64)
    return QshapTables(
        computed=_gather(trees, terms, ~chosen),
        table=np.where(chosen, np.cumsum(chosen) - 1, -1).astype(np.int32),
        looked_up=_look_up(forest, trees, terms, chosen),
        base=base,
        start=base + trees.mean[:1].sum(),
    )


@jit
def _add_looked_up(tables: QshapTables, t: int, starts: np.ndarray, row: int, size: int, loss: np.ndarray, residual: np.ndarray) -> None:
    """Add tree t's part to the losses of ``size`` rows from ``row`` on, and subtract its value from their residuals.

    ``starts (size,)`` are starts of the rows' numbers in the tree's table; ``loss (players * n,)`` and ``residual (n,)`` are of all rows.
    """
    looked_up, trees, x, n = tables.looked_up, tables.computed.trees, tables.table[t], residual.size
    first_player, first, width = trees.player_start[t], looked_up.first[x], looked_up.column[x + 1] - looked_up.column[x]
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
def _add_computed(trees: PreorderTrees, t: int, work: Workspace, row: int, loss: np.ndarray, residual: np.ndarray) -> None:
    """Do the same for LANES rows with computed values."""
    first_player, n = trees.player_start[t], residual.size
    left = load(residual, row)
    for j in range(trees.player_start[t + 1] - first_player):
        at = trees.player[first_player + j] * n + row
        store(loss, at, load(loss, at) + (left + left) * load(work.phi, j * LANES) - load(work.phi_of_square, j * LANES))
    store(residual, row, left - load(work.values, 0))


@jit
def add_losses(bins: np.ndarray, tables: QshapTables, loss: np.ndarray, label: np.ndarray, residual: np.ndarray, remainder: np.ndarray) -> None:
    """Add every player's reduction of every row's squared error to ``loss`` (Jiang, Zhang and Zhang 2025, Section 4).

    A row's losses add up to ``(label - start)^2 - (label - margin)^2 + remainder``. With r the residual before a tree, its players share (r - mean)^2
    - (r - mean - value)^2. The remainder is the sum of (r - mean)^2 - r^2 over all trees but the first, whose mean (in which a library may keep that
    of the labels) is part of ``tables.start``.
    """
    n = bins.shape[1]
    trees, looked_up = tables.computed.trees, tables.looked_up
    flat_bins, flat_loss = bins.reshape(-1), loss.reshape(-1)
    work, passes = _make_room(tables.computed, bins)
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
            x = tables.table[t]
            if x >= 0:
                make_codes(flat_bins, n, row, size, looked_up, x, codes, members)
                make_starts(codes, padded_width(looked_up.column[x + 1] - looked_up.column[x]), size, starts)
                _add_looked_up(tables, t, starts, row, size, flat_loss, residual)
            else:
                for i in range(row, row + size, LANES):
                    _compute(tables.computed, t, flat_bins, n, i, work, passes)
                    _add_computed(trees, t, work, i, flat_loss, residual)
