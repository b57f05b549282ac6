"""A run in the place of another: made beside it, below the same folder, and there for readers from one moment to the next.

    manifest.json, plan.json, attributions/, summary/, …    the first run of a folder
    replacements/0123456789abcdef-fedcba9876543210/         a later one: plan.json, attributions/, summary/, …
    manifest.json                                           exchanged for its own, whose ``place`` is that folder, in one conditional write

Then what the first run wrote is removed. Whatever ends this in between, the manifest that is there is of a run that is there. A folder is called by
the run's plan and the manifest that it is to replace: once that is not there any more, nobody can take its place from that folder, and it may go.
"""

import hashlib

from ...errors import RunConflict
from ...stores import commit, storage
from ...stores.storage import list_folder
from ...stores.table_arrays import FOLDER
from ..records.derived import remove_after
from ..records.folder import INPUTS, MANIFEST, PARTS, PLAN, REJECTED, REPLACEMENTS, SUMMARY, _end
from ..records.manifest import Manifest, is_current
from ..records.provenance import PROVENANCE


def swap_manifest(run: str, manifest: Manifest, replaced: str | None, single_writer: bool) -> None:
    """Let a folder's manifest be that of another run, in one step.

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
            raise RunConflict(f"{storage.join(run, MANIFEST)}: another run took this place meanwhile; run the same again")
        return made

    commit.update(storage.join(run, MANIFEST), change, single_writer)


def remove_replaced(run: str, manifest: Manifest) -> None:
    """Remove what a run's folder still holds of runs whose place it took; nothing where it took none, or another run took its own meanwhile.

    A run that is being made to replace this one stays, whoever makes it. So does what was begun to replace it and given up, until another run takes
    its place.

    Parameters
    ----------
    manifest : Manifest
        Of a run that was finished there.
    """
    if not manifest.place:
        return
    here, places = list_folder(run), [f"{REPLACEMENTS}/{name}" for name in list_folder(storage.join(run, REPLACEMENTS)).folders]
    if not is_current(run, manifest):  # after the lists, which so have nothing of later runs
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
