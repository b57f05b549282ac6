"""Objects that name the latest run: where they may be, and their refresh where the run's manifest is another by now."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from ..errors import InvalidRun, NotThere
from ..json_records import as_text
from ..runs.records.folder import replaced_by
from ..runs.records.latest import FILE
from ..runs.records.manifest import Manifest
from ..stores import commit, storage
from ..stores.uris import normalise

LARGEST = 1 << 14  # largest size of an object that may be a pointer to the latest run


def find_objects(folder: str, names: Iterable[str]) -> set[str]:
    """Find objects that may point to the latest run, in the folder and on the way to runs."""
    parts = [name.split("/") for name in names]
    found = set[str]()
    for below in sorted({"/".join(each[:n]) for each in parts for n in range(len(each))} | {""}):
        uri = storage.join(folder, below) if below else folder
        with suppress(NotThere):  # removed meanwhile
            found |= {storage.join(uri, name) for name, size in storage.list_folder(uri).files.items() if 0 < size <= LARGEST}
    return found


def refresh_pointer(uri: str, run: str, manifest: Manifest) -> bool:
    """Let an object that names a run by the manifest that was replaced last name it by the one that is there.

    Parameters
    ----------
    uri : str
        Of the object; one that is something else, or names another run, stays as it is.
    run : str
        URI of the run's folder.

    Returns
    -------
    bool
        Whether it was changed.
    """

    def change(held: bytes | None) -> bytes | None:
        before = replaced_by(manifest.place)
        with suppress(InvalidRun):
            named = None if held is None else FILE.parse(held, uri)
            if named is not None and before and normalise(named.run) == run and named.manifest.startswith(before):
                return as_text(replace(named, manifest=manifest.sha256, n_rows=manifest.n_rows, share=manifest.share)).encode()
        return None

    if change(storage.read_if_exists(uri)) is None:
        return False
    commit.update(uri, change, single_writer=not commit.swaps(uri))
    return True


def find_pointers(place: str, names: Iterable[str]) -> set[str]:
    """Find objects that may point to the latest run, as `find_objects`, or in the folder above where a place is a run itself.

    Parameters
    ----------
    place : str
        URI of the folder.
    names : iterable of str
        Of the runs below it; "" for itself.

    Returns
    -------
    set of str
    """
    names = [*names]
    if names != [""]:
        return find_objects(place, names)
    above, _, name = place.rpartition("/")
    return find_objects(above, [name])
