"""Loader of scikit-learn's histogram gradient boosting: double precision, with missing values and categories."""

from typing import Any

import numpy as np

from leafledger.kernels.trees.ensemble import TreeEnsemble

from ...errors import UnsupportedModel
from .trees import Tree, add_iterations, join

CODES = 256  # largest number of categories
LARGEST_EXACT = 2.0**53  # from here on float64 skips integers


def _columns(model: Any) -> np.ndarray:
    """Return the features in the trees' numbering, in which encoded categorical features come first."""
    categorical = model.is_categorical_
    if getattr(model, "_preprocessor", None) is None:
        return np.arange(model.n_features_in_)
    return np.concatenate((np.flatnonzero(categorical), np.flatnonzero(~categorical)))


def _list_codes(model: Any) -> dict[int, tuple[int, ...]]:
    """List the codes that training saw of categorical features, which before 1.4 are the data's own values."""
    categorical = () if model.is_categorical_ is None else np.flatnonzero(model.is_categorical_).tolist()
    return {j: tuple(int(code) for code in model._bin_mapper.bin_thresholds_[j]) for j in categorical}


def list_categories(model: Any) -> dict[int, tuple[Any, ...]]:
    """List the values of categorical features by feature number."""
    if getattr(model, "_preprocessor", None) is None:
        return _list_codes(model)
    encoder = model._preprocessor.named_transformers_["encoder"]
    found = {}
    for j, values in zip(np.flatnonzero(model.is_categorical_).tolist(), encoder.categories_, strict=True):
        known = [value.item() if isinstance(value, np.generic) else value for value in values]
        found[j] = tuple(value for value in known if value is not None and value == value)  # drops NaN
        rounded = next((value for value in found[j] if isinstance(value, float) and abs(value) >= LARGEST_EXACT), None)
        if rounded is not None:
            raise UnsupportedModel(
                f"{type(model).__name__}: feature {j} has category {rounded:.0f} in double precision, which it may not tell from its neighbours, "
                "as integers are where some are missing: train it on texts"
            )
    return found


def _bits(words: np.ndarray) -> np.ndarray:
    """Unpack eight 32-bit words to ``(CODES,) bool``."""
    return np.unpackbits(np.ascontiguousarray(words, "<u4").view(np.uint8), bitorder="little").astype(bool)


def read_histogram_boosting(model: Any) -> TreeEnsemble:
    """Read a fitted estimator: the initial prediction, and the sum of the trees."""
    columns, categories = _columns(model), list_categories(model)
    n_categories = np.array([len(categories.get(j, ())) for j in range(model.n_features_in_)], np.int32)
    encoded = getattr(model, "_preprocessor", None) is not None
    codes = {j: np.arange(len(values)) if encoded else np.array(values, np.int64) for j, values in categories.items()}
    known, number = model._bin_mapper.make_known_categories_bitsets()
    trees = []
    for stage in model._predictors:
        for output, predictor in enumerate(stage):
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(bool)
            missing_left = nodes["missing_go_to_left"].astype(bool) & ~leaf
            sets = {}
            for node in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf).tolist():
                asked = int(nodes["feature_idx"][node])
                of_values = codes[int(columns[asked])]
                left = _bits(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]])
                left |= ~_bits(known[number[asked]]) & missing_left[node]  # unknown categories follow missing values
                sets[node] = [*np.flatnonzero(left[of_values]).tolist(), *([of_values.size] if missing_left[node] else [])]
            trees.append(
                Tree(
                    feature=np.where(leaf, -1, columns[nodes["feature_idx"].astype(np.int64)]),
                    threshold=np.where(leaf | nodes["is_categorical"].astype(bool), 0.0, nodes["num_threshold"]),
                    missing_left=missing_left,
                    left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
                    right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
                    value=np.where(leaf, nodes["value"], 0.0)[:, None],
                    cover=nodes["count"].astype(float),
                    output=output,
                    sets=sets,
                )
            )
    ensemble = join(trees, np.asarray(model._baseline_prediction, float).reshape(-1), n_categories, single_precision=False)
    return add_iterations(ensemble, model.n_trees_per_iteration_)
