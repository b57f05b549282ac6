"""From floats to attributions: everything a worker needs of a model, and one slice of rows through it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import game_values
from ._jit import frozen
from .background import Background, count_background
from .background import merge as merge_counts
from .background import weigh_leaves as weigh
from .boxes import lay_out_boxes, numeric_alone
from .ensemble import TreeEnsemble
from .games import Board, play, play_pairs
from .lanes import zeros
from .lookup import compare
from .margin import MarginTables, add_margins, margin_bytes, prepare_margin
from .marginal import MarginalGame, table_bytes
from .methods import Method
from .noise import Measured, measure
from .noise import merge as merge_measured
from .parameters import InvalidParameters
from .paths import empty_coalition, margin_bound, trace
from .r2 import Labels, no_labels
from .ranks import RankTables, padded, rank_dtype, rank_ensemble, rank_rows
from .semivalue import SemivalueTables, add_semivalues, no_semivalues, prepare_semivalue
from .units import MOST_BITS, Cut, Cutter

SUMMED_BITS = 20  # of a leaf whose subsets are summed, at most
# What is tried in turn where memory is short: patterns instead of sums over subsets, then those instead of tables.
COARSE_TO_FINE = [*((MOST_BITS, bits) for bits in range(SUMMED_BITS, MOST_BITS, -1)), *((bits, bits) for bits in range(MOST_BITS, -1, -1))]
RECORD_BYTES = 1 << 12  # of records whose arrays are empty
ADDITIVITY_TOLERANCE = 1e-9  # of the margin bound; rounding stays near 1e-13, a wrong table is off by far more


class Survey(NamedTuple):
    """What is asked of a background."""

    ranks: RankTables
    cut: Cut
    players: np.ndarray  # as Prepared's
    summed_bits: np.ndarray  # (1,) int64, see marginal.MarginalGame
    n_bytes: np.ndarray  # (1,) int64, of what is prepared, at most


class Inquiry(NamedTuple):
    """What is asked of a background that rows are perturbed by: moments of its features, and what units are drawn from."""

    ranks: RankTables
    player: np.ndarray  # (used,) int64, which unit's a feature is
    players: np.ndarray  # as Prepared's
    n_bytes: np.ndarray  # (1,) int64, of what is prepared, at most


Asked = Survey | Inquiry
Counted = Background | Measured  # what is known of a background, by what was asked


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
    n_steps: np.ndarray  # (1,) int64, of the way that the method goes for every row; 0 of most


class Buffers(NamedTuple):
    """What a slice of rows is worked on in; rows are padded to a multiple of BATCH and reused from slice to slice."""

    values: np.ndarray  # (used, n) float64, the caller's input; changed by ranking
    ranks: np.ndarray  # (used, n) unsigned integers
    phi: np.ndarray  # (outputs, rows, n) float64
    pairs: np.ndarray  # (outputs, pairs, n) float64
    path: np.ndarray  # (outputs, steps, n) float64, what the method makes larger, on its way
    margin: np.ndarray  # (outputs, n) float64
    labels: Labels


def make_board(ensemble: TreeEnsemble, groups=None) -> tuple[RankTables, Board]:
    """How rows become ranks, and the board; without groups every feature is a player of its own."""
    ranks, splits = rank_ensemble(ensemble)
    traced = trace(ensemble, splits.feature, ranks.column.size)
    groups = np.arange(ensemble.n_features, dtype=np.int32) if groups is None else np.asarray(groups, np.int32)
    players, player = np.unique(groups[ranks.column], return_inverse=True)
    return ranks, Board(
        ensemble=ensemble,
        splits=splits,
        trace=traced,
        comparisons=compare(ensemble, splits, traced),
        rank_type=rank_dtype(ranks),
        column=ranks.column,
        groups=groups,
        players=players.astype(np.int32),
        player=player.astype(np.int32),
    )


def _set_up(ensemble: TreeEnsemble, method: Method, groups) -> tuple[RankTables, Board]:
    """The board for a method."""
    if groups is None and not method.by_player:
        raise InvalidParameters(f"method {method.name!r} needs a partition of the features")
    return make_board(ensemble, groups)


def _players(board: Board, method: Method):
    """Who plays in the marginal game: at every node ``(nodes,) int32``, and the group of each ``(players,) int32``."""
    if method.by_player:
        return board.player_of_node, np.arange(board.n_players, dtype=np.int32)
    return board.splits.feature, board.player


def _count_bytes(record) -> int:
    """Bytes of nested records."""
    return record.nbytes if isinstance(record, np.ndarray) else sum(map(_count_bytes, record))


def _inquire(ranks: RankTables, board: Board, method: Method, n_rows: int | None) -> Inquiry:
    boxes, alone = lay_out_boxes(board, {}), numeric_alone(board)
    n_ranks = np.diff(ranks.start) + ranks.n_codes + 3.0
    n_patterns = np.ones(board.n_players)
    np.multiply.at(n_patterns, board.player, n_ranks)
    atoms = (np.minimum(n_patterns, n_rows or 0) * (16 + 8 * np.bincount(board.player, minlength=board.n_players)))[~alone].sum()
    n_bytes = RECORD_BYTES + _count_bytes(boxes) + atoms + 8 * (np.diff(boxes.first)[~alone] ** 2).sum()
    n_bytes += _count_bytes(prepare_semivalue(play(board, game_values.shapley), board))  # of the method that ranks; others need no more
    n_bytes += ranks.threshold.nbytes + margin_bytes(board.ensemble, board.trace, board.comparisons)
    return frozen(Inquiry(ranks, board.player.astype(np.int64), np.asarray(method.rows(board), np.int32), np.array([n_bytes], np.int64)))


def survey(ensemble: TreeEnsemble, method: Method, groups=None, *, n_rows: int | None, budget: int, interactions: bool = False) -> Asked:
    """Find what has to be known of a background, and what the tables made of it will need: an Inquiry for a method that perturbs rows, else a Survey.

    Parameters
    ----------
    groups : (features,) int32
        which group a feature belongs to; None where each is a player of its own
    n_rows : of the background; None for the model's own leaf weights
    budget : bytes that tables may have; where there is less room, fewer leaves get tables, and more a list of patterns
    interactions : as ``prepare`` takes it

    Raises
    ------
    InvalidParameters
        a method without a marginal game, or tables beyond the budget
    """
    if interactions or not (method.views or method.perturbed):
        raise InvalidParameters(f"method {method.name!r} has no {'interactions in the ' if interactions else ''}marginal game")
    ranks, board = _set_up(ensemble, method, groups)
    if method.perturbed:
        return _inquire(ranks, board, method, n_rows)
    player, group = _players(board, method)
    cutter = Cutter(board, player)
    occurring = n_rows or int(np.bincount(board.trace.tree, ensemble.feature < 0).max(initial=1))
    width, sizes = ensemble.value.shape[1], []
    rest = RECORD_BYTES + ranks.threshold.nbytes + 64 * ranks.column.size + margin_bytes(ensemble, board.trace, board.comparisons)
    for most_bits, summed_bits in COARSE_TO_FINE:
        cut = cutter.cut(most_bits)
        sizes.append(rest + sum(table_bytes(cut, occurring, views, group, width, summed_bits) for views in method.views))
        if sizes[-1] <= budget:
            return frozen(Survey(ranks, cut, np.asarray(method.rows(board), np.int32), np.array([summed_bits]), np.array(sizes[-1:])))
    raise InvalidParameters(
        f"tables of the marginal game would have {min(sizes) / 2**20:.1f} MiB, {budget / 2**20:.1f} MiB are allowed; "
        "a smaller background, or a partition of the features into fewer groups, needs less"
    )


def count(surveyed: Asked, values) -> Counted:
    """Count the rows of a background, or of a part of one, ``values (used, n) float64``, or measure them."""
    n_rows = values.shape[1]
    values = np.concatenate((values, np.zeros((values.shape[0], padded(n_rows) - n_rows))), axis=1)
    ranks = np.zeros(values.shape, rank_dtype(surveyed.ranks))
    rank_rows(values, surveyed.ranks, ranks)
    if isinstance(surveyed, Inquiry):
        everything = np.ones(int(surveyed.player.max(initial=-1)) + 1, bool)
        return measure(values[:, :n_rows], ranks[:, :n_rows], surveyed.player, everything)
    return count_background(ranks, surveyed.cut, n_rows)


def weigh_leaves(ensemble: TreeEnsemble, method: Method, groups, surveyed: Asked) -> Background:
    """The model's own leaf weights as a background, or InvalidParameters where they do not say enough."""
    if isinstance(surveyed, Inquiry):
        raise InvalidParameters(f"method {method.name!r} perturbs rows by what is measured of a background, expected rows, got the model")
    return weigh(_set_up(ensemble, method, groups)[1], surveyed.cut)


def merge(parts: Sequence[Any]) -> Counted:
    """What ``count`` returns of all parts together, all Background or all Measured. Sums of what was measured are rounded, so their order counts."""
    return merge_measured(parts) if isinstance(parts[0], Measured) else merge_counts(parts)


def prepare(
    ensemble: TreeEnsemble,
    method: Method,
    parameters: Mapping[str, Any],
    groups=None,
    interactions: bool = False,
    surveyed: Asked | None = None,
    background: Counted | None = None,
) -> Prepared:
    """Make every table the workers read.

    Parameters
    ----------
    groups : (features,) int32
        which group a feature belongs to; None where each is a player of its own
    interactions : also those of every two players, by the method's game value
    surveyed, background : a survey for the same method and groups, and what it counted, for the marginal game or for a method that perturbs rows;
        None for the path-dependent game

    Raises
    ------
    InvalidParameters
        parameters that do not fit the model or each other
    """
    value = method.value
    if interactions and not value:
        raise InvalidParameters(f"method {method.name!r} has no interactions")
    ranks, board = _set_up(ensemble, method, groups)
    pairs, of_pairs = np.zeros((0, 2), np.int32), no_semivalues(board)
    if interactions and value:
        game, pairs = play_pairs(board, value(parameters))
        of_pairs = prepare_semivalue(game, board)
    tables: NamedTuple
    if method.perturbed and isinstance(background, Measured):
        tables, base = method.perturbed(board, parameters, background), empty_coalition(ensemble, board.trace)
    elif method.marginal and isinstance(surveyed, Survey) and isinstance(background, Background):
        against = MarginalGame(board, surveyed.cut, background, _players(board, method)[1], int(surveyed.summed_bits[0]))
        tables, base = method.marginal(against, parameters), against.mean_margin()
    else:
        tables, base = method.prepare(board, parameters), empty_coalition(ensemble, board.trace)
    return frozen(
        Prepared(
            ranks=ranks,
            margin=prepare_margin(ensemble, board.splits, board.trace, board.comparisons),
            method=tables,
            players=np.asarray(method.rows(board), np.int32),
            pairs=Pairs(board.players[pairs], of_pairs),
            base=base,
            bound=margin_bound(ensemble, board.trace),
            n_steps=np.array([method.path(parameters, board.n_all) if method.path else 0], np.int64),
        )
    )


def make_buffers(prepared: Prepared, n_rows: int) -> Buffers:
    """Buffers for slices of at most ``n_rows`` rows, values all zero."""
    used, outputs, n = prepared.ranks.column.size, prepared.base.size, padded(n_rows)
    return Buffers(
        values=zeros(used, n),
        ranks=np.zeros((used, n), rank_dtype(prepared.ranks)),
        phi=zeros(outputs, prepared.players.size, n),
        pairs=zeros(outputs, len(prepared.pairs.players), n),
        path=zeros(outputs, int(prepared.n_steps[0]), n),
        margin=zeros(outputs, n),
        labels=no_labels(n),
    )


def attribute_batch(method: Method, prepared: Prepared, buffers: Buffers) -> None:
    """Rank ``buffers.values`` and overwrite all others but labels, of which what comes of them."""
    buffers.phi[:] = 0.0
    buffers.pairs[:] = 0.0
    buffers.margin[:] = 0.0
    rank_rows(buffers.values, prepared.ranks, buffers.ranks)
    add_margins(buffers.ranks, prepared.margin, buffers.margin)
    labels = buffers.labels
    read = (buffers.values, buffers.ranks) if method.reads_values else (buffers.ranks,)
    more = (labels.label, labels.residual, labels.remainder) if method.labelled else (buffers.path,) if method.path else ()
    method.kernel(*read, prepared.method, buffers.phi, *more)
    add_semivalues(buffers.ranks, prepared.pairs.tables, buffers.pairs)


def residuals(prepared: Prepared, buffers: Buffers, n_rows: int):
    """How far attributions are from adding up, ``(outputs, n_rows) float64``: |base + sum of phi - margin|, as a fraction of the margin bound."""
    total = buffers.phi[:, :, :n_rows].sum(axis=1) + prepared.base[:, None] - buffers.margin[:, :n_rows]
    return np.abs(total) / np.maximum(prepared.bound, np.finfo(np.float64).tiny)[:, None]


def missed(prepared: Prepared, buffers: Buffers, n_rows: int):
    """How far losses are from adding up, ``(1, n_rows) float64``: |(label - start)^2 - residual^2 + remainder - sum of phi|, as a fraction of the
    largest square there can be, and 0 where a label is missing."""
    labels, start = buffers.labels, prepared.method.start[0]
    total = (labels.label - start) ** 2 - labels.residual**2 + labels.remainder - buffers.phi[0].sum(axis=0)
    most = (np.abs(labels.label - start) + prepared.bound[0]) ** 2
    found = np.where(labels.missing, 0.0, np.abs(total) / np.maximum(most, np.finfo(np.float64).tiny))
    return found[None, :n_rows]
