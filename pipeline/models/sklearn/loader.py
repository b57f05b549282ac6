"""scikit-learn's trees and tree ensembles, read from fitted estimators in memory into one ensemble.

Estimators are read by their public attributes; scikit-learn is not imported. Pickles are never read; the portable format stores what is read here,
and ``skops`` files are read through the same attributes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from leafledger.kernels.slices.links import IDENTITY, Link
from leafledger.kernels.trees.ensemble import TreeEnsemble

from ...errors import InvalidModel, UnsupportedModel
from ..model import Feature, Loader, Model, check_predictions
from ..objectives import EXP, SIGMOID, SOFTMAX, Margin, Objective
from ..portable_format import read_trees, write_trees
from .hist_gradient_boosting import list_categories, read_histogram_boosting
from .trees import Tree, add_iterations, join, read_tree
from .version import VOTES_AGAINST, find_version

LIBRARY = "scikit-learn"
INSTEAD = {  # unsupported estimators, with alternatives
    "Pipeline": "leafledger.attribute(model, rows) and leafledger.prepare(model) take the object and transform rows; one in MLflow comes by model = "
    "mlflow.sklearn.load_model(uri). Elsewhere explain its last step on the rows that this step sees: model[-1], and model[:-1].transform(rows); "
    "with one-hot encoders before it, leafledger.encoder_groups(model) is the partition by the columns that were encoded",
    "CalibratedClassifierCV": "explain the classifier that it calibrates: model.calibrated_classifiers_[0].estimator",
    "TransformedTargetRegressor": "explain the regressor inside, in units of the transformed target: model.regressor_",
    "_MultiOutputEstimator": "explain each output's estimator by itself: model.estimators_[0]",
    "_BaseChain": "explain each link's estimator by itself: model.estimators_[0]",
    "_BaseVoting": "explain each estimator by itself: model.estimators_[0]",
    "_BaseStacking": "explain each estimator by itself: model.estimators_[0]",
    "AdaBoostRegressor": "its prediction is a weighted median of trees, not a sum; explain its trees, or train a GradientBoostingRegressor",
    "RandomTreesEmbedding": "it predicts nothing: its trees only encode rows",
}
TREES = {"BaseDecisionTree"}  # base estimators supported in Bagging and boosting


def find_kinds(model: Any) -> set[str]:
    """Name the classes of an object, including base classes."""
    return {kind.__name__ for kind in type(model).__mro__}


def _name(model: Any) -> str:
    return type(model).__name__


def _outputs(model: Any) -> tuple[str, ...]:
    """Name the columns of a tree's values: classes, of each target if several, or targets."""
    if not hasattr(model, "classes_"):
        return tuple(map(str, range(int(getattr(model, "n_outputs_", 1)))))
    if isinstance(model.classes_, list):
        return tuple(f"{target}:{label}" for target, classes in enumerate(model.classes_) for label in classes)
    return tuple(map(str, model.classes_))


def _probabilities(tree: Any) -> np.ndarray:
    """Return class frequencies of a classifier's nodes, targets concatenated, ``(nodes, outputs)``."""
    counts = np.atleast_1d(tree.n_classes_)
    value = [tree.tree_.value[:, target, :n] for target, n in enumerate(counts)]
    found = []
    for of_target in value:
        total = of_target.sum(axis=1, keepdims=True)  # older versions keep counts
        found.append(of_target if np.allclose(total, 1.0, rtol=0, atol=1e-9) else of_target / np.where(total > 0, total, 1.0))
    return np.concatenate(found, axis=1)


def _values(tree: Any) -> np.ndarray:
    """Return a fitted tree's prediction at every node, ``(nodes, outputs)``."""
    return _probabilities(tree) if hasattr(tree, "classes_") else tree.tree_.value[:, :, 0]


def _check_trees(model: Any, estimators: Any) -> None:
    for estimator in estimators:
        if TREES.isdisjoint(find_kinds(estimator)):
            raise UnsupportedModel(f"{_name(model)} of {_name(estimator)}, expected decision trees")


def _join(model: Any, trees: list[Tree], base: np.ndarray | None = None) -> TreeEnsemble:
    """Combine trees of numeric features, with a base of 0 by default."""
    return join(trees, np.zeros(trees[0].value.shape[1]) if base is None else base, np.zeros(model.n_features_in_, np.int32))


def _read_decision_tree(model: Any) -> TreeEnsemble:
    return _join(model, [read_tree(model, _values(model))])


def _read_forest(model: Any) -> TreeEnsemble:
    """Read a forest: the mean of its trees."""
    n = len(model.estimators_)
    trees = [read_tree(tree, _values(tree) / n) for tree in model.estimators_]
    return _join(model, trees)


def _read_bagging(model: Any) -> TreeEnsemble:
    """Read a Bagging: the mean of trees, each on some of the features, and perhaps of the classes."""
    _check_trees(model, model.estimators_)
    if hasattr(model, "classes_") and not all(hasattr(tree, "classes_") for tree in model.estimators_):
        raise UnsupportedModel(f"{_name(model)} lets regressors vote, expected classifiers")
    n, trees = len(model.estimators_), []
    for tree, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        value = _values(tree) / n
        if hasattr(model, "classes_") and value.shape[1] != len(model.classes_):
            seen, value = value, np.zeros((len(value), len(model.classes_)))
            value[:, np.asarray(tree.classes_, int)] = seen
        trees.append(read_tree(tree, value, columns))
    return _join(model, trees)


def _check_start(model: Any) -> None:
    """Refuse an initial prediction that depends on the row."""
    if isinstance(model.init_, str):  # "zero"
        return
    kind, name = type(model.init_), _name(model.init_)
    if f"{kind.__module__}.{name}" not in ("sklearn.dummy.DummyClassifier", "sklearn.dummy.DummyRegressor"):
        raise UnsupportedModel(f"{_name(model)} starts from a {name}, expected a constant: train it without init")
    if model.init_.strategy == "stratified":
        raise UnsupportedModel(f"{_name(model)} starts from a {name} of strategy 'stratified', which is drawn, expected a constant")


def _read_boosting(model: Any) -> TreeEnsemble:
    """Read gradient boosting: the initial prediction, and the learning rate times the sum of the trees."""
    _check_start(model)
    start = model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))[0]
    trees = [
        read_tree(tree, model.learning_rate * tree.tree_.value[:, :, 0], output=output)
        for stage in model.estimators_
        for output, tree in enumerate(stage)
    ]
    return add_iterations(_join(model, trees, np.asarray(start, float)), model.estimators_.shape[1])


def _read_adaptive_boosting(model: Any) -> TreeEnsemble:
    """Read AdaBoost: weighted votes of the trees, as in ``decision_function``."""
    _check_trees(model, model.estimators_)
    if getattr(model, "algorithm", "SAMME") == "SAMME.R":
        raise UnsupportedModel("AdaBoostClassifier with algorithm 'SAMME.R', the default until 1.5, adds logarithms up; expected 'SAMME'")
    n, trees = len(model.classes_), []
    if n < 2:
        raise UnsupportedModel(f"AdaBoostClassifier of {n} class, expected at least two")
    against = find_version(model) >= VOTES_AGAINST
    share = np.asarray(model.estimator_weights_, float)[: len(model.estimators_)] / np.sum(model.estimator_weights_)
    for tree, weight in zip(model.estimators_, share, strict=True):
        voted = np.asarray(tree.classes_)[tree.tree_.value[:, 0].argmax(axis=1)]
        agrees = voted[:, None] == np.asarray(model.classes_)
        votes = np.where(agrees, weight, -weight / (n - 1) if against else 0.0)
        trees.append(read_tree(tree, votes if n > 2 else votes[:, 1:] - votes[:, :1]))
    return _join(model, trees)


def _path_length(n: np.ndarray) -> np.ndarray:
    """Return the mean depth of n isolated rows (Liu, Ting and Zhou 2008, Eq. 1)."""
    n = np.asarray(n, float)
    more = np.maximum(n, 3.0)
    found = 2.0 * (np.log(more - 1.0) + np.euler_gamma) - 2.0 * (more - 1.0) / more
    return np.where(n <= 1, 0.0, np.where(n == 2, 1.0, found))


def _read_isolation_forest(model: Any) -> TreeEnsemble:
    """Read an isolation forest: minus the mean depth over its expectation; ``score_samples`` is minus 2 to the power of this."""
    scale = len(model.estimators_) * float(_path_length(np.array(model.max_samples_)))
    if not scale:
        raise UnsupportedModel(f"{_name(model)}: trees of one row, expected at least two")
    trees = []
    for tree, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        found = read_tree(tree, np.zeros((tree.tree_.node_count, 1)), columns)
        depth = np.zeros(tree.tree_.node_count)
        for node in np.flatnonzero(found.left >= 0):  # parents precede their children
            depth[[found.left[node], found.right[node]]] = depth[node] + 1
        value = -(depth + _path_length(tree.tree_.n_node_samples)) / scale
        trees.append(found._replace(value=np.where(found.left < 0, value, 0.0)[:, None]))
    return _join(model, trees)


READERS: dict[str, Callable[[Any], TreeEnsemble]] = {
    "BaseDecisionTree": _read_decision_tree,
    "IsolationForest": _read_isolation_forest,  # a subclass of Bagging
    "BaseForest": _read_forest,
    "BaseBagging": _read_bagging,
    "BaseGradientBoosting": _read_boosting,
    "AdaBoostClassifier": _read_adaptive_boosting,
    "BaseHistGradientBoosting": read_histogram_boosting,
}
REFUSE_MISSING = {"BaseGradientBoosting", "AdaBoostClassifier"}  # classes that refuse missing values whatever their trees can do
EXTRA_TREES = {"ExtraTreeClassifier", "ExtraTreeRegressor"}
LOGARITHMS = ("poisson", "gamma")  # losses with a log link
SQUARED = ("squared_error", "friedman_mse", "mse")  # criteria by which trees of regressors make the squared error small
FITTED = ("tree_", "estimators_", "_predictors")


def _reader(model: Any) -> Callable[[Any], TreeEnsemble]:
    kinds = find_kinds(model)
    for kind, instead in INSTEAD.items():
        if kind in kinds:
            raise UnsupportedModel(f"{_name(model)} is no sum of trees: {instead}")
    for kind, reader in READERS.items():
        if kind in kinds:
            check_predictions(model, "sklearn")
            return reader
    raise UnsupportedModel(f"{_name(model)} is no sum of trees, expected a decision tree, a forest, boosted or bagged trees of scikit-learn")


def _takes_missing(tree: Any) -> bool:
    """Return whether a stored tree handles missing values; trees grown without any do not."""
    chosen = not find_kinds(tree).isdisjoint(EXTRA_TREES) and tree.splitter != "random"
    return getattr(tree.tree_, "missing_go_to_left", None) is not None and not chosen


def _refuses_missing(model: Any) -> bool:
    """Return whether predictions refuse missing values, by the model's tags, or else by its class and trees."""
    tags = getattr(model, "__sklearn_tags__", None)
    if tags is not None:
        return not tags().input_tags.allow_nan
    kinds = find_kinds(model)
    trees = [model] if "BaseDecisionTree" in kinds else getattr(model, "estimators_", ())
    return not kinds.isdisjoint(REFUSE_MISSING) or not all(map(_takes_missing, trees))


def _features(model: Any) -> tuple[Feature, ...]:
    given = getattr(model, "feature_names_in_", None)  # None also for integer column names: scikit-learn then goes by position
    names = list(map(str, range(model.n_features_in_))) if given is None else [str(name) for name in given]
    categories = {} if "BaseHistGradientBoosting" not in find_kinds(model) else list_categories(model)
    named, refuses = given is not None, _refuses_missing(model)
    return tuple(
        Feature(name, j in categories, categories.get(j), named=named, by_value=j in categories, refuses_missing=refuses)
        for j, name in enumerate(names)
    )


def _link(model: Any) -> Link:
    """Return the link of ``predict_proba`` or ``predict``."""
    kinds, n = find_kinds(model), len(getattr(model, "classes_", ()))
    if "AdaBoostClassifier" in kinds:
        return SIGMOID if n == 2 else Link("softmax", 1 / (n - 1))
    if not {"BaseGradientBoosting", "BaseHistGradientBoosting"} & {*kinds}:
        return IDENTITY  # means of trees are probabilities
    if n:
        return Link("sigmoid", 2.0) if model.loss == "exponential" else SIGMOID if n <= 2 else SOFTMAX
    return EXP if model.loss in LOGARITHMS else IDENTITY


def _criterion(model: Any) -> str:
    """Return what the trees of a regressor without a loss of its own were grown to make small."""
    criterion = getattr(model, "criterion", None) or getattr(getattr(model, "estimator_", None), "criterion", None)
    return "squared_error" if criterion in SQUARED else f"criterion {criterion}" if isinstance(criterion, str) else ""


def _objective(model: Any) -> Objective:
    if "IsolationForest" in find_kinds(model):
        return Objective("isolation", Margin.OTHER, None)
    loss = getattr(model, "loss", "")
    if not isinstance(loss, str):  # a loss object, with any link
        return Objective(type(loss).__name__, Margin.OTHER, None)
    if hasattr(model, "classes_"):
        margin = Margin.CLASS if isinstance(model.classes_, list) else Margin.CLASSES  # several targets, or one
        return Objective(loss or "classification", margin, _link(model))
    if not loss:
        return Objective(_criterion(model))
    return Objective(loss, Margin.OTHER if loss in LOGARITHMS else Margin.LABEL, _link(model))


def _names_of_outputs(model: Any, n: int) -> tuple[str, ...]:
    found = _outputs(model)
    return found if len(found) == n else found[1:] if len(found) == 2 and n == 1 else tuple(map(str, range(n)))


def serialise(model: Any) -> bytes:
    """Serialise a fitted estimator in the portable format."""
    reader = _reader(model)
    if not any(hasattr(model, name) for name in FITTED):
        raise InvalidModel(f"{_name(model)} object: not fitted")
    ensemble = reader(model)
    return write_trees(Model(ensemble, _features(model), _names_of_outputs(model, ensemble.base.size), LIBRARY, "", _objective(model)))


def unwrap(model: Any) -> Any:
    """Return the best estimator of a parameter search.

    Returns
    -------
    Any
        The best estimator, or what is no search as it is.

    Raises
    ------
    InvalidModel
        A search without one.
    """
    while "BaseSearchCV" in find_kinds(model):
        if not hasattr(model, "best_estimator_"):
            raise InvalidModel(f"{_name(model)} object: has no best estimator, expected one that was fitted with refit=True")
        model = model.best_estimator_
    return model


def _owns(model: Any) -> bool:
    return any(kind.__module__.partition(".")[0] == "sklearn" for kind in type(model).__mro__)


LOADER = Loader(
    library=LIBRARY,
    recognise=lambda data: False,
    parse=read_trees,
    owns=_owns,
    serialise=serialise,
)
