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
    changed = False

    def change(held: bytes | None) -> bytes | None:
        nonlocal changed
        changed = False
        with suppress(InvalidRun):
            named = None if held is None else FILE.parse(held, uri)
            before = replaced_by(manifest.place)
            if named is not None and before and normalise(named.run) == run and named.manifest.startswith(before):
                changed = True
                return as_text(replace(named, manifest=manifest.sha256, n_rows=manifest.n_rows, share=manifest.share)).encode()
        return None

    commit.update(uri, change, single_writer=not commit.swaps(uri))
    return changed
