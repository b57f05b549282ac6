"""The run that another one replaced, where it is kept: copies of all its objects, on a disk links, and last its manifest."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from ...display.text import count
from ...errors import InvalidRun, NotThere
from ...json_records import iterate_text
from ...stores import commit, storage
from ...stores.storage import list_folder
from ..formats.numbers import FORMAT
from ..records.folder import KEPT, MANIFEST, OWN, PROVENANCE, SHORT, RunFolder, name_file, replaced_by
from ..records.json_file import create_same
from ..records.manifest import Manifest, parse_manifest
from .replacement import do_all
from .same_run import copy_documents, copy_object


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run that was replaced, and is kept in the folder of the one that replaced it."""

    uri: str  # where its objects are
    n_bytes: int
    n_rows: int

    def __str__(self) -> str:
        return f"keeps the run that it replaced, {count(self.n_rows, 'row')} and {count(self.n_bytes, 'byte')}; leafledger rollback puts it back"


def list_kept(run: str) -> tuple[str, ...]:
    """List what is kept below a run's folder, by the first digits of manifests."""
    with suppress(NotThere):
        return list_folder(storage.join(run, KEPT)).folders
    return ()


def keep_run(run: str, manifest: Manifest) -> None:
    """Keep a run that is about to be replaced.

    Parameters
    ----------
    manifest : Manifest
        Of the run.
    """
    home, kept = RunFolder(manifest.home(run)), RunFolder(run).kept(manifest.sha256)
    do_all(lambda entry: copy_object(RunFolder(run).listed(entry), kept.part(entry["part"])), manifest.parts)
    copy_documents(manifest, home.named, kept)
    if storage.exists(home.provenance):
        copy_object(home.provenance, kept.named(PROVENANCE))
    create_same(kept.named(MANIFEST), iterate_text(replace(manifest, format_version=FORMAT, digest="")))  # as its plan may lie elsewhere by then


def read_kept(run: str, manifest: Manifest) -> Manifest | None:
    """Read the manifest of the run that one replaced.

    Parameters
    ----------
    manifest : Manifest
        Of the run that is there.

    Returns
    -------
    Manifest or None
        None where nothing is kept, or not all of it.
    """
    before = replaced_by(manifest.place)
    data = storage.read_if_exists(RunFolder(run).kept(before).named(MANIFEST)) if before else None
    return None if data is None else parse_manifest(run, data)


def _list_sizes(uri: str) -> Iterator[int]:
    here = list_folder(uri)
    yield from here.files.values()
    for name in here.folders:
        yield from _list_sizes(storage.join(uri, name))


def find_kept(run: str, manifest: Manifest) -> KeptRun | None:
    """Find what is kept of the run that one replaced, by sizes.

    Parameters
    ----------
    manifest : Manifest
        Of the run that is there.

    Returns
    -------
    KeptRun or None
        None where nothing is kept.

    Raises
    ------
    InvalidRun
        A part of it is not there, or of another size.
    """
    held = read_kept(run, manifest)
    if held is None:
        return None
    kept = RunFolder(run).kept(replaced_by(manifest.place))
    sizes = list_folder(kept.parts).files if held.parts else {}
    for entry in held.parts:
        uri = kept.part(entry["part"])
        if sizes.get(name_file(uri) + OWN) != entry["size"]:
            raise InvalidRun(f"{uri}: is missing, or has other bytes than its manifest says; remove {kept.uri}")
    return KeptRun(kept.uri, sum(_list_sizes(kept.uri)), held.n_rows)


def remove_kept(kept: str) -> None:
    """Remove a run that is kept, its manifest first, so that what is left of it where that is interrupted is not taken for one.

    Parameters
    ----------
    kept : str
        URI of where it is.
    """
    commit.remove(RunFolder(kept).named(MANIFEST))
    commit.remove(kept)


def remove_older(run: str, manifest: Manifest) -> None:
    """Remove what is kept of runs that the one that is there did not replace itself.

    Parameters
    ----------
    manifest : Manifest
        Of the run that is there; what is kept of it, while another one is about to replace it, stays.
    """
    for name in list_kept(run):
        if name not in (replaced_by(manifest.place), manifest.sha256[:SHORT]):
            remove_kept(RunFolder(run).kept(name).uri)
