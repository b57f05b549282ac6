"""Compilation ahead of runs: calls every kernel on small models, so that later processes load them from the cache."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.changes.nearest import ChangeTables, Found, find_nearest, prepare_changes
from leafledger.kernels.changes.supported import Supported
from leafledger.kernels.distributions.column_distribution import count_column
from leafledger.kernels.distributions.histogram import start_histogram
from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.method.method import BackgroundQuery, Method
from leafledger.kernels.methods import METHODS, SHARED
from leafledger.kernels.prepare import ask_again, ask_background, measure_background, merge_statistics, prepare
from leafledger.kernels.quotients.quantities import Quantity
from leafledger.kernels.reductions.summary import list_grouped
from leafledger.kernels.set_indices import Sets
from leafledger.kernels.slices import links
from leafledger.kernels.slices.buffers import Prepared, make_buffers
from leafledger.kernels.slices.top_k import find_largest
from leafledger.kernels.trees.binning import BATCH, bin_dtype
from leafledger.kernels.trees.ensemble import TreeEnsemble, bit_set, check
from leafledger.kernels.trees.forest import make_forest
from leafledger.kernels.trees.statistics import NO_STATISTICS, look_up

from ..display.nearest import did_you_mean
from ..errors import UsageError

N_NUMERIC = 24  # numeric features, followed by a categorical one
N_CATEGORIES = 3  # bins of two bytes; four need more than 65,000 values, which is rare
WIDTHS = (1, 2)  # numbers of values in a leaf
CHAIN = 12  # splits: too many comparisons for look-up, so that trees are walked
PLAYERS = (2, 4, 6, 8)  # players of walked trees, one case for each number of quadrature nodes
FULL = 9  # levels of a tree that rows descend node by node
DEEP = 22  # players above a leaf: too many for sums over all subsets
N_ROWS = 64  # rows of a background
ORDER = 3  # players of a set, at most
BUDGET = 1 << 28  # memory for tables in bytes
NEEDED: Mapping[str, Callable[[int], dict[str, Any]]] = {  # parameters of methods without usable defaults, by number of players
    "semivalue": lambda n_players: {"atoms": ((0.5, 1.0),)},
    "probabilistic": lambda n_players: {"sizes": (1.0 / n_players,) * n_players},
    "asymmetric": lambda n_players: {"sequence": tuple(range(n_players))},
}


def call_kernels(method: Method, prepared: Prepared) -> None:
    """Call every kernel of a run."""
    buffers = make_buffers(prepared, 1)
    for n_rows in (1, None):
        attribute_batch(method, prepared, buffers, n_rows)
    for summary in dict.fromkeys((*method.summaries, *list_grouped(method.summaries), *SHARED)):
        summary.update(summary.init(buffers), buffers, 1)
    if prepared.changes:
        call_changes(buffers.bins, buffers.values, prepared.changes)


def call_changes(bins: np.ndarray, values: np.ndarray, tables: ChangeTables) -> None:
    """Call the kernel of nearest changes, with no value that is supported."""
    start, nothing, neither = np.cumsum([0, *tables.n_bins]), np.full(int(tables.n_bins.sum()), np.nan), np.zeros(tables.n_bins.size, bool)
    codes = np.where(np.repeat(tables.categorical, tables.n_bins), 0.0, nothing)
    supported = frozen(Supported(start, codes, codes, neither, neither))
    find_nearest(bins, values, np.zeros(1), tables, supported, Found(*np.full((3, tables.feature.size, 1), np.nan)))


def call_counting(query: BackgroundQuery) -> Any:
    """Call every kernel of background statistics.

    Returns
    -------
    BackgroundStatistics
        of twice N_ROWS rows
    """
    return merge_statistics([measure_background(query, np.zeros((query.bins.column.size, N_ROWS)))] * 2)


@dataclass(frozen=True, slots=True)
class _Tree:
    """Splits and leaves of a tree, numbered from its root: ``feature``, ``left`` and ``right``, -1 at leaves, and ``cover``."""

    feature: np.ndarray
    left: np.ndarray
    right: np.ndarray
    cover: np.ndarray


def _chain(features: Iterable[int]) -> _Tree:
    """Make a tree of one long path, each split with a leaf on the left."""
    asked = np.array([*features])
    n = asked.size
    node = np.arange(2 * n + 1)
    right = np.where(node < n - 1, node + 1, 2 * n)
    return _Tree(
        np.where(node < n, np.append(asked, np.zeros(n + 1, int)), -1),
        np.where(node < n, node + n, -1),
        np.where(node < n, right, -1),
        np.where(node < n, n + 1.0 - node, 1.0),
    )


def _full(levels: int) -> _Tree:
    """Make a complete tree of that many levels, of two features."""
    node = np.arange((2 << levels) - 1)
    split, level = node < (1 << levels) - 1, np.log2(node + 1).astype(int)
    left, right = (np.where(split, 2 * node + side, -1) for side in (1, 2))
    return _Tree(np.where(split, level % 2, -1), left, right, 2.0 ** (levels - level))


def _join(trees: Iterable[_Tree], width: int) -> TreeEnsemble:
    """Make a model of trees with distinct thresholds and leaves."""
    trees = tuple(trees)
    root = np.cumsum([0, *(tree.feature.size for tree in trees[:-1])])
    feature = np.concatenate([tree.feature for tree in trees])
    left, right = (
        np.concatenate([np.where(side < 0, -1, side + first) for side, first in zip(sides, root, strict=True)])
        for sides in zip(*((tree.left, tree.right) for tree in trees), strict=True)
    )
    n = feature.size
    ensemble = TreeEnsemble(
        feature=feature.astype(np.int32),
        threshold=np.where(feature < 0, 0.0, np.arange(n) + 0.5),
        missing_left=np.zeros(n, bool),
        category_set=np.where(feature == N_NUMERIC, 0, -1).astype(np.int32),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        value=np.arange(n * width, dtype=float).reshape(n, width),
        cover=np.concatenate([tree.cover for tree in trees]),
        root=root.astype(np.int32),
        output=np.zeros(root.size, np.int32),
        base=np.zeros(width),
        n_categories=np.append(np.zeros(N_NUMERIC), N_CATEGORIES).astype(np.int32),
        zero_missing=np.zeros(N_NUMERIC + 1, bool),
        set_start=np.array([0, bit_set((), N_CATEGORIES).size]),
        set_words=bit_set([0], N_CATEGORIES),
        single_precision=False,
    )
    check(ensemble)
    return ensemble


def list_small_models() -> list[TreeEnsemble]:
    """Make models of one output and of two: with a tree whose players' patterns are counted each, and one that is looked up."""
    return [_join([_chain(range(DEEP)), _chain([0, 1, N_NUMERIC])], width) for width in WIDTHS]


def _fill_in(method: Method, n_players: int) -> dict[str, Any]:
    """Return the method's parameters: defaults, or usable values."""
    given = {parameter.name: parameter.default for parameter in method.parameters}
    return given | NEEDED.get(method.name, lambda _: {})(n_players)


def _warm(method: Method, ensemble: TreeEnsemble, against: bool = False) -> None:
    """Call all kernels of a method on a model in one game, with interactions and shared values where supported."""
    group = np.arange(ensemble.n_features) // (1 if method.phi.of_groups else 2)
    value = method.games.value
    given = _fill_in(method, int(group.max()) + 1)
    for sets in (None, Sets(ORDER, "SII" * bool(method.games.index)))[: 1 if value is None else None]:
        interactions, known = value is not None, None
        if against:
            order = 0 if sets is None else ORDER
            query = ask_background(ensemble, method, group, n_rows=2 * N_ROWS, budget=BUDGET, interactions=interactions, order=order)
            known = query, call_counting(query)
        call_kernels(method, prepare(ensemble, method, given, group, interactions=interactions, background=known, sets=sets))
    if method.phi.linear and method.phi.of_groups and not against:
        call_kernels(method, prepare(ensemble, method, given, group, shared={0: (0, 1)}))


def _warm_all(method: Method) -> None:
    """Call all kernels of a method."""
    value, background = method.games.value, method.games.background
    for width in WIDTHS[: 1 if method.labelled else None]:  # methods with labels need models of one output
        looked_up = _chain([0, 1, N_NUMERIC])
        walked = _join([*(_chain(k % n for k in range(CHAIN)) for n in PLAYERS), looked_up], width)
        for ensemble in (walked, _join([looked_up], width)):
            _warm(method, ensemble)
            if background is not None:
                _warm(method, ensemble, against=True)
        if value is not None:  # methods that accept any tree
            _warm(method, _join([_full(FULL), looked_up], width))
            _warm(method, _join([_chain(range(DEEP)), looked_up], width), against=True)


def _warm_weights() -> None:
    """Count a background whose rows have weights."""
    ensemble = _join([_chain([0, 1, N_NUMERIC])], 1)
    query = ask_background(ensemble, METHODS["shapley"], n_rows=2 * N_ROWS, budget=BUDGET, quantity=Quantity("squared"))
    following = ask_again(query, call_counting(query))
    if following is not None:
        call_counting(following)


def _warm_rest() -> None:
    """Call kernels outside methods: nearest changes, probabilities, largest values, statistics, weighted backgrounds, and drift measures."""
    _warm_weights()
    softmax, three = links.Link("softmax"), np.zeros(3)
    links.carry(softmax, three, np.zeros((3, 1)), np.zeros((3, 1, 1)))
    for dtype in (np.float32, np.float64):
        find_largest(np.zeros((3, 1), dtype), 1)
    count_column(np.zeros(1), start_histogram())
    ensemble = _join([_chain([0, N_NUMERIC])], 1)
    bins, forest = make_forest(ensemble)
    shape = bins.column.size, BATCH
    call_changes(np.zeros(shape, bin_dtype(bins)), np.zeros(shape), frozen(prepare_changes(forest, bins, np.array([0, 1]), 1.0, 0.0)))
    look_up(np.zeros((0, 1)), frozen(NO_STATISTICS), np.zeros((1, 2))[1:, :1], np.zeros((0, 1), bool))


def list_names() -> list[str]:
    """List all methods."""
    return list(METHODS)


def list_pieces(methods: Iterable[str] | None = None) -> list[tuple[str, Callable[[], None]]]:
    """List the pieces of compilation.

    Parameters
    ----------
    methods : iterable of str, optional
        names of methods; all of them if not given

    Returns
    -------
    list of tuple of str and callable
        what a piece is, in words, and what calls its kernels

    Raises
    ------
    UsageError
        a method that there is not
    """
    names = list_names() if methods is None else list(dict.fromkeys(methods))
    for name in names:
        if name not in METHODS:
            raise UsageError(f"unknown method {name!r}, expected one of {', '.join(METHODS)}{did_you_mean(name, METHODS)}")
    return [("what all methods share", _warm_rest), *((name, partial(_warm_all, METHODS[name])) for name in names)]
