"""Where a model's file comes from: a path, an object store, or MLflow; and what that place is called for ever."""

from dataclasses import dataclass

from ..errors import InvalidModel
from ..stores import storage
from ..stores.uris import normalise
from .mlflow import is_logged, pin, read_logged

MAX_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """A model's file, read."""

    data: bytes
    where: str  # for messages
    origin: str | None  # what MLflow calls the model, never by an alias; None of other files


def normalise_source(uri: str) -> str:
    """Write the place of a model as it is written down, see `leafledger.pipeline.stores.uris.normalise`.

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
    """
    return uri.rstrip("/") if is_logged(uri) else normalise(uri)


def read_source(uri: str) -> Source:
    """Read a model's file."""
    if is_logged(uri):
        origin = pin(uri.rstrip("/"))
        return Source(*read_logged(origin, MAX_BYTES), origin)
    size = storage.stat(uri).size
    if size > MAX_BYTES:
        raise InvalidModel(f"{uri}: {size} bytes, expected at most {MAX_BYTES}")
    return Source(storage.read(uri), uri, None)
