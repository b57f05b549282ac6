"""Replacement of a run by another one, in its folder: readers by the manifest see one or the other whole, readers of the folder at worst both.

The new run is made in a place that no glob meets, see `folder`. Then, as quickly as the store can:

1. Its parts get names in ``attributions/`` beside the old ones: on a disk by links, elsewhere by copies that the store makes. Parts of the old run
   that may be the new one's stay as they are.
2. The manifest is exchanged for its own, in one conditional write. From here on the run is the new one.
3. The old parts go, and ``summary/``, ``plan.json`` and other documents become copies of those in its place, for whoever knows them by their names.

At any interruption the manifest describes a complete run, and the same command goes on from there. A tag says which plan a place is of, and which
manifest it is to replace: once that one is gone, nobody can take its place by it, and whatever carries the tag may be removed.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from ...errors import NotThere, RunConflict
from ...stores import commit, storage
from ...stores.storage import list_folder
from ...stores.table_arrays import FOLDER
from ..records.current_run import is_current, list_copies, list_places
from ..records.derived import remove_after
from ..records.folder import ATTEMPT, DOCUMENTS, PLACES, REPLACEMENTS, SUMMARY, RunFolder, find_strays, is_pending, name_part
from ..records.manifest import Manifest, PartEntry
from ..records.part import check_there, list_sizes

AT_ONCE = 32  # requests to a store, each of which is little more than a wait


def do_all(work: Callable[[Any], object], objects: Iterable[Any]) -> None:
    """Do some work of every object, many at a time."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for _ in threads.map(work, objects):
            pass


def _refuse_other(run: str, held: bytes | None, replaced: str | None) -> None:
    found = None if held is None else hashlib.sha256(held).hexdigest()
    if found != replaced:
        raise RunConflict(f"{RunFolder(run).manifest}: another run took this place meanwhile; run the same again")


def swap_manifest(run: str, manifest: Manifest, replaced: str | None, single_writer: bool) -> None:
    """Replace the manifest of a folder by another run's, in one conditional write; a RunConflict where another one is there by now."""
    made = manifest.text.encode()

    def change(held: bytes | None) -> bytes | None:
        if held == made:
            return None
        _refuse_other(run, held, replaced)
        return made

    commit.update(RunFolder(run).manifest, change, single_writer)


def _put_parts(run: str, home: str, made: Sequence[PartEntry]) -> None:
    """Give parts the names that the manifest has for them; do nothing for those that an earlier attempt has put there."""
    there = list_sizes(run, made)

    def put(entry: PartEntry) -> None:
        target = RunFolder(run).listed(entry)
        if entry["uri"] in there:  # by a store that copies in place, and was interrupted
            commit.remove(target)
        with suppress(NotThere):  # another attempt at the same run has put it there, and tidied up
            commit.copy(RunFolder(home).part(entry["part"]), target)

    do_all(put, [entry for entry in made if there.get(entry["uri"]) != entry["size"]])


def take_place(run: str, manifest: Manifest, replaced: str | None, single_writer: bool) -> None:
    """Let a run that was made in its place become the run of the folder: its parts get their names there, then it gets its manifest.

    Parameters
    ----------
    manifest : Manifest
        Of that run, all of whose objects are there.
    replaced : str or None
        SHA-256 of the manifest that it replaces, hexadecimal; None where the run that is there is not finished.
    single_writer : bool
        Nobody else writes the folder, so that a store without conditions on writes will do.

    Raises
    ------
    RunConflict
        Another manifest is there by now; what was put beside its parts is removed.
    InvalidRun
        A part is not there any more.
    """
    made = [entry for entry in manifest.parts if entry["uri"] == name_part(manifest.place, entry["part"])]
    if not is_current(run, manifest):
        _refuse_other(run, storage.read_if_exists(RunFolder(run).manifest), replaced)
    try:
        _put_parts(run, manifest.home(run), made)
        check_there(run, manifest.parts)
        swap_manifest(run, manifest, replaced, single_writer)
    except RunConflict:
        held = storage.read_if_exists(RunFolder(run).manifest) or b""
        do_all(commit.remove, [RunFolder(run).listed(entry) for entry in made if entry["uri"].encode() not in held])
        raise


def _list_strays(run: str, manifest: Manifest) -> list[str]:
    """List parts of other runs in a run's folder of parts."""
    with suppress(NotThere):
        folder = RunFolder(run).parts
        return [storage.join(folder, name) for name in find_strays(list_folder(folder).files, manifest.parts, manifest.sha256)]
    return []


def _write_copies(run: str, manifest: Manifest) -> None:
    """Let documents and summaries of a folder be those of the run that took the place, whoever changed or removed them."""
    copies, there = list_copies(run, manifest), [*DOCUMENTS]
    with suppress(NotThere):
        there += [f"{SUMMARY}/{name}" for name in list_folder(storage.join(run, SUMMARY)).files]
    made = {name: storage.read_if_exists(uri) for name, uri in copies.items()}
    others = [name for name in there if name not in copies or (name in DOCUMENTS and made[name] is None)]
    if others and is_current(run, manifest):
        do_all(commit.remove, [storage.join(run, name) for name in others])
    for name, data in made.items():
        if data is not None:
            commit.update(storage.join(run, name), partial(_choose, run, manifest, data), single_writer=True)


def _choose(run: str, manifest: Manifest, made: bytes, held: bytes | None) -> bytes | None:
    """A copy of a run that was replaced meanwhile is not written."""
    return made if held != made and is_current(run, manifest) else None


def finish_replacement(run: str, manifest: Manifest) -> None:
    """Remove what is left of other runs, and put copies of this one's documents in the place of theirs, if it replaced any; nothing if it was
    replaced meanwhile.

    A run that is in progress to replace this one stays. So does an abandoned replacement, until another run replaces this one. Only the manifest that
    is there tells whose parts nobody will need: one that replaces an unfinished run puts its own beside those, and either may get the place.

    Parameters
    ----------
    manifest : Manifest
        Of a run that was finished there.
    """
    strays = _list_strays(run, manifest)
    if not (manifest.place or strays):
        return
    here, places = list_folder(run), list_places(run)
    if not is_current(run, manifest):  # after the lists, which so have nothing of later runs
        return
    do_all(commit.remove, strays)
    if not manifest.place:
        return
    remove_after(run, manifest.sha256)
    _write_copies(run, manifest)
    for place in places:
        if place != manifest.place and not is_pending(place, manifest.sha256):
            commit.remove(storage.join(run, place))
    in_places = manifest.place.startswith(PLACES)  # else an earlier version made it
    for name in (FOLDER, ATTEMPT, *([REPLACEMENTS] if in_places else [])):
        if name in (*here.folders, *here.files):
            commit.remove(storage.join(run, name))
    if in_places:
        commit.remove(RunFolder(manifest.home(run)).parts)
