"""Preparation per model: the forest, queries of a background, and the tables for workers."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .errors import InvalidParameters
from .game_values import GameValue
from .jit.decorator import frozen
from .marginal.query import MarginalUse, make_pairs, make_sets, play_against
from .method.jackknife import N_GROUPS, JackknifeGroups, JackknifeQuery
from .method.method import BackgroundQuery, BackgroundStatistics, BackgroundUse, Method, Parameters, Phi, refuse_other
from .path_dependent.interactions import play_pairs
from .path_dependent.set_games import play_sets
from .quotients.quantities import Quantity
from .semivalues.set_tables import prepare_sets, sets_against
from .semivalues.tables import no_interactions, pairs_against, prepare_interactions
from .set_indices import Sets, SetValue, of_index, of_value
from .slices.buffers import NO_GROUPS, NO_PAIRS, NOT_SHARED, NOT_WEIGHTED, Pairs, Prepared, Sharing, Weighted, WeightedPairs, WithoutGroups
from .trees.binning import BinTables, bin_dtype, bin_rows, padded
from .trees.ensemble import TreeEnsemble
from .trees.forest import Forest, make_forest
from .trees.margin import prepare_margin
from .trees.paths import empty_coalition, margin_bound
from .trees.player_sets import name_sets
from .weighted.counts import MarginRange
from .weighted.query import CarriedQuery, ask_carried, count_games, prepare_carried, weigh_games

Shared = Mapping[int, tuple[int, ...]]
NOBODY: Shared = {}


def _plant(ensemble: TreeEnsemble, method: Method, groups: np.ndarray | None) -> tuple[BinTables, Forest]:
    """Make the forest for a method; refuse one that needs groups and has none."""
    if groups is None and not method.phi.of_groups:
        raise InvalidParameters(f"method {method.name!r} needs a partition of the features")
    return make_forest(ensemble, groups)


def ask_background(
    ensemble: TreeEnsemble,
    method: Method,
    groups: np.ndarray | None = None,
    *,
    n_rows: int | None,
    budget: int,
    interactions: bool = False,
    errors: bool = False,
    order: int = 0,
    quantity: Quantity | None = None,
) -> BackgroundQuery:
    """Make the background query of a method, with a bound of the memory of its tables.

    Parameters
    ----------
    groups : (features,) int
        which group a feature belongs to; None where each is a player of its own
    n_rows : int or None
        rows of the background; None for the model's own leaf weights
    budget : int
        bytes that tables may have
    interactions : bool
        as ``prepare`` takes it
    errors : bool
        standard errors of values will be asked for
    order : int
        interactions are of sets of up to so many players; 0 for pairs
    quantity : Quantity, optional
        that values will be carried to, background row by background row

    Returns
    -------
    BackgroundQuery
        contiguous and read-only; ``n_bytes`` says what is prepared at most

    Raises
    ------
    InvalidParameters
        a method that does nothing with a background, or needs groups and has none, interactions, errors of values that are not linear in the game or
        of fewer than two rows in each lot, or tables beyond the budget
    """
    use = method.games.background
    if use is None:
        raise InvalidParameters(f"method {method.name!r} has no marginal game")
    _check_interactions(method, interactions)
    bins, forest = _plant(ensemble, method, groups)

    def ask(most: int) -> BackgroundQuery:
        if quantity is None or n_rows is None:
            return use.ask(forest, bins, method.phi, n_rows, most, interactions, order)
        if not isinstance(use, MarginalUse):
            raise InvalidParameters(f"what method {method.name!r} finds is not carried background row by background row")
        games = 1 + count_games(quantity, ensemble.value.shape[1])
        return ask_carried(forest, use.ask(forest, bins, method.phi, n_rows, most // games, interactions, order), quantity, n_rows)

    if not errors:
        return ask(budget)
    if not method.phi.linear:
        raise InvalidParameters(f"what method {method.name!r} finds has no standard errors")
    if n_rows is None or n_rows < 2 * N_GROUPS:
        found = "the model's own leaf weights" if n_rows is None else f"{n_rows} rows"
        raise InvalidParameters(f"standard errors need a background of at least {2 * N_GROUPS} rows, got {found}")
    query = ask(budget // (1 + N_GROUPS))
    return frozen(JackknifeQuery(query, query.n_bytes * (1 + N_GROUPS), np.array([n_rows], np.int64)))


def _check_interactions(method: Method, interactions: bool) -> None:
    if interactions and not method.games.value:
        raise InvalidParameters(f"method {method.name!r} has no interactions")


def ask_again(query: BackgroundQuery, statistics: BackgroundStatistics) -> BackgroundQuery | None:
    """Make the query that follows from what one measured, where a background is read twice: nodes are chosen for the range of its margins.

    Parameters
    ----------
    query : BackgroundQuery
        as ``ask_background`` returned it
    statistics : BackgroundStatistics
        what it measured of all rows

    Returns
    -------
    BackgroundQuery or None
        None where the statistics are all that is needed

    Raises
    ------
    InvalidParameters
        margins lie too far apart
    """
    if isinstance(query, JackknifeQuery) and isinstance(statistics, JackknifeGroups):
        inner = ask_again(query.query, statistics.together())
        return None if inner is None else query._replace(query=inner)
    return query.choose(statistics) if isinstance(query, CarriedQuery) and isinstance(statistics, MarginRange) else None


def _weigh_sets(method: Method, value: GameValue, sets: Sets) -> SetValue:
    """Weigh sets by the index asked for, by the method's own, or by its game value."""
    index = sets.index or method.games.index
    return of_index(index, sets.order) if index else of_value(value, sets.order)


def measure_background(query: BackgroundQuery, values: np.ndarray, first_row: int = 0) -> BackgroundStatistics:
    """Measure the rows of a background, or of a part of one.

    Parameters
    ----------
    values : (used, n) float64, NaN where missing
        one row per used feature, in the order of ``query.bins.column``; any n, and left as they are
    first_row : int
        number of the first row in the whole background; rows are dealt out by their numbers where errors are asked for

    Returns
    -------
    BackgroundStatistics
        of the query's own kind
    """
    n_rows = values.shape[1]
    values = np.concatenate((values, np.zeros((values.shape[0], padded(n_rows) - n_rows))), axis=1)
    bins = np.zeros(values.shape, bin_dtype(query.bins))
    bin_rows(values, query.bins, bins)
    return query.measure(values, bins, n_rows, first_row)


def merge_statistics(parts: Sequence[BackgroundStatistics]) -> BackgroundStatistics:
    """Merge the statistics of the parts of a background, in order.

    Parameters
    ----------
    parts : sequence of BackgroundStatistics
        at least one, all measured by the same query

    Returns
    -------
    BackgroundStatistics
        of all rows; of one part that part's own numbers
    """
    first, *others = parts
    return first.merge(others)


def weigh_leaves(ensemble: TreeEnsemble, method: Method, groups: np.ndarray | None, query: BackgroundQuery) -> BackgroundStatistics:
    """Use the model's own leaf weights as background (Filom et al. 2024, Section 3.3).

    Parameters
    ----------
    groups : (features,) int
        as ``ask_background`` takes it; None where each feature is a player of its own
    query : BackgroundQuery
        what ``ask_background`` returned for the same model, method and groups

    Returns
    -------
    BackgroundStatistics
        of the query's own kind

    Raises
    ------
    InvalidParameters
        leaf weights do not say enough, or the method needs groups and has none
    """
    return query.weigh_leaves(_plant(ensemble, method, groups)[1])


def _pair_up(forest: Forest, value: GameValue | None, of_sets: SetValue | None) -> Pairs:
    """Make the interaction tables of a game value, or none."""
    if value is None:
        return Pairs(NO_PAIRS, no_interactions(forest))
    if of_sets is not None:
        game = play_sets(forest, of_sets)
        return Pairs(name_sets(forest, game.sets.players), prepare_sets(game, forest, of_sets))
    played, pairs = play_pairs(forest, value)
    return Pairs(forest.players[pairs], prepare_interactions(played, forest))


class _Played(NamedTuple):
    """Tables of a game against a background, as Prepared has them."""

    tables: Any
    base: np.ndarray
    weighted: Weighted


def _play_against(use: BackgroundUse, forest: Forest, method: Method, parameters: Parameters, query: Any, statistics: Any) -> _Played:
    if isinstance(use, MarginalUse) and isinstance(query, CarriedQuery):
        weighted, tables, base = prepare_carried(use, forest, method.phi, parameters, query, statistics)
        return _Played(tables, base, weighted)
    return _Played(*use.prepare(forest, method.phi, parameters, query, statistics), NOT_WEIGHTED)


def _interact_against(forest: Forest, phi: Phi, query: Any, statistics: Any, value: GameValue | None, of_sets: SetValue | None) -> Pairs:
    """Make the interaction tables of a game against a background, or those of all weighted games."""
    carried = isinstance(query, CarriedQuery)
    if value is None:
        return Pairs(NO_PAIRS, WeightedPairs(()))
    games = weigh_games(forest, phi, query, statistics) if carried else [play_against(forest, phi, query, statistics)]
    cut = query.query if carried else query
    made: list[Any]
    if of_sets is not None:
        made = [sets_against(forest, *make_sets(game, cut, of_sets), of_sets.adds_up) for game in games]
    else:
        made = [pairs_against(forest, *make_pairs(game, cut, value)) for game in games]
    return Pairs(query.pairs, WeightedPairs(tuple(made)) if carried else made[0])


def _share_out(rows: np.ndarray, shared: Shared) -> tuple[np.ndarray, Sharing]:
    """Return the players with a row of phi, and the rows that the kernel's ``rows (played,)`` are shared among."""
    if not shared:
        return rows, NOT_SHARED
    members = [each for player in rows for each in shared.get(int(player), ())]
    players = np.union1d(np.setdiff1d(rows, list(shared)), members).astype(np.int32)
    place = {int(player): row for row, player in enumerate(players)}
    owners = [[place[each] for each in shared.get(int(player), (int(player),))] for player in rows]
    start = np.concatenate(([0], np.cumsum([len(own) for own in owners], dtype=np.int64)))
    return players, Sharing(start, np.array([row for own in owners for row in own], np.int32))


def prepare(
    ensemble: TreeEnsemble,
    method: Method,
    parameters: Parameters,
    groups: np.ndarray | None = None,
    *,
    interactions: bool = False,
    background: tuple[Any, Any] | None = None,
    shared: Shared = NOBODY,
    sets: Sets | None = None,
) -> Prepared:
    """Make all tables that workers read.

    Parameters
    ----------
    parameters : mapping
        from the name of each of the method's parameters to its value, as its ``read`` returns it
    groups : (features,) int
        which group a feature belongs to; None where each is a player of its own
    interactions : bool
        also those of every two players, by the method's game value
    background : tuple, a query of ``ask_background`` for the same method and groups, and what is known of all rows
        None where absent features are averaged by cover
    shared : mapping of int to tuple of int
        groups that stand for several others, and those: each gets an equal part of what the group has
    sets : Sets, optional
        what sets of players interactions are of; of pairs if not given

    Returns
    -------
    Prepared
        contiguous and read-only

    Raises
    ------
    InvalidParameters
        parameters that do not fit the model or each other, a method that needs groups and has none, a background or interactions that it does
        not know, or values that cannot be shared
    """
    _check_interactions(method, interactions)
    value, use = method.games.value(parameters) if interactions and method.games.value else None, method.games.background
    if shared and (interactions or not method.phi.linear):
        raise InvalidParameters(f"{'interactions' if interactions else f'method {method.name!r}'} cannot be shared among players")
    bins, forest = _plant(ensemble, method, groups)
    players, sharing = _share_out(np.asarray(method.phi.rows(forest), np.int32), shared)
    of_sets = None if value is None or sets is None else _weigh_sets(method, value, sets)
    pairs, without, weighted = _pair_up(forest, value if background is None else None, of_sets), NO_GROUPS, NOT_WEIGHTED
    if background is None:
        tables, base = method.games.path_dependent(forest, parameters), empty_coalition(forest.ensemble, forest.trace)
    elif use is None:
        raise InvalidParameters(f"method {method.name!r} has no marginal game")
    else:
        query, statistics = background
        if isinstance(query, JackknifeQuery):
            refuse_other(query, statistics, (JackknifeQuery, JackknifeGroups))
            query, jackknife = query.query, statistics
            made = [_play_against(use, forest, method, parameters, query, jackknife.together(without=group)) for group in range(N_GROUPS)]
            lots = tuple(each.weighted if each.weighted.tables else each.tables for each in made)
            without, statistics = WithoutGroups(lots, np.stack([each.base for each in made])), jackknife.together()
        tables, base, weighted = _play_against(use, forest, method, parameters, query, statistics)
        if isinstance(use, MarginalUse) and (value is not None or weighted.tables):
            pairs = _interact_against(forest, method.phi, query, statistics, value, of_sets)
    return frozen(
        Prepared(
            bins=bins,
            margin=prepare_margin(forest.ensemble, forest.splits, forest.trace, forest.comparisons),
            method=tables,
            players=players,
            pairs=pairs,
            base=base,
            bound=margin_bound(forest.ensemble, forest.trace),
            n_steps=np.array([method.phi.n_steps(parameters, forest.n_all)], np.int64),
            sharing=sharing,
            without=without,
            weighted=weighted,
        )
    )
