"""Live files of a lakehouse table, with the table's names of their columns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date as Date
from typing import Any

from ..errors import UsageError
from ..stores.store import Object

Hive = tuple[tuple[str, str | None], ...]  # columns that a path or a log carries for a whole file: names, and values as they are written in paths


@dataclass(frozen=True, slots=True)
class Columns:
    """By which numbers a table knows its columns, whose names may have been others when a file was written."""

    now: Mapping[str, int]  # by the names that they have now
    unnumbered: Mapping[str, int]  # by those in files that have no numbers

    def find_other(self, name: str, number: int | None) -> str | None:
        """Say what is wrong with a column of a file, if anything is.

        Parameters
        ----------
        name : str
            As the file has it.
        number : int or None
            None where the file has none.

        Returns
        -------
        str or None
            In words; None where it is the table's of that name, or none of the table's.
        """
        number = self.unnumbered.get(name) if number is None else number
        called = next((each for each, its in self.now.items() if its == number), None)
        if called == name or (called is None and name not in self.now):
            return None
        return "is another column than the table's of that name" if called is None else f"is called {called!r} in the table by now"


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A Parquet file whose rows all count."""

    file: Object
    partition: Hive
    columns: Columns | None = None  # None where names are what they were


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A data set at one moment."""

    uri: str  # names it as it is now, also later on
    files: tuple[LiveFile, ...]  # in the order of their names


def write_value(value: Any) -> str | None:
    """Write a value that a log carries for a whole file as paths have it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or type(value) is Date:
        return str(value)
    raise ValueError(f"is a {type(value).__name__}, expected a text, a whole number, a boolean or a date")


def list_once(listed: Iterable[tuple[str, Hive]], uri: str) -> dict[str, Hive]:
    """Put files in the order of their names."""
    found: dict[str, Hive] = {}
    for place, values in sorted(listed, key=lambda each: each[0]):
        if place in found:
            raise UsageError(f"{uri}: names {place.rpartition('/')[2]} twice, expected every file once; explain a copy of its rows")
        found[place] = values
    return found
