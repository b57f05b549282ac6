"""Where a model's file comes from: a path, an object store, or MLflow; and what that place is called for ever."""

from dataclasses import dataclass

from ..errors import InvalidModel
from ..stores import storage
from ..stores.places import normalise
from .mlflow import is_logged, pin, read_logged

MAX_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """A model's file, read."""

    data: bytes
    where: str  # for messages
    origin: str | None  # what MLflow calls the model, never by an alias; None of other files


def normalise_source(uri: str) -> str:
    """Write the place of a model as it is written down, see `leafledger.pipeline.stores.places.normalise`.

    Parameters
    ----------
    uri : str
        A path, a URI, or one of MLflow.

    Returns
    -------
    str
        MLflow's as they are: what an alias means is looked up when the model is read.

    Raises
    ------
    UsageError
        It has credentials, or "..".
    StorageError
        Its scheme is unknown.
    """
    return uri.rstrip("/") if is_logged(uri) else normalise(uri)


def read_source(uri: str) -> Source:
    """Read a model's file.

    Parameters
    ----------
    uri : str
        A path, a URI, or one of MLflow.

    Returns
    -------
    Source

    Raises
    ------
    InvalidModel
        The file is too large, or MLflow's artifact is no model.
    UnsupportedModel
        MLflow has a pickle or code, and no file of a library that is read.
    UsageError
        MLflow is not installed, or nobody said where its server is.
    StorageError
        There is no such file or model, or the store does not answer.
    """
    if is_logged(uri):
        origin = pin(uri.rstrip("/"))
        return Source(*read_logged(origin, MAX_BYTES), origin)
    size = storage.stat(uri).size
    if size > MAX_BYTES:
        raise InvalidModel(f"{uri}: {size} bytes, expected at most {MAX_BYTES}")
    return Source(storage.read(uri), uri, None)
