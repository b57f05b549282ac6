"""The verdict of a run's drift comparison, read from the record below the run."""

import json
from dataclasses import dataclass

from ..display.text import printable
from ..errors import InvalidRun
from ..runs.records.derived import read_derived
from ..stores import storage
from .drift import DOCUMENT


@dataclass(frozen=True, slots=True)
class DriftVerdict:
    """Verdict of a comparison, in words."""

    run: str  # its folder
    reference: str  # folder of the reference run
    alarms: tuple[str, ...]  # crossed thresholds
    differs: tuple[str, ...]  # differences besides the rows


def read_verdict(run: str, manifest: str) -> DriftVerdict | None:
    """Read the verdict of a run.

    Parameters
    ----------
    manifest : str
        SHA-256 of its manifest, hexadecimal.

    Returns
    -------
    Found or None
        None where this very run was not compared.
    """
    data = read_derived(run, manifest, DOCUMENT)
    if data is None:
        return None
    try:
        found = json.loads(data)
        alarms, differs = (tuple(map(printable, found[name])) for name in ("alarms", "differs"))
        return DriftVerdict(run, printable(found["reference"]), alarms, differs)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:  # the record may have been changed by anybody
        raise InvalidRun(f"{storage.join(run, DOCUMENT)}: is not as leafledger writes it; compare the runs again") from error
