"""A run in the place of another: made beside it, below the same folder, and there for readers from one moment to the next.

    manifest.json, plan.json, attributions/, summary/, …    the first run of a folder
    replacements/0123456789abcdef-fedcba9876543210/         a later one: plan.json, attributions/, summary/, …
    manifest.json                                           exchanged for its own, whose ``place`` is that folder, in one conditional write

Then what the first run wrote is removed. Whatever ends this in between, the manifest that is there is of a run that is there. A folder is called by
the run's plan and the manifest that it is to replace: once that is not there any more, nobody can take its place from that folder, and it may go.
"""

import hashlib
import re
from dataclasses import dataclass

from ..errors import InvalidRun, RunConflict
from ..stores import commit, storage
from ..stores.arrays import FOLDER
from ..stores.listing import list_folder
from .after import remove_after
from .digests import INPUTS
from .options import IfChanged
from .part import PARTS
from .plan import PLAN, Plan, differences, digest
from .planned import from_json, refuse_other
from .provenance import PROVENANCE
from .publish import MANIFEST, SUMMARY, Manifest, read_manifest
from .rejected import REJECTED

REPLACEMENTS = "replacements"
SHORT = 16  # digits of a plan's digest that name a folder
PLACE = re.compile(rf"[0-9a-f]{{{SHORT}}}")  # such a name


@dataclass(frozen=True, slots=True)
class Standing:
    """The run that a folder holds, finished or not."""

    home: str  # where its plan and parts lie: the folder, or one below it
    plan: Plan
    manifest: Manifest | None  # None where it is not finished


@dataclass(frozen=True, slots=True)
class Settled:
    """Where a planned run is made, and what is there already."""

    place: str  # below the run's folder; empty for the folder itself
    finished: Manifest | None  # there is nothing to do
    replaced: Standing | None  # whose place it takes
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
    return not place or re.fullmatch(f"{find_place(plan, None)}(-[0-9a-f]{{{SHORT}}})?", place) is not None


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


def settle(run: str, plan: Plan, if_changed: IfChanged) -> Settled:
    """Decide where a run is made: in its folder, or beside the run that is there and is to be replaced.

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
        The folder holds another run, which is neither replaced nor finished and kept.
    InvalidRun
        A plan or a manifest is there, and is none.
    StorageError
        The store does not answer.
    """
    standing = read_standing(run)
    if standing is None:
        return Settled("", None, None, "")
    place = "" if standing.manifest is None else standing.manifest.place
    if standing.plan == plan:
        return Settled(place, standing.manifest, None, "")
    if if_changed == "replace":
        return Settled(find_place(plan, None if standing.manifest is None else standing.manifest.sha256), None, standing, "")
    if if_changed == "keep" and standing.manifest is not None:
        return Settled(place, standing.manifest, None, differences(standing.plan, plan))
    refuse_other(run, standing.plan, plan)
    raise AssertionError  # they differ


def take_place(run: str, manifest: Manifest, replaced: Manifest | None, single_writer: bool) -> None:
    """Let a folder's manifest be that of another run, in one step.

    Parameters
    ----------
    run : str
        URI of the folder.
    manifest : Manifest
        Of the run that takes the place, all of whose objects are there.
    replaced : Manifest or None
        That it replaces; None where the run that is there is not finished.
    single_writer : bool
        Nobody else writes the folder, so that a store that ignores conditions on writes will do.

    Raises
    ------
    RunConflict
        Another manifest is there by now.
    StorageError
        The store refuses or does not answer.
    """
    made, expected = manifest.text.encode(), None if replaced is None else replaced.sha256

    def change(held: bytes | None) -> bytes | None:
        if held == made:
            return None
        found = None if held is None else hashlib.sha256(held).hexdigest()
        if found != expected:
            raise RunConflict(f"{storage.join(run, MANIFEST)}: another run took this place meanwhile; run the same again")
        return made

    commit.update(storage.join(run, MANIFEST), change, single_writer)


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
    held = storage.read_if_exists(storage.join(run, MANIFEST))  # after the lists, which so have nothing of later runs
    if held is None or hashlib.sha256(held).hexdigest() != manifest.sha256:
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
