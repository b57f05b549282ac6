"""XGBoost's JSON and UBJSON models read without XGBoost, which crashes on damaged files."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafledger.kernels.trees.ensemble import WORD_BITS, TreeEnsemble

from ...errors import InvalidModel, UnsupportedModel
from ..formats.ubjson import integer, member, numbers, read_document, shown
from ..model import Feature, Loader, check_ensemble, check_predictions
from ..objectives import XGBOOST, Margin, Objective, objective_of
from .base_score import LINKS, find_link
from .categories import check_lost, read_list
from .rounds import number_rounds
from .wrapper import read_missing

MAX_TREES = 50_000
MAX_FEATURES = 100_000
MAX_OUTPUTS = 100_000
MAX_SET_WORDS = 1 << 26  # 256 MiB of category sets; a set has a bit for every code up to the feature's largest
MAX_CODE = (1 << 24) - 1  # InvalidCat in common/categorical.h: larger codes are no categories
NEWEST_MAJOR = 3
LARGEST_WHOLE = 2.0**63  # XGBoost parses numbers without point and exponent in 64 bits, and they overflow
BOOSTER_KEYS = {"gbtree", "model", "name", "weight_drop"}
MODEL_KEYS = {"cats", "gbtree_model_param", "iteration_indptr", "tree_info", "trees", "weight_drop"}
DELETED = (1 << 31) - 1  # split index of a pruned node (RegTree::Node::MarkDelete, less the bit of the default direction)
_HEAD = re.compile(rb'\{\s*"(?:learner|version)"\s*:|\{(?:L\0{7}|l\0{3}|I\0|[iU])\x07(?:learner|version)')


@dataclass(frozen=True, slots=True)
class _Tree:
    """One tree without its pruned nodes, with children by position."""

    feature: np.ndarray  # (nodes,) int64, -1 at leaves
    condition: np.ndarray  # (nodes,) float32, x < condition goes left; unused on categorical splits and leaves
    default_left: np.ndarray  # (nodes,) bool
    left: np.ndarray  # (nodes,) int64, -1 at leaves
    right: np.ndarray  # (nodes,) int64, -1 at leaves
    value: np.ndarray  # (nodes, width) float64, 0 at inner nodes
    cover: np.ndarray  # (nodes,) float64
    categorical: np.ndarray  # (nodes,) bool
    codes: tuple[np.ndarray, ...]  # category codes that go right at each categorical split, in node order, int64


@dataclass(frozen=True, slots=True)
class _Header:
    """Parameters of a document that hold for all trees."""

    learner: dict[str, Any]
    model: dict[str, Any]
    n_features: int
    version: tuple[int, ...]


def _refuse_outside(array: np.ndarray, low: int, high: int, name: str, where: str) -> None:
    if array.size and (array.min() < low or array.max() > high):
        bad = np.flatnonzero((array < low) | (array > high))
        raise InvalidModel(f"{where}: position {bad[0]}: {name} is {array[bad[0]]}, expected {low}..{high}")


def _single(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _codes(tree: dict[str, Any], n_nodes: int, categorical: np.ndarray, where: str) -> tuple[np.ndarray, ...]:
    """Return the codes that go right at the nodes where ``categorical``, in node order."""
    if "categories_nodes" not in tree and not categorical.any():  # XGBoost before 1.3
        return ()
    nodes = numbers(tree, "categories_nodes", int, None, where)
    starts = numbers(tree, "categories_segments", int, nodes.size, where)
    sizes = numbers(tree, "categories_sizes", int, nodes.size, where)
    codes = numbers(tree, "categories", int, None, where)
    _refuse_outside(nodes, 0, n_nodes - 1, "category node", where)
    _refuse_outside(codes, 0, MAX_CODE, "category code", where)
    _refuse_outside(starts, 0, codes.size, "category segment", where)
    _refuse_outside(sizes, 1, codes.size, "category segment size", where)
    _refuse_outside(starts + sizes, 0, codes.size, "end of a category segment", where)
    segments = {node: codes[start : start + size] for node, start, size in zip(nodes.tolist(), starts, sizes, strict=True)}
    wanted = np.flatnonzero(categorical).tolist()  # segments of splits that were pruned to leaves remain
    lacking = [node for node in wanted if node not in segments]
    if lacking or len(segments) != nodes.size:
        raise InvalidModel(f"{where}: {len(segments)} sets of categories, {len(lacking)} more expected: one for each categorical split")
    return tuple(segments[node] for node in wanted)


def _tree(tree: Any, number: int, n_features: int, n_outputs: int, where: str) -> _Tree:
    """Read one tree; its arrays are as long as its ``num_nodes`` says, and every index is in range."""
    where = f"{where}: tree {number}"
    if not isinstance(tree, dict):
        raise InvalidModel(f"{where}: is {shown(tree)}, expected an object")
    integer(tree, "id", number, number, where, default=str(number))  # XGBoost would store the tree at this position
    parameters = member(tree, "tree_param", dict, where)
    n_nodes = integer(parameters, "num_nodes", 1, 1 << 30, where)
    width = integer(parameters, "size_leaf_vector", 0, MAX_OUTPUTS, where, default="0")
    left = numbers(tree, "left_children", int, n_nodes, where)
    right = numbers(tree, "right_children", int, n_nodes, where)
    feature = numbers(tree, "split_indices", int, n_nodes, where)
    condition = _single(numbers(tree, "split_conditions", float, n_nodes, where))
    default_left = numbers(tree, "default_left", int, n_nodes, where)
    kept = feature != DELETED
    n_deleted = int(n_nodes - kept.sum())  # XGBoost 1.0 does not say it
    if n_deleted != integer(parameters, "num_deleted", 0, n_nodes, where, default=str(n_deleted)) or not kept[0]:
        raise InvalidModel(f"{where}: {n_deleted} nodes are deleted, 'num_deleted' is {shown(parameters.get('num_deleted'))}")
    leaf = left == -1
    inner = ~leaf & kept
    _refuse_outside(feature[inner], 0, n_features - 1, "feature", where)
    _refuse_outside(default_left[inner], 0, 1, "default direction", where)
    position = np.where(kept, np.cumsum(kept) - 1, -1)
    for child in (left, right):
        _refuse_outside(child[inner], 0, n_nodes - 1, "child", where)
        child[inner] = position[child[inner]]
        _refuse_outside(child[inner], 0, n_nodes - 1, "child (-1: a deleted node)", where)
    # Not base_weights, which predate the refitting of leaves by reg:absoluteerror and similar.
    scalar = np.where(leaf, condition.astype(np.float64), 0.0)[:, None]
    value = _vector_leaves(tree, right, leaf & kept, width, n_outputs, where) if width > 1 else scalar
    cover = _single(numbers(tree, "sum_hessian", float, n_nodes, where)).astype(np.float64)
    bad = np.flatnonzero(kept & (cover < 0))
    if bad.size:
        raise UnsupportedModel(f"{where}, node {bad[0]}: cover (sum of hessians) is {cover[bad[0]]}, the path-dependent game needs it >= 0")
    categorical = inner & ("split_type" in tree and numbers(tree, "split_type", int, n_nodes, where) == 1)
    leaf = leaf[kept]
    return _Tree(
        feature=np.where(leaf, -1, feature[kept]),
        condition=condition[kept],
        default_left=default_left[kept] == 1,
        left=np.where(leaf, -1, left[kept]),
        right=np.where(leaf, -1, right[kept]),
        value=value[kept],
        cover=cover[kept],
        categorical=categorical[kept],
        codes=_codes(tree, n_nodes, categorical, where),
    )


def _vector_leaves(tree: dict[str, Any], right: np.ndarray, leaf: np.ndarray, width: int, n_outputs: int, where: str) -> np.ndarray:
    """Return ``(nodes, width)`` float64; the right child of a leaf is its row in ``leaf_weights`` (MultiTargetTree, XGBoost 3.2)."""
    if "sum_hessian" not in tree or "leaf_weights" not in tree:
        raise UnsupportedModel(
            f"{where}: has vector leaves without covers (sum_hessian), which XGBoost stores since 3.2; "
            "train it again with 3.2 or later, or with multi_strategy='one_output_per_tree'"
        )
    if width != n_outputs:
        raise InvalidModel(f"{where}: leaves have {width} values, expected {n_outputs}")
    weights = _single(numbers(tree, "leaf_weights", float, None, where)).astype(np.float64)
    rows = np.where(leaf, right, 0)
    n_leaves = int(leaf.sum())
    if weights.size != n_leaves * width or np.unique(rows[leaf]).size != n_leaves:
        raise InvalidModel(f"{where}: {n_leaves} leaves of {width} values, 'leaf_weights' has {weights.size} numbers, expected a row each")
    _refuse_outside(rows[leaf], 0, n_leaves - 1, "row of leaf weights", where)
    return np.where(leaf[:, None], weights.reshape(n_leaves, width)[rows], 0.0)


def _base(learner: dict[str, Any], version: tuple[int, ...], n_outputs: int, where: str) -> tuple[np.ndarray, Objective]:
    """Return the base margin ``(outputs,)`` float64, and the objective whose link was inverted."""
    text = member(member(learner, "learner_model_param", dict, where), "base_score", str, where)
    name = member(member(learner, "objective", dict, where), "name", str, where)
    if name not in LINKS:
        raise UnsupportedModel(f"{where}: objective is {name[:40]!r}, its base score is not known as a margin; expected {', '.join(LINKS)}")
    words = text.removeprefix("[").removesuffix("]").split(",")
    try:
        given = np.array([float(word) for word in words])
    except ValueError:
        raise InvalidModel(f"{where}: 'base_score' is {text[:40]!r}, expected numbers") from None
    if any(word.strip().lstrip("-").isdigit() and abs(number) >= LARGEST_WHOLE for word, number in zip(words, given, strict=True)):
        raise InvalidModel(f"{where}: 'base_score' is {text[:40]!r}, a whole number that XGBoost reads as another; expected one below 2**63")
    stored = _single(given)
    if stored.size not in (1, n_outputs) or not np.isfinite(stored).all():
        raise InvalidModel(f"{where}: 'base_score' is {text[:40]!r}, expected 1 or {n_outputs} finite numbers")
    base = find_link(name, version)(np.broadcast_to(stored, n_outputs)).astype(np.float64)
    if not np.isfinite(base).all():
        raise UnsupportedModel(f"{where}: base score {text[:40]} of {name} is the margin {base.tolist()}, expected finite numbers")
    if name == "reg:expectileerror" and n_outputs > 1:  # margins are steps between expectiles
        return base, Objective(name, Margin.OTHER, None)
    return base, objective_of(name, XGBOOST)


def _dropout(booster: dict[str, Any], model: dict[str, Any], n_trees: int, where: str) -> np.ndarray:
    """Return the trees' weights, ``(trees,)`` float32: a booster's until 3.3, called "dart" until 3.2 and "gbtree" then; a model's since 3.4."""
    holders = [each for each in (booster, model) if "weight_drop" in each]
    if len(holders) > 1:
        raise InvalidModel(f"{where}: booster and model have 'weight_drop', expected one of them")
    if not holders and booster["name"] != "dart":
        return np.ones(n_trees, np.float32)
    return _single(numbers((holders or [booster])[0], "weight_drop", float, n_trees, where))


def _features(header: _Header, split_on: np.ndarray, largest: np.ndarray, where: str) -> tuple[tuple[Feature, ...], np.ndarray]:
    """Return features with their categories, and ``(features,)`` int64, the number of known codes of each.

    ``split_on`` are the features of the categorical splits, ``largest`` the largest code of each.
    """
    learner, model, n_features = header.learner, header.model, header.n_features
    names, kinds = (member(learner, key, list, where) if key in learner else [] for key in ("feature_names", "feature_types"))
    named = bool(names)
    names = names or [f"f{j}" for j in range(n_features)]
    kinds = kinds or [""] * n_features
    for key, values in (("feature_names", names), ("feature_types", kinds)):
        if len(values) != n_features or not all(isinstance(value, str) for value in values):
            raise InvalidModel(f"{where}: {key!r} has {len(values)} entries, expected {n_features} texts")
    if any(re.search("[\ud800-\udfff]", name) for name in names):
        raise InvalidModel(f"{where}: 'feature_names' is not Unicode text")
    entries = member(member(model, "cats", dict, where), "enc", list, where) if "cats" in model else []  # since 3.1
    if entries and len(entries) != n_features:
        raise InvalidModel(f"{where}: 'cats' has {len(entries)} features, expected {n_features}")
    if split_on.size and "cats" in model and not entries:
        check_lost(learner.get("attributes"), kinds, names[split_on[0]], where)
    known, missing = np.zeros(n_features, np.int64), read_missing(learner, where)
    np.maximum.at(known, split_on, largest + 1)
    features = []
    for j, name in enumerate(names):
        categories = read_list(entries[j], name, header.version, where) if entries else None
        categorical = bool(kinds[j] == "c" or known[j] or categories)
        if categorical and categories is not None:
            if known[j] > len(categories):
                raise InvalidModel(f"{where}: feature {name!r}: a split has category {known[j] - 1}, expected 0..{len(categories) - 1}")
            known[j] = len(categories)
        # Without a list, codes in no split go left everywhere, as unseen ones do: they need not be known.
        known[j] = max(known[j], categorical)
        # Training saw codes of unknown values: from a data frame in old versions, a sliced model, or the user.
        lacking = categorical and not categories
        noted = None if categorical and categories else missing
        features.append(Feature(name, categorical, categories if categorical else None, perhaps_codes=lacking, missing=noted, named=named))
    return tuple(features), known


def _parse(data: bytes, where: str) -> tuple[TreeEnsemble, tuple[Feature, ...], tuple[str, ...], Objective]:
    """Read a JSON or UBJSON model of the boosters gbtree and dart, as XGBoost 1.0 to 3.4 write them.

    Margins are those of ``output_margin=True``, without a ``base_margin``, which belongs to data and not to a model. Covers are
    sums of hessians, which XGBoost's own ``pred_contribs`` uses; those of vector leaves are summed over the outputs.
    """
    document = read_document(data, where)
    if not isinstance(document, dict):
        raise InvalidModel(f"{where}: is {shown(document)}, expected an object")
    learner = member(document, "learner", dict, where)
    version = tuple(numbers(document, "version", int, 3, where).tolist())
    booster = member(learner, "gradient_booster", dict, where)
    if "learner_train_param" in learner:
        raise UnsupportedModel(f"{where}: has the parameters of training alone, as save_config writes them, expected what save_model writes")
    name = member(booster, "name", str, where)
    if name not in ("gbtree", "dart"):
        raise UnsupportedModel(
            f"{where}: booster is {name[:40]!r}, expected 'gbtree' or 'dart': a linear model has no trees, its coefficients explain it"
        )
    model = member(member(booster, "gbtree", dict, where) if name == "dart" else booster, "model", dict, where)
    parameters = member(learner, "learner_model_param", dict, where)
    n_features = integer(parameters, "num_feature", 1, MAX_FEATURES, where)
    n_classes = integer(parameters, "num_class", 0, MAX_OUTPUTS, where, default="0")
    n_outputs = max(1, n_classes, integer(parameters, "num_target", 0, MAX_OUTPUTS, where, default="1"))
    base, objective = _base(learner, version, n_outputs, where)
    stored = member(model, "trees", list, where)
    gbtree = member(model, "gbtree_model_param", dict, where)
    if len(stored) > MAX_TREES or len(stored) != integer(gbtree, "num_trees", 0, MAX_TREES, where):
        raise InvalidModel(f"{where}: {len(stored)} trees, 'num_trees' is {shown(gbtree.get('num_trees'))}, expected at most {MAX_TREES}")
    output = numbers(model, "tree_info", int, len(stored), where)
    _refuse_outside(output, 0, n_outputs - 1, "output of a tree", where)
    unknown = sorted((model.keys() - MODEL_KEYS) | (booster.keys() - BOOSTER_KEYS))
    if unknown or version[0] > NEWEST_MAJOR:
        raise UnsupportedModel(f"{where}: written by XGBoost {version[0]}.{version[1]} with {str(unknown or 'newer rules')[:80]}, not known here")
    weight = _dropout(booster, model, len(stored), where)
    iteration = number_rounds(learner, model, version, n_outputs, where)
    trees = [_tree(stored[t], t, n_features, n_outputs, where) for t in range(iteration.size)]
    widths = {tree.value.shape[1] for tree in trees} or {1}
    if len(widths) > 1:
        raise UnsupportedModel(f"{where}: some trees have vector leaves and some have not, expected one kind")
    header = _Header(learner, model, n_features, version)
    ensemble, features, names = _assemble(trees, widths.pop(), weight, output[: len(trees)], base, header, where)
    return ensemble._replace(iteration=iteration), features, names, objective


def _assemble(
    trees: list[_Tree], width: int, weight: np.ndarray, output: np.ndarray, base: np.ndarray, header: _Header, where: str
) -> tuple[TreeEnsemble, tuple[Feature, ...], tuple[str, ...]]:
    def joined(name: str, dtype: type) -> np.ndarray:
        return np.concatenate([np.zeros(0, dtype), *(getattr(tree, name) for tree in trees)]).astype(dtype)

    n_nodes = np.array([tree.feature.size for tree in trees], np.int64)
    root = np.cumsum(n_nodes) - n_nodes
    first = np.repeat(root, n_nodes)
    feature, categorical, condition = joined("feature", np.int32), joined("categorical", bool), joined("condition", np.float32)
    numeric = (feature >= 0) & ~categorical
    # x < condition equals x <= the next lower float32; also exact for a condition of +inf.
    threshold = np.where(numeric, np.nextafter(condition, np.float32(-np.inf)), np.float32(0)).astype(np.float64)

    sets = [codes for tree in trees for codes in tree.codes]
    split_on = feature[categorical]
    largest = np.array([codes.max(initial=-1) for codes in sets], np.int64)
    features, known = _features(header, split_on, largest, where)
    set_start = np.concatenate(([0], np.cumsum(known[split_on] // WORD_BITS + 1)))
    if set_start[-1] > MAX_SET_WORDS:
        widest = split_on[np.argmax(known[split_on])]
        raise UnsupportedModel(
            f"{where}: feature {features[widest].name!r} has category codes up to {known[widest] - 1}: "
            f"{set_start[-1]} words of category sets, expected at most {MAX_SET_WORDS}"
        )
    # XGBoost lists the codes that go right; all others, also unseen ones, go left (common::Decision).
    set_words = np.full(set_start[-1], (1 << WORD_BITS) - 1, np.uint32)
    set_words[set_start[1:] - 1] = ((1 << (known[split_on] % WORD_BITS + 1)) - 1).astype(np.uint32)
    code = np.concatenate([np.zeros(0, np.int64), *sets])
    word = np.repeat(set_start[:-1], [codes.size for codes in sets]) + code // WORD_BITS
    np.bitwise_and.at(set_words, word, ~(np.uint32(1) << (code % WORD_BITS).astype(np.uint32)))
    category_set = np.full(feature.size, -1, np.int32)
    category_set[categorical] = np.arange(len(sets))

    left, right = joined("left", np.int64), joined("right", np.int64)
    leaf_values = np.concatenate([np.zeros((0, width)), *(tree.value * w for tree, w in zip(trees, weight.astype(np.float64), strict=False))])
    ensemble = TreeEnsemble(
        feature=feature,
        threshold=threshold,
        missing_left=joined("default_left", bool) & (feature >= 0),
        category_set=category_set,
        left=np.where(left < 0, -1, left + first).astype(np.int32),
        right=np.where(right < 0, -1, right + first).astype(np.int32),
        value=leaf_values,
        cover=joined("cover", np.float64),
        root=root.astype(np.int32),
        output=(output if width == 1 else np.zeros_like(output)).astype(np.int32),
        base=base,
        n_categories=known.astype(np.int32),
        zero_missing=np.zeros(header.n_features, bool),
        set_start=set_start,
        set_words=set_words,
        single_precision=True,
    )
    check_ensemble(ensemble, where)
    return ensemble, features, tuple(str(k) for k in range(base.size))


def _recognise(data: bytes) -> bool:
    return _HEAD.match(data.lstrip(b" \t\r\n") if data[:1].isspace() else data) is not None


def _owns(model: Any) -> bool:
    return any(kind.__module__.partition(".")[0] == "xgboost" and kind.__name__ in {"Booster", "XGBModel"} for kind in type(model).__mro__)


def _serialise(model: Any) -> bytes:
    """Serialise a Booster or fitted scikit-learn estimator as UBJSON."""
    check_predictions(model, "xgboost")
    if any(kind.__name__ == "XGBModel" for kind in type(model).__mro__):
        if not model.__sklearn_is_fitted__():
            raise InvalidModel(f"{type(model).__name__}: is not fitted, expected a trained model")
        model = model.get_booster()
    from xgboost.core import XGBoostError

    try:
        return bytes(model.save_raw("ubj"))
    except XGBoostError as error:
        raise UnsupportedModel(f"{type(model).__name__}: XGBoost cannot write it: {str(error).splitlines()[0]}") from None


def _missing(model: Any) -> float | None:
    """Return an estimator's missing value, which its Booster does not know."""
    found = getattr(model, "missing", None)
    return None if found is None or np.isnan(found) else float(found)


def _has_own(model: Any) -> bool:
    """Return whether the objective is a custom function, which a Booster calls ``reg:squarederror``; a classifier's predictions are known."""
    return callable(getattr(model, "objective", None)) and not any(kind.__name__ == "XGBClassifier" for kind in type(model).__mro__)


LOADER = Loader("xgboost", _recognise, _parse, _owns, _serialise, missing=_missing, has_own=_has_own, single_sums=True)
