"""A run in the place of another: made beside it, below the same folder, and there for readers from one moment to the next.

    manifest.json, plan.json, attributions/, summary/, …    the first run of a folder
    replacements/0123456789abcdef-fedcba9876543210/         a later one: plan.json, attributions/, summary/, …
    manifest.json                                           exchanged for its own, whose ``place`` is that folder, in one conditional write

Then what the first run wrote is removed. Whatever ends this in between, the manifest that is there is of a run that is there. A folder is called by
the run's plan and the manifest that it is to replace: once that is not there any more, nobody can take its place from that folder, and it may go.
"""

import hashlib
import json
import re
from dataclasses import dataclass

from ..errors import InvalidRun, RunConflict
from ..stores import commit, storage
from ..stores.arrays import FOLDER
from ..stores.listing import list_folder
from .after import remove_after
from .arguments import shorten
from .digests import INPUTS
from .options import IfChanged
from .part import PARTS
from .plan import PLAN, Plan, differences, digest
from .planned import from_json, other_run
from .provenance import PROVENANCE
from .publish import MANIFEST, SUMMARY, Manifest, read_manifest
from .rejected import REJECTED

REPLACEMENTS = "replacements"
SHORT = 16  # digits of a digest that name a folder
_DIGITS = f"[0-9a-f]{{{SHORT}}}"
PLACE = re.compile(f"{_DIGITS}(-{_DIGITS})?")  # such a name: of the run's plan, and of the manifest whose place it takes


@dataclass(frozen=True, slots=True)
class Standing:
    """The run that a folder holds, finished or not."""

    home: str  # where its plan and parts lie: the folder, or one below it
    plan: Plan
    manifest: Manifest | None  # None where it is not finished


@dataclass(frozen=True, slots=True)
class Replaced:
    """The run whose place another one takes."""

    standing: Standing | None  # None where another version wrote it, of which nothing is read
    manifest: str | None  # SHA-256 of its manifest, hexadecimal; None where it is not finished
    differs: str  # in what from the other, in words; empty where it is made again, since rows of it were rejected


@dataclass(frozen=True, slots=True)
class Settled:
    """Where a planned run is made, and what is there already."""

    place: str  # below the run's folder; empty for the folder itself
    finished: Manifest | None  # there is nothing to do
    replaced: Replaced | None  # whose place it takes
    kept: str  # in what a finished run that is left as it is differs from the planned one


def _end(replaced: str | None) -> str:
    """What places of runs end in that replace one of this manifest."""
    return "" if replaced is None else f"-{replaced[:SHORT]}"


def find_place(plan: Plan, replaced: str | None) -> str:
    """Name the place of a run that takes that of another.

    Parameters
    ----------
    plan : Plan
    replaced : str or None
        SHA-256 of the manifest that is there, hexadecimal; None where the other run is not finished.

    Returns
    -------
    str
        Below the run's folder.
    """
    return f"{REPLACEMENTS}/{digest(plan)[:SHORT]}{_end(replaced)}"


def is_place(plan: Plan, place: str) -> bool:
    """Tell whether a run of a plan may lie somewhere, whatever it replaced.

    Parameters
    ----------
    plan : Plan
    place : str
        Below the run's folder; empty for the folder itself.

    Returns
    -------
    bool
    """
    return not place or re.fullmatch(f"{find_place(plan, None)}(-{_DIGITS})?", place) is not None


def read_standing(run: str) -> Standing | None:
    """Read which run a folder holds.

    Parameters
    ----------
    run : str
        URI of the folder.

    Returns
    -------
    Standing or None
        None where there is none.

    Raises
    ------
    InvalidRun
        A plan or a manifest is there, and is none.
    StorageError
        The store does not answer.
    """
    manifest = read_manifest(run)
    home = run if manifest is None else manifest.home(run)
    where = storage.join(home, PLAN)
    held = storage.read_if_exists(where)
    if held is not None:
        return Standing(home, from_json(held, where), manifest)
    if manifest is not None:
        raise InvalidRun(f"{where}: is missing, though the run is finished; choose another output or remove it")
    return None


def _read_other(run: str, version: str) -> Replaced | None:
    """What is known of a run that another version wrote; None where this version did, or nobody knows which."""
    manifest = storage.read_if_exists(storage.join(run, MANIFEST))
    try:
        written = json.loads(storage.read(storage.join(run, PLAN)) if manifest is None else manifest)
    except (ValueError, RecursionError):
        return None
    found = written.get("version") if isinstance(written, dict) else None
    if not isinstance(found, str) or found == version:
        return None
    return Replaced(None, None if manifest is None else hashlib.sha256(manifest).hexdigest(), f"version (was {shorten(found)}, is {version!r})")


def settle(run: str, plan: Plan, if_changed: IfChanged) -> Settled:
    """Decide where a run is made: in its folder, or beside the run that is there and is to be replaced.

    A finished run of the same plan is replaced too where work items of it, or files of them, were rejected: what kept them from being explained, such
    as too little memory, may have passed.

    Parameters
    ----------
    run : str
        URI of the folder.
    plan : Plan
    if_changed : {"refuse", "replace", "keep"}
        What becomes of another run that is there.

    Returns
    -------
    Settled

    Raises
    ------
    RunConflict
        The folder holds another run, which is neither replaced nor finished and kept; or that of another version, which is not replaced and cannot be
        read.
    InvalidRun
        A plan or a manifest is there, and is none.
    StorageError
        The store does not answer.
    """
    try:
        standing = read_standing(run)
    except InvalidRun:
        replaced = _read_other(run, plan.version)
        if replaced is None:
            raise
        if if_changed != "replace":
            raise other_run(run, replaced.differs) from None
        return Settled(find_place(plan, replaced.manifest), None, replaced, "")
    if standing is None:
        return Settled("", None, None, "")
    place = "" if standing.manifest is None else standing.manifest.place
    same = standing.plan == plan
    left_out = standing.manifest is not None and any(each.part is not None for each in standing.manifest.rejected)
    if same and not (left_out and if_changed == "replace"):
        return Settled(place, standing.manifest, None, "")
    differs = "" if same else differences(standing.plan, plan)
    if if_changed == "replace":
        replaced = Replaced(standing, None if standing.manifest is None else standing.manifest.sha256, differs)
        return Settled(find_place(plan, replaced.manifest), None, replaced, "")
    if if_changed == "keep" and standing.manifest is not None:
        return Settled(place, standing.manifest, None, differs)
    raise other_run(run, differs)


def take_place(run: str, manifest: Manifest, replaced: str | None, single_writer: bool) -> None:
    """Let a folder's manifest be that of another run, in one step.

    Parameters
    ----------
    run : str
        URI of the folder.
    manifest : Manifest
        Of the run that takes the place, all of whose objects are there.
    replaced : str or None
        SHA-256 of that which it replaces, hexadecimal; None where the run that is there is not finished.
    single_writer : bool
        Nobody else writes the folder, so that a store without conditions on writes will do.

    Raises
    ------
    RunConflict
        Another manifest is there by now.
    StorageError
        The store refuses or does not answer.
    """
    made = manifest.text.encode()

    def change(held: bytes | None) -> bytes | None:
        if held == made:
            return None
        found = None if held is None else hashlib.sha256(held).hexdigest()
        if found != replaced:
            raise RunConflict(f"{storage.join(run, MANIFEST)}: another run took this place meanwhile; run the same again")
        return made

    commit.update(storage.join(run, MANIFEST), change, single_writer)


def stands(run: str, manifest: Manifest) -> bool:
    """Tell whether a run is still the one that its folder holds: another may have taken its place since it was finished or read.

    Parameters
    ----------
    run : str
        URI of the folder.
    manifest : Manifest
        Of the run.

    Returns
    -------
    bool

    Raises
    ------
    StorageError
        The store does not answer.
    """
    held = storage.read_if_exists(storage.join(run, MANIFEST))
    return held is not None and hashlib.sha256(held).hexdigest() == manifest.sha256


def remove_replaced(run: str, manifest: Manifest) -> None:
    """Remove what a run's folder still holds of runs whose place it took; nothing where it took none, or another run took its own meanwhile.

    A run that is being made to replace this one stays, whoever makes it. So does what was begun to replace it and given up, until another run takes
    its place.

    Parameters
    ----------
    run : str
        URI of the folder.
    manifest : Manifest
        Of a run that was finished there.

    Raises
    ------
    StorageError
        The store refuses or does not answer; what is left is removed the next time.
    """
    if not manifest.place:
        return
    here, places = list_folder(run), [f"{REPLACEMENTS}/{name}" for name in list_folder(storage.join(run, REPLACEMENTS)).folders]
    if not stands(run, manifest):  # after the lists, which so have nothing of later runs
        return
    remove_after(run, manifest.sha256)
    for name in (PARTS, SUMMARY, FOLDER):
        if name in here.folders:
            commit.remove(storage.join(run, name))
    for place in places:
        if place != manifest.place and not place.endswith(_end(manifest.sha256)):
            commit.remove(storage.join(run, place))
    for name in (REJECTED, INPUTS, PROVENANCE, PLAN):
        if name in here.files:
            commit.remove(storage.join(run, name))
