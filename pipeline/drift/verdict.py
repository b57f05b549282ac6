"""The verdict of a run's drift comparison, read from the record below the run."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from ..display.text import printable
from ..errors import InvalidRun
from ..runs.formats.numbers import read_number
from ..runs.records.derived import DriftVerdict, read_derived
from ..stores import storage
from .drift import DOCUMENT

R = TypeVar("R")


def read_document(run: str, manifest: str, take: Callable[[Any], R]) -> R | None:
    """Take something from what was found of a run, None where this very run was not compared.

    Parameters
    ----------
    manifest : str
        SHA-256 of its manifest, hexadecimal.
    take : callable
        Gets the document that was written then.
    """
    data = read_derived(run, manifest, DOCUMENT)
    if data is None:
        return None
    try:
        found = json.loads(data)
        read_number(found, storage.join(run, DOCUMENT))
        return take(found)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:  # whoever may write there has changed it
        raise InvalidRun(f"{storage.join(run, DOCUMENT)}: is not as leafledger writes it; compare the runs again") from error


def read_verdict(run: str, manifest: str) -> DriftVerdict | None:
    """Read the verdict of a run."""

    def take(found: Any) -> DriftVerdict:
        alarms, differs = (tuple(map(printable, found[name])) for name in ("alarms", "differs"))
        return DriftVerdict(run, printable(found["reference"]), alarms, differs)

    return read_document(run, manifest, take)
