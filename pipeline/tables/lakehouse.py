"""The LakehouseTable interface: one version of a Delta or Iceberg table, as a commit of a run's parts sees it."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date as Date
from typing import Any, Protocol

from .shared_parts import Share


@dataclass(frozen=True, slots=True)
class Mark:
    """A table's record of a run: the manifest last committed, its number of parts, and its date if recorded."""

    mark: str  # empty where nothing counts
    n_parts: int
    day: str = ""


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A version of a table that is not the newest."""

    name: str
    files: frozenset[str]  # URIs of those that count in it


class LakehouseTable(Protocol):
    """The newest version of a table, which may not exist yet. Changes fail where somebody else committed meanwhile."""

    @staticmethod
    def locate(name: str, run: str, date: Date) -> str:
        """Find the place of the table of a run, from its own name, the run's folder and its date."""

    @staticmethod
    def reported(doing: str, uri: str) -> AbstractContextManager[None]:
        """Turn what the format's library raises into one line."""

    @classmethod
    def open(cls, uri: str) -> "LakehouseTable":
        """Open the newest version."""

    @property
    def exists(self) -> bool:
        """There is a table."""

    def refuse_new(self) -> None:
        """Refuse a place where no table can be made."""

    def refuse_other(self, removing: bool = False) -> None:
        """Refuse a table that is none of nights, or that is to be written otherwise than is known here."""

    def refuse_columns(self, names: Collection[str]) -> None:
        """Refuse parts with columns that do not fit the table's."""

    def find_mark(self, run: str) -> Mark:
        """Find what was committed of a run last; nothing where that was undone."""

    def mark_of(self, manifest: str) -> str:
        """Write a manifest as marks have it."""

    def list_files(self, run: str) -> tuple[Collection[str], Mapping[str, Any]]:
        """List the URIs of all files that count; and of these the parts of a run, each with what removes it."""

    def refuse_removal(self, old: Mapping[str, Any]) -> None:
        """Refuse to take files out of a table that lets go of none."""

    def find_day(self, run: str) -> Date | None:
        """Find the date that a run's rows have in the table; None where it has none of them."""

    def list_older(self) -> list[TableVersion]:
        """List the versions before the newest that can still be read."""

    @staticmethod
    def say_expiry(uri: str) -> str:
        """Write the command after which a table has no versions but the newest."""

    def create(self, share: Share) -> None:
        """Make the table with a run's parts."""

    def add(self, share: Share, old: Mapping[str, Any]) -> bool:
        """Let the table have a run's parts in the place of old ones; False where it got their columns alone, and may be a newer one by then."""

    def remove(self, run: str, old: Mapping[str, Any]) -> None:
        """Take a run's parts out of the table."""

    def was_overtaken(self, error: Exception) -> bool:
        """Tell whether an error says that somebody else was faster."""
