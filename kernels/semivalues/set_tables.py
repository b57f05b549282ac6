"""Tables and kernels of interactions of sets of players, in either game: walked trees, looked-up trees, and leaves with background patterns."""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import frozen
from ..marginal.player_sets import SetPatternTables, add_set_patterns, no_set_patterns
from ..marginal.subtrees import Partitioner
from ..path_dependent.set_games import SetGame, SetWalkTables, lay_out_set_walks, no_set_walks
from ..path_dependent.set_walks import add_set_walks
from ..set_indices import SetValue
from ..trees.forest import Forest
from ..trees.lookup import LookupTables, add_lookups, look_up
from .cover_sets import choose_covered, look_up_covered
from .tables import as_bits, choose_trees, fill_tables, find_columns

ENTRIES_PER_NODE = 128  # largest table relative to its tree: a walk goes through many times as many sets as a table has columns


class SetTables(NamedTuple):
    """Tables of interactions of sets, in either game."""

    walked: SetWalkTables  # trees
    looked_up: LookupTables  # trees
    subtrees: LookupTables  # of trees of either game
    patterns: SetPatternTables  # leaves of the marginal game
    adds_up: np.ndarray  # (1,) bool, see ``add_up``

    @property
    def add_up(self) -> bool:
        """Whether all interactions of a row add up to its margin less the base value."""
        return bool(self.adds_up[0])

    def add(self, bins: np.ndarray, out: np.ndarray, n_rows: int) -> None:
        """Add every row's interactions.

        Parameters
        ----------
        bins : (used, n) unsigned integers, n a multiple of BATCH
        out : (outputs, sets, n) float64, margin units
        n_rows : int
            how many rows count, the first; others may be left out
        """
        for tables in (self.looked_up, self.subtrees):
            if tables.first.size:
                add_lookups(bins, tables, out.reshape(-1, out.shape[2]))
        add_set_walks(bins, self.walked, out, n_rows)
        if self.patterns.leaves.output.size:
            add_set_patterns(bins, self.patterns, out)


def prepare_sets(played: SetGame, forest: Forest, value: SetValue) -> SetTables:
    """Lay out the trees of a game of sets."""
    game, sets = played.game, played.sets
    tree = np.repeat(game.trace.tree, np.diff(sets.start))
    rows, start, local = find_columns(tree, sets.row, forest.ensemble.root.size)
    chosen, walked, most = choose_trees(game, forest, start, ENTRIES_PER_NODE)
    bits = played._replace(game=as_bits(game, forest, most), sets=sets._replace(row=local))
    filling = frozen(lay_out_set_walks(bits, chosen))
    looked_up = fill_tables(game, forest, chosen, rows, start, lambda tree, bins, phi: add_set_walks(bins, filling.of_tree(tree), phi, bins.shape[1]))
    partitioner = Partitioner(forest, forest.player_of_node, value.order)
    covered = choose_covered(partitioner, played, walked)
    subtrees = look_up_covered(partitioner, played, forest, value, np.sort(walked[covered]))
    patterns = no_set_patterns(value.order, forest.splits.words)
    return SetTables(lay_out_set_walks(played, walked[~covered]), looked_up, subtrees, patterns, np.array([value.adds_up]))


def sets_against(forest: Forest, subtrees: LookupTables, patterns: SetPatternTables, adds_up: bool) -> SetTables:
    """Make the tables of a game against a background, without walks."""
    walked = no_set_walks(patterns.weights.shape[0], forest.ensemble.value.shape[1], forest.splits.words)
    return SetTables(walked, look_up(forest.splits, forest.comparisons, (), (), ()), subtrees, patterns, np.array([adds_up]))
