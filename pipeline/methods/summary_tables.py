"""Summaries as Arrow tables, with totals in the metadata."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from leafledger.kernels.reductions.summary import Column, Subject, Summary, Table

from ..dataset.columns.grouping import GroupColumn, type_values
from .tables import refused

LISTED = pa.list_(pa.field("element", pa.string()))  # players of a set, as Parquet gives them back
METADATA = b"leafledger"  # metadata key of a table's totals


def _make_column(name: str, values: Column, by: Mapping[str, GroupColumn]) -> pa.Array:
    if name in by:
        return type_values(values, by[name])
    if len(values) and isinstance(values[0], list):
        return pa.array(values, LISTED)
    return pa.array(values, from_pandas=True)  # NaN becomes null


def _make_table(table: Table, by: Mapping[str, GroupColumn]) -> pa.Table:
    made = pa.table({name: _make_column(name, values, by) for name, values in table.columns.items()})
    return made if table.totals is None else made.replace_schema_metadata({METADATA: json.dumps(table.totals)})


def tabulate(summary: Summary, state: Any | None, subject: Subject, by: Sequence[GroupColumn] = ()) -> dict[str, pa.Table]:
    """Build a summary's tables.

    Parameters
    ----------
    state : state or None
        Of all rows; None where there are none.
    by : sequence of GroupColumn, optional
        Columns whose values make groups of rows, as the subject has them.

    Returns
    -------
    dict of str to pa.Table
        By name; what is said once of all rows is in the metadata of a table.

    Raises
    ------
    UsageError
        There are more groups of rows than are worth a table.
    """
    if state is None:
        state = summary.reduction.init(len(subject.outputs), subject.place.size)
    with refused():
        return {name: _make_table(table, {column.name: column for column in by}) for name, table in summary.tabulate(state, subject).items()}


def read_totals(tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """Read the totals of tables.

    Parameters
    ----------
    tables : mapping of str to pa.Table
        By name.

    Returns
    -------
    dict of str to Any
        By the names of the tables; those of which nothing is said are left out.
    """
    said = {name: (table.schema.metadata or {}).get(METADATA) for name, table in tables.items()}
    return {name: json.loads(text) for name, text in said.items() if text is not None}
