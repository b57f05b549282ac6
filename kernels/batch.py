"""From floats to attributions: everything a worker needs of a model, and one slice of rows through it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ._jit import frozen
from .ensemble import TreeEnsemble
from .games import Board, play_pairs
from .lookup import compare
from .margin import MarginTables, add_margins, prepare_margin
from .marginal import Background, Units, count_background, cut_into_units, mean_margin, prepare_marginal
from .methods import Method
from .parameters import InvalidParameters
from .paths import empty_coalition, margin_bound, trace
from .ranks import RankTables, padded, rank_dtype, rank_ensemble, rank_rows
from .semivalue import SemivalueTables, add_semivalues, no_semivalues, prepare_semivalue

ADDITIVITY_TOLERANCE = 1e-9  # of the margin bound; rounding stays near 1e-13, a wrong table is off by far more


class Survey(NamedTuple):
    """What is asked of a background."""

    ranks: RankTables
    units: Units


class Pairs(NamedTuple):
    """Pairs of players that interact; none where interactions are not asked for."""

    players: np.ndarray  # (pairs, 2) int32, as Prepared.players
    tables: SemivalueTables


class Prepared(NamedTuple):
    """A model and a method, ready for rows: what is broadcast."""

    ranks: RankTables
    margin: MarginTables
    method: Any  # the method's tables
    players: np.ndarray  # (rows,) int32, whose a row of phi is: a column of the ensemble, or a group
    pairs: Pairs
    base: np.ndarray  # (outputs,) float64, value of the empty coalition
    bound: np.ndarray  # (outputs,) float64, no margin is larger


class Buffers(NamedTuple):
    """What a slice of rows is worked on in; rows are padded to a multiple of BATCH and reused from slice to slice."""

    values: np.ndarray  # (used, n) float64, the caller's input; changed by ranking
    ranks: np.ndarray  # (used, n) unsigned integers
    phi: np.ndarray  # (outputs, rows, n) float64
    pairs: np.ndarray  # (outputs, pairs, n) float64
    margin: np.ndarray  # (outputs, n) float64


def _set_up(ensemble: TreeEnsemble, groups) -> tuple[RankTables, Board, np.ndarray]:
    """Ranks, the board, and which group each of its players is; without groups every feature is a player of its own."""
    ranks, splits = rank_ensemble(ensemble)
    traced = trace(ensemble, splits.feature, ranks.column.size)
    groups = np.arange(ensemble.n_features, dtype=np.int32) if groups is None else np.asarray(groups, np.int32)
    players, player = np.unique(groups[ranks.column], return_inverse=True)
    board = Board(
        ensemble=ensemble,
        splits=splits,
        trace=traced,
        comparisons=compare(ensemble, splits, traced),
        rank_type=rank_dtype(ranks),
        player=player.astype(np.int32),
        n_players=players.size,
        n_all=np.unique(groups).size,
    )
    return ranks, board, players


def survey(ensemble: TreeEnsemble, groups=None) -> Survey:
    """What the rows of a background are counted with, see ``prepare``."""
    ranks, board, _ = _set_up(ensemble, groups)
    return frozen(Survey(ranks, cut_into_units(board)))


def count(surveyed: Survey, values) -> Background:
    """Count the rows of a background, or of a part of one, ``values (used, n) float64``."""
    n_rows = values.shape[1]
    padding = np.zeros((values.shape[0], padded(n_rows) - n_rows))
    ranks = np.zeros((values.shape[0], padded(n_rows)), rank_dtype(surveyed.ranks))
    rank_rows(np.concatenate((values, padding), axis=1), surveyed.ranks, ranks)
    return count_background(ranks, surveyed.units, n_rows)


def prepare(
    ensemble: TreeEnsemble,
    method: Method,
    parameters: Mapping[str, Any],
    groups=None,
    interactions: bool = False,
    background: Background | None = None,
) -> Prepared:
    """Make every table the workers read.

    Parameters
    ----------
    groups : (features,) int32
        which group a feature belongs to; None where each is a player of its own
    interactions : also those of every two players, by the method's game value
    background : rows counted by a survey with the same groups, for the marginal game; None for the path-dependent one

    Raises
    ------
    InvalidParameters
        parameters that do not fit the model or each other
    """
    value = method.value
    if interactions and not value:
        raise InvalidParameters(f"method {method.name!r} has no interactions")
    if groups is None and not method.by_player:
        raise InvalidParameters(f"method {method.name!r} needs a partition of the features")
    if background is not None and (interactions or not value):
        raise InvalidParameters(f"method {method.name!r} has no {'interactions in the ' if interactions else ''}marginal game")
    ranks, board, players = _set_up(ensemble, groups)
    pairs, of_pairs = np.zeros((0, 2), np.int32), no_semivalues(board)
    if interactions and value:
        game, pairs = play_pairs(board, value(parameters))
        of_pairs = prepare_semivalue(game, board)
    tables: NamedTuple
    if background is not None and value:
        units = cut_into_units(board)
        tables = no_semivalues(board)._replace(looked_up=prepare_marginal(board, units, background, value(parameters)))
        base = mean_margin(board, units, background)
    else:
        tables, base = method.prepare(board, parameters), empty_coalition(ensemble, board.trace)
    return frozen(
        Prepared(
            ranks=ranks,
            margin=prepare_margin(ensemble, board.splits, board.trace, board.comparisons),
            method=tables,
            players=players if method.by_player else ranks.column,
            pairs=Pairs(players[pairs], of_pairs),
            base=base,
            bound=margin_bound(ensemble, board.trace),
        )
    )


def make_buffers(prepared: Prepared, n_rows: int) -> Buffers:
    """Buffers for slices of at most ``n_rows`` rows, values all zero."""
    used, outputs, n = prepared.ranks.column.size, prepared.base.size, padded(n_rows)
    return Buffers(
        values=np.zeros((used, n)),
        ranks=np.zeros((used, n), rank_dtype(prepared.ranks)),
        phi=np.zeros((outputs, prepared.players.size, n)),
        pairs=np.zeros((outputs, len(prepared.pairs.players), n)),
        margin=np.zeros((outputs, n)),
    )


def attribute_batch(method: Method, prepared: Prepared, buffers: Buffers) -> None:
    """Rank ``buffers.values`` and overwrite ``buffers.phi``, ``buffers.pairs`` and ``buffers.margin``."""
    buffers.phi[:] = 0.0
    buffers.pairs[:] = 0.0
    buffers.margin[:] = 0.0
    rank_rows(buffers.values, prepared.ranks, buffers.ranks)
    add_margins(buffers.ranks, prepared.margin, buffers.margin)
    method.kernel(buffers.ranks, prepared.method, buffers.phi)
    add_semivalues(buffers.ranks, prepared.pairs.tables, buffers.pairs)


def residuals(prepared: Prepared, buffers: Buffers, n_rows: int):
    """How far attributions are from adding up, ``(outputs, n_rows) float64``: |base + sum of phi - margin|, as a fraction of the margin bound."""
    total = buffers.phi[:, :, :n_rows].sum(axis=1) + prepared.base[:, None] - buffers.margin[:, :n_rows]
    return np.abs(total) / np.maximum(prepared.bound, np.finfo(np.float64).tiny)[:, None]
