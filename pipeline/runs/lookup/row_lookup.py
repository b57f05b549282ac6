"""Look-up of rows by value: row groups by statistics and Bloom filters, then key columns, then the rows."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from itertools import repeat
from numbers import Integral
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...display.nearest import did_you_mean
from ...errors import InvalidRun, NoSuchRow, UsageError
from ...stores import storage
from ...stores.failures import published
from .bloom_filter import as_stored, may_contain, size

READERS = 16  # parts searched concurrently
ORDERED = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string, pa.types.is_large_string)  # types ordered as in Python


TEXTS = (pa.string(), pa.large_string())
TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?")
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary(), pa.float16(): pa.float32()}  # replacements of types that Arrow cannot compare


@dataclass(frozen=True, slots=True)
class Condition:
    """A column's required value."""

    name: str
    value: pa.Scalar  # null matches null and NaN

    @property
    def missing(self) -> bool:
        """Whether missing values are required."""
        if not self.value.is_valid:
            return True
        return pa.types.is_floating(self.value.type) and math.isnan(self.value.as_py())


@dataclass(frozen=True, slots=True)
class RowAddress:
    """Address of a row in a run."""

    part: int
    uri: str  # URI of the part
    row: int  # number in the part, from 0


@dataclass(frozen=True, slots=True)
class _Group:
    """Matching rows of a row group."""

    uri: str
    part: int
    group: int
    first_row: int  # number in the part
    rows: pa.Array  # numbers in the group
    metadata: pq.FileMetaData  # of the part


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Matching rows."""

    n_found: int
    places: tuple[RowAddress, ...]  # addresses of the first of them
    table: pa.Table  # their columns


def _value_type(kind: pa.DataType) -> pa.DataType:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind.storage_type if is_extension(kind) else kind
    return PLAIN.get(kind, kind)


def is_extension(kind: pa.DataType) -> bool:
    """Return whether a type is an extension, such as UUID and JSON, which Arrow cannot compare."""
    return isinstance(kind, pa.BaseExtensionType)


def _text(given: str) -> pa.Scalar:
    """Make a text scalar without ``pa.scalar``, which imports pandas if installed and takes longer than the look-up."""
    content = given.encode()
    return pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, len(content)], np.int32)), pa.py_buffer(content))[0]


def _read_half(given: Any) -> pa.Scalar:
    """Parse a half float, rounded as in the column."""
    with np.errstate(over="ignore"):
        return pa.scalar(None if given is None else float(np.float16(given)), PLAIN[pa.float16()])


def read_time(given: str, kind: pa.DataType) -> int:
    """Parse a time of day in a column's unit, which Arrow does not: ``23:59``, with seconds, and as many digits of them as the unit has."""
    found = TIME.fullmatch(given)
    if found is None:
        raise ValueError("no time of day")
    hours, minutes, seconds, digits = (part or "0" for part in found.groups())
    number, rest = divmod((int(hours) * 60 + int(minutes)) * 60 * 10**9 + int(seconds) * 10**9 + int(digits.ljust(9, "0")), NANOSECONDS[kind.unit])
    if rest:
        raise ValueError("finer than the column's unit")
    return number


def read_condition(where: str, schema: pa.Schema, name: str, given: Any) -> Condition:
    """Read a required value by the column's type.

    Parameters
    ----------
    where : str
        URI of the run, for messages.
    schema : pa.Schema
        Of a part.
    name : str
        Of the column.
    given : Any
        A value of the column's type, or its text; for texts of digits also the number; None for one that is missing.

    Raises
    ------
    UsageError
        There is no such column, it holds lists, or nothing of its type is written so.
    """
    kind = schema.field(name).type
    try:
        if pa.float16() in (kind, getattr(kind, "value_type", None)):
            return Condition(name, _read_half(given))
        if isinstance(kind, pa.UuidType) and given is not None:
            return Condition(name, pa.scalar(UUID(str(given)).bytes, kind.storage_type))
        written = isinstance(given, str)
        if isinstance(given, Integral) and not isinstance(given, bool) and _value_type(kind) in TEXTS:
            given = str(given)
        given = read_time(given, kind) if written and pa.types.is_time(kind) else given
        value = _text(given).cast(_value_type(kind)) if isinstance(given, str) else pa.scalar(given, _value_type(kind))
        rounds = written or pa.types.is_floating(value.type)
        if pa.types.is_nested(_value_type(kind)) or not (rounds or value.as_py() == given):  # 7.5 would become the integer 7
            raise TypeError("nothing of the column's type")
    except (pa.ArrowException, TypeError, OverflowError, ValueError) as error:
        raise UsageError(f"{where}: column {name!r:.80} is {kind}, got {given!r:.80}") from error
    return Condition(name, value)


def _as_read(where: str, schema: pa.Schema, name: str, given: Any) -> Any:
    """Convert a required value to a column's type; return it unchanged if impossible."""
    try:
        return given if is_extension(schema.field(name).type) else read_condition(where, schema, name, given).value.as_py()
    except (UsageError, ValueError):  # nanoseconds, without pandas
        return given


@contextmanager
def opened_part(uri: str, metadata: pq.FileMetaData | None = None) -> Iterator[tuple[pq.ParquetFile, Any]]:
    """Open a part.

    Parameters
    ----------
    metadata : pq.FileMetaData, optional
        Of the part, where its footer was read before.

    Yields
    ------
    parquet : pq.ParquetFile
        Pages are verified as they are read.
    file : file object
        That it reads.
    """
    try:
        with (
            published(),
            storage.opened_for_arrow(uri) as (file, pre_buffer),
            pq.ParquetFile(file, metadata=metadata, page_checksum_verification=True, pre_buffer=pre_buffer) as parquet,
        ):
            yield parquet, file
    except (pa.ArrowException, OSError) as error:
        raise InvalidRun(f"{uri}: damaged, or no part of a run: {' '.join(str(error).split())}") from error


def _may_have(metadata: pq.FileMetaData, file: Any, group: int, condition: Condition) -> bool:
    """Return whether a row group may contain a match, by statistics and Bloom filter."""
    leaves = [c for c in range(metadata.num_columns) if metadata.schema.column(c).path == condition.name]
    if len(leaves) != 1:
        return True
    chunk = metadata.row_group(group).column(leaves[0])
    return _in_range(chunk.statistics, condition) and _passes(chunk, file, condition)


def _passes(chunk: pq.ColumnChunkMetaData, file: Any, condition: Condition) -> bool:
    value = None if condition.missing or not size(chunk) else as_stored(condition.value, chunk.physical_type)
    if value is None:
        return True
    file.seek(chunk.bloom_filter_offset)
    return may_contain(file.read(chunk.bloom_filter_length), value)


def _in_range(found: Any, condition: Condition) -> bool:
    kind = condition.value.type
    if found is None:
        return True
    if condition.missing:
        return pa.types.is_floating(kind) or not found.has_null_count or found.null_count > 0  # statistics do not count NaN
    if not found.has_min_max or not any(is_one(kind) for is_one in ORDERED) or isinstance(found.min, bytes):  # statistics of half floats are bytes
        return True
    return bool(found.min <= condition.value.as_py() <= found.max)


def _matches(column: pa.ChunkedArray, condition: Condition) -> pa.ChunkedArray:
    """Return whether a condition holds, null if undefined."""
    kind = column.type
    plain = column.cast(_value_type(kind)) if pa.types.is_dictionary(kind) or is_extension(kind) else column
    return pc.is_null(plain, nan_is_null=True) if condition.missing else pc.equal(plain, condition.value)


def _find_in_part(run: str, uri: str, part: int, where: Mapping[str, Any]) -> list[_Group] | UsageError:
    """Find a part's matching rows by its own column types, or the reason why it has none."""
    with opened_part(uri) as (parquet, file):
        names, metadata, found, first_row = [*where], parquet.metadata, list[_Group](), 0
        _check_columns(uri, parquet, names)
        try:
            conditions = [read_condition(run, parquet.schema_arrow, name, given) for name, given in where.items()]
        except UsageError as error:
            return error
        for group in range(metadata.num_row_groups):
            if all(_may_have(metadata, file, group, each) for each in conditions):
                table = as_plain(parquet.read_row_group(group, columns=names, use_threads=False))
                rows = pc.indices_nonzero(reduce(pc.and_, [_matches(table[each.name], each) for each in conditions]))
                found += [_Group(uri, part, group, first_row, rows, metadata)] if len(rows) else []
            first_row += metadata.row_group(group).num_rows
    return found


def _check_columns(uri: str, parquet: pq.ParquetFile, names: Iterable[str]) -> None:
    lacking = next((name for name in names if name not in parquet.schema_arrow.names), None)
    if lacking is not None:
        raise InvalidRun(f"{uri}: has no column {lacking!r:.80}, which the run's parts have")


def _first(groups: Iterable[_Group], most: int | None) -> Iterator[_Group]:
    """Return the groups of the first rows, restricted to these rows."""
    for each in groups:
        rows = each.rows.slice(0, most)
        most = None if most is None else most - len(rows)
        if not len(rows):
            return
        yield replace(each, rows=rows)


def _read_group(found: _Group, columns: Sequence[str] | None) -> pa.Table:
    with opened_part(found.uri, found.metadata) as (parquet, _):
        return as_plain(parquet.read_row_group(found.group, columns=columns, use_threads=False)).take(found.rows)


def as_plain(table: pa.Table) -> pa.Table:
    """Convert views to texts, and halves to floats, which Arrow can take and compare; all columns become nullable."""
    return table.cast(pa.schema([field.with_type(PLAIN.get(field.type, field.type)).with_nullable(True) for field in table.schema]))


def has_views(schema: pa.Schema) -> bool:
    """Return whether there are views of texts or bytes, which Arrow can neither take nor filter."""
    return any(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind) for kind in schema.types)


def _join(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables; a column of several types gets a common type, or text, as in paths."""
    fields = []
    for field in tables[0].schema:
        kinds = {table.schema.field(field.name).type for table in tables}
        held = {_value_type(kind) for kind in kinds}
        fields.append(field if len(kinds) == 1 else field.with_type(held.pop() if len(held) == 1 else pa.string()))
    schema = pa.schema(fields)
    return pa.concat_tables([table.select(schema.names).cast(schema) for table in tables])


def read_part_schema(uri: str) -> pa.Schema:
    """Read the schema of a part."""
    with opened_part(uri) as (parquet, _):
        return parquet.schema_arrow


def keep_rows(table: pa.Table, conditions: Iterable[Condition]) -> pa.Table:
    """Return the rows of a table that fulfil all conditions."""
    return table.filter(reduce(pc.and_, [_matches(table[each.name], each) for each in conditions]))


def find_rows(
    run: str,
    parts: Sequence[tuple[int, str]],
    ids: Sequence[str],
    where: Mapping[str, Any],
    most: int | None = None,
    columns: Sequence[str] | None = None,
) -> FoundRows:
    """Find and read the rows with required values in some columns.

    Parts are searched concurrently: the footer, then the key columns of row groups that may match by statistics and Bloom filters, then all columns
    of row groups with matches.

    Parameters
    ----------
    parts : sequence of (int, str)
        Numbers of all parts, and what they are called below the run.
    ids : sequence of str
        The run's id columns, for messages.
    where : mapping of str to Any
        From columns to values of their types, or texts of these; None for what is missing.
    most : int, optional
        How many rows are read; by default all.
    columns : sequence of str, optional
        Which columns are read; by default all.

    Returns
    -------
    FoundRows
        In the order of the data; at least one row.

    Raises
    ------
    NoSuchRow
        There is none.
    UsageError
        There is no such column, or a value is of another type.
    """
    if not parts:
        raise NoSuchRow(f"{run}: no such row: the run has none")
    numbers, uris = [part for part, _ in parts], [storage.join(run, uri) for _, uri in parts]
    schema = read_part_schema(uris[0])
    strange = next((name for name in where if name not in schema.names), None)
    if strange is not None:
        raise UsageError(f"{run}: has no column {strange!r:.80}; its id columns are {', '.join(ids) or 'none'}{did_you_mean(strange, schema.names)}")
    with ThreadPoolExecutor(READERS) as readers:
        looked = list(readers.map(_find_in_part, repeat(run), uris, numbers, repeat(where)))
        unfit = [each for each in looked if isinstance(each, UsageError)]
        if len(unfit) == len(looked):
            raise unfit[0]
        groups = [each for found in looked if not isinstance(found, UsageError) for each in found]
        wanted = list(_first(groups, most))
        tables = list(readers.map(_read_group, wanted, repeat(columns)))
    if not groups:
        raise NoSuchRow(f"{run}: no such row: {', '.join(f'{name}={_as_read(run, schema, name, given)!r:.80}' for name, given in where.items())}")
    places = tuple(RowAddress(each.part, each.uri, each.first_row + row) for each in wanted for row in each.rows.to_pylist())
    return FoundRows(sum(len(each.rows) for each in groups), places, _join(tables))
