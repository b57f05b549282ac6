"""Models of any of the three libraries, from a file or from the library's own object, as one kind of ensemble."""

import hashlib
from os import PathLike
from typing import Any

from ..display import is_whole
from ..errors import InvalidModel, UsageError
from ..stores import storage
from .catboost import LOADER as CATBOOST
from .lightgbm import LOADER as LIGHTGBM
from .model import Feature, Loader, Model
from .xgboost import LOADER as XGBOOST

LOADERS = (XGBOOST, LIGHTGBM, CATBOOST)
MAX_BYTES = 512 << 20

__all__ = ["LOADERS", "Feature", "Loader", "Model", "load_ensemble"]


def _parse(loader: Loader, data: bytes, where: str) -> Model:
    ensemble, features, outputs, objective = loader.parse(data, where)
    names = [feature.name for feature in features]
    if len(set(names)) != len(names):
        doubled = next(name for name in names if names.count(name) > 1)
        raise InvalidModel(f"{where}: two features are called {doubled!r}, data are matched by name")
    broken = [name for name in (*names, *outputs) if not is_whole(name)]
    if broken:
        raise InvalidModel(f"{where}: the name {broken[0]!r} has half a character, which cannot be written")
    return Model(ensemble, features, outputs, loader.library, hashlib.sha256(data).hexdigest(), objective)


def load_ensemble(source: str | PathLike | Any) -> Model:
    """Load a model.

    Parameters
    ----------
    source : str, path or model object
        URI or path of a model file (XGBoost JSON or UBJ, LightGBM text, CatBoost cbm or JSON), or a model object of one of these libraries, such as
        a Booster or a fitted scikit-learn estimator.

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
        The object is no model of these libraries.
    """
    if isinstance(source, Model):
        return source
    if not isinstance(source, str | PathLike):
        for loader in LOADERS:
            if loader.owns(source):
                return _parse(loader, loader.serialise(source), f"{type(source).__name__} object")
        raise UsageError(f"cannot load a {type(source).__name__}, expected a URI or a model of {', '.join(loader.library for loader in LOADERS)}")
    uri = str(source)
    size = storage.stat(uri).size
    if size > MAX_BYTES:
        raise InvalidModel(f"{uri}: {size} bytes, expected at most {MAX_BYTES}")
    data = storage.read(uri)
    for loader in LOADERS:
        if loader.recognise(data):
            return _parse(loader, data, uri)
    raise InvalidModel(
        f"{uri}: not a model file, expected XGBoost JSON or UBJ, LightGBM text, CatBoost cbm or JSON "
        "(pickled models are not read: save them natively)"
    )
