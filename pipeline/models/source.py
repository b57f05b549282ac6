"""Reading of model files from paths, object stores or MLflow, with their permanent names."""

from dataclasses import dataclass

from ..errors import InvalidModel, NotAFile, NotThere
from ..stores import storage
from ..stores.uris import normalise
from .mlflow import is_logged, pin, read_logged

MAX_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """The contents of a model file."""

    data: bytes
    where: str  # for messages
    origin: str | None  # name of the model in MLflow, with a version instead of an alias; None for other files


def normalise_source(uri: str) -> str:
    """Normalise a model's URI, see `leafledger.pipeline.stores.uris.normalise`.

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
    try:
        size = storage.stat(uri).size
        if size > MAX_BYTES:
            raise InvalidModel(f"{uri}: {size} bytes, expected at most {MAX_BYTES}")
        return Source(storage.read(uri), uri, None)
    except (NotThere, NotAFile) as error:
        if not storage.exists(uri) or not storage.is_folder(uri):
            raise
        raise NotAFile(f"{uri}: is a folder, expected a model's file; are model and data swapped?") from error
