"""CatBoost models read from JSON exports or the binary format, without CatBoost's own loader."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from leafledger.kernels.trees.ensemble import TreeEnsemble

from ...errors import InvalidModel, UnsupportedModel
from ...stores import storage
from ..formats.json_fields import get, list_of, numbers, parse, single
from ..model import Feature, Loader, check_predictions, find_classes
from ..objectives import Objective
from .assemble import MAX_SYMMETRIC_DEPTH, Contents, Tree, build, free_tree, loss_name, symmetric_tree
from .cbm_format import MAGIC, read_cbm
from .cityhash import HASH_MASK
from .classes import THRESHOLD, Classes, read_classes, read_threshold
from .columns import Column
from .ctr import Statistic
from .ctr_json import check_unambiguous, read_statistics, read_tables

JSON_START = re.compile(rb'\s*\{\s*"(ctr_data|features_info|model_info|oblivious_trees|scale_and_bias|trees)"\s*:')
FLOAT, ONE_HOT, STATISTIC = "FloatFeature", "OneHotFeature", "OnlineCtr"  # types of splits
INDEX_OF = {FLOAT: "float_feature_index", ONE_HOT: "cat_feature_index", STATISTIC: "ctr_target_border_idx"}
MOST_INDEX = 2**31 - 1


def _column(record: Any, texts: dict[int, str], categorical: bool, where: str) -> Column:
    index, flat = get(record, "feature_index", int, where), get(record, "flat_feature_index", int, where)
    for key, number in (("feature_index", index), ("flat_feature_index", flat)):
        if not 0 <= number <= MOST_INDEX:  # CatBoost would wrap it to another number
            raise InvalidModel(f"{where}: {key!r} is {number}, expected 0..{MOST_INDEX}")
    given = get(record, "feature_id", str, where) if "feature_id" in record else ""  # CatBoost 1.0 leaves names out
    name, named = given or str(flat), bool(given)
    where = f"{where}: feature {name!r}"
    if not categorical:
        with np.errstate(over="ignore"):  # the check refuses infinite thresholds
            borders = numbers(list_of(record, "borders", where), f"{where}, borders").astype(np.float32)
        nan_right = get(record, "has_nans", bool, where) and get(record, "nan_value_treatment", str, where) == "AsTrue"
        return Column(False, index, flat, name, nan_right, borders, (), None, named)
    values = list_of(record, "values", where)
    if not all(type(value) is int and -(2**63) <= value < 2**64 for value in values):
        raise InvalidModel(f"{where}: got categories {repr(values)[:40]}, expected hashes")
    hashes = tuple(value & HASH_MASK for value in values)
    listed = list_of(record, "string_values", where) or [texts.get(value) for value in hashes]
    known = bool(listed) and all(isinstance(text, str) for text in listed)
    return Column(True, index, flat, name, False, np.empty(0, np.float32), hashes, tuple(listed) if known else None, named)


def _columns(model: Any, where: str) -> tuple[Column, ...]:
    info = get(model, "features_info", dict, where)
    texts = {get(entry, "hash", int, where) & HASH_MASK: get(entry, "value", str, where) for entry in list_of(info, "cat_features_hash", where)}
    floats = [_column(record, texts, False, where) for record in list_of(info, "float_features", where)]
    categories = [_column(record, texts, True, where) for record in list_of(info, "categorical_features", where)]
    return (*floats, *categories)


def _bins(columns: tuple[Column, ...], statistics: Sequence[Statistic]) -> list[tuple[str, int, float]]:
    """List all possible splits by number: type, feature or target border, and border or hash."""
    bins: list[tuple[str, int, float]] = []
    for column in columns:
        kind = ONE_HOT if column.categorical else FLOAT
        bins.extend((kind, column.index, bound) for bound in (column.values if column.categorical else column.borders.tolist()))
    for statistic in statistics:
        bins.extend((STATISTIC, statistic.target_border, border) for border in statistic.borders.tolist())
    return bins


def _split(record: Any, bins: list[tuple[str, int, float]], where: str) -> int:
    """Return a split's number, which is all that CatBoost uses; refuse other members that contradict it."""
    number, kind = get(record, "split_index", int, where), get(record, "split_type", str, where)
    if kind not in INDEX_OF:
        raise UnsupportedModel(f"{where} has a split of type {kind[:40]!r}, expected one of {', '.join(INDEX_OF)}")
    if not 0 <= number < len(bins):
        raise InvalidModel(f"{where} has split {number}, expected 0..{len(bins) - 1}")
    index = get(record, INDEX_OF[kind], int, where)
    bound = float(get(record, "value", int, where) & HASH_MASK) if kind == ONE_HOT else single(record, "border", where)
    if (kind, index, bound) != bins[number]:
        raise InvalidModel(f"{where}: split {number} is {(kind, index, bound)}, but features_info says {bins[number]}")
    return number


def _symmetric(record: Any, bins: list[tuple[str, int, float]], n_outputs: int | None, where: str) -> Tree:
    splits = [_split(split, bins, where) for split in list_of(record, "splits", where)]
    if len(splits) > MAX_SYMMETRIC_DEPTH:
        raise UnsupportedModel(f"{where} is {len(splits)} deep, expected at most {MAX_SYMMETRIC_DEPTH}")
    if not list_of(record, "leaf_weights", where):
        raise UnsupportedModel(f"{where} has no leaf weights, path-dependent attributions need them")
    value, weight = (numbers(list_of(record, key, where), f"{where}, {key}") for key in ("leaf_values", "leaf_weights"))
    n_leaves = 1 << len(splits)
    width = n_outputs or max(value.size // n_leaves, 1)
    if value.size != n_leaves * width or weight.size != n_leaves:
        raise InvalidModel(f"{where} has {value.size} leaf values and {weight.size} weights, expected {n_leaves} leaves of {width}")
    return symmetric_tree(splits, value.reshape(n_leaves, width), weight)


def _free(record: Any, bins: list[tuple[str, int, float]], n_outputs: int | None, where: str) -> Tree:
    """Read a tree of nested objects, depth first without recursion."""
    split: list[int] = []
    left: list[int] = []
    right: list[int] = []
    values, weights = [], []
    stack: list[tuple[Any, list[int], int]] = [(record, [], -1)]
    while stack:
        record, side, parent = stack.pop()
        node = len(split)
        if parent >= 0:
            side[parent] = node
        left.append(-1)
        right.append(-1)
        if isinstance(record, dict) and "value" in record:
            split.append(-1)
            if "weight" not in record:
                raise UnsupportedModel(f"{where} has no leaf weights, path-dependent attributions need them")
            value = record["value"]
            values.append(numbers(value if isinstance(value, list) else [value], f"{where}, value"))
            weights.append(numbers([record["weight"]], f"{where}, weight")[0])
            continue
        split.append(_split(get(record, "split", dict, where), bins, where))
        stack.append((get(record, "right", dict, where), right, node))
        stack.append((get(record, "left", dict, where), left, node))
    width = n_outputs or values[0].size
    if any(value.size != width for value in values):
        raise InvalidModel(f"{where} has leaves of {sorted({value.size for value in values})} values, expected {width}")
    leaf = np.asarray(split) < 0
    value, weight = np.zeros((leaf.size, width)), np.zeros(leaf.size)
    value[leaf], weight[leaf] = np.asarray(values), weights
    return free_tree(split, left, right, value, weight, where)


def _scale_and_bias(model: dict[str, Any], where: str) -> tuple[float, np.ndarray]:
    found = model.get("scale_and_bias", [1, []])
    where = f"{where}, scale_and_bias"
    if not isinstance(found, list) or len(found) != 2:
        raise InvalidModel(f"{where}: got {repr(found)[:40]}, expected a scale and a list of biases")
    bias = found[1] if isinstance(found[1], list) else [found[1]]
    return numbers(found[:1], where)[0], numbers(bias, where)


def _classes(model: dict[str, Any], where: str) -> Classes:
    info = model.get("model_info")
    return read_classes(info.get("class_params") if isinstance(info, dict) else None, where)


def _threshold(model: dict[str, Any], where: str) -> float | None:
    info = model.get("model_info")
    return read_threshold(info.get(THRESHOLD) if isinstance(info, dict) else None, where)


def _loss(model: dict[str, Any], where: str) -> str:
    info = model.get("model_info")
    try:
        return loss_name(info.get("params") if isinstance(info, dict) else None)
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"{where}: its parameters are not sound JSON: {error}") from error


def _read_json(data: bytes, where: str) -> Contents:
    model = parse(data, where)
    if not isinstance(model, dict) or ("oblivious_trees" in model) == ("trees" in model):
        raise InvalidModel(f"{where}: expected a CatBoost model with either oblivious_trees or trees")
    columns, statistics = _columns(model, where), read_statistics(model, where)
    bins = _bins(columns, statistics)
    scale, bias = _scale_and_bias(model, where)
    key, read = ("trees", _free) if "trees" in model else ("oblivious_trees", _symmetric)
    trees = []
    n_outputs = bias.size or None
    for t, record in enumerate(list_of(model, key, where)):
        trees.append(read(record, bins, n_outputs, f"{where}: tree {t}"))
        n_outputs = trees[0].value.shape[1]
    contents = Contents(
        columns=columns,
        trees=tuple(trees),
        scale=scale,
        bias=bias if bias.size else np.zeros(n_outputs or 1),
        classes=_classes(model, where),
        loss=_loss(model, where),
        statistics=statistics,
        tables=read_tables(model, statistics, where),
        threshold=_threshold(model, where),
    )
    check_unambiguous(contents, model.get("model_info"), where)
    return contents


def _recognise(data: bytes) -> bool:
    return data[:4] == MAGIC or JSON_START.match(data[:200]) is not None


def _parse(data: bytes, where: str) -> tuple[TreeEnsemble, tuple[Feature, ...], tuple[str, ...], Objective]:
    try:
        contents = read_cbm(data, where) if data[:4] == MAGIC else _read_json(data, where)
    except OverflowError as error:
        raise InvalidModel(f"{where}: a number is too large ({error})") from error
    return build(contents, where)


def _owns(model: Any) -> bool:
    return any(kind.__module__.partition(".")[0] == "catboost" and kind.__name__ == "CatBoost" for kind in type(model).__mro__)


def _serialise(model: Any) -> bytes:
    check_predictions(model, "catboost")
    if not model.is_fitted():
        raise InvalidModel(f"{type(model).__name__} object: not fitted")
    with storage.scratch() as folder:
        path = folder / "model.cbm"
        model.save_model(str(path), format="cbm")
        return path.read_bytes()


def _find_classes(model: Any) -> tuple[str, ...]:
    """Return the names of the classes seen in training, as the file names them; empty if there are fewer."""
    where = f"{type(model).__name__} object"
    said = read_classes(parse(model.get_metadata().get("class_params", "null"), where), where)
    names = said.names or find_classes(model)
    seen = said.seen or range(len(names))
    return tuple(names[number] for number in seen) if max(seen, default=0) < len(names) else ()


LOADER = Loader("catboost", _recognise, _parse, _owns, _serialise, _find_classes)
