"""Tables and kernels of a value in either game: walked trees, looked-up trees, and leaves with background data."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..arrays.ordering import group_starts, pack_pairs, unpack_pairs
from ..jit.decorator import frozen
from ..marginal.interactions import add_pair_patterns, add_pair_subsets
from ..marginal.patterns import PatternTables, add_patterns, no_patterns
from ..marginal.subsets import SubsetTables, add_subsets, no_subsets
from ..path_dependent.games import Game
from ..path_dependent.interactions import PairGame, PairWalkTables, lay_out_pair_walks, no_pair_walk_tables
from ..path_dependent.quadrature import add_pair_walks, add_walks
from ..path_dependent.walks import WalkTables, lay_out_walks, no_walk_tables
from ..trees.binning import padded
from ..trees.forest import Forest
from ..trees.lookup import LookupTables, add_lookups, look_up, outcomes, worth_looking_up


class SemivalueTables(NamedTuple):
    """Tables of a value, in either game."""

    walked: WalkTables  # trees
    looked_up: LookupTables  # trees, and subtrees of the marginal game
    subsets: SubsetTables  # leaves of the marginal game
    patterns: PatternTables


class InteractionTables(NamedTuple):
    """Tables of interactions, in either game."""

    walked: PairWalkTables  # trees
    looked_up: LookupTables  # see SemivalueTables
    subsets: SubsetTables
    patterns: PatternTables

    @property
    def add_up(self) -> bool:
        """Whether all interactions of a row add up to its margin less the base value."""
        return False

    def add(self, bins: np.ndarray, out: np.ndarray, n_rows: int) -> None:
        """Add every row's interactions.

        Parameters
        ----------
        bins : (used, n) unsigned integers, n a multiple of BATCH
        out : (outputs, pairs, n) float64, margin units
        n_rows : int
            how many rows count, the first; others may be left out
        """
        if self.looked_up.first.size:
            add_lookups(bins, self.looked_up, out.reshape(-1, out.shape[2]))
        add_pair_walks(bins, self.walked, out, n_rows)
        if self.subsets.first.size:
            add_pair_subsets(bins, self.subsets, out)
        if self.patterns.leaves.output.size:
            add_pair_patterns(bins, self.patterns, out)


def find_columns(tree: np.ndarray, row: np.ndarray, n_trees: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the rows of phi to which each of the model's trees adds."""
    keys, position = np.unique(pack_pairs(tree, row), return_inverse=True)
    owner, rows = unpack_pairs(keys)
    start = group_starts(owner, n_trees)
    return rows, start, (position - start[tree]).astype(np.int32)


def as_bits(game: Game, forest: Forest, n_rows: int) -> Game:
    """Play the same game on rows of outcomes of comparisons; all trees add to the first output."""
    return game._replace(
        splits=game.splits._replace(
            feature=forest.comparisons.number[game.node],
            lower=np.ones(game.node.size, np.int64),
            span=np.zeros(game.node.size, np.int64),
            members=np.full(game.node.size, -1, np.int64),
        ),
        ensemble=game.ensemble._replace(output=np.zeros_like(game.ensemble.output)),
        n_rows=n_rows,
    )


def fill_tables(
    game: Game, forest: Forest, chosen: np.ndarray, rows: np.ndarray, start: np.ndarray, add: Callable[[int, np.ndarray, np.ndarray], None]
) -> LookupTables:
    """Make the tables of the ``chosen`` trees by running the kernel on every combination of outcomes as a row.

    ``rows`` and ``start`` come from ``find_columns``; ``add`` takes a tree, bins, and phi with a row for each of the tree's.
    """
    most, width = int(np.diff(start)[chosen].max(initial=0)), game.ensemble.value.shape[1]
    targets, tables = [], []
    for tree in chosen:
        n_comparisons, n_columns = int(np.diff(forest.comparisons.start)[tree]), start[tree + 1] - start[tree]
        bins = outcomes(n_comparisons, padded(2**n_comparisons), forest.bin_type)
        phi = np.zeros((width, most, bins.shape[1]))
        add(tree, bins, phi)
        tables.append(phi[:, :n_columns, : 2**n_comparisons].reshape(-1, 2**n_comparisons).T)
        first_output, mine = forest.ensemble.output[tree], rows[start[tree] : start[tree + 1]]
        targets.append(np.concatenate([(first_output + k) * game.n_rows + mine for k in range(width)]))
    return look_up(forest.splits, forest.comparisons, chosen, targets, tables)


def choose_trees(game: Game, forest: Forest, start: np.ndarray, entries_per_node: int | None = None) -> tuple[np.ndarray, np.ndarray, int]:
    """Choose which of the model's trees are looked up and which of the game's are walked; return also the most rows of a tree."""
    n_columns = np.diff(start)
    n_nodes = np.bincount(forest.trace.tree, minlength=n_columns.size)
    chosen = worth_looking_up(forest.comparisons, n_nodes, n_columns * game.ensemble.value.shape[1], entries_per_node)
    walked = np.flatnonzero(~chosen[game.source] & (n_columns[game.source] > 0))
    chosen = np.flatnonzero(chosen)
    return chosen, walked[np.argsort(game.ensemble.output[walked], kind="stable")], int(n_columns[chosen].max(initial=0))


def prepare_semivalue(game: Game, forest: Forest) -> SemivalueTables:
    """Lay out the trees of a game for ``add_semivalues``."""
    asked = np.flatnonzero((game.gain < game.n_rows) & (game.ensemble.feature >= 0))
    rows, start, local = find_columns(game.source[game.trace.tree[asked]], game.gain[asked], forest.ensemble.root.size)
    chosen, walked, most = choose_trees(game, forest, start)
    gain = np.full(game.gain.size, most, np.int32)
    gain[asked] = local
    bits = as_bits(game, forest, most)._replace(gain=gain)
    filling = frozen(lay_out_walks(bits, np.flatnonzero(np.isin(game.source, chosen))))
    looked_up = fill_tables(game, forest, chosen, rows, start, lambda tree, bins, phi: add_walks(bins, filling.of_tree(tree), phi, bins.shape[1]))
    words = forest.splits.words
    return SemivalueTables(lay_out_walks(game, walked), looked_up, no_subsets(words), no_patterns(words))


def prepare_interactions(played: PairGame, forest: Forest) -> InteractionTables:
    """Lay out the trees of a game of pairs for ``InteractionTables.add``."""
    game, partners = played
    tree = np.repeat(game.trace.tree, np.diff(partners.start))
    rows, start, local = find_columns(tree, partners.row, forest.ensemble.root.size)
    chosen, walked, most = choose_trees(game, forest, start)
    bits = PairGame(as_bits(game, forest, most)._replace(gain=np.full_like(game.gain, most)), partners._replace(row=local))
    filling = frozen(lay_out_pair_walks(bits, chosen))
    looked_up = fill_tables(
        game, forest, chosen, rows, start, lambda tree, bins, phi: add_pair_walks(bins, filling.of_tree(tree), phi, bins.shape[1])
    )
    words = forest.splits.words
    return InteractionTables(lay_out_pair_walks(played, walked), looked_up, no_subsets(words), no_patterns(words))


def no_semivalues(forest: Forest) -> SemivalueTables:
    """Make empty tables, so that kernels always take the same records."""
    looked_up, words = look_up(forest.splits, forest.comparisons, (), (), ()), forest.splits.words
    return SemivalueTables(no_walk_tables(forest.ensemble.value.shape[1], words), looked_up, no_subsets(words), no_patterns(words))


def pairs_against(forest: Forest, looked_up: LookupTables, subsets: SubsetTables, patterns: PatternTables) -> InteractionTables:
    """Make the tables of a game against a background, without walks."""
    return no_interactions(forest)._replace(looked_up=looked_up, subsets=subsets, patterns=patterns)


def no_interactions(forest: Forest) -> InteractionTables:
    """Make empty interaction tables, see ``no_semivalues``."""
    looked_up, words = look_up(forest.splits, forest.comparisons, (), (), ()), forest.splits.words
    return InteractionTables(no_pair_walk_tables(forest.ensemble.value.shape[1], words), looked_up, no_subsets(words), no_patterns(words))


def add_semivalues(bins: np.ndarray, tables: SemivalueTables, phi: np.ndarray, n_rows: int) -> None:
    """Add the attributions of the first ``n_rows`` rows to ``phi``; others may be left out."""
    if tables.looked_up.first.size:
        add_lookups(bins, tables.looked_up, phi.reshape(-1, phi.shape[2]))
    add_walks(bins, tables.walked, phi, n_rows)
    if tables.subsets.first.size:
        add_subsets(bins, tables.subsets, phi)
    if tables.patterns.leaves.output.size:
        add_patterns(bins, tables.patterns, phi)
