"""Atomic replacement of a run: made beside the old one, then switched by a single manifest write.

    manifest.json, plan.json, attributions/, summary/, …    the first run of a folder
    replacements/0123456789abcdef-fedcba9876543210/         a later one: plan.json, attributions/, summary/, …
    manifest.json                                           exchanged for its own, whose ``place`` is that folder, in one conditional write

Then the first run's objects are removed. At any interruption the manifest describes a complete run. A place is named by the run's plan and the
manifest to be replaced: once that manifest is gone, nobody can switch to that place, and it may be removed.
"""

import hashlib

from ...errors import RunConflict
from ...stores import commit, storage
from ...stores.storage import list_folder
from ...stores.table_arrays import FOLDER
from ..records.current_run import is_current
from ..records.derived import remove_after
from ..records.folder import ATTEMPT, INPUTS, PARTS, PLAN, PROVENANCE, REJECTED, REPLACEMENTS, SUMMARY, RunFolder, _end
from ..records.manifest import Manifest


def swap_manifest(run: str, manifest: Manifest, replaced: str | None, single_writer: bool) -> None:
    """Replace the manifest of a folder by another run's, in one conditional write.

    Parameters
    ----------
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
    """
    made = manifest.text.encode()

    def change(held: bytes | None) -> bytes | None:
        if held == made:
            return None
        found = None if held is None else hashlib.sha256(held).hexdigest()
        if found != replaced:
            raise RunConflict(f"{RunFolder(run).manifest}: another run took this place meanwhile; run the same again")
        return made

    commit.update(RunFolder(run).manifest, change, single_writer)


def remove_replaced(run: str, manifest: Manifest) -> None:
    """Remove what is left of runs that this one replaced; nothing if it replaced none, or was replaced meanwhile.

    A run that is in progress to replace this one stays. So does an abandoned replacement, until another run replaces this one.

    Parameters
    ----------
    manifest : Manifest
        Of a run that was finished there.
    """
    if not manifest.place:
        return
    here, places = list_folder(run), [f"{REPLACEMENTS}/{name}" for name in list_folder(RunFolder(run).replacements).folders]
    if not is_current(run, manifest):  # after the lists, which so have nothing of later runs
        return
    remove_after(run, manifest.sha256)
    for name in (PARTS, SUMMARY, FOLDER):
        if name in here.folders:
            commit.remove(storage.join(run, name))
    for place in places:
        if place != manifest.place and not place.endswith(_end(manifest.sha256)):
            commit.remove(storage.join(run, place))
    for name in (ATTEMPT, REJECTED, INPUTS, PROVENANCE, PLAN):
        if name in here.files:
            commit.remove(storage.join(run, name))
