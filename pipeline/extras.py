"""Extras of this package, and the one-line error where one is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import UsageError

EXTRAS = {  # by the module that is imported. Libraries of models are none of these: their files are read without them, and who has an object has them
    "adlfs": "azure",
    "aiohttp": "http",
    "cryptography": "tls",
    "deltalake": "delta",
    "gcsfs": "gcs",
    "mlflow": "mlflow",
    "numba_cuda": "cuda",
    "openlineage": "lineage",
    "prefect": "flows",
    "prometheus_client": "metrics",
    "pyiceberg": "iceberg",
    "s3fs": "s3",
    "shap": "shap",
}


def say_missing(what: str, module: str, error: BaseException | None) -> str:
    """Say what brings a module that cannot be imported.

    Parameters
    ----------
    what : str
        What needs it: a URI, a command, a function.
    module : str
        One of ``EXTRAS``.
    error : Exception, optional
        Why it cannot be imported. A module that is there and does not load is not installed once more.
    """
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    if name is not None and name.partition(".")[0] == module:
        return f"{what} needs {module}: pip install 'leafledger[{EXTRAS[module]}]'"
    return f"{what} needs {module}, which cannot be imported: {error}"


@contextmanager
def needing(what: str, module: str) -> Iterator[None]:
    """Import inside what an extra brings.

    Parameters
    ----------
    what : str
        What needs it.
    module : str
        One of ``EXTRAS``.

    Raises
    ------
    UsageError
        It is not installed, or does not load.
    """
    try:
        yield
    except ImportError as error:
        raise UsageError(say_missing(what, module, error)) from error
