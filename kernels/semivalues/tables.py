"""Tables of a value of either game: trees walked and trees looked up; leaves with what is kept of a background."""

from typing import NamedTuple

import numpy as np

from .._jit import frozen
from ..game_values import shapley
from ..marginal.interactions import add_pair_patterns, add_pair_subsets
from ..marginal.patterns import PatternTables, add_patterns, no_patterns
from ..marginal.subsets import SubsetTables, add_subsets, no_subsets
from ..ordering import group_starts, pack_pairs, unpack_pairs
from ..path_dependent.games import Game, play
from ..path_dependent.quadrature import add_walks
from ..path_dependent.walks import WalkTables, lay_out_walks
from ..trees.binning import padded
from ..trees.forest import Forest
from ..trees.lookup import LookupTables, add_lookups, look_up, outcomes, worth_looking_up


class SemivalueTables(NamedTuple):
    """What a value is computed from, in either game."""

    walked: WalkTables  # trees
    looked_up: LookupTables  # trees, and subtrees of the marginal game
    subsets: SubsetTables  # leaves of the marginal game
    patterns: PatternTables


def _columns(game: Game, n_trees: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the rows of phi in which each of the model's trees gains.

    Returns
    -------
    rows : (columns,) int64, the trees' rows end to end, each tree's ascending
    start : (trees + 1,) int64, tree t's are rows[start[t]:start[t + 1]]
    local : (nodes,) int32, which of its tree's rows a split's player gains in, -1 if it is not asked for
    """
    asked = np.flatnonzero(game.gain < game.n_rows)
    asked = asked[game.ensemble.feature[asked] >= 0]
    tree = game.source[game.trace.tree[asked]]
    keys, position = np.unique(pack_pairs(tree, game.gain[asked]), return_inverse=True)
    owner, row = unpack_pairs(keys)
    start = group_starts(owner, n_trees)
    local = np.full(game.gain.size, -1, np.int32)
    local[asked] = position - start[tree]
    return row, start, local


def _look_up(game: Game, forest: Forest, chosen: np.ndarray, rows: np.ndarray, start: np.ndarray, local: np.ndarray) -> LookupTables:
    """Make the tables of the model's trees ``chosen``: the kernel itself fills them, with every outcome of a tree's comparisons as a row of data.

    ``rows``, ``start`` and ``local`` are what ``_columns`` found.
    """
    most, width = int(np.diff(start)[chosen].max(initial=0)), game.ensemble.value.shape[1]
    bits = game._replace(
        splits=game.splits._replace(
            feature=forest.comparisons.number[game.node],
            lower=np.ones(game.node.size, np.int64),
            span=np.zeros(game.node.size, np.int64),
            members=np.full(game.node.size, -1, np.int64),
        ),
        ensemble=game.ensemble._replace(output=np.zeros_like(game.ensemble.output)),
        gain=np.where(local < 0, most, local),
        n_rows=most,
    )
    walks = frozen(lay_out_walks(bits, np.flatnonzero(np.isin(game.source, chosen))))
    targets, tables = [], []
    for tree in chosen:
        n_comparisons, n_columns = int(np.diff(forest.comparisons.start)[tree]), start[tree + 1] - start[tree]
        bins = outcomes(n_comparisons, padded(2**n_comparisons), forest.bin_type)
        phi = np.zeros((width, most, bins.shape[1]))
        add_walks(bins, WalkTables(*(some.of_tree(tree) for some in walks)), phi)
        tables.append(phi[:, :n_columns, : 2**n_comparisons].reshape(-1, 2**n_comparisons).T)
        first_output, mine = forest.ensemble.output[tree], rows[start[tree] : start[tree + 1]]
        targets.append(np.concatenate([(first_output + k) * game.n_rows + mine for k in range(width)]))
    return look_up(forest.splits, forest.comparisons, chosen, targets, tables)


def prepare_semivalue(game: Game, forest: Forest) -> SemivalueTables:
    """Write the trees of a game on a forest for ``add_semivalues``.

    Parameters
    ----------
    game : Game
    forest : Forest

    Returns
    -------
    SemivalueTables
    """
    n_trees = forest.ensemble.root.size
    rows, start, local = _columns(game, n_trees)
    n_nodes = np.bincount(forest.trace.tree, minlength=n_trees)
    chosen = worth_looking_up(forest.comparisons, n_nodes, np.diff(start) * game.ensemble.value.shape[1])
    walked = np.flatnonzero(~chosen[game.source])
    walked = walked[np.argsort(game.ensemble.output[walked], kind="stable")]
    looked_up = _look_up(game, forest, np.flatnonzero(chosen), rows, start, local)
    words = forest.splits.words
    return SemivalueTables(lay_out_walks(game, walked), looked_up, no_subsets(words), no_patterns(words))


def no_semivalues(forest: Forest) -> SemivalueTables:
    """Make tables that add nothing: kernels take the same records whatever was asked for.

    Parameters
    ----------
    forest : Forest

    Returns
    -------
    SemivalueTables
    """
    looked_up, words = look_up(forest.splits, forest.comparisons, (), (), ()), forest.splits.words
    return SemivalueTables(lay_out_walks(play(forest, shapley), ()), looked_up, no_subsets(words), no_patterns(words))


def add_semivalues(bins: np.ndarray, tables: SemivalueTables, phi: np.ndarray) -> None:
    """Add every row's attributions to ``phi``.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    tables : SemivalueTables
    phi : (outputs, rows, n) float64, margin units
    """
    if tables.looked_up.first.size:
        add_lookups(bins, tables.looked_up, phi.reshape(-1, phi.shape[2]))
    add_walks(bins, tables.walked, phi)
    if tables.subsets.first.size:
        add_subsets(bins, tables.subsets, phi)
    if tables.patterns.leaves.output.size:
        add_patterns(bins, tables.patterns, phi)


def add_interactions(bins: np.ndarray, tables: SemivalueTables, pairs: np.ndarray) -> None:
    """Add every row's interactions to ``pairs``.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    tables : SemivalueTables
        of a game of pairs
    pairs : (outputs, pairs, n) float64, margin units
    """
    if tables.looked_up.first.size:
        add_lookups(bins, tables.looked_up, pairs.reshape(-1, pairs.shape[2]))
    add_walks(bins, tables.walked, pairs)
    if tables.subsets.first.size:
        add_pair_subsets(bins, tables.subsets, pairs)
    if tables.patterns.leaves.output.size:
        add_pair_patterns(bins, tables.patterns, pairs)
