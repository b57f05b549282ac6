"""Rejected work: limits, counts, and the record of data that cannot be read."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...dataset.files.listing import Rejected, WorkItem
from ...errors import InvalidData, InvalidRun
from ...json_records import iterate_text
from ...stores import storage
from .folder import RunFolder
from .json_file import JsonFile, create_same

FILE = JsonFile(tuple[Rejected, ...], "not a list of rejected work")


@dataclass(frozen=True, slots=True)
class Limit:
    """How many rejections a run bears."""

    most: int | None  # None for any number, as long as something is left
    n_pieces: int  # work items, or files of those that have several, and files whose footers cannot be read

    def check(self, rejected: Sequence[Rejected]) -> None:
        """Refuse more rejections than the run bears.

        Parameters
        ----------
        rejected : sequence of Rejected
            All so far.

        Raises
        ------
        InvalidData
            There are more, or nothing is left. It says why the first was rejected.
        """
        most = max(0, self.n_pieces - 1 if self.most is None else min(self.most, self.n_pieces - 1))
        if len(rejected) > most:
            raise InvalidData(f"{rejected[0].reason} ({len(rejected)} of {self.n_pieces} pieces of the data rejected, at most {most} may be)")


def count_rejected(rejected: Sequence[Rejected]) -> Counter[int]:
    """Count the rows of work items that are rejected."""
    n_rows = Counter[int]()
    for entry in rejected:
        if entry.part is not None:
            n_rows[entry.part] += entry.n_rows or 0
    return n_rows


def find_given_up(items: Sequence[WorkItem], rejected: Sequence[Rejected]) -> set[int]:
    """Find the work items of which all rows are rejected: there is no part of them.

    Parameters
    ----------
    items : sequence of WorkItem
        Of the plan, all of them.

    Returns
    -------
    set of int
        Numbers of parts.
    """
    return {part for part, n in count_rejected(rejected).items() if not 0 <= part < len(items) or n == items[part].n_rows}


def write_rejected(run: str, rejected: Sequence[Rejected]) -> None:
    """Write what is rejected, before the manifest. Nothing is written where nothing is rejected, and nothing may be there.

    Parameters
    ----------
    rejected : sequence of Rejected
        In the order of the plan.
    """
    uri = RunFolder(run).rejected
    held = create_same(uri, iterate_text(tuple(rejected))) if rejected else storage.read_if_exists(uri)
    if held is not None and FILE.parse(held, uri) != tuple(rejected):
        raise InvalidRun(
            f"{uri}: exists already and differs from what this attempt rejected, as another one of the same run did; remove it when no other is at "
            "work, and run the same again"
        )


def read_rejected(run: str) -> tuple[Rejected, ...]:
    """Read what an earlier run of the same plan decided to reject.

    Returns
    -------
    tuple of Rejected
        Empty where nothing was decided.
    """
    return FILE.read(RunFolder(run).rejected) or ()
