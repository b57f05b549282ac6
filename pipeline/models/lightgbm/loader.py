"""LightGBM's text models read without LightGBM, which crashes, hangs or drops trees on damaged files."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafledger.kernels.trees.ensemble import NO_ITERATIONS, WORD_BITS, TreeEnsemble

from ...errors import InvalidModel, UnsupportedModel
from ..model import Feature, Loader, check_ensemble, check_predictions
from ..objectives import LIGHTGBM, Margin, Objective, objective_of
from .categories import Trained, find_doubtful, place_lists

VERSIONS = ("v2", "v3", "v4")  # of LightGBM 2.2, 2.3 and 4.0 on
MAX_OUTPUTS = 100_000
MAX_SET_WORDS = 1 << 26  # 256 MiB of category sets; a set has a bit for every code up to the feature's largest
CATEGORICAL, DEFAULT_LEFT = 1, 2  # bits of decision_type; the two bits above them are the missing type (LightGBM tree.h)
NONE, ZERO, NAN = 0, 1, 2
MAX_CODE = (1 << 31) - 1
NUMBER = re.compile(r"[0-9.]+(e-?[0-9]+)?")
LARGEST_ZERO = float(np.float32(1e-35))  # kZeroThreshold


@dataclass(frozen=True, slots=True)
class _Tree:
    """One tree, inner nodes first, then leaves, with children by position in the tree."""

    feature: np.ndarray  # (nodes,) int64, -1 at leaves
    threshold: np.ndarray  # (nodes,) float64, the number of the category set on categorical splits, 0 at leaves
    decision: np.ndarray  # (nodes,) int64, bits as above, 0 at leaves
    left: np.ndarray  # (nodes,) int64, -1 at leaves
    right: np.ndarray  # (nodes,) int64, -1 at leaves
    value: np.ndarray  # (nodes,) float64, 0 at inner nodes
    count: np.ndarray  # (nodes,) float64
    sets: tuple[np.ndarray, ...]  # words of each categorical split's set, in node order, uint32


def _fields(lines: list[bytes], flags: tuple[bytes, ...], where: str) -> dict[bytes, bytes]:
    fields: dict[bytes, bytes] = {}
    for line in lines:
        key, equals, text = line.partition(b"=")
        if not equals and key not in flags:
            raise InvalidModel(f"{where}: got the line {line[:40]!r}, expected key=value")
        if key in fields:
            raise InvalidModel(f"{where}: {key[:40]!r} is given twice, expected once")
        fields[key] = text
    return fields


def _numbers(fields: dict[bytes, bytes], key: bytes, count: int | None, kind: type, where: str) -> np.ndarray:
    """Read the list of numbers under ``key``: ``(count,)`` int64 or float64, of any length if ``count`` is None."""
    name = key.decode()
    if key not in fields:
        raise InvalidModel(f"{where}: {name!r} is missing")
    words = fields[key].split()
    if count is not None and len(words) != count:
        raise InvalidModel(f"{where}: {name!r} has {len(words)} numbers, expected {count}")
    try:
        # Python would also accept 1_000.
        numbers = [] if b"_" in fields[key] else [kind(word) for word in words]
        array = np.array(numbers, np.int64 if kind is int else np.float64)
    except (ValueError, OverflowError):
        numbers = []
    if len(numbers) != len(words):
        raise InvalidModel(f"{where}: {name!r} is {fields[key][:40]!r}, expected numbers")
    return array


def _integer(fields: dict[bytes, bytes], key: bytes, low: int, high: int, where: str) -> int:
    number = int(_numbers(fields, key, 1, int, where)[0])
    if not low <= number <= high:
        raise InvalidModel(f"{where}: {key.decode()!r} is {number}, expected {low}..{high}")
    return number


def _refuse_outside(array: np.ndarray, low: int, high: int, name: str, where: str) -> None:
    bad = np.flatnonzero((array < low) | (array > high))
    if bad.size:
        raise InvalidModel(f"{where}: position {bad[0]}: {name} is {array[bad[0]]}, expected {low}..{high}")


def _tree(block: bytes, number: int, n_features: int, where: str) -> _Tree:
    """Read one tree; its arrays are as long as its ``num_leaves`` says, and every index is in range."""
    lines = block.rstrip(b"\n").split(b"\n")
    where = f"{where}: tree {number}"
    if lines[0] != b"Tree=%d" % number or not block.endswith(b"\n\n"):
        raise InvalidModel(f"{where}: starts with {lines[0][:40]!r} and ends with {block[-2:]!r}, expected a whole tree")
    fields = _fields(lines[1:], (), where)
    n_leaves = _integer(fields, b"num_leaves", 1, 1 << 30, where)
    value = _numbers(fields, b"leaf_value", n_leaves, float, where)
    if fields.get(b"is_linear", b"0") != b"0":
        _integer(fields, b"is_linear", 1, 1, where)
        raise UnsupportedModel(f"{where}: has linear models in its leaves, expected constants: train it with linear_tree=False")
    if n_leaves == 1:  # older versions leave its count out, and it is not used
        count = np.zeros(1) if not fields.get(b"leaf_count") else _numbers(fields, b"leaf_count", 1, float, where)
        leaf, zero = np.full(1, -1), np.zeros(1, np.int64)
        return _Tree(leaf, np.zeros(1), zero, leaf, leaf, value, count, ())
    n_inner = n_leaves - 1
    feature = _numbers(fields, b"split_feature", n_inner, int, where)
    threshold = _numbers(fields, b"threshold", n_inner, float, where)
    decision = _numbers(fields, b"decision_type", n_inner, int, where)
    children = [_numbers(fields, key, n_inner, int, where) for key in (b"left_child", b"right_child")]
    counts = [
        _numbers(fields, b"internal_count", n_inner, float, where),
        _numbers(fields, b"leaf_count", n_leaves, float, where),
    ]
    _refuse_outside(feature, 0, n_features - 1, "feature", where)
    _refuse_outside(decision, 0, NAN << 2 | DEFAULT_LEFT | CATEGORICAL, "decision type", where)
    for child in children:
        _refuse_outside(child, -n_leaves, n_inner - 1, "child", where)
    leaves = np.full(n_leaves, -1)
    # A negative child is the complement of a leaf's number.
    left, right = (np.concatenate((np.where(child < 0, n_inner + ~child, child), leaves)) for child in children)
    return _Tree(
        feature=np.concatenate((feature, leaves)),
        threshold=np.concatenate((threshold, np.zeros(n_leaves))),
        decision=np.concatenate((decision, np.zeros(n_leaves, np.int64))),
        left=left,
        right=right,
        value=np.concatenate((np.zeros(n_inner), value)),
        count=np.concatenate(counts),
        sets=_category_sets(fields, threshold[(decision & CATEGORICAL) > 0], where),
    )


def _category_sets(fields: dict[bytes, bytes], numbers: np.ndarray, where: str) -> tuple[np.ndarray, ...]:
    """Read the bit sets of the categorical splits whose thresholds are ``numbers``."""
    n_sets = _integer(fields, b"num_cat", 0, 1 << 30, where)
    bad = np.flatnonzero(~((numbers >= 0) & (numbers < n_sets) & (numbers == np.floor(numbers))))
    if bad.size:
        raise InvalidModel(f"{where}: category set {numbers[bad[0]]} is asked for, expected 0..{n_sets - 1}")
    if not n_sets:
        return ()
    bounds = _numbers(fields, b"cat_boundaries", n_sets + 1, int, where)
    words = _numbers(fields, b"cat_threshold", None, int, where)
    if bounds[0] != 0 or bounds[-1] != words.size or (np.diff(bounds) < 0).any():
        raise InvalidModel(f"{where}: 'cat_boundaries' do not divide the {words.size} words of 'cat_threshold'")
    _refuse_outside(words, 0, (1 << WORD_BITS) - 1, "category set word", where)
    return tuple(words[bounds[n] : bounds[n + 1]].astype(np.uint32) for n in numbers.astype(np.int64))


def _feature_names(header: dict[bytes, bytes], where: str) -> list[str]:
    n_features = _integer(header, b"max_feature_idx", 0, MAX_CODE, where) + 1
    try:
        names = header.get(b"feature_names", b"").decode().split(" ")
    except UnicodeDecodeError:
        raise InvalidModel(f"{where}: 'feature_names' is not UTF-8") from None
    names = [name for name in names if name]
    if len(names) != n_features:
        raise InvalidModel(f"{where}: 'feature_names' has {len(names)} names, expected {n_features}")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidModel(f"{where}: feature {twice[0]!r} is named twice, expected once")
    return names


def _trained(header: dict[bytes, bytes], n_features: int, others: set[int], where: str) -> Trained:
    """Return the features as seen in training; ``others`` are categorical in any case."""
    infos = header.get(b"feature_infos", b"").split()
    if len(infos) != n_features:
        raise InvalidModel(f"{where}: 'feature_infos' has {len(infos)} entries, expected {n_features}")
    categorical, spare, needed, seen = {*others}, [], np.zeros(n_features, np.int64), np.zeros(n_features, np.int64)
    for j, info in enumerate(infos):
        low, _, high = info.strip(b"[]").partition(b":")
        if info == b"none":  # a single value
            spare.append(j)
        elif not info.startswith(b"["):
            codes = _numbers({b"feature_infos": info.replace(b":", b" ")}, b"feature_infos", None, int, where)
            _refuse_outside(codes, -1, MAX_CODE, f"category code of feature {j}", where)  # -1 stands for missing
            categorical.add(j)
            needed[j], seen[j] = codes.max(initial=-1) + 1, np.unique(codes[codes >= 0]).size
        elif low.isdigit() and high.isdigit() and len(high) < 10:
            spare.append(j)
            needed[j], seen[j] = int(high) + 1, int(high) - int(low) + 1
    return Trained(tuple(sorted(categorical)), tuple(j for j in spare if j not in categorical), needed, seen)


def _after_trees(tail: bytes, where: str) -> tuple[set[int], list[list[Any]]]:
    """Read the lines after the trees: columns declared categorical, and pandas' category lists in column order."""
    before, end, rest = tail.partition(b"\nend of parameters\n")
    if not tail.startswith(b"end of trees\n") or not end:
        raise InvalidModel(f"{where}: the file is cut off, or of LightGBM before 2.2: no 'end of trees' and 'end of parameters' after the trees")
    declared = re.search(rb"^\[categorical_feature: ([0-9,]*)\]$", before, re.M)
    columns = {int(word) for word in declared[1].split(b",") if 0 < len(word) < 10} if declared else set()
    if rest.startswith(b"\nparser:\n"):
        _, end, after = rest.partition(b"\nend of parser\n")
        rest = after if end else rest
    rest = rest.strip()
    if not rest:
        return columns, []
    try:
        lists = json.loads(rest.removeprefix(b"pandas_categorical:").decode()) if rest.startswith(b"pandas_categorical:") else 0
    except (ValueError, RecursionError):
        lists = 0
    if lists is None:
        return columns, []
    if not isinstance(lists, list) or not all(isinstance(values, list) for values in lists):
        raise InvalidModel(f"{where}: the file ends with {rest[:40]!r}, expected 'pandas_categorical:' and lists of categories")
    for values in lists:
        if any(not isinstance(value, str | int | float) or value != value for value in values) or len(set(values)) != len(values):
            raise InvalidModel(f"{where}: 'pandas_categorical' holds {str(values)[:40]}, expected distinct texts and numbers")
    return columns, lists


def _features(
    names: list[str], nodes_feature: np.ndarray, bit_lengths: np.ndarray, header: dict[bytes, bytes], declared: set[int], lists: list[Any], where: str
) -> tuple[tuple[Feature, ...], np.ndarray]:
    """Return features with their categories, and ``(features,)`` int64, the number of known codes of each."""
    n = len(names)
    trained = _trained(header, n, {*nodes_feature.tolist(), *(j for j in declared if j < n)}, where)
    np.maximum.at(trained.needed, nodes_feature, bit_lengths)
    # Codes in no set always go right, as unseen ones do: they need not be known.
    known = np.zeros(n, np.int64)
    categorical = list(trained.categorical)
    known[categorical] = 1
    is_categorical = known > 0
    np.maximum.at(known, nodes_feature, bit_lengths)
    categories: list[tuple[Any, ...] | None] = [None] * n
    columns = place_lists(lists, trained, where) if lists else {}
    for i, j in columns.items():
        categories[j], known[j] = tuple(lists[i]), len(lists[i])
    doubtful = find_doubtful(lists, columns, trained)
    named = names != [f"Column_{j}" for j in range(n)]
    kinds = zip(names, is_categorical.tolist(), categories, (j in doubtful for j in range(n)), strict=True)
    return tuple(Feature(*kind, underscored=named and "_" in kind[0], named=named) for kind in kinds), known


def _refuse_mixed(feature: np.ndarray, owner: np.ndarray, first: np.ndarray, second: np.ndarray, names: list[str], says: str, where: str) -> None:
    """Refuse a feature with nodes of two kinds; ``first`` and ``second`` are ``(nodes,)`` bool."""
    both = np.flatnonzero(second & np.isin(feature, feature[first]))
    if both.size:
        raise UnsupportedModel(f"{where}: feature {names[feature[both[0]]]!r} {says} (tree {owner[both[0]]})")


def _objective(header: dict[bytes, bytes]) -> Objective:
    """Return the objective; absent or ``custom`` is a custom function, and parameter ``sqrt`` means training on the label's root."""
    text = header.get(b"objective", b"").decode("ascii", "replace")
    name, *parameters = text.split() or [""]
    scale = next((word.partition(":")[2] for word in parameters if word.startswith("sigmoid:")), "1")
    if "sqrt" in parameters or not NUMBER.fullmatch(scale):
        return Objective(text, Margin.OTHER, None)
    return objective_of(name, LIGHTGBM, float(scale))


def _parse(data: bytes, where: str) -> tuple[TreeEnsemble, tuple[Feature, ...], tuple[str, ...], Objective]:
    """Read a LightGBM text model, version 2 to 4; margins are raw scores, averaged over iterations for random forests.

    Covers are row counts, which LightGBM's own ``pred_contrib`` uses (tree.cpp, ``TreeSHAP``).
    """
    text, blank, _ = data.partition(b"\n\n")
    lines = text.split(b"\n")
    if lines[0] != b"tree" or not blank:
        raise InvalidModel(f"{where}: starts with {data[:20]!r}, expected a LightGBM text model")
    header = _fields(lines[1:], (b"average_output",), where)
    version = header.get(b"version", b"").decode("ascii", "replace")
    if version not in VERSIONS:
        raise UnsupportedModel(f"{where}: LightGBM model version is {version[:20]!r}, expected one of {', '.join(VERSIONS)}")
    names = _feature_names(header, where)
    sizes = _numbers(header, b"tree_sizes", None, int, where)
    n_outputs = _integer(header, b"num_tree_per_iteration", 1, MAX_OUTPUTS, where)
    if sizes.size % n_outputs or (sizes < 1).any() or sizes.astype(float).sum() > len(data):
        raise InvalidModel(
            f"{where}: {sizes.size} trees of {sizes.astype(float).sum():.0f} bytes, expected a multiple of {n_outputs} "
            f"trees in a file of {len(data)} bytes"
        )
    ends = len(text) + 2 + np.cumsum(np.concatenate(([0], sizes)))
    trees = [_tree(data[ends[t] : ends[t + 1]], t, len(names), where) for t in range(sizes.size)]
    declared, lists = _after_trees(data[ends[-1] :], where)
    return _assemble(trees, n_outputs, names, header, declared, lists, where)


def _assemble(
    trees: list[_Tree], n_outputs: int, names: list[str], header: dict[bytes, bytes], declared: set[int], lists: list[Any], where: str
) -> tuple[TreeEnsemble, tuple[Feature, ...], tuple[str, ...], Objective]:
    def joined(name: str, dtype: type) -> np.ndarray:
        return np.concatenate([np.zeros(0, dtype), *(getattr(tree, name) for tree in trees)]).astype(dtype)

    n_nodes = np.array([tree.feature.size for tree in trees], np.int64)
    root = np.cumsum(n_nodes) - n_nodes
    owner = np.repeat(np.arange(len(trees)), n_nodes)
    feature, threshold, decision = joined("feature", np.int32), joined("threshold", np.float64), joined("decision", np.int64)
    categorical = (decision & CATEGORICAL) > 0
    numeric = (feature >= 0) & ~categorical
    missing = decision >> 2
    _refuse_mixed(feature, owner, categorical, numeric, names, "has both numeric and categorical splits", where)
    # A missing type of "none" reads NaN as 0, consistent with a missing zero. A type of "NaN" need not be.
    zero_left = threshold >= 0
    missing_left = np.where(missing == NONE, zero_left, (decision & DEFAULT_LEFT) > 0) & numeric
    zero_missing = numeric & (missing == ZERO)
    differs = numeric & (missing == NAN) & (missing_left != zero_left)
    _refuse_mixed(feature, owner, zero_missing, differs, names, "counts zeros as missing in some trees only", where)
    # LightGBM replaces |x| <= 1e-35f by 0 (c_api.cpp, RowPairFunctionFromDenseMatrix): all such values follow 0, also beyond a threshold of -1e-35f,
    # which binning does produce.
    near = np.abs(threshold) <= LARGEST_ZERO
    threshold[near & zero_left] = LARGEST_ZERO
    threshold[near & ~zero_left] = np.nextafter(-LARGEST_ZERO, -np.inf)
    threshold[~numeric] = 0.0

    sets = [words for tree in trees for words in tree.sets]
    nodes_feature = feature[categorical]
    bit_lengths = np.array([int.from_bytes(words.astype("<u4").tobytes(), "little").bit_length() for words in sets], np.int64)
    features, known = _features(names, nodes_feature, bit_lengths, header, declared, lists, where)
    set_start = np.concatenate(([0], np.cumsum(known[nodes_feature] // WORD_BITS + 1)))
    if set_start[-1] > MAX_SET_WORDS:
        widest = names[nodes_feature[np.argmax(known[nodes_feature])]]
        raise UnsupportedModel(
            f"{where}: feature {widest!r} has category codes up to {known[nodes_feature].max() - 1}: "
            f"{set_start[-1]} words of category sets, expected at most {MAX_SET_WORDS}"
        )
    set_words = np.zeros(set_start[-1], np.uint32)
    for words, start, end in zip(sets, set_start, set_start[1:], strict=False):
        kept = words[: end - start]  # later words have no bits below bit_lengths
        set_words[start : start + kept.size] = kept
    category_set = np.full(feature.size, -1, np.int32)
    category_set[categorical] = np.arange(len(sets))

    first = np.repeat(root, n_nodes)
    left, right = joined("left", np.int64), joined("right", np.int64)
    n_iterations = max(len(trees) // n_outputs, 1) if b"average_output" in header else 1
    ensemble = TreeEnsemble(
        feature=feature,
        threshold=threshold,
        missing_left=missing_left,
        category_set=category_set,
        left=np.where(left < 0, -1, left + first).astype(np.int32),
        right=np.where(right < 0, -1, right + first).astype(np.int32),
        value=joined("value", np.float64)[:, None] / n_iterations,
        cover=joined("count", np.float64),
        root=root.astype(np.int32),
        output=(np.arange(len(trees)) % n_outputs).astype(np.int32),
        base=np.zeros(n_outputs),
        n_categories=known.astype(np.int32),
        zero_missing=np.isin(np.arange(len(names)), feature[zero_missing]),
        set_start=set_start,
        set_words=set_words,
        single_precision=False,
        iteration=NO_ITERATIONS if b"average_output" in header else (np.arange(len(trees)) // n_outputs).astype(np.int32),
    )
    check_ensemble(ensemble, where)
    return ensemble, features, tuple(str(k) for k in range(n_outputs)), _objective(header)


def _recognise(data: bytes) -> bool:
    return data.startswith(b"tree\n")


def _owns(model: Any) -> bool:
    return any(kind.__module__.partition(".")[0] == "lightgbm" and kind.__name__ in {"Booster", "LGBMModel"} for kind in type(model).__mro__)


def _serialise(model: Any) -> bytes:
    """Serialise a Booster or fitted scikit-learn estimator up to its best iteration, as its ``predict`` uses it."""
    check_predictions(model, "lightgbm")
    if any(kind.__name__ == "LGBMModel" for kind in type(model).__mro__):
        if not hasattr(model, "booster_"):
            raise InvalidModel(f"{type(model).__name__}: is not fitted, expected a trained model")
        model = model.booster_
    try:
        return model.model_to_string().encode()
    except (TypeError, ValueError) as error:
        raise UnsupportedModel(f"{type(model).__name__}: its categories cannot be written as text: {error}") from None


LOADER = Loader(library="lightgbm", recognise=_recognise, parse=_parse, owns=_owns, serialise=_serialise)
