"""Stand-ins for the objects of a skops file: class names, families and attributes, but no code."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import UnsupportedModel

MAX_FEATURES = 1 << 20
SIZE = "n_features_in_"
FINE = (1, 8)  # version since which the smallest prior probability is that of double precision
CENTRED = (1, 4)  # version since which the initial predictions of several classes are centred


class Stored:
    """An object of a file, by its class's name, with attributes read on access."""

    def __init__(self, read: Callable[[Any], Any], attributes: dict[str, Any]):
        self._read, self._attributes = read, attributes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.__dict__["_attributes"]:
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        found = self._read(self._attributes[name])
        if name == SIZE and (type(found) is not int or not 0 < found <= MAX_FEATURES):
            raise ValueError(f"a {type(self).__name__} has {str(found)[:40]} features, expected 1 to {MAX_FEATURES}")
        self.__dict__[name] = found
        return found

    @property
    def version(self) -> tuple[int, int]:
        """First two numbers of the version of scikit-learn that wrote it."""
        text = getattr(self, "_sklearn_version", None)
        if not isinstance(text, str):
            raise UnsupportedModel(f"{type(self).__name__} does not say which version of scikit-learn wrote it, on which its predictions hang")
        major, minor, *_ = text.split(".")
        return int(major), int(minor)


class BaseSearchCV(Stored):
    """A parameter search."""


class BaseDecisionTree(Stored):
    """A decision tree."""


class BaseForest(Stored):
    """A forest: a mean of trees."""


class BaseBagging(Stored):
    """A bagging: a mean of estimators on some of the features."""


class IsolationForest(BaseBagging):
    """An isolation forest: a mean of depths."""


class AdaBoostClassifier(Stored):
    """AdaBoost: weighted votes."""


class BaseGradientBoosting(Stored):
    """Gradient boosting: an initial prediction and a sum of trees."""

    def _raw_predict_init(self, rows: np.ndarray) -> np.ndarray:
        """Return the initial prediction before the link, as scikit-learn's method does."""
        if isinstance(self.init_, str):
            return np.zeros((len(rows), self.estimators_.shape[1]))
        if not hasattr(self, "classes_"):
            return np.repeat(np.asarray(self.init_.constant_, float).reshape(1, -1), len(rows), axis=0)
        if self.init_.strategy != "prior":
            raise UnsupportedModel(f"{type(self).__name__} starts from a DummyClassifier of strategy {self.init_.strategy!r}, expected 'prior'")
        eps = np.finfo(np.float64 if self.version >= FINE else np.float32).eps
        prior = np.clip(np.asarray(self.init_.class_prior_, float), eps, 1 - eps)
        if prior.size == 2:
            scale = 0.5 if self.loss == "exponential" else 1.0
            start = np.array([scale * np.log(prior[1] / (1 - prior[1]))])
        else:
            centre = np.log(prior).mean() if self.version >= CENTRED else 0.0
            start = np.log(prior) - centre
        return np.repeat(start[None], len(rows), axis=0)


class BaseHistGradientBoosting(Stored):
    """Histogram gradient boosting: an initial prediction and a sum of binned trees."""


class _BinMapper(Stored):
    """Categories of a histogram gradient boosting."""

    def make_known_categories_bitsets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return bit sets of the categories of every categorical feature, and each feature's position among these."""
        categorical = np.flatnonzero(self.is_categorical_)
        bits = np.zeros((categorical.size, 256), bool)
        for i, j in enumerate(categorical.tolist()):
            bits[i, np.asarray(self.bin_thresholds_[j]).astype(np.uint8)] = True
        number = np.zeros(len(self.is_categorical_), np.int64)
        number[categorical] = np.arange(categorical.size)
        return np.packbits(bits, axis=1, bitorder="little").view("<u4"), number


class ColumnTransformer(Stored):
    """The encoder of categories."""

    @property
    def named_transformers_(self) -> dict[str, Any]:
        """Transformers by name."""
        return {name: transformer for name, transformer, _ in self.transformers_}


class Booster(Stored):
    """A LightGBM Booster."""

    __module__ = "lightgbm.basic"

    def model_to_string(self) -> str:
        """Return all trees up to the best iteration as text, as LightGBM's method does."""
        header, blank, trees = self._handle.encode().partition(b"\n\n")
        fields = dict(line.partition(b"=")[::2] for line in header.split(b"\n"))
        sizes = fields[b"tree_sizes"].split()
        kept = sizes[: self.best_iteration * int(fields[b"num_tree_per_iteration"])] if self.best_iteration > 0 else sizes
        ends = [sum(map(int, some)) for some in (kept, sizes)]
        header = header.replace(b"\ntree_sizes=" + fields[b"tree_sizes"], b"\ntree_sizes=" + b" ".join(kept))
        return (header + blank + trees[: ends[0]] + trees[ends[1] :]).decode()


class LGBMModel(Stored):
    """A LightGBM estimator."""

    __module__ = "lightgbm.sklearn"

    @property
    def booster_(self) -> Booster:
        """The trained Booster."""
        if self._Booster is None:
            raise AttributeError("not fitted")
        return self._Booster

    @property
    def classes_(self) -> Any:
        """Classes in the order of outputs."""
        return self._classes


def _families() -> dict[str, type[Stored]]:
    """List the supported classes by full name: sums of trees, and their wrappers. Others are kept by name only."""
    known: dict[str, tuple[type[Stored], str]] = {
        "sklearn.tree._classes": (BaseDecisionTree, "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor"),
        "sklearn.ensemble._forest": (BaseForest, "RandomForestClassifier RandomForestRegressor ExtraTreesClassifier ExtraTreesRegressor"),
        "sklearn.ensemble._bagging": (BaseBagging, "BaggingClassifier BaggingRegressor"),
        "sklearn.ensemble._iforest": (IsolationForest, "IsolationForest"),
        "sklearn.ensemble._weight_boosting": (AdaBoostClassifier, "AdaBoostClassifier"),
        "sklearn.ensemble._gb": (BaseGradientBoosting, "GradientBoostingClassifier GradientBoostingRegressor"),
        "sklearn.ensemble._hist_gradient_boosting.gradient_boosting": (
            BaseHistGradientBoosting,
            "HistGradientBoostingClassifier HistGradientBoostingRegressor",
        ),
        "sklearn.ensemble._hist_gradient_boosting.binning": (_BinMapper, "_BinMapper"),
        "sklearn.compose._column_transformer": (ColumnTransformer, "ColumnTransformer"),
        "sklearn.model_selection._search": (BaseSearchCV, "GridSearchCV RandomizedSearchCV"),
        "sklearn.model_selection._search_successive_halving": (BaseSearchCV, "HalvingGridSearchCV HalvingRandomSearchCV"),
        "lightgbm.basic": (Booster, "Booster"),
        "lightgbm.sklearn": (LGBMModel, "LGBMClassifier LGBMModel LGBMRanker LGBMRegressor"),
    }
    return {f"{module}.{name}": type(name, (family,), {"__module__": module}) for module, (family, names) in known.items() for name in names.split()}


KNOWN = _families()


def find_family(module: str, name: str) -> type[Stored]:
    """Find the stand-in for a class."""
    full = f"{module}.{name}"
    return KNOWN.get(full) or type(name if module.startswith("sklearn.") else full, (Stored,), {"__module__": module})
