"""Rows of all finished runs below a folder, each told with its run, and which runs could not be searched."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

from ..display.text import count, printable
from ..errors import InvalidRun, LeafledgerError, NoSuchRow, NotThere, UsageError
from ..history.listed_runs import ListedRun, list_runs
from ..runs.lookup.row_lookup import FoundRows
from ..stores.uris import normalise
from .finished_run import MOST, FinishedRun, read_run
from .row_data import STEPS
from .row_view import Shown

NAMED = 5  # runs that could not be searched, in a message


@dataclass(frozen=True, slots=True)
class NotSearched:
    """A run that was not searched.

    Attributes
    ----------
    name : str
        What it is called below the folder.
    why : str
        In words.
    """

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class FoundInRun:
    """Rows of one run.

    Attributes
    ----------
    name : str
        What the run is called below the folder.
    run : FinishedRun
    rows : FoundRows
        As they are stored.
    shown : Shown
        The same as a person reads them.
    """

    name: str
    run: FinishedRun
    rows: FoundRows
    shown: Shown


@dataclass(frozen=True, slots=True)
class FoundInRuns:
    """Rows of the runs below a folder; prints as text.

    Attributes
    ----------
    folder : str
    n_searched : int
        Finished runs that were searched.
    found : tuple of FoundInRun
        Those that have such rows, by date.
    not_searched : tuple of NotSearched
        Unfinished and unreadable runs, and those without such a column.
    """

    folder: str
    n_searched: int
    found: tuple[FoundInRun, ...]
    not_searched: tuple[NotSearched, ...]

    @property
    def n_found(self) -> int:
        """Rows that match, of all runs."""
        return sum(each.shown.n_found for each in self.found)

    def __repr__(self) -> str:
        return self.text()

    @property
    def summary(self) -> str:
        """A line of totals, as ``3 rows in 2 of 7 runs``."""
        return f"{count(self.n_found, 'row')} in {len(self.found)} of {count(self.n_searched, 'run')}"

    def text(self, top: int = STEPS) -> str:
        """Write the rows for a terminal, those of every run below its name, and the totals.

        Parameters
        ----------
        top : int
            As of `Shown.text`.

        Returns
        -------
        str
        """
        pieces = [f"{printable(each.name)}\n{each.shown.text(top)}" for each in self.found]
        return "\n\n".join([*pieces, self.summary])

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-compatible objects, see `Shown.to_dict`.

        Returns
        -------
        dict
        """
        found = [{"name": each.name} | each.shown.to_dict() for each in self.found]
        return {
            "folder": self.folder,
            "n_searched": self.n_searched,
            "n_found": self.n_found,
            "runs": found,
            "not_searched": [asdict(each) for each in self.not_searched],
        }


def say_not_searched(runs: Sequence[NotSearched]) -> str:
    """Say which runs were not searched, and why."""
    named = ", ".join(f"{each.name} ({each.why})" for each in runs[:NAMED])
    more = f" and {len(runs) - NAMED} more" if len(runs) > NAMED else ""
    return f"{count(len(runs), 'run')} not searched: {named}{more}"


def why_unsearched(run: ListedRun) -> str | None:
    """Say why a run that was listed cannot be searched; None for a finished one."""
    return None if run.state == "finished" else run.state if run.why is None else f"{run.state}: {run.why}"


def is_folder_of_runs(place: str | PathLike) -> bool:
    """Tell whether there is no run in a folder, but runs below it."""
    try:
        runs = list_runs(place)
    except (NotThere, UsageError):
        return False
    return bool(runs) and runs[0].name != ""


def _search(run: ListedRun, where: Mapping[str, Any], most: int, output: str | None) -> FoundInRun | NotSearched | UsageError | None:
    """Search a run: its rows, None where it has none, or why it cannot be searched; as an error, where another question might be answered."""
    why = why_unsearched(run)
    if why is not None:
        return NotSearched(run.name, why)
    try:
        finished = read_run(run.run)
        rows = finished.find(where, most)
        return FoundInRun(run.name, finished, rows, finished.describe(rows, output))
    except NoSuchRow:
        return None
    except UsageError as error:
        return error
    except (InvalidRun, NotThere) as error:
        return NotSearched(run.name, f"damaged: {error}")


def find_in_runs(folder: str | PathLike, where: Mapping[str, Any], most: int = MOST, output: str | None = None) -> FoundInRuns:
    """Find rows in all finished runs below a folder, such as those of one customer in all nights.

    Parameters
    ----------
    folder : str or path
        A path or an fsspec URI, as of `list_runs`.
    where : mapping of str to Any
        From columns to the values that rows have there, or their texts; None where it is missing.
    most : int
        Rows of a run that are read, at least 1; all are counted.
    output : str, optional
        The only output to show, as of `FinishedRun.show`.

    Returns
    -------
    FoundInRuns
        Also says which runs were not searched: those that are unfinished or unreadable, have no rows, or no such column.

    Raises
    ------
    NoSuchRow
        No run that was searched has such a row; the message says how many were, and which were not.
    UsageError
        None of the finished runs can answer: there is no such column or output, or nothing is asked for.
    StorageError
        The store does not answer.
    """
    place, found, left, errors, n_searched = normalise(str(folder)), list[FoundInRun](), list[NotSearched](), list[LeafledgerError](), 0
    for run in list_runs(place):
        one = _search(run, where, most, output)
        if isinstance(one, UsageError):
            errors.append(one)
            left.append(NotSearched(run.name, str(one).removeprefix(f"{run.run}: ")))
        elif isinstance(one, NotSearched):
            left.append(one)
        else:
            n_searched += 1
            found += [] if one is None else [one]
    if errors and not n_searched:
        raise errors[0]
    if not found:
        asked = ", ".join(f"{name}={value!r:.80}" for name, value in where.items())
        more = f"; {say_not_searched(left)}" if left else ""
        raise NoSuchRow(f"{place}: no such row: {asked}; {count(n_searched, 'run')} searched{more}")
    return FoundInRuns(place, n_searched, tuple(found), tuple(left))
