"""The record of a published part, and what is there of those that a run lists."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ...cluster.resource_usage import PartTimings
from ...cluster.worker_identity import Worker
from ...dataset.files.listing import Rejected, WorkItem
from ...errors import InvalidRun, NotThere
from ...stores import storage
from ...stores.storage import list_folder
from ...stores.traffic import Moved
from .folder import RunFolder
from .manifest import PartEntry

NO_COSTS: dict[str, Any] = {"moved": Moved(), "spent": PartTimings(), "states": {}}


@dataclass(frozen=True, slots=True)
class Part:
    """A published part: what its footer says, and the object's own size and digest. Its number says where it was made, see `RunFolder.part`."""

    part: int
    n_rows: int
    size: int
    sha256: str
    residual: float | None  # largest of any row, as a fraction of the bound; None where the method is not additive
    seconds: float  # 0 where an earlier run made it
    states: dict[str, str]  # reduction -> its state, as text; none of a part whose states were merged with others'
    worker: Worker  # that made it, or found it made
    moved: Moved = field(default=Moved(), compare=False)  # by that process, since it last said so
    spent: PartTimings = field(default=PartTimings(), compare=False)  # of the seconds
    rejected: tuple[Rejected, ...] = ()  # files of the item that could not be read, which are left out
    stays: str = ""  # where it is, below the run that is replaced, of which it is taken over as it lies there


def without_costs(part: Part) -> Part:
    """Leave out what a part took, but for the seconds: of a hundred thousand parts it is more than all else."""
    return replace(part, **NO_COSTS)


def list_sizes(run: str, entries: Iterable[Mapping[str, object]]) -> dict[str, int]:
    """List what lies in the folders of parts or other objects.

    Parameters
    ----------
    run : str
        URI of the run's folder.
    entries : iterable of mapping
        Of its manifest.

    Returns
    -------
    dict of str to int
        Bytes, by names below the run.
    """
    sizes = dict[str, int]()
    for folder in {str(entry["uri"]).rpartition("/")[0] for entry in entries}:
        with suppress(NotThere):
            sizes |= {f"{folder}/{name}": size for name, size in list_folder(storage.join(run, folder)).files.items()}
    return sizes


def check_there(run: str, parts: Iterable[PartEntry]) -> None:
    """Refuse to publish parts that are not where they were made any more."""
    parts = list(parts)
    sizes = list_sizes(run, parts)
    for part in parts:
        uri, found = RunFolder(run).listed(part), sizes.get(part["uri"])
        if found is None:
            raise InvalidRun(f"{uri}: was removed while the run was made; run the same again")
        if found != part["size"]:
            raise InvalidRun(f"{uri}: has {found:,} bytes, expected the {part['size']:,} that were written")


def reject(item: WorkItem, reasons: Mapping[str, str]) -> tuple[Rejected, ...]:
    """Say of files of an item that they are left out.

    Parameters
    ----------
    reasons : mapping of str to str
        By URIs of files.

    Returns
    -------
    tuple of Rejected
        In the order of the files.
    """
    return tuple(Rejected(item.part, each.uri, each.row_groups, each.n_rows, reasons[each.uri]) for each in item.pieces if each.uri in reasons)
