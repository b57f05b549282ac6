"""A loaded model: the ensemble, with names of features and outputs; and the Loader record of libraries."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leafledger.kernels.trees.ensemble import InvalidEnsemble, TreeEnsemble, check

from ..display.text import as_html, count
from ..errors import InvalidModel, UnsupportedModel
from ..json_records import EMPTY
from .objectives import Objective

UNKNOWN = Objective()
PREDICTIONS = ("predict", "predict_proba", "decision_function", "score_samples")


@dataclass(frozen=True, slots=True)
class Feature:
    """A column that the model was trained on.

    Attributes
    ----------
    name : str
    categorical : bool
    categories : tuple or None
        The stored values: strings, numbers, or ``HashedCategory`` if only hashes are stored; a value's code is its position. None on numeric
        features, and on categorical ones whose column holds codes.
    perhaps_codes : bool
        Whether the file leaves open what training saw: numbers or codes of a category column (numeric); ``categories`` or another column's codes
        (with ``categories``); the user's codes or those of a data frame with a lost list (categorical without).
    underscored : bool
        Whether underscores in the name may be spaces in the data.
    missing : float or None
        A number that stands for a missing value, besides NaN; None with ``categories``.
    hashed : bool
        Whether statistics are looked up by the hash of the column's value, known as a category or not.
    named : bool
        Whether training or the data gave the name; otherwise the library generated it from the position, as f0 or Column_0.
    by_value : bool
        Whether matrices hold category values, as for scikit-learn and CatBoost, or codes, as for XGBoost and LightGBM.
    refuses_missing : bool
        Whether the library refuses to predict rows with a missing value, so that the trees have no branch for it.
    partial : bool
        Whether ``categories`` are only those in splits, as CatBoost stores them: training may have seen others.
    rounds_missing : bool
        Whether values are compared with ``missing`` in single precision, as the model's library does. Plans of before do not say it.
    booleans : tuple of str
        Spelling of false and true by hashed categories; empty if unknown, so that boolean columns are refused.
    """

    name: str
    categorical: bool = False
    categories: tuple[Any, ...] | None = None
    perhaps_codes: bool = False
    underscored: bool = False
    missing: float | None = None
    hashed: bool = False
    named: bool = True
    by_value: bool = field(default=False, metadata={EMPTY: True})
    refuses_missing: bool = field(default=False, metadata={EMPTY: True})
    booleans: tuple[str, ...] = field(default=(), metadata={EMPTY: True})
    partial: bool = field(default=False, metadata={EMPTY: True})
    rounds_missing: bool = field(default=False, compare=False, metadata={EMPTY: True})

    @property
    def tells_seen(self) -> bool:
        """Whether training categories are known, by a list or by statistics; always true of numbers."""
        return not self.categorical or (self.categories is not None and not self.partial)

    @property
    def kind(self) -> str:
        """The kind of values in its column, in words."""
        if not self.categorical:
            return "numbers"
        if self.categories is None:
            return "codes of categories" + ", whose list is not there" * self.perhaps_codes
        if self.partial:
            return f"categories, of which splits ask for {len(self.categories)}"
        if self.hashed:  # the list is a placeholder
            return "categories that statistics know"
        return "1 category" if len(self.categories) == 1 else f"{len(self.categories)} categories"


@dataclass(frozen=True, slots=True)
class Model:
    """An ensemble with its names.

    Attributes
    ----------
    ensemble : TreeEnsemble
    features : tuple of Feature
        In the order of the ensemble's columns.
    outputs : tuple of str
        In the order of the ensemble's base values.
    library : str
    digest : str
        SHA-256 of the model file, hexadecimal.
    objective : Objective
        What it was trained for.
    only_output : int or None
        Position of the output that was kept of several; None where all were.
    by_position : bool
        Whether the features are called as the columns of the data at their positions, since the model has no names.
    origin : str or None
        What MLflow calls the model it was read from, by its version and never by an alias; None of other files.
    single_sums : bool
        Whether its library adds leaves up in single precision, or may.
    """

    ensemble: TreeEnsemble
    features: tuple[Feature, ...]
    outputs: tuple[str, ...]
    library: str
    digest: str
    objective: Objective = UNKNOWN
    only_output: int | None = None
    by_position: bool = False
    origin: str | None = None
    single_sums: bool = field(default=True, compare=False)

    @property
    def missing(self) -> float | None:
        """A number that stands for missing values, besides NaN, in columns of numbers; the smallest where features differ."""
        return min((feature.missing for feature in self.features if feature.missing is not None), default=None)

    def __repr__(self) -> str:
        counts = count(self.ensemble.root.size, "tree"), count(len(self.features), "feature"), count(len(self.outputs), "output")
        return f"Model({self.library}, {', '.join(counts)})"

    def _repr_html_(self) -> str:
        """Show the first features and their kinds."""
        return as_html(str(self), ("feature", "values"), ((each.name, each.kind) for each in self.features))


def check_ensemble(ensemble: TreeEnsemble, where: str) -> None:
    """Refuse a file whose arrays are not a well-formed ensemble.

    Parameters
    ----------
    where : str
        Name of the file, for messages.
    """
    try:
        check(ensemble)
    except InvalidEnsemble as error:
        raise InvalidModel(f"{where}: {error}") from None


def find_classes(model: Any) -> tuple[str, ...]:
    """Find the names of a classifier's classes, which its file may lack.

    Returns
    -------
    tuple of str
        None where it is no classifier, or has none of its own.
    """
    found = getattr(model, "classes_", ())  # of several targets, a list of arrays
    return tuple(map(str, found)) if isinstance(found, np.ndarray | list) and all(np.ndim(each) == 0 for each in found) else ()


def check_predictions(model: Any, package: str) -> None:
    """Refuse an object whose predictions differ from those of the library's own model that it wraps.

    Parameters
    ----------
    package : str
        The library's, as Python imports it.
    """
    for name in PREDICTIONS:
        owner = next((kind for kind in type(model).__mro__ if name in vars(kind)), None)
        if owner is not None and owner.__module__.partition(".")[0] != package:
            raise UnsupportedModel(f"{type(model).__name__} has a {name} of its own ({owner.__module__}), expected {package}'s")


@dataclass(frozen=True, slots=True)
class Loader:
    """Functions that read the models of one library."""

    library: str
    recognise: Callable[[bytes], bool]  # ``recognise(data) -> bool``, by the first bytes of a file
    # ``parse(data, where) -> (TreeEnsemble, features, outputs, Objective)``; raises InvalidModel or UnsupportedModel
    parse: Callable[[bytes, str], tuple[TreeEnsemble, tuple[Feature, ...], tuple[str, ...], Objective]]
    owns: Callable[[Any], bool]  # ``owns(model) -> bool``, of an object, without importing the library
    serialise: Callable[[Any], bytes]  # ``serialise(model) -> bytes``, which ``parse`` reads
    classes: Callable[[Any], tuple[str, ...]] = find_classes  # ``classes(model) -> tuple of str``, an object's class names, empty if unknown
    missing: Callable[[Any], float | None] = lambda model: None  # ``missing(model) -> float or None``, an object's missing-value number besides NaN
    single_sums: bool = False  # the library adds leaves up in single precision, or may
    # ``has_own(model) -> bool``, whether an object has a custom objective, which its file replaces by another name
    has_own: Callable[[Any], bool] = lambda model: False
