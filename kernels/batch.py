"""From floats to attributions: everything a worker needs of a model, and one slice of rows through it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import game_values
from ._jit import frozen
from .lanes import zeros
from .marginal.background import Background, count_background
from .marginal.background import merge as merge_counts
from .marginal.background import weigh_leaves as weigh
from .marginal.game import MarginalGame, table_bytes
from .marginal.subtrees import MOST_BITS, Partitioner, Partitioning
from .methods import Method
from .parameters import InvalidParameters
from .path_dependent.games import play, play_pairs
from .prediction_gap.leaf_regions import lay_out_boxes, numeric_alone
from .prediction_gap.noise import Measured, measure
from .prediction_gap.noise import merge as merge_measured
from .r2.shares import Labels, no_labels
from .semivalues.tables import SemivalueTables, add_semivalues, no_semivalues, prepare_semivalue
from .trees.binning import BinTables, bin_dtype, bin_rows, padded
from .trees.ensemble import TreeEnsemble
from .trees.forest import Forest, make_forest
from .trees.margin import MarginTables, add_margins, margin_bytes, prepare_margin
from .trees.paths import empty_coalition, margin_bound

SUMMED_BITS = 20  # of a leaf whose subsets are summed, at most
# What is tried in turn where memory is short: patterns instead of sums over subsets, then those instead of tables.
COARSE_TO_FINE = [*((MOST_BITS, bits) for bits in range(SUMMED_BITS, MOST_BITS, -1)), *((bits, bits) for bits in range(MOST_BITS, -1, -1))]
RECORD_BYTES = 1 << 12  # of records whose arrays are empty
ADDITIVITY_TOLERANCE = 1e-9  # of the margin bound; rounding stays near 1e-13, a wrong table is off by far more


class Survey(NamedTuple):
    """What is asked of a background."""

    bins: BinTables
    partitioning: Partitioning
    players: np.ndarray  # as Prepared's
    summed_bits: np.ndarray  # (1,) int64, see game.MarginalGame
    n_bytes: np.ndarray  # (1,) int64, of what is prepared, at most


class Inquiry(NamedTuple):
    """What is asked of a background that rows are perturbed by: moments of its features, and what units are drawn from."""

    bins: BinTables
    player: np.ndarray  # (used,) int64, which unit's a feature is
    players: np.ndarray  # as Prepared's
    n_bytes: np.ndarray  # (1,) int64, of what is prepared, at most


BackgroundQuery = Survey | Inquiry
BackgroundStatistics = Background | Measured  # what is known of a background, by what was asked


class Pairs(NamedTuple):
    """Pairs of players that interact; none where interactions are not asked for."""

    players: np.ndarray  # (pairs, 2) int32, as Prepared.players
    tables: SemivalueTables


class Prepared(NamedTuple):
    """A model and a method, ready for rows: what is broadcast."""

    bins: BinTables
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
    bins: np.ndarray  # (used, n) unsigned integers
    phi: np.ndarray  # (outputs, rows, n) float64
    pairs: np.ndarray  # (outputs, pairs, n) float64
    path: np.ndarray  # (outputs, steps, n) float64, what the method makes larger, on its way
    margin: np.ndarray  # (outputs, n) float64
    labels: Labels


def _set_up(ensemble: TreeEnsemble, method: Method, groups) -> tuple[BinTables, Forest]:
    """The forest for a method."""
    if groups is None and not method.by_player:
        raise InvalidParameters(f"method {method.name!r} needs a partition of the features")
    return make_forest(ensemble, groups)


def _players(forest: Forest, method: Method):
    """Who plays in the marginal game: at every node ``(nodes,) int32``, and the group of each ``(players,) int32``."""
    if method.by_player:
        return forest.player_of_node, np.arange(forest.n_players, dtype=np.int32)
    return forest.splits.feature, forest.player


def _count_bytes(record) -> int:
    """Bytes of nested records."""
    return record.nbytes if isinstance(record, np.ndarray) else sum(map(_count_bytes, record))


def _inquire(bins: BinTables, forest: Forest, method: Method, n_rows: int | None) -> Inquiry:
    boxes, alone = lay_out_boxes(forest, {}), numeric_alone(forest)
    n_bins = np.diff(bins.start) + bins.n_codes + 3.0
    n_patterns = np.ones(forest.n_players)
    np.multiply.at(n_patterns, forest.player, n_bins)
    atoms = (np.minimum(n_patterns, n_rows or 0) * (16 + 8 * np.bincount(forest.player, minlength=forest.n_players)))[~alone].sum()
    n_bytes = RECORD_BYTES + _count_bytes(boxes) + atoms + 8 * (np.diff(boxes.first)[~alone] ** 2).sum()
    n_bytes += _count_bytes(prepare_semivalue(play(forest, game_values.shapley), forest))  # of the method that bins; others need no more
    n_bytes += bins.threshold.nbytes + margin_bytes(forest.ensemble, forest.trace, forest.comparisons)
    return frozen(Inquiry(bins, forest.player.astype(np.int64), np.asarray(method.rows(forest), np.int32), np.array([n_bytes], np.int64)))


def survey(ensemble: TreeEnsemble, method: Method, groups=None, *, n_rows: int | None, budget: int, interactions: bool = False) -> BackgroundQuery:
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
    bins, forest = _set_up(ensemble, method, groups)
    if method.perturbed:
        return _inquire(bins, forest, method, n_rows)
    player, group = _players(forest, method)
    partitioner = Partitioner(forest, player)
    occurring = n_rows or int(np.bincount(forest.trace.tree, ensemble.feature < 0).max(initial=1))
    width, sizes = ensemble.value.shape[1], []
    rest = RECORD_BYTES + bins.threshold.nbytes + 64 * bins.column.size + margin_bytes(ensemble, forest.trace, forest.comparisons)
    for most_bits, summed_bits in COARSE_TO_FINE:
        partitioning = partitioner.partition(most_bits)
        sizes.append(rest + sum(table_bytes(partitioning, occurring, views, group, width, summed_bits) for views in method.views))
        if sizes[-1] <= budget:
            return frozen(Survey(bins, partitioning, np.asarray(method.rows(forest), np.int32), np.array([summed_bits]), np.array(sizes[-1:])))
    raise InvalidParameters(
        f"tables of the marginal game would have {min(sizes) / 2**20:.1f} MiB, {budget / 2**20:.1f} MiB are allowed; "
        "a smaller background, or a partition of the features into fewer groups, needs less"
    )


def count(surveyed: BackgroundQuery, values) -> BackgroundStatistics:
    """Count the rows of a background, or of a part of one, ``values (used, n) float64``, or measure them."""
    n_rows = values.shape[1]
    values = np.concatenate((values, np.zeros((values.shape[0], padded(n_rows) - n_rows))), axis=1)
    bins = np.zeros(values.shape, bin_dtype(surveyed.bins))
    bin_rows(values, surveyed.bins, bins)
    if isinstance(surveyed, Inquiry):
        everything = np.ones(int(surveyed.player.max(initial=-1)) + 1, bool)
        return measure(values[:, :n_rows], bins[:, :n_rows], surveyed.player, everything)
    return count_background(bins, surveyed.partitioning, n_rows)


def weigh_leaves(ensemble: TreeEnsemble, method: Method, groups, surveyed: BackgroundQuery) -> Background:
    """The model's own leaf weights as a background, or InvalidParameters where they do not say enough."""
    if isinstance(surveyed, Inquiry):
        raise InvalidParameters(f"method {method.name!r} perturbs rows by what is measured of a background, expected rows, got the model")
    return weigh(_set_up(ensemble, method, groups)[1], surveyed.partitioning)


def merge(parts: Sequence[Any]) -> BackgroundStatistics:
    """What ``count`` returns of all parts together, all Background or all Measured. Sums of what was measured are rounded, so their order counts."""
    return merge_measured(parts) if isinstance(parts[0], Measured) else merge_counts(parts)


def prepare(
    ensemble: TreeEnsemble,
    method: Method,
    parameters: Mapping[str, Any],
    groups=None,
    interactions: bool = False,
    surveyed: BackgroundQuery | None = None,
    background: BackgroundStatistics | None = None,
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
    bins, forest = _set_up(ensemble, method, groups)
    pairs, of_pairs = np.zeros((0, 2), np.int32), no_semivalues(forest)
    if interactions and value:
        game, pairs = play_pairs(forest, value(parameters))
        of_pairs = prepare_semivalue(game, forest)
    tables: NamedTuple
    if method.perturbed and isinstance(background, Measured):
        tables, base = method.perturbed(forest, parameters, background), empty_coalition(ensemble, forest.trace)
    elif method.marginal and isinstance(surveyed, Survey) and isinstance(background, Background):
        against = MarginalGame(forest, surveyed.partitioning, background, _players(forest, method)[1], int(surveyed.summed_bits[0]))
        tables, base = method.marginal(against, parameters), against.mean_margin()
    else:
        tables, base = method.prepare(forest, parameters), empty_coalition(ensemble, forest.trace)
    return frozen(
        Prepared(
            bins=bins,
            margin=prepare_margin(ensemble, forest.splits, forest.trace, forest.comparisons),
            method=tables,
            players=np.asarray(method.rows(forest), np.int32),
            pairs=Pairs(forest.players[pairs], of_pairs),
            base=base,
            bound=margin_bound(ensemble, forest.trace),
            n_steps=np.array([method.path(parameters, forest.n_all) if method.path else 0], np.int64),
        )
    )


def make_buffers(prepared: Prepared, n_rows: int) -> Buffers:
    """Buffers for slices of at most ``n_rows`` rows, values all zero."""
    used, outputs, n = prepared.bins.column.size, prepared.base.size, padded(n_rows)
    return Buffers(
        values=zeros(used, n),
        bins=np.zeros((used, n), bin_dtype(prepared.bins)),
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
    bin_rows(buffers.values, prepared.bins, buffers.bins)
    add_margins(buffers.bins, prepared.margin, buffers.margin)
    labels = buffers.labels
    read = (buffers.values, buffers.bins) if method.reads_values else (buffers.bins,)
    more = (labels.label, labels.residual, labels.remainder) if method.labelled else (buffers.path,) if method.path else ()
    method.kernel(*read, prepared.method, buffers.phi, *more)
    add_semivalues(buffers.bins, prepared.pairs.tables, buffers.pairs)


def residuals(prepared: Prepared, buffers: Buffers, n_rows: int):
    """How far attributions are from adding up, ``(outputs, n_rows) float64``: |base + sum of phi - margin|, as a fraction of the margin bound."""
    total = buffers.phi[:, :, :n_rows].sum(axis=1) + prepared.base[:, None] - buffers.margin[:, :n_rows]
    return np.abs(total) / np.maximum(prepared.bound, np.finfo(np.float64).tiny)[:, None]


def loss_residuals(prepared: Prepared, buffers: Buffers, n_rows: int):
    """How far losses are from adding up, ``(1, n_rows) float64``: |(label - start)^2 - residual^2 + remainder - sum of phi|, as a fraction of the
    largest square there can be, and 0 where a label is missing."""
    labels, start = buffers.labels, prepared.method.start[0]
    total = (labels.label - start) ** 2 - labels.residual**2 + labels.remainder - buffers.phi[0].sum(axis=0)
    most = (np.abs(labels.label - start) + prepared.bound[0]) ** 2
    found = np.where(labels.missing, 0.0, np.abs(total) / np.maximum(most, np.finfo(np.float64).tiny))
    return found[None, :n_rows]
