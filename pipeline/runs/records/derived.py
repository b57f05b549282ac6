"""Objects derived from a finished run, such as its report, and the record that lists them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from ...errors import InvalidRun, RunConflict, StorageError
from ...json_records import as_text
from ...stores import commit, storage
from ..formats.numbers import FORMAT
from .folder import AFTER, RunFolder
from .json_file import JsonFile, refuse_other

FOLDER = "after"
TABLE = f"{FOLDER}/table.json"  # the table that a run is in, or is just getting into: `table` writes it, also before the record lists it


@dataclass(frozen=True, slots=True)
class DriftVerdict:
    """Verdict of a comparison with another run, in words."""

    run: str  # its folder
    reference: str  # folder of the reference run
    alarms: tuple[str, ...]  # crossed thresholds
    differs: tuple[str, ...]  # differences besides the rows


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of comparing a run with another, where that was asked for with the run."""

    verdict: DriftVerdict | None = None  # None where there is no earlier run, or it cannot be compared
    undone: str | None = None  # why it cannot be


class AfterEntry(TypedDict):
    """An object, as the record lists it."""

    uri: str  # below the run
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class After:
    """The record: it counts for the run whose manifest it names, and for no other."""

    format_version: int = field(default=FORMAT, kw_only=True, compare=False)
    manifest: str  # SHA-256
    objects: tuple[AfterEntry, ...]  # in the order of their names


def _check_below(found: After, data: bytes) -> None:  # noqa: ARG001 - the shape of a check
    for entry in found.objects:
        storage.check_below(entry["uri"])


FILE = JsonFile(After, "not a record of what was made of a run", "; remove it", _check_below)


def read_after(run: str, manifest: str) -> After:
    """Read what was made of a run.

    Parameters
    ----------
    manifest : str
        SHA-256 of its manifest, hexadecimal.

    Returns
    -------
    After
        Without objects where nothing was made, or where it was made of another run that stood there.
    """
    found = FILE.read(RunFolder(run).after)
    return found if found is not None and found.manifest == manifest else After(manifest, ())


def _fetch(run: str, entry: AfterEntry) -> bytes | None:
    """The bytes of an object; None where it is not there, or is another one than is listed."""
    uri = RunFolder(run).listed(entry)
    found = storage.stat_if_exists(uri)
    if found is None or found.size != entry["size"]:
        return None
    data = storage.read(uri)
    return data if hashlib.sha256(data).hexdigest() == entry["sha256"] else None


def read_derived(run: str, manifest: str, name: str) -> bytes | None:
    """Read an object that was made of a run.

    Parameters
    ----------
    manifest : str
        SHA-256 of its manifest, hexadecimal.
    name : str
        Of the object, as "after/drift.json".

    Returns
    -------
    bytes or None
        None where it was not made of this very run, or is not as the record lists it: then it has to be made again.
    """
    entry = next((entry for entry in read_after(run, manifest).objects if entry["uri"] == name), None)
    return None if entry is None else _fetch(run, entry)


def write_object(uri: str, data: bytes) -> None:
    """Write an object, whole or not at all. Whoever writes last wins: what the record lists is told by its digest."""
    try:
        commit.update(uri, lambda held: None if held == data else data, single_writer=True)
    except NotImplementedError as error:  # fsspec's word for a file system that is only read
        raise StorageError(f"{uri}: cannot write: nothing can be written there") from error


def _refuse_replaced(run: str, manifest: str) -> None:
    """What is made of a run takes long, and another may have its place by the end: objects of that one, and their record, stay."""
    held = storage.read_if_exists(RunFolder(run).manifest)
    if held is not None and hashlib.sha256(held).hexdigest() != manifest:
        raise RunConflict(f"{run}: the run was replaced meanwhile, and what was made of it is not kept; ask the same again")


def write_derived(run: str, manifest: str, made: Mapping[str, bytes]) -> None:
    """Write objects that were made of a run, each whole or not at all, then list them. What has the same names is replaced.

    Parameters
    ----------
    manifest : str
        SHA-256 of its manifest, hexadecimal.
    made : mapping of str to bytes
        From names, as "after/drift.json", to what the objects hold.

    Raises
    ------
    RunConflict
        Another run has its place by now; nothing is written.
    """
    uri = RunFolder(run).after
    _refuse_replaced(run, manifest)
    for name, data in made.items():
        write_object(storage.join(run, name), data)
    mine = {name: AfterEntry(uri=name, size=len(data), sha256=hashlib.sha256(data).hexdigest()) for name, data in made.items()}

    def change(held: bytes | None) -> bytes | None:
        before = After(manifest, ()) if held is None else FILE.parse(held, uri)
        if before.manifest != manifest:
            _refuse_replaced(run, manifest)
        there = {entry["uri"]: entry for entry in before.objects} if before.manifest == manifest else {}
        listed = there | mine
        record = as_text(After(manifest, tuple(listed[name] for name in sorted(listed)))).encode()
        return None if record == held else record

    commit.update(uri, change, single_writer=not commit.swaps(uri))


def check_after(run: str, manifest: str, replaced: bool = False) -> None:
    """Refuse objects that were made of a run and are not as the record lists them.

    Parameters
    ----------
    manifest : str
        SHA-256 of its manifest, hexadecimal.
    replaced : bool
        The run took the place of another, of which the record may still be until that is removed.
    """
    uri = RunFolder(run).after
    found = FILE.read(uri)
    if found is None or (replaced and found.manifest != manifest):
        return
    refuse_other(uri, "manifest", found.manifest, manifest)
    for entry in found.objects:
        if _fetch(run, entry) is None:
            raise InvalidRun(f"{RunFolder(run).listed(entry)}: is missing, or is not what {AFTER} lists; remove it")


def remove_after(run: str, manifest: str) -> None:
    """Remove what was made of another run that stood in the same folder, but for TABLE, which by now is of the table that this one is in.

    Parameters
    ----------
    manifest : str
        SHA-256 of its manifest, hexadecimal.
    """
    uri = RunFolder(run).after
    found = FILE.read(uri)
    if found is None or found.manifest == manifest:
        return
    for entry in found.objects:
        if entry["uri"] != TABLE:
            commit.remove(RunFolder(run).listed(entry))
    commit.remove(uri)
