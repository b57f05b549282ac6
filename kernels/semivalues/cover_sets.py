"""Tables of interactions of sets in the path-dependent game: as against a background, with shares from covers.

The value of a leaf where the players S are present is, if the row passes them all, its own times the product of the absent weights of its others: as
against a background of which this share passes them, each independently of the others. So the marginal game's tables of subtrees (see
``marginal.player_sets``) do for this game too. A row reads a number for every set, where a walk multiplies at every quadrature point: for 100 trees
of depth 6, sets of up to three take 8 µs in place of 37. But a table has a row for every code, and codes get longer with every level.
"""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..marginal.game import find_failures
from ..marginal.player_sets import add_leaf, look_up_sets
from ..marginal.subtrees import MOST_BITS, Partitioner, Subtrees
from ..path_dependent.set_games import SetGame
from ..path_dependent.walks import MAX_NODES
from ..set_indices import SetValue
from ..trees.forest import Forest
from ..trees.lookup import LookupTables
from ..trees.paths import find_parents

# Cost of a walk for a row, in units of one lookup of QUAD numbers: this much for every set of a split and quadrature point (measured on AVX-512),
POINT_COST = 0.125
WALK_POINTS = 3  # and as much as so many points for the walk itself.
ENTRIES_PER_NODE = 1024  # largest tables relative to their tree,
MOST_ENTRIES = 1 << 24  # and largest of all trees together: 128 MiB


class Chances(NamedTuple):
    """By what chance absent players pass."""

    parent: np.ndarray  # (nodes,) int32, -1 at roots
    player: np.ndarray  # (nodes,) int32, -1 at leaves
    absent: np.ndarray  # (nodes,) float64, of the player of the split above, down to the node


@jit
def _fill(subtrees: Subtrees, u: int, sets: np.ndarray, chances: Chances, weights: np.ndarray, value: np.ndarray, table: np.ndarray) -> None:
    """Add all leaves of subtree u to ``table (codes, width, sets)``, with ``sets (sets, order)`` of its players."""
    leaves, own = subtrees.leaves, subtrees.player[subtrees.player_start[u] : subtrees.player_start[u + 1]]
    everyone, passing, nobody = np.arange(own.size), np.empty(own.size), np.zeros(len(table))
    local, masks = np.empty(own.size, np.int64), np.empty(len(table), np.int64)
    for leaf in range(leaves.start[u], leaves.start[u + 1]):
        d, F = find_failures(subtrees, u, leaf, everyone, nobody, local, masks)
        passing[:] = -1.0
        below, v = np.int64(leaves.node[leaf]), np.int64(chances.parent[leaves.node[leaf]])
        while v >= 0:
            for p in range(own.size):
                if own[p] == chances.player[v] and passing[local[p]] < 0.0:
                    passing[local[p]] = chances.absent[below]
            below, v = v, np.int64(chances.parent[v])
        for failed in range(F.size):
            F[failed] = 1.0
            for p in range(d):
                F[failed] *= 1.0 - passing[p] if failed >> p & 1 else passing[p]
        add_leaf(d, F, local, masks, sets, weights, value[leaves.node[leaf]], table)


def choose_covered(partitioner: Partitioner, played: SetGame, walked: np.ndarray) -> np.ndarray:
    """Choose those of the ``walked (m,) int64`` trees whose tables are small enough, and quicker to read than a walk, ``(m,) bool``."""
    ensemble, traced = played.game.ensemble, played.game.trace
    n_trees, cut = ensemble.root.size, partitioner.cut(MOST_BITS)
    n_sets = np.bincount(traced.tree, np.diff(played.sets.start), minlength=n_trees)
    points = np.array([rule.nodes.size for rule in played.rules])
    walk = POINT_COST * n_sets * (points + WALK_POINTS * -(-points // MAX_NODES))
    cells = cut.cells[ensemble.root] * ensemble.value.shape[1]
    small = cells <= ENTRIES_PER_NODE * np.bincount(traced.tree, minlength=n_trees)
    chosen = (small & (cut.cost[ensemble.root] < walk))[walked]
    return chosen & (np.cumsum(np.where(chosen, cells[walked], 0.0)) <= MOST_ENTRIES)


def look_up_covered(partitioner: Partitioner, played: SetGame, forest: Forest, value: SetValue, trees: np.ndarray) -> LookupTables:
    """Make the tables of the chosen ``trees (m,) int64``, ascending."""
    coded, game = partitioner.partition(MOST_BITS, trees=trees).coded, played.game
    chances = Chances(find_parents(game.ensemble), forest.player_of_node, game.trace.absent)
    weights = value.coalitions(int(np.diff(coded.player_start).max(initial=1)) + 1)

    def fill(u: int, sets: np.ndarray, table: np.ndarray) -> None:
        _fill(coded, u, sets, chances, weights, game.ensemble.value, table)

    return look_up_sets(forest, coded, played.sets.players, fill)
