"""A finished run's share of a lakehouse table: its parts and the columns that the table can hold."""

import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import date as Date

import pyarrow as pa
from pyarrow import types

from ..errors import SchemaMismatch

PARTS = "attributions"  # folder that they lie in: of a run, or of its place below it
REPLACEMENTS = "replacements"  # folder of a run that has such places
DATE = "date"  # column that tables are partitioned by, which the parts have not
# Types that Delta Lake and Iceberg have both. Others are stored as one of them, and readers that trust the table would take them for it.
KNOWN: tuple[Callable[[pa.DataType], bool], ...] = (
    *(types.is_int8, types.is_int16, types.is_int32, types.is_int64, types.is_float32, types.is_float64, types.is_decimal128),
    *(types.is_boolean, types.is_string, types.is_binary, types.is_date32),
)


@dataclass(frozen=True, slots=True)
class SharedPart:
    """A Parquet file of a run."""

    uri: str
    size: int  # bytes
    n_rows: int


@dataclass(frozen=True, slots=True)
class Share:
    """A finished run, as a table gets it."""

    run: str  # URI of its folder
    manifest: str  # SHA-256
    date: Date
    schema: pa.Schema  # of every part, as `plain` writes it
    parts: tuple[SharedPart, ...]
    stands: Callable[[], bool]  # whether it is still the run that its folder holds


@dataclass(frozen=True, slots=True)
class Removal:
    """A run that leaves a table, before its files are removed."""

    run: str  # URI of its folder
    whole: bool = False  # all of the folder is going to be removed, so that others must have no files of the table in it
    manifest: str | None = None  # SHA-256: it stays where another one was committed last
    wanted: Callable[[], bool] | None = None  # it stays where this says no, which is asked once the table is open


def _plain_type(found: pa.DataType) -> pa.DataType | None:
    """The type as tables have it; None where they have none."""
    if types.is_dictionary(found):
        return _plain_type(found.value_type)
    if types.is_list(found) or types.is_large_list(found):
        inner = _plain_type(found.value_type)
        return None if inner is None else pa.list_(pa.field("element", inner))
    if types.is_struct(found):
        inner = [(field.name, _plain_type(field.type)) for field in found]
        return None if any(kind is None for _, kind in inner) else pa.struct(inner)
    if types.is_timestamp(found):
        return None if found.unit != "us" else pa.timestamp("us", None if found.tz is None else "UTC")
    if types.is_large_string(found) or types.is_large_binary(found):
        return pa.string() if types.is_large_string(found) else pa.binary()
    return found if any(known(found) for known in KNOWN) else None


def refuse_alike(names: Iterable[str], where: str) -> None:
    """Refuse names of columns that tables do not tell apart.

    Parameters
    ----------
    names : iterable of str
        Each once.
    where : str
        Whose they are, for the message.
    """
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(name.lower(), name)
        if other != name:
            raise SchemaMismatch(f"{where}: columns {other!r} and {name!r} differ in case alone, by which tables do not tell them apart; rename one")


def plain(columns: Mapping[str, pa.DataType], where: str) -> pa.Schema:
    """Write columns as both formats of tables have them.

    Parameters
    ----------
    columns : mapping of str to pa.DataType
        Of a run.
    where : str
        The run, for the message.

    Returns
    -------
    pa.Schema
        Every column may be null: a later night may lack it.

    Raises
    ------
    SchemaMismatch
        A column is of a type that such tables do not have, or has the name of the column that they are partitioned by.
    """
    found = {name: _plain_type(kind) for name, kind in columns.items()}
    for name, kind in found.items():
        if kind is None:
            raise SchemaMismatch(
                f"{where}: column {name!r} is {columns[name]}, which tables of Delta Lake and Iceberg do not have; leave it out or cast it"
            )
        if name.lower() == DATE:
            raise SchemaMismatch(f"{where}: has a column {name!r}, which is what the table is partitioned by; leave it out or call it otherwise")
    return pa.schema([pa.field(name, kind) for name, kind in found.items()])


def plain_fields(schema: pa.Schema) -> list[pa.Field]:
    """Write a table's columns as `plain` writes those of a run, so that both compare."""
    return [pa.field(field.name, _plain_type(field.type) or field.type) for field in schema]


def new_columns(held: Mapping[str, str], mine: Mapping[str, str], where: str) -> list[str]:
    """Compare the columns of a table with those of a run."""
    refuse_alike(dict.fromkeys((*held, *mine)), where)
    for name, kind in mine.items():
        if held.get(name, kind) != kind:
            raise SchemaMismatch(f"{where}: column {name!r} is {held[name]}, the run's is {kind}; commit it to another table")
    return [name for name in mine if name not in held]


def refuse_lacking(required: Iterable[str], mine: Container[str], where: str) -> None:
    """Refuse a run that has no values for a column which a table has of every row."""
    for name in required:
        if name != DATE and name not in mine:
            raise SchemaMismatch(f"{where}: column {name!r} may not be null there, and the run has none; commit it to another table")


def within(run: str, uris: Iterable[str]) -> set[str]:
    """Pick the parts of a run; what others wrote into its folder is none, nor are parts of a run that lies in it."""
    part = re.compile(rf"{re.escape(run)}/({REPLACEMENTS}/[^/]+/)?{PARTS}/[^/]+")
    return {uri for uri in uris if part.fullmatch(uri)}


def check_all_there(held: int, live: int, run: str, where: str) -> None:
    """Refuse to replace or remove what a run had in a table, where somebody else has changed that since."""
    if held != live:
        raise SchemaMismatch(
            f"{where}: {held} files of a run in {run} were committed, {live} count now: others have rewritten, removed or added some, so that its "
            "rows cannot be told from theirs; remove these rows there, and commit a run that is to replace it from another folder"
        )


def check_alone(run: str, uris: Iterable[str], where: str) -> None:
    """Refuse to remove a run's folder in which others have files of the table."""
    below = {uri for uri in uris if uri.startswith(f"{run}/")}
    others = sorted(below - within(run, below))
    if others:
        raise SchemaMismatch(
            f"{where}: {len(others)} of its files, as {others[0].removeprefix(f'{run}/')}, lie in {run} and are no parts of the run: others wrote "
            "them, and they would be lost with it; remove these rows from the table, or have them written elsewhere"
        )
