"""Groups of rows by values of data columns: assignment of rows, and names of groups."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.slices.labels import Labels

from ...errors import InvalidColumn, SchemaMismatch
from .categories import is_text

NONE = "–"  # display of a missing value


@dataclass(frozen=True, slots=True)
class GroupColumn:
    """A column of the data; rows with equal values in all such columns form a group."""

    name: str
    type: str  # Arrow's name of its type


def _value_type(found: pa.DataType) -> pa.DataType:
    return found.value_type if pa.types.is_dictionary(found) else found


def _groups(found: pa.DataType) -> bool:
    """Return whether rows can be grouped by values of this type; those of others are rarely equal."""
    kinds = pa.types.is_integer, pa.types.is_boolean, pa.types.is_date, pa.types.is_null
    return is_text(found) or any(is_one(found) for is_one in kinds)


def check_group_columns(names: Iterable[str], types: Mapping[str, pa.DataType], where: str) -> None:
    """Refuse columns that cannot group rows.

    Parameters
    ----------
    names : iterable of str
        Columns that have to hold texts, integers, booleans, dates, or nulls alone.
    types : mapping of str to pa.DataType
        Of all columns of the data, also those that the path carries.
    where : str
        URI of the file, for the message.
    """
    for name in names:
        if not _groups(_value_type(types[name])):
            raise SchemaMismatch(f"{where}: column {name!r} is {types[name]}, expected texts, integers or dates to group rows by")


def same_values(a: GroupColumn, b: GroupColumn) -> bool:
    """Return whether groups by two columns are comparable: both of texts, integers, booleans or dates, of any width; null types match any."""
    types = [pa.type_for_alias(column.type) for column in (a, b)]
    kinds = is_text, pa.types.is_integer, pa.types.is_boolean, pa.types.is_date
    return any(map(pa.types.is_null, types)) or any(all(map(is_one, types)) for is_one in kinds)


def make_group_columns(names: Iterable[str], types: Mapping[str, pa.DataType]) -> tuple[GroupColumn, ...]:
    """Describe the columns that group rows.

    Parameters
    ----------
    types : mapping of str to pa.DataType
        Of these columns.
    """
    return tuple(GroupColumn(name, str(_value_type(types[name]))) for name in names)


def check_described(columns: Iterable[GroupColumn]) -> None:
    """Refuse columns that no run was grouped by.

    Parameters
    ----------
    columns : iterable of GroupColumn
        As they were written.

    Raises
    ------
    ValueError
        A type is unknown, or one by whose values rows are not grouped.
    """
    for column in columns:
        if not _groups(pa.type_for_alias(column.type)):
            raise ValueError(f"{column.name!r} is {column.type}, by which rows are not grouped")


def type_values(values: Any, column: GroupColumn) -> pa.Array:
    """Convert values of groups to the type of their column in the data.

    Parameters
    ----------
    values : sequence of str, int, bool or None
        As JSON has them: dates as texts.

    Raises
    ------
    ValueError, TypeError, OverflowError
        A value is none of the type.
    """
    kind = pa.type_for_alias(column.type)
    return pa.array(values, pa.string()).cast(kind) if pa.types.is_date(kind) else pa.array(values, kind)


def _list_values(name: str, known: pa.Array) -> list[Any]:
    """List the values of a column's codes, then None for rows without a value."""
    try:
        return [*known.to_pylist(), None]
    except (OverflowError, ValueError) as error:  # dates, which tables of groups store as texts
        raise InvalidColumn(f"column {name!r} has dates before the year 1 or beyond 9999, by which no rows are grouped") from error


def write_values(values: Sequence[Any]) -> list[str]:
    """Format the values of a group for display, distinct for distinct groups.

    Parameters
    ----------
    values : sequence
        One for each column that makes groups; None where rows have none.

    Returns
    -------
    list of str
        A dash for None. A text that could be taken for that, for nothing, or, among several, for more than one is in quotes, as JSON has it.
    """
    several = len(values) > 1

    def is_doubtful(value: Any) -> bool:
        return isinstance(value, str) and (value in ("", NONE) or value.startswith('"') or (several and ", " in value))

    return [NONE if value is None else json.dumps(value, ensure_ascii=False) if is_doubtful(value) else str(value) for value in values]


def name_groups(batch: pa.RecordBatch, by: Sequence[GroupColumn]) -> tuple[np.ndarray, np.ndarray]:
    """Find the group of each row, and the names of groups.

    Parameters
    ----------
    batch : pa.RecordBatch
        n rows; it has all of the columns.
    by : sequence of GroupColumn
        At least one.

    Returns
    -------
    group : (n,) int64
        Positions in the names.
    names : (groups,) str
        Of every group its values as a JSON list; distinct, ascending as texts.

    Raises
    ------
    InvalidColumn
        Values of a column are not what its type says.
    """
    encoded = [batch.column(column.name) for column in by]
    encoded = [column if pa.types.is_dictionary(column.type) else column.dictionary_encode() for column in encoded]
    codes = [column.indices.cast(pa.int64()).fill_null(len(column.dictionary)).to_numpy(zero_copy_only=False) for column in encoded]
    for called, column in zip(by, encoded, strict=True):
        try:
            column.dictionary.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InvalidColumn(f"column {called.name!r} has text that is not UTF-8") from error
    values = [_list_values(called.name, column.dictionary) for called, column in zip(by, encoded, strict=True)]
    rows, row = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
    texts = [json.dumps([known[code] for known, code in zip(values, found, strict=True)], default=str) for found in rows.tolist()]
    names, name = np.unique(np.array(texts, str), return_inverse=True)
    return name[row.reshape(-1)], names


def group_rows(labels: Labels, batch: pa.RecordBatch, by: Sequence[GroupColumn]) -> Labels:
    """Set the group of each row of a batch.

    Parameters
    ----------
    labels : Labels
        Of the slice, padded; left as they are.
    batch : pa.RecordBatch
        The n rows of the slice; it has all of the columns.
    by : sequence of GroupColumn
        At least one.

    Returns
    -------
    Labels
        Groups are called by their values, as a JSON list. Rows behind the slice's are of the first.

    Raises
    ------
    InvalidColumn
        Values of a column are not what its type says.
    """
    group, names = name_groups(batch, by)
    padded = np.zeros(labels.group.size, np.int64)
    padded[: group.size] = group
    return labels._replace(group=padded, names=names)
