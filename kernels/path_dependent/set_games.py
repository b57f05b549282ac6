"""The path-dependent game for interactions of sets of players: trees as walks, with all sets of players above each split (see ``set_walks``).

More points than MAX_NODES are further walks of the same tree, as many as are needed, all with the same number of points.
"""

from collections.abc import Iterable
from math import comb
from typing import NamedTuple

import numpy as np

from ..arrays.offsets32 import narrow
from ..set_indices import SetRule, SetValue
from ..trees.forest import Forest
from ..trees.paths import first_splits, most_on_a_path, trace
from ..trees.player_sets import Above, SetsAbove, find_above, find_sets
from .games import Game
from .walks import MAX_NODES, STEP_COST, WALK_AGAIN, Splits, find_places, lay_out_steps, merge_sizes, order_splits

# Columns of SetWalks.steps: the kind, and what Walks.steps has up to the members; how many leaves the children are; the first of the step's
# constants, of the others above the split, how many they are, and the first of its sets.
KIND, PLACE, FEATURE, ABOVE, LOWER, SPAN, MEMBERS, LEAVES, CONSTANTS, OTHERS, N_OTHERS, SETS = range(12)
# Constants of a split: a and a' and the leaves' values, and for every point shares of F' (see ``quadrature``), and what D / F is and may grow by.
NONE, MORE, NONE_SECOND, MORE_SECOND, GAIN, WEIGHT, RATIO, RATIO_MORE, RATIO_MORE_SECOND, PER_POINT = range(10)


class SetGame(NamedTuple):
    """A game for interactions of sets of its players."""

    game: Game  # without single values; its rows are the sets
    rules: tuple[SetRule, ...]  # per tree
    above: Above
    sets: SetsAbove


class SetWalks(NamedTuple):
    """Walks with the same number q of quadrature points; a walk is one tree at up to MAX_NODES of them."""

    start: np.ndarray  # (walks,) int64, walk w is steps start[w]:stop[w]
    stop: np.ndarray  # (walks,) int64
    tree: np.ndarray  # (walks,) int32, the model's
    output: np.ndarray  # (walks,) int32, the first output the tree adds to
    weights: np.ndarray  # (walks, order * q) float64, of sets by size
    width: np.ndarray  # (1,) int64, numbers in a leaf
    levels: np.ndarray  # (1,) int64, most levels of splits in a walk
    steps: np.ndarray  # (steps, 12) int32
    constants: np.ndarray  # float64
    words: np.ndarray  # uint32

    def of_tree(self, tree: int) -> "SetWalks":
        """Select the walks of one of the model's trees, which are contiguous."""
        mine = slice(*np.searchsorted(self.tree, (tree, tree + 1)))
        return self._replace(**{name: getattr(self, name)[mine] for name in ("start", "stop", "tree", "output", "weights")})


class SetWalkTables(NamedTuple):
    """Walks grouped by their number of points, from one to MAX_NODES, and what they share."""

    walks: tuple[SetWalks, SetWalks, SetWalks, SetWalks]
    places: np.ndarray  # int32, of every split the places of the nearest edges of the others above it
    rows: np.ndarray  # int32, of every split the rows of its sets, see SetsAbove
    order: np.ndarray  # (1,) int64, largest size of a set
    most: np.ndarray  # (1,) int64, sets of a split that others are made from

    def of_tree(self, tree: int) -> "SetWalkTables":
        """Select the walks of one of the model's trees."""
        one, two, three, four = (some.of_tree(tree) for some in self.walks)
        return self._replace(walks=(one, two, three, four))


def play_sets(forest: Forest, value: SetValue) -> SetGame:
    """Play for interactions of all sets of players that share a path.

    Raises
    ------
    InvalidParameters
        there are too many sets, or the index loses digits on such paths
    """
    ensemble, player = forest.ensemble, forest.player_of_node
    traced = trace(ensemble, player, forest.n_players)
    above = find_above(ensemble, traced, player, forest.n_players)
    sets = find_sets(above, player, value.order)
    most = most_on_a_path(ensemble, traced, first_splits(ensemble, traced))
    rules = {n: value.rule(max(1, n)) for n in set(most.tolist())}
    game = Game(
        ensemble=ensemble,
        splits=forest.splits,
        trace=traced,
        node=np.arange(player.size, dtype=np.int32),
        source=np.arange(ensemble.root.size, dtype=np.int32),
        gain=np.full(player.size, len(sets.players), np.int32),
        presence=np.zeros(player.size, np.int8),
        points=(),  # walks have rules instead
        n_rows=len(sets.players),
        n_used=forest.n_used,
    )
    return SetGame(game, tuple(rules[n] for n in most.tolist()), above, sets)


def _cut(rule: SetRule) -> list[SetRule]:
    """Cut a rule into parts of at most MAX_NODES points, all of one length; points that fill up have weight 0."""
    n_parts = -(-rule.nodes.size // MAX_NODES)
    q = -(-rule.nodes.size // n_parts)
    return [_fill(SetRule(rule.nodes[i : i + q], rule.weights[:, i : i + q]), q) for i in range(0, rule.nodes.size, q)]


def _fill(rule: SetRule, q: int) -> SetRule:
    """Fill a rule up to q points."""
    more = q - rule.nodes.size
    return SetRule(np.append(rule.nodes, np.full(more, 0.5)), np.pad(rule.weights, ((0, 0), (0, more))))


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b != 0)


def _make_constants(game: Game, triples: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Make the constants of splits, ``(splits, m)``, from their nodes and children, and points ``t (splits, q)``."""
    node, first, second = triples
    above, absent, leaf = game.trace.above[node], game.trace.absent, game.ensemble.feature < 0
    a_above = np.where(above < 0, 1.0, absent[above])[:, None]
    a, a_second = absent[first][:, None], absent[second][:, None]
    factor = (1 - t) * a_above + t  # F' where o' = 1
    values = [np.where(leaf[child][:, None], game.ensemble.value[child], 0.0) for child in (first, second)]
    none, none_second, outside = _divide(a, a_above) + 0 * t, _divide(a_second, a_above) + 0 * t, 1 / (1 - t)
    per_point = {
        NONE: none,
        MORE: (1 - t) * a / factor - none,
        NONE_SECOND: none_second,
        MORE_SECOND: (1 - t) * a_second / factor - none_second,
        GAIN: t / factor,
        WEIGHT: 1 / factor**2,
        RATIO: -outside,
        RATIO_MORE: (1 - a) / ((1 - t) * a + t) + outside,
        RATIO_MORE_SECOND: (1 - a_second) / ((1 - t) * a_second + t) + outside,
    }
    points = np.stack([per_point[k] for k in range(PER_POINT)], axis=2).reshape(len(t), -1)
    return np.concatenate((a, a_above, *values, points), axis=1)


class _Shared(NamedTuple):
    """What walks of one tree share: of some trees' splits, the others above them and their sets, end to end."""

    places: np.ndarray  # int32
    rows: np.ndarray  # int32
    first_place: np.ndarray  # (nodes,) int64
    first_row: np.ndarray  # (nodes,) int64


def _share(played: SetGame, splits: Splits, trees: np.ndarray) -> _Shared:
    """Collect the others above all splits of some trees, and their sets."""
    game, above, sets = played.game, played.above, played.sets
    mine = np.isin(game.trace.tree, trees)

    def collect(start: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        counts = np.diff(start) * mine
        return values[np.repeat(mine, np.diff(start))], np.cumsum(counts) - counts

    places, first_place = collect(above.start, find_places(game, splits)[above.edge])
    rows, first_row = collect(sets.start, sets.row)
    return _Shared(narrow(places), rows, first_place, first_row)


def _lay_out(played: SetGame, splits: Splits, shared: _Shared, walks: list[tuple[int, SetRule]], q: int) -> SetWalks:
    """Lay out trees as walks with q points each."""
    game, order = played.game, played.sets.players.shape[1]
    ensemble, tree = game.ensemble, np.array([tree for tree, _ in walks], np.int64)
    steps = lay_out_steps(game, splits, game.splits, tree)
    t = np.array([rule.nodes for _, rule in walks]).reshape(-1, q)
    constants = _make_constants(game, np.stack((steps.node, steps.first, steps.second)), t[steps.walk])
    leaf, node, kind = ensemble.feature < 0, steps.node[steps.split], steps.columns[:, KIND] % WALK_AGAIN
    leaves = (leaf[steps.first].astype(np.int64) + leaf[steps.second])[steps.split]
    made = (kind, steps.columns[:, PLACE:MEMBERS], game.splits.members[node], leaves, constants.shape[1] * steps.split)
    of_sets = (shared.first_place[node], np.diff(played.above.start)[node], shared.first_row[node])
    return SetWalks(
        start=steps.start,
        stop=steps.stop,
        tree=game.source[tree],
        output=ensemble.output[tree],
        weights=np.array([rule.weights for _, rule in walks]).reshape(-1, order * q),
        width=np.array([ensemble.value.shape[1]], np.int64),
        levels=steps.levels,
        steps=narrow(np.column_stack((*made, *of_sets))),
        constants=constants.reshape(-1),
        words=game.splits.words,
    )


def _no_walks(q: int, order: int, width: int, words: np.ndarray) -> SetWalks:
    offsets, numbers, steps = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros((0, SETS + 1), np.int32)
    weights = np.zeros((0, order * q))
    return SetWalks(offsets, offsets, numbers, numbers, weights, np.array([width], np.int64), np.zeros(1, np.int64), steps, np.zeros(0), words)


def no_set_walks(order: int, width: int, words: np.ndarray) -> SetWalkTables:
    """Make the tables of no walks.

    Parameters
    ----------
    width : int
        numbers in a leaf of the model
    words : uint32, sets of bins, see BinnedSplits
    """
    one, two, three, four = (_no_walks(q, order, width, words) for q in range(1, MAX_NODES + 1))
    nothing = np.zeros(0, np.int32)
    return SetWalkTables((one, two, three, four), nothing, nothing, np.array([order], np.int64), np.ones(1, np.int64))


def lay_out_set_walks(played: SetGame, trees: Iterable[int]) -> SetWalkTables:
    """Lay out trees as walks, grouped by their number of points.

    Parameters
    ----------
    trees : iterable of int
        trees of the game; walks keep their order
    """
    game, order = played.game, played.sets.players.shape[1]
    width, words = game.ensemble.value.shape[1], game.splits.words
    walks = [(int(tree), part) for tree in trees for part in _cut(played.rules[tree])]
    if not walks:
        return no_set_walks(order, width, words)
    splits = order_splits(game)
    shared = _share(played, splits, np.array([tree for tree, _ in walks]))
    cost = np.zeros(MAX_NODES + 1)
    for tree, part in walks:
        cost[part.nodes.size] += splits.n_steps[game.ensemble.root[tree]] * (part.nodes.size + STEP_COST)
    sizes = merge_sizes(cost)
    groups: dict[int, list[tuple[int, SetRule]]] = {q: [] for q in range(1, MAX_NODES + 1)}
    for tree, part in walks:
        q = int(sizes[part.nodes.size])
        groups[q].append((tree, _fill(part, q)))
    one, two, three, four = (_lay_out(played, splits, shared, some, q) if some else _no_walks(q, order, width, words) for q, some in groups.items())
    n_others = int(np.diff(played.above.start).max(initial=0))
    most = sum(comb(n_others, taken) for taken in range(max(1, order - 1)))
    return SetWalkTables((one, two, three, four), shared.places, shared.rows, np.array([order], np.int64), np.array([most], np.int64))
