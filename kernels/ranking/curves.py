"""Insertion and deletion curves: margins with a ranking's first, or last, features present, and their areas.

A ranking of N features makes N + 1 sets, and its areas are means of f over the last N of them (Petsiuk et al. 2018; Li, Yu and Low 2026, Eq. 5). A
tree's part of f changes only where one of its m features joins, so m + 1 sets are computed at once, as a vector folded from the leaves to the root.
At a split whose feature joins at place q, the child that the row goes to counts in full from q on, and with its share of the cover before. Vectors of
several rankings are concatenated in one pass over the tree.

Rankings are by descending score; ties keep the order of features, and features in no split rank with score 0.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arrays.ordering import group_starts, pack_pairs, places_by_score, unpack_pairs
from ..jit.decorator import frozen, jit
from ..jit.lanes import LANES, aligned, load, splat, store
from ..path_dependent.games import Game
from ..path_dependent.multilinear import compare_rows, trees_by_output
from ..path_dependent.walks import WALK_LEAVES, WALK_UP_LEAF, order_splits
from ..trees.binning import child_intervals, is_member

KINDS = ("insertion", "deletion")
ROWS = 4  # rows at a time, to read a split once for all
# A split's numbers: kind, places of both children among the vectors; comparison, see BinnedSplits; number of the player in the tree.
KIND, PLACE, FIRST, SECOND, FEATURE, LOWER, SPAN, PLAYER = range(8)


class CurveQuery(NamedTuple):
    """The players of every tree, and their positions among all players."""

    first: np.ndarray  # (trees + 1,) int64, tree t has player[first[t]:first[t + 1]]
    player: np.ndarray  # int32
    before: np.ndarray  # (players,) int64, number of players in no split before each
    n_all: np.ndarray  # (1,) int64, number of players, including those in no split


class CurveTables(NamedTuple):
    """Trees of every output, splits after their children; trees with a leaf value for each output occur once for each."""

    start: np.ndarray  # (trees + 1,) int64, tree t's splits are splits[start[t]:start[t + 1]]
    output: np.ndarray  # (outputs + 1,) int64, output k's trees are output[k]:output[k + 1]
    base: np.ndarray  # (outputs,) float64, base values plus margins of trees without splits
    places: np.ndarray  # (1,) int64, most places of a tree
    splits: np.ndarray  # (splits, 8) int32
    constants: np.ndarray  # (splits, 4) float64: children's shares of the cover, and values where they are leaves
    asked: CurveQuery
    members: np.ndarray  # (sets, 2) int32, see multilinear.GradientTables
    words: np.ndarray  # uint32


def prepare_curves(game: Game, players: np.ndarray, n_all: int) -> CurveTables:
    """Lay out the trees of a game for ``add_areas``.

    Parameters
    ----------
    game : Game
        as ``path_dependent.games.play`` makes it; its points do not matter
    players : (rows,) int
        numbers of the game's players among all, ascending
    n_all : int
        players, with those that no split asks for

    Returns
    -------
    CurveTables
        contiguous and read-only
    """
    ensemble, trace, splits = game.ensemble, game.trace, order_splits(game)
    ranked, members = compare_rows(game)
    trees, column, output, base = trees_by_output(ensemble)
    leaf = ensemble.feature < 0
    n_splits = (splits.start[1:] - splits.start[:-1])[trees]
    start = np.concatenate(([0], np.cumsum(n_splits)))
    tree = np.repeat(np.arange(trees.size), n_splits)
    mine = splits.start[trees[tree]] + start[1:][tree] - 1 - np.arange(tree.size)  # in reverse order
    node, children = splits.node[mine], np.stack((splits.first[mine], splits.second[mine]))
    lower, span = child_intervals(ranked, node, children[0] == ensemble.left[node])

    keys, position = np.unique(pack_pairs(tree, game.gain[node]), return_inverse=True)
    owner, player = unpack_pairs(keys)
    first = group_starts(owner, trees.size)
    cover, both = ensemble.cover[children], ensemble.cover[children].sum(axis=0)
    level = 2 * trace.level[node]
    second_child = np.zeros(leaf.size, bool)
    second_child[splits.second] = True
    return frozen(
        CurveTables(
            start=start,
            output=output,
            base=base,
            places=np.array([level.max(initial=-2) + 4], np.int64),
            splits=np.stack(
                (
                    splits.last[mine],
                    level + second_child[node],
                    level + 2,
                    level + 3,
                    ranked.feature[node],
                    lower,
                    span,
                    position.reshape(-1) - first[tree],
                ),
                axis=1,
            ).astype(np.int32),
            constants=np.concatenate(
                (
                    np.divide(cover, both, out=np.full(cover.shape, 0.5), where=both > 0),
                    np.where(leaf[children], ensemble.value[children, column[tree]], 0.0),
                )
            ).T,
            asked=CurveQuery(
                first=first,
                player=player.astype(np.int32),
                before=np.asarray(players, np.int64) - np.arange(len(players)),
                n_all=np.array([n_all], np.int64),
            ),
            members=members,
            words=ranked.words,
        )
    )


def rank_players(scores: np.ndarray, asked: CurveQuery) -> np.ndarray:
    """Rank the players in splits among all players, by descending score."""
    return _as_places(places_by_score(scores, asked.before, int(asked.n_all[0])))


def _as_places(places: np.ndarray) -> np.ndarray:
    """Lay out ranks ``(outputs, players, n)`` as ``_add_areas`` reads them."""
    return np.ascontiguousarray(places.transpose(0, 2, 1), np.int32)


@jit
def _join(places: np.ndarray, m: int, first: int, stride: int, n_all: int, joins: np.ndarray, stops: np.ndarray, absent: np.ndarray) -> None:
    """Write where a tree's m players, ``places (rankings, most) int64``, join a row's vectors (``joins``, from ``first`` of ``absent``), and at which
    ranks (``stops``).

    Deletion rankings are insertion rankings reversed, and follow them.
    """
    n_rankings = len(places)
    for r in range(n_rankings):
        back = n_rankings + r
        joins[:m] = 1
        for p in range(m):
            for other in range(m):
                joins[p] += places[r, other] < places[r, p]
        for some in (r, back):
            stops[some, 0], stops[some, m + 1] = 1, n_all + 1
        for p in range(m):
            stops[r, joins[p]] = places[r, p]
            stops[back, m + 1 - joins[p]] = n_all + 1 - places[r, p]
            at, at_back = first + p * stride + r * (m + 1), first + p * stride + back * (m + 1)
            for q in range(m + 1):
                absent[at + q] = q < joins[p]
                absent[at_back + q] = q < m + 1 - joins[p]


@jit
def _add_areas(bins: np.ndarray, tables: CurveTables, place: np.ndarray, areas: np.ndarray, curves: np.ndarray) -> None:
    """Compute all areas in one function: a kernel that others call is compiled once more inside them, and may round differently."""
    n_rankings, n_rows = place.shape[1:3]
    asked, most = tables.asked, 0
    for w in range(asked.first.size - 1):
        most = max(most, asked.first[w + 1] - asked.first[w])
    widest = ROWS * ((2 * n_rankings * (most + 1) + LANES - 1) // LANES * LANES)
    absent, vectors = aligned(most * widest), aligned(tables.places[0] * widest)
    joins, stops = np.empty(most, np.int64), np.empty((ROWS, 2 * n_rankings, most + 2), np.int64)
    places, n_all = np.empty((n_rankings, most), np.int64), asked.n_all[0]
    top, n_used = np.int64(np.iinfo(bins.dtype).max), bins.shape[0]
    for row in range(0, n_rows, ROWS):
        size = min(ROWS, n_rows - row)
        for k in range(tables.base.size):
            for w in range(tables.output[k], tables.output[k + 1]):
                players = asked.player[asked.first[w] : asked.first[w + 1]]
                m = players.size
                width = (2 * n_rankings * (m + 1) + LANES - 1) // LANES * LANES
                for b in range(size):
                    for r in range(n_rankings):
                        for p in range(m):
                            places[r, p] = place[k, r, row + b, players[p]]
                    _join(places, m, b * width, ROWS * width, n_all, joins, stops[b], absent)
                stride = ROWS * width
                for s in range(tables.start[w], tables.start[w + 1]):
                    kind, feature, lower, span = (
                        tables.splits[s, KIND],
                        tables.splits[s, FEATURE],
                        tables.splits[s, LOWER],
                        tables.splits[s, SPAN] & top,
                    )
                    share, share_second, leaf, leaf_second = tables.constants[s]
                    for b in range(size):
                        if feature < n_used:
                            bin_ = np.int64(bins[feature, row + b])
                        else:
                            used, word = tables.members[feature - n_used]
                            bin_ = is_member(tables.words, word, np.int64(bins[used, row + b]))
                        goes = (bin_ - lower) & top <= span
                        # Before its feature joins, the first child has its share of the cover, afterwards 1 or 0.
                        there, less = splat(1.0 if goes else 0.0), splat(-share_second if goes else share)
                        player, here = tables.splits[s, PLAYER] * stride + b * width, tables.splits[s, PLACE] * stride + b * width
                        first, second = tables.splits[s, FIRST] * stride + b * width, tables.splits[s, SECOND] * stride + b * width
                        if kind == WALK_LEAVES:
                            under = splat(leaf_second)
                            step = splat(leaf) - under
                            for c in range(0, width, LANES):
                                store(vectors, here + c, under + (there + less * load(absent, player + c)) * step)
                        elif kind == WALK_UP_LEAF:
                            under = splat(leaf_second)
                            for c in range(0, width, LANES):
                                step = load(vectors, first + c) - under
                                store(vectors, here + c, under + (there + less * load(absent, player + c)) * step)
                        else:
                            for c in range(0, width, LANES):
                                under = load(vectors, second + c)
                                step = load(vectors, first + c) - under
                                store(vectors, here + c, under + (there + less * load(absent, player + c)) * step)
                for b in range(size):
                    for r in range(2 * n_rankings):
                        area, at = 0.0, b * width + r * (m + 1)
                        for q in range(m + 1):
                            area += vectors[at + q] * (stops[b, r, q + 1] - stops[b, r, q])
                        areas[k, r, row + b] += area / n_all
                        if curves.shape[3]:
                            curve = curves[k, r, row + b]
                            curve[0] += vectors[at]
                            for q in range(1, m + 1):
                                curve[stops[b, r, q]] += vectors[at + q] - vectors[at + q - 1]


def add_areas(
    bins: np.ndarray,
    tables: CurveTables,
    scores: Sequence[np.ndarray],
    insertion: np.ndarray,
    deletion: np.ndarray,
    curves: np.ndarray | None = None,
) -> None:
    """Add the areas under every row's curves, by several rankings at once."""
    _add_placed(bins, tables, [rank_players(some, tables.asked) for some in scores], insertion, deletion, curves)


def add_placed_areas(bins: np.ndarray, tables: CurveTables, places: Sequence[np.ndarray], insertion: np.ndarray, deletion: np.ndarray) -> None:
    """Add the areas under every row's curves for several rankings given as ranks.

    Parameters
    ----------
    bins : (used, at least n) unsigned integers
    places : sequence of (outputs, players, n) int64
        one for each ranking: of the players that some split asks for, their places among all, from 1
    insertion, deletion : (outputs, rankings, n) float64, margin units
    """
    _add_placed(bins, tables, [_as_places(some) for some in places], insertion, deletion, None)


def _add_placed(
    bins: np.ndarray, tables: CurveTables, places: Sequence[np.ndarray], insertion: np.ndarray, deletion: np.ndarray, curves: np.ndarray | None
) -> None:
    place = np.stack(places, axis=1)
    outputs, n_rankings, n = place.shape[:3]
    n_all = int(tables.asked.n_all[0])
    areas = np.zeros((outputs, 2 * n_rankings, n))
    steps = np.zeros((outputs, 2 * n_rankings, n, n_all + 1 if curves is not None else 0))
    _add_areas(bins, tables, place, areas, steps)
    insertion += areas[:, :n_rankings] + tables.base[:, None, None]
    deletion += areas[:, n_rankings:] + tables.base[:, None, None]
    if curves is not None:
        curves[:] = np.cumsum(steps, axis=3) + tables.base[:, None, None, None]
