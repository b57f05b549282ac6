"""Models of any library, loaded from a file or the library's object into one kind of ensemble."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np

from leafledger.kernels.trees.ensemble import TreeEnsemble

from ..arguments.iterations import read_iterations
from ..display.text import is_whole
from ..errors import InvalidModel, UnsupportedModel, UsageError
from ..stores import commit, storage
from ..stores.uris import normalise
from .model import Feature, Loader, Model
from .objectives import Margin, Objective
from .selection import select
from .source import read_source

OTHERS = "save others as their library does: save_model of XGBoost and CatBoost"
OWN = Objective("", Margin.OTHER, None)  # a custom objective, about which nothing is known
FEW_OUTPUTS = 100  # outputs that a model may have without trees for each

__all__ = ["Feature", "Loader", "Model", "list_loaders", "load_ensemble", "parse_model", "save_model"]


def list_loaders() -> Iterator[Loader]:
    """Import one library's loader after the other; the last one recognises all scikit-learn objects, including wrappers of other libraries."""
    from .xgboost.loader import LOADER as XGBOOST

    yield XGBOOST
    from .lightgbm.loader import LOADER as LIGHTGBM

    yield LIGHTGBM
    from .catboost.loader import LOADER as CATBOOST

    yield CATBOOST
    from .portable_format import LOADER as NEUTRAL

    yield NEUTRAL
    from .sklearn.loader import LOADER as SKLEARN

    yield SKLEARN


def _parse(loader: Loader, data: bytes, where: str) -> Model:
    ensemble, features, outputs, objective = loader.parse(data, where)
    _check_outputs(ensemble, where)
    names = [feature.name for feature in features]
    if len(set(names)) != len(names):
        doubled = next(name for name in names if names.count(name) > 1)
        raise InvalidModel(f"{where}: two features are called {doubled!r}, data are matched by name")
    broken = [name for name in (*names, *outputs) if not is_whole(name)]
    if broken:
        raise InvalidModel(f"{where}: the name {broken[0]!r} has half a character, which cannot be written")
    return Model(ensemble, features, outputs, loader.library, hashlib.sha256(data).hexdigest(), objective, single_sums=loader.single_sums)


def _check_outputs(ensemble: TreeEnsemble, where: str) -> None:
    """Refuse a model that declares far more outputs than its trees have: a few bytes would become as many columns."""
    added = np.unique(ensemble.output[:, None] + np.arange(ensemble.value.shape[1])).size
    if ensemble.base.size > max(FEW_OUTPUTS, added):
        raise InvalidModel(f"{where}: {ensemble.base.size} outputs, but its trees add to {added} of them")


def _check_missing_code(model: Model, missing: float, where: str) -> None:
    """Refuse a missing-value number that is also a category code: XGBoost compares it with the data frame's codes.

    Only XGBoost has both categories and single precision.
    """
    with np.errstate(over="ignore"):  # beyond single precision it is infinite, which is no code
        code = np.float32(missing)
    for feature in model.features:
        categories = () if feature.by_value or not model.ensemble.single_precision else feature.categories or ()
        if code.is_integer() and 0 <= code < len(categories):
            raise UnsupportedModel(
                f"{where}: {missing:g} stands for missing values, and is the code of category {categories[int(code)]!r} of feature {feature.name!r}, "
                "which XGBoost takes for missing then: train it with another number, such as -999"
            )


def _read_missing(given: Any) -> float | None:
    """Return a missing-value number as float; texts are equal to no value."""
    if given is None:
        return None
    try:
        if isinstance(given, Real) and not isinstance(given, bool):
            return float(given)
    except OverflowError:  # a large integer
        pass
    raise UsageError(f"missing is {given!r:.80}, expected a number")


def _mark_missing(model: Model, missing: float | None, where: str) -> Model:
    """Set the missing-value number of all features with numeric columns; one that the model's file or estimator says must be the same."""
    noted = sorted({feature.missing for feature in model.features if feature.missing is not None})
    if missing is not None and any(number != missing for number in noted):
        raise UsageError(f"missing is {missing:g}, but {where} says that {noted[0]:g} stands for missing values; leave it out, or give that one")
    for number in noted if missing is None else [missing]:
        _check_missing_code(model, number, where)
    single = model.ensemble.single_precision

    def mark(feature: Feature) -> Feature:
        number = feature.missing if missing is None or feature.categories else missing
        return replace(feature, missing=number, rounds_missing=single and number is not None)

    return replace(model, features=tuple(map(mark, model.features))) if noted or missing is not None else model


def _name_classes(model: Model, classes: tuple[str, ...]) -> Model:
    """Name the model's outputs by classes; a single output of two classes is the second one's."""
    if len(classes) == 1 and len(model.outputs) == 1 and model.objective.is_of_two:  # training saw no second class
        classes = (*classes, f"not {classes[0]}")
    of_two = len(classes) == 2 and len(model.outputs) == 1
    names = classes[1:] if of_two else classes
    if len(names) != len(model.outputs) or len(set(classes)) < len(classes):
        return model
    return replace(model, outputs=names, objective=replace(model.objective, classes=classes) if of_two else model.objective)


def load_ensemble(
    source: str | PathLike | Any,
    missing: float | None = None,
    *,
    trees: int | str | tuple[int, int] | None = None,
    outputs: str | Sequence[str] = (),
    output: str | int | None = None,
) -> Model:
    """Load a model, or a part of it.

    Parameters
    ----------
    source : str, path or model object
        URI or path of a model file (XGBoost JSON or UBJ, LightGBM text, CatBoost cbm or JSON, scikit-learn's in skops, or what `save_model` wrote),
        also one that MLflow keeps, as ``models:/name/version``, ``models:/name@alias`` or ``runs:/run/path``; or a model object of one of these
        libraries or of scikit-learn, such as a Booster or a fitted estimator. Of a search for parameters it is the best estimator.
    missing : float, optional
        A number that stands for a missing value in the columns of numbers, besides NaN and null. Estimators of XGBoost, and their files until 1.7,
        say their own, which it must be then.
    trees : int, "start:stop" or (int, int), optional
        How many of the first iterations of boosting to use, or which, as the library counts them; by default all.
    outputs : str or sequence of str
        Names of the outputs, in their order; by default the classes of a fitted classifier, or numbers.
    output : str or int, optional
        The only output to keep, by its name or position; a number that may be both is refused.

    Returns
    -------
    Model
        The ensemble's arrays with the names of its features and outputs.

    Raises
    ------
    InvalidModel
        The file is damaged, or of none of these formats.
    UnsupportedModel
        The model has something that cannot be represented; the message names the feature or tree.
    StorageError
        The file cannot be read.
    UsageError
        The object is no model of these libraries, has no such iterations or outputs, or missing is no number.
    """
    names = (outputs,) if isinstance(outputs, str) else tuple(outputs) if isinstance(outputs, Sequence) else (None,)
    if not all(isinstance(name, str) for name in names):
        raise UsageError(f"outputs is {repr(outputs)[:80]}, expected a name for every output")
    if not isinstance(output, str | int | None) or isinstance(output, bool):
        raise UsageError(f"output is {repr(output)[:80]}, expected a name or a position")
    return select(_load(source, _read_missing(missing)), None if trees is None else read_iterations("trees", trees), names, output)


def _convert(model: Any, where: str, missing: float | None) -> Model | None:
    """Convert a fitted model, or an object with its attributes; return None if no loader recognises it."""
    for loader in list_loaders():
        if loader.owns(model):
            parsed = _parse(loader, loader.serialise(model), where)
            if loader.has_own(model):
                parsed = replace(parsed, objective=OWN)
            own = _mark_missing(_name_classes(parsed, loader.classes(model)), loader.missing(model), where)
            return _mark_missing(own, missing, where)
    return None


def _load(source: str | PathLike | Any, missing: float | None) -> Model:
    """Load the whole model."""
    if isinstance(source, Model):
        return _mark_missing(source, missing, "the model")
    if isinstance(source, str | PathLike):
        found = read_source(str(source))
        return replace(parse_model(found.data, found.where, missing), origin=found.origin)
    from .sklearn.loader import unwrap

    source = unwrap(source)
    model = _convert(source, f"{type(source).__name__} object", missing)
    if model is None:
        raise UsageError(f"cannot load a {type(source).__name__}, expected a URI or a model of xgboost, lightgbm, catboost or scikit-learn")
    return model


def serialise(source: str | PathLike | Any) -> bytes:
    """Return the bytes of a model's file as its own library writes it, of a path or an object."""
    from .sklearn.loader import unwrap

    if isinstance(source, str | PathLike):
        return read_source(str(source)).data
    source = source if isinstance(source, Model) else unwrap(source)
    for loader in list_loaders():
        if loader.owns(source):
            return loader.serialise(source)
    raise UsageError(f"the file of a {type(source).__name__} is not known here, expected a path or an object of its library")


def parse_model(data: bytes, where: str, missing: float | None = None) -> Model:
    """Parse the bytes of a model file."""
    for loader in list_loaders():
        if loader.recognise(data):
            return _mark_missing(_parse(loader, data, where), missing, where)
    from .sklearn.skops_file import is_stored, read_estimator, sound
    from .unsupported_formats import recognise_foreign

    if is_stored(data):
        with sound(where):
            stored = read_estimator(data)
            model = _convert(stored, where, missing)
            if model is None:
                raise UnsupportedModel(f"has a {type(stored).__name__}, expected an estimator of scikit-learn or LightGBM; {OTHERS}")
        return replace(model, digest=hashlib.sha256(data).hexdigest())
    known = recognise_foreign(data)
    if known is not None:
        raise UnsupportedModel(f"{where}: {known}")
    raise InvalidModel(
        f"{where}: not a model file, expected XGBoost JSON or UBJ, LightGBM text, CatBoost cbm or JSON, scikit-learn's in skops, or what "
        "leafledger.save_model wrote (pickled models are not read: save them natively)"
    )


def save_model(model: Model | Any, uri: str | PathLike) -> None:
    """Write a model's trees and names to a file of no library's format, which `load_ensemble` and runs read, for models that have none of their own.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    uri : str or path
        Of the file; one that is there already must hold the same bytes.

    Raises
    ------
    InvalidModel
        The model cannot be loaded.
    UnsupportedModel
        The model has something that cannot be represented.
    RunConflict
        There is another file.
    StorageError
        The file cannot be written.
    """
    from .portable_format import write_trees

    data = write_trees(load_ensemble(model))
    with storage.scratch() as folder:
        local = folder / "model"
        local.write_bytes(data)
        commit.create_once(normalise(str(uri)), local)
