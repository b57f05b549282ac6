"""Lakehouse tables that runs are committed to, with one implementation per format."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date as Date

from .deltalake_commit import check_delta, commit_delta, holds_delta, locate_delta, withdraw_delta
from .names import Name
from .pyiceberg_commit import check_iceberg, commit_iceberg, holds_iceberg, locate_iceberg, withdraw_iceberg
from .share import Removal, Share


@dataclass(frozen=True, slots=True)
class Format:
    """What can be done with a table."""

    locate: Callable[[str, str, Date], str]  # from its name, the run's folder and its date to its place
    check: Callable[[str, Collection[str]], None]  # that parts with such columns can be added, before there are any
    commit: Callable[[str, Share], None]
    holds: Callable[[str, str, str], bool]  # from its place, a run's folder and manifest
    withdraw: Callable[[str, Removal], None]


FORMATS: dict[Name, Format] = {
    "delta": Format(locate_delta, check_delta, commit_delta, holds_delta, withdraw_delta),
    "iceberg": Format(locate_iceberg, check_iceberg, commit_iceberg, holds_iceberg, withdraw_iceberg),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A table."""

    format: Name
    uri: str

    def check(self, names: Collection[str]) -> None:
        """Refuse a table that parts cannot be added to as they are, while nothing is explained yet.

        Parameters
        ----------
        names : collection of str
            Columns that parts will have.
        """
        FORMATS[self.format].check(self.uri, names)

    def commit(self, share: Share) -> None:
        """Let the table have a run's parts, once."""
        FORMATS[self.format].commit(self.uri, share)

    def holds(self, run: str, manifest: str) -> bool:
        """Tell whether the table has a run, by the manifest that was committed of it last.

        Parameters
        ----------
        manifest : str
            SHA-256, hexadecimal.
        """
        return FORMATS[self.format].holds(self.uri, run, manifest)

    def withdraw(self, leaving: Removal) -> None:
        """Take a run's parts out of the table; do nothing where it has none."""
        FORMATS[self.format].withdraw(self.uri, leaving)


def find_place(table: str, run: str, date: Date) -> Place:
    """Find the table that a run's parts are committed to.

    Parameters
    ----------
    table : str
        As `names_table` takes it.

    Raises
    ------
    UsageError
        The run lies elsewhere than such a table takes it.
    """
    called, _, name = table.partition(":")
    kind = next(each for each in FORMATS if each == called)
    return Place(kind, FORMATS[kind].locate(name, run, date))
