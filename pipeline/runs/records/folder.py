"""Names in a run's folder: records, parts, summaries, and folders of runs that replace it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...stores import storage
from ...stores.table_arrays import FOLDER
from .plan import Plan, digest

MANIFEST = "manifest.json"
PLAN = "plan.json"
INPUTS = "inputs.json"
REJECTED = "rejected.json"
PROVENANCE = "provenance.json"
AFTER = "after.json"
ATTEMPT = "attempt.json"
PARTS = "attributions"
SUMMARY = "summary"
REPLACEMENTS = "replacements"
SHORT = 16  # digits of a digest that name a folder
_DIGITS = f"[0-9a-f]{{{SHORT}}}"
PLACE = re.compile(f"{_DIGITS}(-{_DIGITS})?")  # such a name: of the run's plan, and of the manifest whose place it takes


@dataclass(frozen=True, slots=True)
class RunFolder:
    """URIs of what lies in a run's folder, or in its place below that of another run.

    Attributes
    ----------
    uri : str
        Of the folder.
    """

    uri: str

    @property
    def manifest(self) -> str:
        """The only sign that a run is finished."""
        return storage.join(self.uri, MANIFEST)

    @property
    def plan(self) -> str:
        """All that decides the output."""
        return storage.join(self.uri, PLAN)

    @property
    def inputs(self) -> str:
        """Digests of what is read."""
        return storage.join(self.uri, INPUTS)

    @property
    def rejected(self) -> str:
        """What could not be read."""
        return storage.join(self.uri, REJECTED)

    @property
    def provenance(self) -> str:
        """How the run was made."""
        return storage.join(self.uri, PROVENANCE)

    @property
    def after(self) -> str:
        """The list of what was made of the run when it was finished."""
        return storage.join(self.uri, AFTER)

    @property
    def attempt(self) -> str:
        """The process that is making the run; left behind where it died."""
        return storage.join(self.uri, ATTEMPT)

    @property
    def tables(self) -> str:
        """Folder of what workers read while the run is made."""
        return storage.join(self.uri, FOLDER)

    @property
    def parts(self) -> str:
        """Folder of the parts."""
        return storage.join(self.uri, PARTS)

    @property
    def replacements(self) -> str:
        """Folder of the places of runs that take the place of this one."""
        return storage.join(self.uri, REPLACEMENTS)

    def part(self, number: int) -> str:
        """Name the part of a work item, which is to be made here; where a finished run has it says its manifest, see `listed`."""
        return storage.join(self.uri, PARTS, f"part-{number:05d}.parquet")

    def listed(self, entry: Mapping[str, object]) -> str:
        """Find what a record of the run lists: a part or a summary of the manifest, an object of ``after.json``."""
        return storage.join(self.uri, str(entry["uri"]))

    def at(self, place: str) -> "RunFolder":
        """Go to the place of a run below the folder; empty for the folder itself."""
        return RunFolder(storage.join(self.uri, place)) if place else self


def _end(replaced: str | None) -> str:
    """What places of runs end in that replace one of this manifest."""
    return "" if replaced is None else f"-{replaced[:SHORT]}"


def find_place(plan: Plan, replaced: str | None) -> str:
    """Name the place of a run that takes that of another.

    Parameters
    ----------
    replaced : str or None
        SHA-256 of the manifest that is there, hexadecimal; None where the other run is not finished.

    Returns
    -------
    str
        Below the run's folder.
    """
    return f"{REPLACEMENTS}/{digest(plan)[:SHORT]}{_end(replaced)}"


def is_place(plan: Plan, place: str) -> bool:
    """Tell whether a run of a plan may lie somewhere, whatever it replaced."""
    return not place or re.fullmatch(f"{find_place(plan, None)}(-{_DIGITS})?", place) is not None
