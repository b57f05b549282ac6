"""Names in a run's folder: records, parts, summaries, and places of runs that replace it.

    manifest.json, plan.json, attributions/part-00000.parquet, summary/importance.parquet, …    a run
    _replacements/0123456789abcdef-fedcba9876543210/                                            the place of one that replaces it, of which
      plan.json.own, parts/part-00000.parquet.own, summary/importance.parquet.own, …            no name ends as those that readers look for
    attributions/part-00000-0123456789abcdef-fedcba9876543210.parquet                           its parts, as its manifest names them
    _kept/fedcba9876543210/manifest.json.own, plan.json.own, parts/part-00000.parquet.own, …    the run that it replaced, where that is kept

What a place is called, its tag, is made of the digests of two: of the plan, and of the manifest that is replaced. Of a run that only lacks rows of
the one that it replaces, the first is of where these rows stood. Up to version 0.2 places were in ``replacements``, and the parts of such a run are
there for good.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
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
DOCUMENTS = (PLAN, REJECTED, INPUTS, PROVENANCE)  # besides the manifest; the last of them is written last
PARTS = "attributions"
SUMMARY = "summary"
PLACES = "_replacements"  # engines that look for data below a folder pass such a name over
REPLACEMENTS = "replacements"  # its name up to version 0.2
KEPT = "_kept"  # folder of what is kept of the run that was replaced
MADE = "parts"  # folder of the parts in a place
OWN = ".own"  # what all names in a place end in: no glob for tables or documents finds them
SHORT = 16  # digits of a digest that name a place
_DIGITS = f"[0-9a-f]{{{SHORT}}}"
_TAG = f"{_DIGITS}(?:-{_DIGITS})?"
PLACE = re.compile(_TAG)
_IN_PLACE = re.compile(rf"(?P<run>.*)/(?:{PLACES}/{_TAG}|{KEPT}/{_DIGITS})", re.DOTALL)
_PART = re.compile(rf"part-(?P<number>\d{{5,}})(?:-(?P<tag>{_TAG}))?\.parquet")


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
    def run(self) -> str:
        """The folder of the run whose place it is; itself where it is no place."""
        found = _IN_PLACE.fullmatch(self.uri)
        return self.uri if found is None else found["run"]

    def named(self, name: str) -> str:
        """Find what is called so in a run's folder, such as "plan.json" or "summary/importance.json"."""
        return storage.join(self.uri, name if self.run == self.uri else f"{name}{OWN}")

    @property
    def manifest(self) -> str:
        """The only sign that a run is finished."""
        return storage.join(self.uri, MANIFEST)

    @property
    def plan(self) -> str:
        """All that decides the output."""
        return self.named(PLAN)

    @property
    def inputs(self) -> str:
        """Digests of what is read."""
        return self.named(INPUTS)

    @property
    def rejected(self) -> str:
        """What could not be read."""
        return self.named(REJECTED)

    @property
    def provenance(self) -> str:
        """How the run was made."""
        return self.named(PROVENANCE)

    @property
    def after(self) -> str:
        """The list of what was made of the run when it was finished."""
        return storage.join(self.uri, AFTER)

    @property
    def attempt(self) -> str:
        """The process that is making the run; left behind where it died."""
        return self.named(ATTEMPT)

    @property
    def tables(self) -> str:
        """Folder of what workers read while the run is made."""
        return storage.join(self.uri, FOLDER)

    @property
    def parts(self) -> str:
        """Folder that parts are made in."""
        return storage.join(self.uri, PARTS if self.run == self.uri else MADE)

    def part(self, number: int) -> str:
        """Name the part of a work item, which is to be made here; where a finished run has it says its manifest, see `listed`."""
        return self.named(f"{self.parts[len(self.uri) + 1 :]}/part-{number:05d}.parquet")

    def listed(self, entry: Mapping[str, object]) -> str:
        """Find what a record of the run lists: a part or a summary of the manifest, an object of ``after.json``."""
        return storage.join(self.uri, str(entry["uri"]))

    def kept(self, manifest: str) -> "RunFolder":
        """Go to where a run is kept that was replaced, by the SHA-256 of its manifest, or its first digits; names there are as in a place."""
        return RunFolder(storage.join(self.uri, KEPT, manifest[:SHORT]))

    def at(self, place: str) -> "RunFolder":
        """Go to the place of a run below the folder; empty for the folder itself."""
        return RunFolder(storage.join(self.uri, place)) if place else self


def _end(replaced: str | None) -> str:
    """What tags of runs end in that replace one of this manifest."""
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
    return f"{PLACES}/{digest(plan)[:SHORT]}{_end(replaced)}"


def find_place_without(manifest: str, rows: Mapping[int, Sequence[int]]) -> str:
    """Name the place of a run that lacks some rows of the one that it replaces, and is the same but for that.

    Parameters
    ----------
    manifest : str
        SHA-256 of the manifest that is there, hexadecimal.
    rows : mapping of int to sequence of int
        Where they stood, by the numbers of their parts: the name says nothing of what is in them.

    Returns
    -------
    str
        Below the run's folder.
    """
    gone = " ".join(f"{part}:{','.join(map(str, rows[part]))}" for part in sorted(rows))
    return f"{PLACES}/{hashlib.sha256(f'{manifest} {gone}'.encode()).hexdigest()[:SHORT]}{_end(manifest)}"


def is_place_without(place: str) -> bool:
    """Tell whether `find_place_without` may have named a place."""
    return re.fullmatch(f"{PLACES}/{_DIGITS}-{_DIGITS}", place) is not None


def replaced_by(place: str) -> str:
    """Give the first digits of the SHA-256 of the manifest that a run in a place replaced; empty where it replaced no finished one."""
    return place.rpartition("/")[2].partition("-")[2]


def is_place(plan: Plan, place: str) -> bool:
    """Tell whether a run of a plan may lie somewhere, whatever it replaced."""
    return not place or re.fullmatch(f"(?:{PLACES}|{REPLACEMENTS})/{digest(plan)[:SHORT]}(-{_DIGITS})?", place) is not None


def is_pending(place: str, manifest: str) -> bool:
    """Tell whether a place, or its tag, is of a run that is made to replace one, given by the SHA-256 of its manifest."""
    return place.endswith(_end(manifest))


def name_part(place: str, number: int) -> str:
    """Name a part below a run's folder as the manifest does, of a run in a place, empty for the folder itself."""
    above, _, tag = place.rpartition("/")
    if above == REPLACEMENTS:
        return f"{place}/{PARTS}/part-{number:05d}.parquet"
    return f"{PARTS}/part-{number:05d}{'-' * bool(tag)}{tag}.parquet"


def name_summary(place: str, file: str) -> str:
    """Name the file of a summary, such as "importance.parquet", likewise."""
    return f"{place}/{SUMMARY}/{file}{OWN if place.startswith(PLACES) else ''}".removeprefix("/")


def name_file(uri: str) -> str:
    """Name the file of a summary, such as "importance.parquet", that a manifest lists by this name below the run."""
    return uri.rpartition("/")[2].removesuffix(OWN)


def may_stay(uri: str, number: int) -> bool:
    """Tell whether a part of a run that is replaced may be the other run's by the name that it has: in the order of names parts are in that of rows.

    Parameters
    ----------
    uri : str
        Below the run's folder.
    number : int
        Of the part in the other run.
    """
    folder, _, name = uri.rpartition("/")
    found = _PART.fullmatch(name)
    return folder == PARTS and found is not None and found["number"] == f"{number:05d}"


def find_pending(names: Iterable[str], manifest: str) -> list[str]:
    """Give the patterns of names that parts have, among some, of runs that are made to replace one, given by the SHA-256 of its manifest."""
    tags = {part["tag"] for part in map(_PART.fullmatch, names) if part is not None and part["tag"]}
    return [f"{PARTS}/part-*-{tag}.parquet" for tag in sorted(tags) if is_pending(tag, manifest)]


def find_strays(names: Iterable[str], listed: Iterable[Mapping[str, object]], manifest: str | None = None) -> list[str]:
    """Pick the parts of other runs among the names in a run's folder of parts.

    Parameters
    ----------
    names : iterable of str
        What lies there; what is not called as a part is nobody's.
    listed : iterable of mapping
        Parts of the run, as its manifest lists them.
    manifest : str, optional
        Its SHA-256, hexadecimal, to leave out parts of a run that is made to replace it.
    """
    mine = {entry["uri"] for entry in listed}
    found = ((name, _PART.fullmatch(name)) for name in names if f"{PARTS}/{name}" not in mine)
    return sorted(name for name, part in found if part is not None and not (manifest and part["tag"] and is_pending(part["tag"], manifest)))
