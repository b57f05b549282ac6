"""Names and URIs of everything in a run's folder."""

import re

from ...stores import storage
from .plan import Plan, digest

PARTS = "attributions"

INPUTS = "inputs.json"

MANIFEST = "manifest.json"
SUMMARY = "summary"

REPLACEMENTS = "replacements"
SHORT = 16  # digits of a digest that name a folder
_DIGITS = f"[0-9a-f]{{{SHORT}}}"
PLACE = re.compile(f"{_DIGITS}(-{_DIGITS})?")  # such a name: of the run's plan, and of the manifest whose place it takes

PLAN = "plan.json"

REJECTED = "rejected.json"


def part_uri(run: str, part: int) -> str:
    """Name the object of a part."""
    return storage.join(run, PARTS, f"part-{part:05d}.parquet")


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
