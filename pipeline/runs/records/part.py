"""The record of a published part, and checks that parts still exist."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ...cluster.resource_usage import PartTimings
from ...cluster.worker_identity import Worker
from ...dataset.files.listing import Rejected, WorkItem
from ...errors import InvalidRun, NotThere
from ...stores.storage import list_folder
from ...stores.traffic import Moved
from .folder import RunFolder

NO_COSTS: dict[str, Any] = {"moved": Moved(), "spent": PartTimings(), "states": {}}


@dataclass(frozen=True, slots=True)
class Part:
    """A published part: what its footer says, and the object's own size and digest. Its number says where it is, see `RunFolder.part`."""

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


def without_costs(part: Part) -> Part:
    """Leave out what a part took, but for the seconds: of a hundred thousand parts it is more than all else."""
    return replace(part, **NO_COSTS)


def check_there(run: str, parts: Sequence[Part]) -> None:
    """Refuse parts that are not where they were made any more."""
    sizes = dict[str, int]()
    with suppress(NotThere):
        sizes = list_folder(RunFolder(run).parts).files
    for part in parts:
        uri = RunFolder(run).part(part.part)
        found = sizes.get(uri.rpartition("/")[2])
        if found is None:
            raise InvalidRun(f"{uri}: was removed while the run was made; run the same again")
        if found != part.size:
            raise InvalidRun(f"{uri}: has {found:,} bytes, expected the {part.size:,} that were written")


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
