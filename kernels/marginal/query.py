"""Statistics that the marginal game needs of a background, and the methods' use of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidParameters
from ..game_values import GameValue
from ..jit.decorator import frozen
from ..method.method import Parameters, Phi, refuse_other
from ..set_indices import SetValue
from ..trees.binning import BinTables
from ..trees.forest import Forest
from ..trees.lookup import LookupTables
from ..trees.margin import margin_bytes
from ..trees.player_sets import list_sets, name_sets
from .background import Background, count_background, weigh_leaves
from .coalitions import Views
from .counts import check_counts
from .game import MarginalGame, table_bytes
from .interactions import list_pairs, pair_bytes, play_pairs_against
from .patterns import PatternTables
from .player_sets import SetPatternTables, play_sets_against, set_bytes
from .subsets import SubsetTables
from .subtrees import MOST_BITS, Partitioner, Partitioning

SUMMED_BITS = 20  # largest number of players of a leaf with sums over subsets
# Fallbacks where memory is short, in order: patterns instead of sums over subsets, then sums over subsets instead of tables.
COARSE_TO_FINE = [*((MOST_BITS, bits) for bits in range(SUMMED_BITS, MOST_BITS, -1)), *((bits, bits) for bits in range(MOST_BITS, -1, -1))]
RECORD_BYTES = 1 << 12  # bytes of records with empty arrays


class MarginalQuery(NamedTuple):
    """A model cut into subtrees, each with a code to be counted over the background."""

    bins: BinTables
    partitioning: Partitioning
    players: np.ndarray  # (rows,) int32, as Prepared.players
    summed_bits: np.ndarray  # (1,) int64, see MarginalGame
    n_bytes: np.ndarray  # (1,) int64, upper bound of the prepared tables
    pairs: np.ndarray  # (pairs, 2) int32 or (sets, order), as Pairs.players; empty without interactions

    def measure(self, values: np.ndarray, bins: np.ndarray, n_rows: int, first_row: int) -> Background:  # noqa: ARG002 - the shape of a query
        """Count the codes of rows at every subtree.

        Parameters
        ----------
        values : (used, n) float64
            not needed, bins say all
        bins : (used, n) unsigned integers, n a multiple of BATCH
        n_rows : int
            how many of the rows count, the first
        first_row : int
            not needed

        Returns
        -------
        Background
            counts are int64
        """
        return count_background(bins, self.partitioning, n_rows)

    def check(self, statistics: Any, n_rows: int) -> None:
        """Refuse counts that no background rows can have.

        Parameters
        ----------
        n_rows : int
            rows of the background
        """
        check_counts(self.partitioning, statistics, n_rows)

    def weigh_leaves(self, forest: Forest) -> Background:
        """Use the model's leaf weights as counts, where its trees are symmetric (Filom et al. 2024, Section 3.3).

        Parameters
        ----------
        forest : Forest
            that the query was made for

        Returns
        -------
        Background
            counts are sums of cover, float64

        Raises
        ------
        InvalidParameters
            trees that are not symmetric, or have no weights
        """
        return weigh_leaves(forest, self.partitioning)


def _players(forest: Forest, phi: Phi) -> tuple[np.ndarray, np.ndarray]:
    """Return the player of every node ``(nodes,) int32``, and the group of each player ``(players,) int32``."""
    if phi.of_groups:
        return forest.player_of_node, np.arange(forest.n_players, dtype=np.int32)
    return forest.splits.feature, forest.player


def make_game(forest: Forest, phi: Phi, query: MarginalQuery, background: Any) -> MarginalGame:
    """Join a model and what is known of a background.

    Parameters
    ----------
    phi : Phi
        of the method
    query : MarginalQuery
        made for the same forest
    background : Background, or a record with its arrays and ``total``
        of all rows
    """
    return MarginalGame(forest, query.partitioning, background, _players(forest, phi)[1], int(query.summed_bits[0]))


def play_against(forest: Forest, phi: Phi, query: Any, statistics: Any) -> MarginalGame:
    """Join a model and a background's counts, and refuse others.

    Parameters
    ----------
    phi : Phi
        of the method
    query : MarginalQuery
        made for the same forest
    statistics : Background
        what the query counted of all rows
    """
    refuse_other(query, statistics, (MarginalQuery, Background))
    return make_game(forest, phi, query, statistics)


@dataclass(frozen=True, slots=True)
class MarginalUse:
    """How a method uses the marginal game."""

    views: tuple[Views, ...]  # players with values in a subtree's table
    tables: Callable[[MarginalGame, Parameters], NamedTuple]  # ``(game, parameters) -> tables`` for the method's kernel
    of_sets: bool = False  # tables have values for every set of a leaf's players, whose codes are counted leaf by leaf

    def ask(self, forest: Forest, bins: BinTables, phi: Phi, n_rows: int | None, budget: int, interactions: bool, order: int = 0) -> MarginalQuery:
        """Cut the model as coarsely as memory allows: with less memory, fewer leaves get tables and more get patterns.

        Parameters
        ----------
        bins : BinTables
            by which the background's rows become bins
        phi : Phi
            of the method
        n_rows : int or None
            rows of the background; None for the model's own leaf weights, of which a tree has as many as leaves
        budget : int
            bytes that tables may have
        interactions : bool
            there are tables of pairs too
        order : int
            these are of sets of up to so many players; 0 for pairs

        Returns
        -------
        MarginalQuery
            contiguous and read-only

        Raises
        ------
        InvalidParameters
            tables do not fit, however the model is cut
        """
        ensemble = forest.ensemble
        player, group = _players(forest, phi)
        partitioner = Partitioner(forest, player, max(1, order))
        sets = list_sets(forest, order) if order else np.zeros((0, 2), np.int32)
        occurring = n_rows or int(np.bincount(forest.trace.tree, ensemble.feature < 0).max(initial=1))
        width, sizes = ensemble.value.shape[1], []
        rest = RECORD_BYTES + bins.threshold.nbytes + 64 * bins.column.size + margin_bytes(ensemble, forest.trace, forest.comparisons)
        for most_bits, summed_bits in [(0, SUMMED_BITS)] if self.of_sets else COARSE_TO_FINE:
            partitioning = partitioner.partition(most_bits, whole_trees=most_bits == MOST_BITS and not (interactions or order))
            most = int(partitioning.deep.bits.max(initial=0))
            if self.of_sets and most > SUMMED_BITS:
                raise InvalidParameters(
                    f"a leaf has {most} features, or groups, above it; rankings against a background take at most {SUMMED_BITS}, "
                    "since tables have a number for every set of them"
                )
            sizes.append(rest + sum(table_bytes(partitioning, occurring, views, group, width, summed_bits) for views in self.views))
            if order:
                sizes[-1] += sets.nbytes + set_bytes(partitioning, occurring, width, order)
            elif interactions:
                sizes[-1] += pair_bytes(partitioning, occurring, width, summed_bits)
            if sizes[-1] <= budget:
                players, pairs = np.asarray(phi.rows(forest), np.int32), sets
                if interactions and not order:
                    pairs = list_pairs(partitioning)
                named = name_sets(forest, pairs)
                return frozen(MarginalQuery(bins, partitioning, players, np.array([summed_bits]), np.array(sizes[-1:]), named))
        raise InvalidParameters(
            f"tables of the marginal game would have {min(sizes) / 2**20:.1f} MiB, {budget / 2**20:.1f} MiB are allowed; "
            "a smaller background, or a partition of the features into fewer groups, needs less"
        )

    def prepare(self, forest: Forest, phi: Phi, parameters: Parameters, query: Any, statistics: Any) -> tuple[NamedTuple, np.ndarray]:
        """Make the kernel's tables from the background's counts.

        Parameters
        ----------
        phi : Phi
            of the method
        parameters : mapping
            from the name of each of the method's parameters to its value
        query : MarginalQuery
            what ``ask`` returned for the same forest
        statistics : Background
            what the query counted of all rows

        Returns
        -------
        tables : NamedTuple
            of the same type as those of the path-dependent game
        base : (outputs,) float64, margin units
            value of the empty coalition, the background's mean margin

        Raises
        ------
        InvalidParameters
            the query or the statistics are those of another use, or the parameters do not fit
        """
        game = play_against(forest, phi, query, statistics)
        return self.tables(game, parameters), game.mean_margin()


def make_pairs(game: MarginalGame, query: MarginalQuery, value: GameValue) -> tuple[LookupTables, SubsetTables, PatternTables]:
    """Make the interaction tables from the background's counts.

    Parameters
    ----------
    query : MarginalQuery
        that the game was made for, and that asked for interactions
    value : GameValue
        of the game in which two players are one

    Returns
    -------
    looked_up, subsets, patterns : LookupTables, SubsetTables, PatternTables
        of ``query.pairs``

    Raises
    ------
    InvalidParameters
        the query asked for no interactions
    """
    pairs = list_pairs(query.partitioning)
    if len(pairs) != len(query.pairs):
        raise InvalidParameters("the background was asked for without interactions")
    return play_pairs_against(game, pairs, value)


def make_sets(game: MarginalGame, query: MarginalQuery, value: SetValue) -> tuple[LookupTables, SetPatternTables]:
    """Make the tables of interactions of sets from the background's counts.

    Parameters
    ----------
    query : MarginalQuery
        that the game was made for, and that asked for interactions of this order
    value : SetValue
        how sets are weighed

    Returns
    -------
    looked_up, patterns : LookupTables, SetPatternTables
        of ``query.pairs``

    Raises
    ------
    InvalidParameters
        the query asked for no such interactions
    """
    sets = list_sets(game.forest, value.order)
    if sets.shape != query.pairs.shape:
        raise InvalidParameters(f"the background was asked for without interactions of order {value.order}")
    return play_sets_against(game, sets, value)
