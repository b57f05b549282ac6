"""Commits of a run's parts to a lakehouse table, and their removal, whatever the format."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date as Date

from .deltalake_commit import DeltaLakeTable
from .lakehouse import LakehouseTable, TableVersion
from .names import Name
from .pyiceberg_commit import IcebergTable
from .shared_parts import Removal, Share, check_all_there, check_alone

ATTEMPTS = 10  # lost to others before a commit is given up
FORMATS: dict[Name, type[LakehouseTable]] = {"delta": DeltaLakeTable, "iceberg": IcebergTable}


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Format and URI of a lakehouse table."""

    format: Name
    uri: str

    def check(self, names: Collection[str]) -> None:
        """Refuse a table that parts cannot be added to as they are, while nothing is explained yet.

        Parameters
        ----------
        names : collection of str
            Columns that parts will have.
        """
        kind = FORMATS[self.format]
        with kind.reported("read", self.uri):
            table = kind.open(self.uri)
            if not table.exists:
                table.refuse_new()
                return
        table.refuse_other()
        table.refuse_columns(names)

    def commit(self, share: Share) -> None:
        """Let the table have a run's parts, in the place of those of an earlier run in the same folder; do nothing where it has them, or where
        another run has taken the run's place.
        """
        self._repeat(lambda table: _add(table, self, share))

    def holds(self, run: str, manifest: str) -> bool:
        """Tell whether the table has a run, by the manifest that was committed of it last.

        Parameters
        ----------
        manifest : str
            SHA-256, hexadecimal.
        """
        kind = FORMATS[self.format]
        with kind.reported("read", self.uri):
            table = kind.open(self.uri)
            return table.exists and table.find_mark(run).mark == table.mark_of(manifest)

    def check_exchange(self, run: str) -> None:
        """Refuse to exchange parts of a run that the table has, where it would not let go of them, before anything is changed."""
        kind = FORMATS[self.format]
        with kind.reported("read", self.uri):
            table = kind.open(self.uri)
            if not table.exists or not (found := table.find_mark(run)).mark:
                return
            table.refuse_other()
            _, old = table.list_files(run)
            check_all_there(found.n_parts, len(old), run, self.uri)
            table.refuse_removal(old)

    def find_day(self, run: str) -> Date | None:
        """Find the date that a run's rows have in the table; None where it has none of them."""
        kind = FORMATS[self.format]
        with kind.reported("read", self.uri):
            table = kind.open(self.uri)
            return table.find_day(run) if table.exists and table.find_mark(run).mark else None

    def list_live(self) -> frozenset[str]:
        """List the URIs of all files that count in the newest version."""
        kind = FORMATS[self.format]
        with kind.reported("read", self.uri):
            table = kind.open(self.uri)
            return frozenset(table.list_files(self.uri)[0] if table.exists else ())

    def list_older(self) -> list[TableVersion]:
        """List the versions before the newest that can still be read."""
        kind = FORMATS[self.format]
        with kind.reported("read", self.uri):
            table = kind.open(self.uri)
            return table.list_older() if table.exists else []

    @property
    def expiry(self) -> str:
        """The command after which the table has no versions but the newest."""
        return FORMATS[self.format].say_expiry(self.uri)

    def withdraw(self, leaving: Removal) -> None:
        """Take a run's parts out of the table, before they are removed; do nothing where it has none."""
        self._repeat(lambda table: _remove(table, self.uri, leaving))

    def _repeat(self, attempt: Callable[[LakehouseTable], None]) -> None:
        """Try again, from the newest version, where somebody else committed at the same time."""
        kind = FORMATS[self.format]
        with kind.reported("write", self.uri):
            for left in reversed(range(ATTEMPTS)):
                table = kind.open(self.uri)
                try:
                    attempt(table)
                    return
                except Exception as error:  # each library has its own
                    if not left or not table.was_overtaken(error):
                        raise


def _add(table: LakehouseTable, place: TablePlace, share: Share) -> None:
    if not table.exists:
        if share.stands():
            table.create(share)
        return
    table.refuse_other()
    found = table.find_mark(share.run)
    # Else it is of another day by now, as where a wrong one was given.
    is_there = found.mark == table.mark_of(share.manifest) and found.day in ("", str(share.date))
    if is_there or not share.stands():  # asked once the table is open: who takes its place from now on is noticed
        return
    _, old = table.list_files(share.run)
    check_all_there(found.n_parts, len(old), share.run, place.uri)
    if not table.add(share, old):
        _add(FORMATS[place.format].open(place.uri), place, share)  # others may have committed before these


def _remove(table: LakehouseTable, uri: str, leaving: Removal) -> None:
    if not table.exists:
        return
    table.refuse_other(removing=True)
    found = table.find_mark(leaving.run)
    if leaving.manifest is not None and found.mark != table.mark_of(leaving.manifest):
        return
    if leaving.wanted is not None and not leaving.wanted():
        return
    live, old = table.list_files(leaving.run)
    check_all_there(found.n_parts, len(old), leaving.run, uri)
    if leaving.whole:
        check_alone(leaving.run, live, uri)
    if found.n_parts:
        table.remove(leaving.run, old)


def find_place(table: str, run: str, date: Date) -> TablePlace:
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
    return TablePlace(kind, FORMATS[kind].locate(name, run, date))
