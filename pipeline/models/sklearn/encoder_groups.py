"""Partition of a scikit-learn Pipeline's encoded columns by the data columns that they come from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InvalidModel, UnsupportedModel
from .loader import find_kinds, unwrap

Owners = list[int]  # the input column of every output column of a step
MOST = 2**31  # columns


@dataclass(frozen=True, slots=True)
class Trace:
    """Which columns of the data became what the last step of a Pipeline sees."""

    names: tuple[str, ...]  # of the data's columns; without names of their own, scikit-learn's: x0, x1, …
    named: bool  # whether the first step knows the names
    places: dict[str, list[int]]  # what the last step sees, by position, of every column of which there is something


def _names(step: Any, n_columns: int) -> list[str]:
    """Return the names of a step's input columns."""
    found = getattr(step, "feature_names_in_", None)
    return [f"x{j}" for j in range(n_columns)] if found is None else [str(name) for name in found]


def _own_steps(step: Any, n_columns: int) -> Owners:
    """Trace columns through all steps of a Pipeline."""
    owners = list(range(n_columns))
    for _, inner in step.steps:
        owners = [owners[j] for j in find_owners(inner, len(owners))]
    return owners


def _own_columns(step: Any, n_columns: int) -> Owners:  # noqa: ARG001 - the shape of all of them
    """Trace the columns of every transformer."""
    owners: Owners = [-1] * sum(len(range(*place.indices(MOST))) for place in step.output_indices_.values())
    for name, transformer, _ in step.transformers_:
        given = step._transformer_to_input_indices[name]
        place = range(*step.output_indices_[name].indices(MOST))
        if len(place):  # dropped columns have none
            found = find_owners(transformer, len(given))
            if len(found) != len(place):
                raise InvalidModel(f"{type(step).__name__}: {name!r} makes {len(place)} columns, expected {len(found)}")
            owners[place.start : place.stop] = [given[j] for j in found]
    return owners


def _own_categories(step: Any, n_columns: int) -> Owners:
    """Trace one column per category that is not dropped, and one for all infrequent ones."""
    dropped, rare = step.drop_idx_, getattr(step, "infrequent_categories_", None)
    owners: Owners = []
    for j in range(n_columns):
        n = len(step.categories_[j])
        n -= 0 if rare is None or rare[j] is None else len(rare[j]) - 1
        n -= 0 if dropped is None or dropped[j] is None else 1
        owners += [j] * n
    return owners


def _own_targets(step: Any, n_columns: int) -> Owners:
    """Trace one column per class of the target, if there are several."""
    n_classes = len(step.classes_) if step.target_type_ == "multiclass" else 1
    return [j for j in range(n_columns) for _ in range(n_classes)]


def _own_bins(step: Any, n_columns: int) -> Owners:
    """Trace one column per bin, or one for all."""
    return [j for j in range(n_columns) for _ in range(1 if step.encode == "ordinal" else int(step.n_bins_[j]))]


def _own_selected(step: Any, n_columns: int) -> Owners:  # noqa: ARG001 - the shape of all of them
    return [int(j) for j in step.get_support(indices=True)]


def _made(step: Any) -> list[str]:
    """Return the names of a step's output columns."""
    try:
        return [str(name) for name in step.get_feature_names_out()]
    except (ValueError, AttributeError) as error:
        raise _refuse(step) from error


def _own_indicated(step: Any, n_columns: int) -> Owners:  # noqa: ARG001 - the shape of all of them
    """Trace one column per column that may be missing."""
    return [int(j) for j in step.features_]


def _own_filled(step: Any, n_columns: int) -> Owners:
    """Trace the columns that are kept, then their indicators: by position, since a column of the data may have an indicator's name."""
    indicator = getattr(step, "indicator_", None)
    flags = [] if indicator is None else _own_indicated(indicator, n_columns)
    made = _made(step)
    kept = made[: len(made) - len(flags)]
    numbers = {name: j for j, name in enumerate(_names(step, n_columns))}
    return [*(range(n_columns) if len(kept) == n_columns else (numbers[name] for name in kept)), *flags]


def _refuse(step: Any) -> UnsupportedModel:
    return UnsupportedModel(
        f"{type(step).__name__} may make columns of several others, expected encoders, scalers, simple imputers and selections of columns"
    )


def _own_each(step: Any, n_columns: int) -> Owners:  # noqa: ARG001 - the shape of all of them
    """Trace one column for each input column."""
    return list(range(n_columns))


def _own_function(step: Any, n_columns: int) -> Owners:
    """Trace one column each through no function or a NumPy ufunc of one number; other functions may mix columns."""
    of_numbers = isinstance(step.func, np.ufunc) and step.func.nargs == 2 and step.func.signature is None  # one argument, one result, no axis
    if step.func is None or of_numbers:
        return _own_each(step, n_columns)
    return _own_all(step, n_columns)


def _own_all(step: Any, n_columns: int) -> Owners:
    """Trace all output columns to a single input column."""
    if n_columns != 1:
        raise _refuse(step)
    return [0] * len(_made(step))


# Equal names do not suffice: a Normalizer divides every column by all, a KNNImputer uses all.
EACH = ("Binarizer", "MaxAbsScaler", "MinMaxScaler", "OrdinalEncoder", "PowerTransformer", "QuantileTransformer", "RobustScaler", "StandardScaler")
KINDS: dict[str, Callable[[Any, int], Owners]] = {  # functions by class, subclasses first
    "Pipeline": _own_steps,
    "ColumnTransformer": _own_columns,
    "OneHotEncoder": _own_categories,
    "TargetEncoder": _own_targets,
    "KBinsDiscretizer": _own_bins,
    "SelectorMixin": _own_selected,
    "FunctionTransformer": _own_function,
    "SimpleImputer": _own_filled,
    "MissingIndicator": _own_indicated,
    **dict.fromkeys(EACH, _own_each),
}


def find_owners(step: Any, n_columns: int) -> Owners:
    if _passes(step):
        return list(range(n_columns))
    kinds = _find_followed(type(step))
    return next((own for kind, own in KINDS.items() if kind in kinds), _own_all)(step, n_columns)


def _passes(step: Any) -> bool:
    return step is None or isinstance(step, str)  # passthrough


def _find_followed(kind: type) -> set[str]:
    """Name a class and those whose columns it makes: a person's own that transforms in its own way is none of scikit-learn's."""
    known = kind.__module__.startswith("sklearn.")
    transforms = object if known else next((base for base in kind.__mro__ if "transform" in vars(base)), object)
    return {base.__name__ for base in kind.__mro__ if issubclass(base, transforms)}


def flatten(pipeline: Any) -> Any:
    """Return a Pipeline, or the best of a search, whose last step is none itself: the steps of one that is follow those before it."""
    model = unwrap(pipeline)
    if "Pipeline" not in find_kinds(model):
        raise UnsupportedModel(f"{type(model).__name__} is no Pipeline, expected one whose last step is an ensemble of trees")
    while "Pipeline" in find_kinds(last := unwrap(model[-1])):
        model = type(model)([*model.steps[:-1], *last.steps])
    return model


def _find_first(model: Any) -> Any:
    """Return the first step that does something, and so knows the data; None where there is none."""
    found = (_find_first(step) if "Pipeline" in find_kinds(step) else step for _, step in model.steps if not _passes(step))
    return next((step for step in found if step is not None), None)


def trace_columns(model: Any) -> Trace:
    """Follow the columns of the data through the steps of a Pipeline, as `flatten` returns it, to what the last one sees."""
    first, last = _find_first(model), model[-1]
    try:
        n_seen = int(last.n_features_in_)
        if not hasattr(first, "n_features_in_"):  # what reads texts, or a person's own
            raise _refuse(first)
        names = _names(first, first.n_features_in_)
        owners = _own_steps(model[:-1], len(names))
    except AttributeError as error:
        raise InvalidModel(f"Pipeline object: not fitted ({error})") from error
    if len(owners) != n_seen:
        raise InvalidModel(f"Pipeline object: its last step sees {n_seen} columns, those before make {len(owners)}")
    if len({*names}) < len(names):
        doubled = next(name for name in names if names.count(name) > 1)
        raise UnsupportedModel(f"Pipeline was fitted on {names.count(doubled)} columns called {doubled!r}, expected a name for each")
    places: dict[str, list[int]] = {names[j]: [] for j in sorted({*owners})}
    for place, j in enumerate(owners):
        places[names[j]].append(place)
    return Trace(tuple(names), getattr(first, "feature_names_in_", None) is not None, places)


def encoder_groups(pipeline: Any) -> dict[str, list[str | int]]:
    """Group the columns that the last step of a Pipeline sees by the columns of the data that they are made of, to be given as ``partition``.

    So a column that was one-hot encoded is one player, as it is where a library splits on categories itself.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        Fitted; or a search for its parameters. Steps before the last are ColumnTransformers, encoders, scalers, simple imputers, selections,
        Pipelines of these, NumPy's functions of a number, and whatever makes columns of one column.

    Returns
    -------
    dict of str to list
        Of every column of the data that something is made of, in their order, what the last step sees: names where it knows them, as after
        ``set_output(transform="pandas")``, else positions. Columns without a name are called ``x0``, ``x1``, …, as scikit-learn calls them.

    Raises
    ------
    UnsupportedModel
        It is no Pipeline, or a step may make columns of several others, as PCA and Normalizer do.
    InvalidModel
        It is not fitted.
    """
    model = flatten(pipeline)
    known = getattr(model[-1], "feature_names_in_", None)
    return {name: [place if known is None else str(known[place]) for place in places] for name, places in trace_columns(model).places.items()}
