"""A finished run made once more from its objects: in a place below its folder, from which it takes the folder's place, or where it is kept.

Whoever does so may be ended at any moment, and does the same again: what was copied is found there.
"""

from collections.abc import Callable
from dataclasses import replace

from ...stores import commit, storage
from ..formats.numbers import FORMAT
from ..records.folder import DOCUMENTS, PROVENANCE, SUMMARY, RunFolder, name_file, name_summary
from ..records.manifest import Manifest, SummaryEntry
from ..records.provenance import Provenance, write_provenance
from .replacement import take_place


def copy_object(source: str, target: str) -> None:
    """Copy an object, or find the copy that an earlier attempt made.

    Parameters
    ----------
    source, target : str
        URIs on one store.
    """
    if not commit.copy(source, target) and storage.stat(target).size != storage.stat(source).size:  # by a store that copies in place
        commit.remove(target)
        commit.copy(source, target)


def copy_documents(manifest: Manifest, find: Callable[[str], str], home: RunFolder) -> None:
    """Copy the documents and summaries of a run; how it was made is told of another manifest then, see `seat`.

    Parameters
    ----------
    manifest : Manifest
        Of the run.
    find : callable
        From a name, as "plan.json" or "summary/importance.json", to the URI that the run has it at.
    home : RunFolder
        Where they go.
    """
    there = [name for name in DOCUMENTS if name != PROVENANCE and storage.exists(find(name))]
    for name in (*there, *(f"{SUMMARY}/{name_file(entry['uri'])}" for entry in manifest.summaries)):
        copy_object(find(name), home.named(name))


def list_summaries(manifest: Manifest, place: str) -> tuple[SummaryEntry, ...]:
    """List the summaries of a run as its manifest does once they lie in a place.

    Parameters
    ----------
    place : str
        Below the run's folder.

    Returns
    -------
    tuple of SummaryEntry
    """
    return tuple({**entry, "uri": name_summary(place, name_file(entry["uri"]))} for entry in manifest.summaries)


def seat(run: str, made: Manifest, replaced: str, how: Provenance | None) -> None:
    """Let a run whose objects lie in its place become the run of the folder.

    Parameters
    ----------
    made : Manifest
        Of that run.
    replaced : str
        SHA-256 of the manifest that it replaces, hexadecimal.
    how : Provenance or None
        How the run was made, of whichever manifest.

    Raises
    ------
    RunConflict
        Another run took the place meanwhile.
    """
    if how is not None:
        write_provenance(made.home(run), replace(how, format_version=FORMAT, manifest=made.sha256))
    take_place(run, made, replaced, single_writer=not commit.swaps(RunFolder(run).manifest))
