"""CatBoost models, from their JSON export or the binary format, without CatBoost's own loader."""

import json
import re
from typing import Any

import numpy as np

from kernels.trees.ensemble import TreeEnsemble

from ..errors import InvalidModel, UnsupportedModel
from ..stores import storage
from .catboost_cbm import MAGIC, read_cbm
from .catboost_trees import MAX_SYMMETRIC_DEPTH, Column, Contents, Tree, build, free_tree, loss_name, symmetric_tree
from .cityhash import HASH_MASK
from .model import Feature, Loader
from .objectives import Objective

JSON_START = re.compile(rb'\s*\{\s*"(ctr_data|features_info|model_info|oblivious_trees|scale_and_bias|trees)"\s*:')
KINDS = {dict: "an object", list: "a list", str: "a string", int: "an integer", bool: "true or false"}
NUMERIC = {int, float}
MOST_INDEX = 2**31 - 1


def _get(record: Any, key: str, kind: type, where: str) -> Any:
    """The member ``key`` of a JSON object, of exactly that type."""
    if not isinstance(record, dict) or key not in record:
        raise InvalidModel(f"{where} has no {key!r}")
    if type(record[key]) is not kind:
        raise InvalidModel(f"{where}: {key!r} is {repr(record[key])[:40]}, expected {KINDS[kind]}")
    return record[key]


def _list(record: Any, key: str, where: str) -> list[Any]:
    """A list that CatBoost leaves out, or writes as null, where it is empty."""
    return [] if not isinstance(record, dict) or record.get(key) is None else _get(record, key, list, where)


def _numbers(found: Any, where: str) -> np.ndarray:
    if not isinstance(found, list) or not NUMERIC.issuperset(map(type, found)):
        raise InvalidModel(f"{where}: got {repr(found)[:40]}, expected a list of numbers")
    return np.array(list(map(float, found)))


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError(f"a key of {[key for key, _ in pairs][:9]} is given twice")
    return record


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


def _column(record: Any, texts: dict[int, str], categorical: bool, where: str) -> Column:
    index, flat = _get(record, "feature_index", int, where), _get(record, "flat_feature_index", int, where)
    for key, number in (("feature_index", index), ("flat_feature_index", flat)):
        if not 0 <= number <= MOST_INDEX:  # which CatBoost reads as another one
            raise InvalidModel(f"{where}: {key!r} is {number}, expected 0..{MOST_INDEX}")
    name = _get(record, "feature_id", str, where) or str(flat)
    where = f"{where}: feature {name!r}"
    if not categorical:
        with np.errstate(over="ignore"):  # an infinite threshold is found by the check
            borders = _numbers(_list(record, "borders", where), f"{where}, borders").astype(np.float32)
        nan_right = _get(record, "has_nans", bool, where) and _get(record, "nan_value_treatment", str, where) == "AsTrue"
        return Column(False, index, flat, name, nan_right, borders, (), None)
    values = _list(record, "values", where)
    if not all(type(value) is int and -(2**63) <= value < 2**64 for value in values):
        raise InvalidModel(f"{where}: got categories {repr(values)[:40]}, expected hashes")
    hashes = tuple(value & HASH_MASK for value in values)
    named = _list(record, "string_values", where) or [texts.get(value) for value in hashes]
    known = bool(named) and all(isinstance(text, str) for text in named)
    return Column(True, index, flat, name, False, np.empty(0, np.float32), hashes, tuple(named) if known else None)


def _columns(model: Any, where: str) -> tuple[Column, ...]:
    info = _get(model, "features_info", dict, where)
    texts = {_get(entry, "hash", int, where) & HASH_MASK: _get(entry, "value", str, where) for entry in _list(info, "cat_features_hash", where)}
    floats = [_column(record, texts, False, where) for record in _list(info, "float_features", where)]
    categories = [_column(record, texts, True, where) for record in _list(info, "categorical_features", where)]
    names = {column.index: column.name for column in categories}
    for ctr in _list(info, "ctrs", where):
        elements = [element.get("cat_feature_index") for element in _list(ctr, "elements", where) if isinstance(element, dict)]
        sources = ", ".join(repr(names.get(index, str(index))) for index in elements if type(index) is int)
        raise UnsupportedModel(
            f"{where}: feature {sources} is used through target statistics (CTR), expected one-hot splits only: "
            "train with a larger one_hot_max_size or encode it before"
        )
    return (*floats, *categories)


def _bins(columns: tuple[Column, ...]) -> list[tuple[bool, int, float]]:
    """Every split there is, by number: categorical or not, feature, border or hash."""
    return [
        (column.categorical, column.index, bound)
        for column in columns
        for bound in (column.values if column.categorical else column.borders.tolist())
    ]


def _split(record: Any, bins: list[tuple[bool, int, float]], where: str) -> int:
    """A split's number; CatBoost goes by it alone, so what else the file says of the split must agree."""
    number, kind = _get(record, "split_index", int, where), _get(record, "split_type", str, where)
    if kind not in {"FloatFeature", "OneHotFeature"}:
        raise UnsupportedModel(f"{where} has a split of type {kind[:40]!r}, expected FloatFeature or OneHotFeature")
    if not 0 <= number < len(bins):
        raise InvalidModel(f"{where} has split {number}, expected 0..{len(bins) - 1}")
    if kind == "OneHotFeature":
        found = (True, _get(record, "cat_feature_index", int, where), float(_get(record, "value", int, where) & HASH_MASK))
    else:
        with np.errstate(over="ignore"):
            border = float(np.float32(_numbers([record.get("border")], f"{where}, border")[0]))
        found = (False, _get(record, "float_feature_index", int, where), border)
    if found != bins[number]:
        raise InvalidModel(f"{where}: split {number} is {found[1:]}, but features_info says {bins[number][1:]}")
    return number


def _symmetric(record: Any, bins: list[tuple[bool, int, float]], n_outputs: int | None, where: str) -> Tree:
    splits = [_split(split, bins, where) for split in _list(record, "splits", where)]
    if len(splits) > MAX_SYMMETRIC_DEPTH:
        raise UnsupportedModel(f"{where} is {len(splits)} deep, expected at most {MAX_SYMMETRIC_DEPTH}")
    if not _list(record, "leaf_weights", where):
        raise UnsupportedModel(f"{where} has no leaf weights, path-dependent attributions need them")
    value, weight = (_numbers(_list(record, key, where), f"{where}, {key}") for key in ("leaf_values", "leaf_weights"))
    n_leaves = 1 << len(splits)
    width = n_outputs or max(value.size // n_leaves, 1)
    if value.size != n_leaves * width or weight.size != n_leaves:
        raise InvalidModel(f"{where} has {value.size} leaf values and {weight.size} weights, expected {n_leaves} leaves of {width}")
    return symmetric_tree(splits, value.reshape(n_leaves, width), weight)


def _free(record: Any, bins: list[tuple[bool, int, float]], n_outputs: int | None, where: str) -> Tree:
    """A tree of nested objects, depth first without recursion."""
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
            values.append(_numbers(value if isinstance(value, list) else [value], f"{where}, value"))
            weights.append(_numbers([record["weight"]], f"{where}, weight")[0])
            continue
        split.append(_split(_get(record, "split", dict, where), bins, where))
        stack.append((_get(record, "right", dict, where), right, node))
        stack.append((_get(record, "left", dict, where), left, node))
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
    return _numbers(found[:1], where)[0], _numbers(bias, where)


def _class_names(model: dict[str, Any], where: str) -> tuple[str, ...]:
    info = model.get("model_info")
    params = info.get("class_params") if isinstance(info, dict) else None
    return tuple(map(str, _list(params, "class_names", where)))


def _loss(model: dict[str, Any], where: str) -> str:
    info = model.get("model_info")
    try:
        return loss_name(info.get("params") if isinstance(info, dict) else None)
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"{where}: its parameters are not sound JSON: {error}") from error


def _read_json(data: bytes, where: str) -> Contents:
    try:
        model = json.loads(data, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:  # undecodable bytes and oversized integers are ValueErrors too
        raise InvalidModel(f"{where}: not sound JSON: {error}") from error
    if not isinstance(model, dict) or ("oblivious_trees" in model) == ("trees" in model):
        raise InvalidModel(f"{where}: expected a CatBoost model with either oblivious_trees or trees")
    columns = _columns(model, where)
    bins = _bins(columns)
    scale, bias = _scale_and_bias(model, where)
    key, read = ("trees", _free) if "trees" in model else ("oblivious_trees", _symmetric)
    trees = []
    n_outputs = bias.size or None
    for t, record in enumerate(_list(model, key, where)):
        trees.append(read(record, bins, n_outputs, f"{where}: tree {t}"))
        n_outputs = trees[0].value.shape[1]
    return Contents(columns, tuple(trees), scale, bias if bias.size else np.zeros(n_outputs or 1), _class_names(model, where), _loss(model, where))


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
    if not model.is_fitted():
        raise InvalidModel(f"{type(model).__name__} object: not fitted")
    with storage.scratch() as folder:
        path = folder / "model.cbm"
        model.save_model(str(path), format="cbm")
        return path.read_bytes()


LOADER = Loader("catboost", _recognise, _parse, _owns, _serialise)
