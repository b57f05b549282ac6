"""Contents of a CatBoost file in either format, and their conversion to arrays."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from leafledger.kernels.trees.ensemble import TreeEnsemble, bit_set
from leafledger.kernels.trees.statistics import ABOVE

from ...errors import InvalidModel, UnsupportedModel
from ..model import Feature, check_ensemble
from ..objectives import CATBOOST, Objective, objective_of
from .cityhash import DIGITS, NO_CATEGORY, UNASKED, HashedCategory, find_booleans
from .classes import Classes, name_both, name_outputs
from .columns import Column, order_columns
from .ctr import Counts, CtrCounts, Statistic, lay_out_statistics
from .ctr_categories import known_hashes

BELOW_ALL = -1e39  # replaces a border of -inf: below all single-precision numbers, but above -inf
MAX_TREES, MAX_DEPTH, MAX_SYMMETRIC_DEPTH, MAX_NODES = 50_000, 64, 16, 1_000_000
MAX_SET_WORDS = 1 << 24  # 64 MiB of category sets; CatBoost itself splits on at most 255 values of a feature


@dataclass(frozen=True, slots=True)
class Tree:
    """One tree, with the root first and children after their parents."""

    split: np.ndarray  # (nodes,) int64, number among all borders and values in file order, -1 at leaves
    left: np.ndarray  # (nodes,) int64, -1 at leaves
    right: np.ndarray  # (nodes,) int64, -1 at leaves
    value: np.ndarray  # (nodes, outputs) float64, 0 at inner nodes
    weight: np.ndarray  # (nodes,) float64


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of a model file. ``columns`` are in file order: floats, categories, statistics, as splits are numbered."""

    columns: tuple[Column, ...]
    trees: tuple[Tree, ...]
    scale: float
    bias: np.ndarray  # (outputs,) float64
    classes: Classes
    loss: str  # "" if unknown
    statistics: tuple[Statistic, ...] = ()
    tables: Mapping[CtrCounts, Counts] = field(default_factory=dict)  # all tables that statistics need
    threshold: float | None = None  # probability threshold of the second of two classes, see `Objective`


def loss_name(parameters: Any) -> str:
    """Return the loss function named in a model's training parameters."""
    found = json.loads(parameters) if isinstance(parameters, str | bytes) else parameters
    loss = found.get("loss_function") if isinstance(found, dict) else None
    name = loss.get("type") if isinstance(loss, dict) else None
    return name if isinstance(name, str) else ""


def symmetric_tree(splits: Sequence[int], value: np.ndarray, weight: np.ndarray) -> Tree:
    """Expand a symmetric tree into nodes with the last split at the root, as CatBoost's own SHAP values do."""
    depth, n_inner = len(splits), len(weight) - 1
    levels = [weight]
    for _ in range(depth):
        levels.append(levels[-1].reshape(-1, 2).sum(axis=1))
    node = np.arange(n_inner)
    leaves = np.full(n_inner + 1, -1)
    return Tree(
        split=np.concatenate((np.repeat(np.asarray(splits, np.int64)[::-1], 1 << np.arange(depth)), leaves)),
        left=np.concatenate((2 * node + 1, leaves)),
        right=np.concatenate((2 * node + 2, leaves)),
        value=np.concatenate((np.zeros((n_inner, value.shape[1])), value)),
        weight=np.concatenate(levels[::-1]),
    )


def free_tree(split: Sequence[int], left: Sequence[int], right: Sequence[int], value: np.ndarray, weight: np.ndarray, where: str) -> Tree:
    """Complete a tree of any shape with the weights of inner nodes."""
    if len(split) > MAX_NODES:
        raise UnsupportedModel(f"{where} has {len(split)} nodes, expected at most {MAX_NODES}")
    depth, total = [0] * len(split), weight.tolist()
    for node, number in enumerate(split):
        if number >= 0:
            for child in (left[node], right[node]):
                if not node < child < len(split):
                    raise InvalidModel(f"{where}: node {node} has child {child}, expected {node + 1}..{len(split) - 1}")
                depth[child] = depth[node] + 1
    if max(depth) > MAX_DEPTH:
        raise UnsupportedModel(f"{where} is {max(depth)} deep, expected at most {MAX_DEPTH}")
    for node in range(len(split) - 1, -1, -1):
        if split[node] >= 0:
            total[node] = total[left[node]] + total[right[node]]
    return Tree(np.asarray(split, np.int64), np.asarray(left, np.int64), np.asarray(right, np.int64), value, np.asarray(total, float))


def _categories(column: Column, hashed: bool) -> tuple[str | HashedCategory, ...]:
    """Return a feature's categories, as hashes where statistics need them."""
    if column.texts is not None and not hashed:
        return column.texts
    # Features without splits need a category list too.
    return tuple(HashedCategory(value) for value in column.values) or (NO_CATEGORY if hashed else UNASKED,)


def _booleans(column: Column, told: np.ndarray | None, hashed: bool, looked_up: bool) -> tuple[str, ...]:
    """Return how hashed categories spell false and true; CatBoost's own spelling if none depends on it."""
    if not column.categorical or (column.texts is not None and not hashed):
        return ()
    known = {*column.values, *([] if told is None else told.tolist())}
    return find_booleans(known) if known or looked_up else DIGITS


def _join(trees: Sequence[Tree], n_outputs: int) -> tuple[Tree, np.ndarray]:
    """Concatenate trees with absolute children; return them with the roots, ``(trees,)`` int32."""
    sizes = [len(tree.split) for tree in trees]
    first = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    shift = np.repeat(first[:-1], sizes)

    def joined(name: str, shape: tuple[int, ...], dtype: type) -> np.ndarray:
        return np.concatenate([np.empty(shape, dtype), *(getattr(tree, name) for tree in trees)])

    split, left, right = (joined(name, (0,), np.int64) for name in ("split", "left", "right"))
    inner = split >= 0
    left, right = (np.where(inner, side + shift, -1) for side in (left, right))
    return Tree(split, left, right, joined("value", (0, n_outputs), float), joined("weight", (0,), float)), first[:-1].astype(np.int32)


def build(contents: Contents, where: str) -> tuple[TreeEnsemble, tuple[Feature, ...], tuple[str, ...], Objective]:
    """Turn a CatBoost model into arrays, and check them."""
    order = order_columns(contents.columns, where)
    statistics, of_statistic = lay_out_statistics(contents.statistics, contents.tables, contents.columns, order, where)
    if len(contents.trees) > MAX_TREES:
        raise UnsupportedModel(f"{where}: {len(contents.trees)} trees, expected at most {MAX_TREES}")
    n_outputs = contents.bias.size
    trees, roots = _join(contents.trees, n_outputs)
    inner = trees.split >= 0
    # All possible splits in file order: borders of floats, values of categories, codes of statistics.
    bin_column = np.repeat(
        np.concatenate((np.array([order[column.flat] for column in contents.columns], np.int64), of_statistic)),
        [
            *(len(column.values) if column.categorical else column.borders.size for column in contents.columns),
            *(statistic.borders.size for statistic in contents.statistics),
        ],
    )
    border = np.concatenate([np.empty(0, np.float32), *(column.borders for column in contents.columns)])
    bounds = np.where(border == -np.inf, BELOW_ALL, border.astype(float))
    code = np.concatenate([np.empty(0, np.int64), *(np.arange(len(column.values)) for column in contents.columns)])
    codes = [np.arange(statistic.borders.size, dtype=float) for statistic in contents.statistics]
    bin_threshold = np.concatenate((bounds, np.zeros(code.size), *codes))
    stray = np.flatnonzero(trees.split >= bin_column.size)
    if stray.size:
        tree = np.searchsorted(roots, stray[0], side="right") - 1
        raise InvalidModel(f"{where}: tree {tree} has split {trees.split[stray[0]]}, expected 0..{bin_column.size - 1}")
    by_position = sorted(contents.columns, key=lambda column: column.flat)
    hashed = bool(contents.statistics)
    computed = np.zeros(len(contents.statistics), np.int32)  # statistics are numeric columns without missing values
    n_categories = np.append(np.array([len(_categories(column, hashed)) if column.categorical else 0 for column in by_position], np.int32), computed)
    nan_right = np.append(np.array([column.nan_right for column in by_position], bool), computed > 0)

    used = np.unique(trees.split[inner])
    used = used[(used >= border.size) & (used < border.size + code.size)]
    n_codes = n_categories[bin_column[used]].astype(np.int64)
    if (n_codes // 32 + 1).sum() > MAX_SET_WORDS:
        raise UnsupportedModel(f"{where}: {used.size} splits on features of up to {n_codes.max()} categories need too much memory")
    # x == value goes right, so the left set is all other categories and unseen.
    sets = [bit_set([c for c in range(n + 1) if c != code[s - border.size]], n) for s, n in zip(used, n_codes.tolist(), strict=True)]
    set_of_bin = np.full(bin_column.size + 1, -1, np.int32)  # with an extra entry for leaves
    set_of_bin[used] = np.arange(used.size)

    feature = np.full(inner.size, -1, np.int32)
    feature[inner] = bin_column[trees.split[inner]]
    threshold = np.append(bin_threshold, 0.0)[trees.split]
    missing_left = np.zeros(inner.size, bool)
    # CatBoost replaces NaN that goes right by inf, but inf > inf is false.
    missing_left[inner] = ~nan_right[feature[inner]] | (threshold[inner] == np.inf)
    with np.errstate(over="ignore", invalid="ignore"):  # the check refuses infinite leaves
        value = trees.value * contents.scale
    ensemble = TreeEnsemble(
        feature=feature,
        threshold=threshold,
        missing_left=missing_left,
        category_set=set_of_bin[trees.split],
        left=trees.left.astype(np.int32),
        right=trees.right.astype(np.int32),
        value=value,
        cover=trees.weight,
        root=roots,
        output=np.zeros(roots.size, np.int32),
        base=contents.bias,
        n_categories=n_categories,
        zero_missing=np.zeros(n_categories.size, bool),
        set_start=np.concatenate(([0], np.cumsum([words.size for words in sets], dtype=np.int64))),
        set_words=np.concatenate([np.empty(0, np.uint32), *sets]),
        single_precision=True,
        iteration=np.arange(roots.size, dtype=np.int32),
        base_is_first=True,
        statistics=statistics,
    )
    check_ensemble(ensemble, where)
    looked_up = {int(statistics.source[element]) for element in statistics.element[statistics.kind != ABOVE]}
    told = known_hashes(statistics)
    gaps = any(column.flat != position for position, column in enumerate(by_position))  # then names are more informative than positions
    features = tuple(
        Feature(
            name=column.name,
            categorical=column.categorical,
            categories=_categories(column, hashed) if column.categorical else None,
            hashed=column.categorical and position in looked_up,
            named=column.named or gaps,
            by_value=column.categorical,
            booleans=_booleans(column, told.get(position), hashed, position in looked_up),
            refuses_missing=column.categorical,
            partial=column.categorical and bool(column.values),
        )
        for position, column in enumerate(by_position)
    )
    classes = name_both(contents.classes, n_outputs)
    objective = replace(objective_of(contents.loss, CATBOOST), classes=classes, threshold=contents.threshold)
    return ensemble, features, name_outputs(contents.classes, n_outputs, where), objective
