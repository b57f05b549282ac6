"""Models in MLflow, by registry or run URI: downloads the library's own file; nothing is unpickled or run.

MLflow is an optional package, imported only where such a URI is read.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import HIDDEN, InvalidModel, LeafledgerError, NotThere, StorageError, UnsupportedModel, UsageError
from ..extras import needing
from ..stores import storage

DESCRIPTION = "MLmodel"  # the YAML file that lists a model's files
DESCRIPTION_BYTES = 16 << 20  # at most
FILES = {"xgboost": "data", "lightgbm": "data", "catboost": "data", "sklearn": "pickled_model"}  # flavours, and the entry that names each one's file
PICKLE = b"\x80"  # start of all pickles since protocol 2
INSTEAD = {  # for pickles: how to log the same flavour otherwise
    "lightgbm": "mlflow.lightgbm.log_model(model.booster_, …)",
    "sklearn": 'mlflow.sklearn.log_model(model, …, serialization_format="skops", skops_trusted_types=["sklearn.tree._tree.Tree"])',
}
LOCAL = "sqlite:///"
SECRETS = ("MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD")  # environment variables that MLflow reads
BARS = "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"
_URI = re.compile(r"(models|runs):/(?!/)")


def is_logged(uri: str) -> bool:
    """Return whether a URI names a model in MLflow."""
    return _URI.match(uri) is not None


def _hide(said: str) -> str:
    """Remove the secrets of MLflow's environment variables from a message, which may quote a header."""
    for held in (os.environ.get(name, "") for name in SECRETS):
        for secret in (held, repr(held)[1:-1], held.strip()):
            said = said.replace(secret, HIDDEN) if secret else said
    return said


@contextmanager
def reported(doing: str, uri: str) -> Iterator[None]:
    """Turn errors of MLflow into a StorageError.

    Parameters
    ----------
    doing : str
        What is tried, as in "cannot read": "read", "find", "log to".

    Raises
    ------
    UsageError
        MLflow is not installed, or nobody said where its server is.
    """
    with needing(uri, "mlflow"):
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import get_registry_uri, get_tracking_uri, is_tracking_uri_set
    default = None if is_tracking_uri_set() or get_registry_uri() != get_tracking_uri() else get_tracking_uri()
    if default is not None and default.startswith(LOCAL) and not Path(default.removeprefix(LOCAL)).exists():
        raise UsageError(f"{uri}: where is MLflow's server? Set MLFLOW_TRACKING_URI")
    try:
        yield
    except LeafledgerError:
        raise
    except Exception as error:  # MLflow's stores, and plugins, raise errors of many types
        missing = isinstance(error, MlflowException) and error.error_code == "RESOURCE_DOES_NOT_EXIST"
        found = str(error)
        said = " ".join(_hide(found).split()) or type(error).__name__
        if missing:
            raise NotThere(f"{uri}: cannot {doing} it in MLflow: {said}") from FileNotFoundError(uri)
        raise StorageError(f"{uri}: cannot {doing} it in MLflow: {said}") from (error if _hide(found) == found else None)


def pin(uri: str) -> str:
    """Resolve a URI to a permanent one, such as a version for an alias."""
    with reported("find", uri):
        from mlflow import MlflowClient
        from mlflow.store.artifact.utils.models import get_model_name_and_version

        if not uri.startswith("models:"):
            return uri
        return f"models:/{'/'.join(map(str, get_model_name_and_version(MlflowClient(), uri)))}"


@contextmanager
def _without_bars() -> Iterator[None]:
    """Suppress MLflow's progress bars on standard error."""
    before = os.environ.get(BARS)
    os.environ[BARS] = "false"
    try:
        yield
    finally:
        os.environ.pop(BARS)
        os.environ |= {} if before is None else {BARS: before}


def _download(repository: Any, name: str, folder: Path, most: int, where: str) -> bytes:
    """Download a file of the artifacts."""
    local = Path(repository.download_artifacts(name, dst_path=str(folder)))
    if not local.is_file():
        raise InvalidModel(f"{where}: is a folder, expected a file")
    if local.stat().st_size > most:
        raise InvalidModel(f"{where}: {local.stat().st_size} bytes, expected at most {most}")
    return local.read_bytes()


def _find_file(text: bytes, uri: str) -> tuple[str, str]:
    """Return a model's flavour and file according to MLmodel."""
    import yaml

    where = f"{uri}/{DESCRIPTION}"
    try:
        flavours = yaml.safe_load(text)["flavors"]
        known = next((name for name in FILES if name in flavours), None)
        if known is None:
            raise UnsupportedModel(
                f"{uri}: has flavours {', '.join(map(str, flavours)) or 'none'}, which would have to be run; expected one of {', '.join(FILES)}"
            )
        name = flavours[known][FILES[known]]
        storage.check_below(name)
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidModel(f"{where}: does not say which files the model has: {' '.join(str(error).split())[:200]}") from error
    return known, name


def read_logged(uri: str, most: int) -> tuple[bytes, str]:
    """Read the library's own file of a model in MLflow."""
    with storage.scratch() as folder, reported("read", uri), _without_bars():
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        repository = get_artifact_repository(uri)
        listed = {found.path.rpartition("/")[2] for found in repository.list_artifacts(None)}
        if not listed:  # not a folder
            above, _, name = uri.rpartition("/")
            return _download(get_artifact_repository(above), name, folder, most, uri), uri
        if DESCRIPTION not in listed:
            raise InvalidModel(f"{uri}: has no {DESCRIPTION}, expected the folder of a model or one file")
        flavour, name = _find_file(_download(repository, DESCRIPTION, folder, DESCRIPTION_BYTES, f"{uri}/{DESCRIPTION}"), uri)
        where = f"{uri}/{name}"
        data = _download(repository, name, folder, most, where)
        if data.startswith(PICKLE):
            load = f"model = mlflow.{flavour}.load_model({uri!r}), then leafledger.attribute(model, rows)"
            log = f"log the model by {INSTEAD.get(flavour, f'mlflow.{flavour}')}"
            raise UnsupportedModel(f"{where}: is a pickle, which is not read; {log}; or, where you trust it, {load}")
        return data, where
