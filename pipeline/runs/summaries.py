"""Summaries of all rows: states merged in order, and the tables that they become."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.labels import check_groups
from kernels.reductions import merge_all
from kernels.summaries import Column, Subject, Summary, Table, list_grouped

from ..dataset.grouping import GroupColumn, type_values
from .plan import Plan
from .prepare import refused
from .states import unpack_state

METADATA = b"leafledger"  # key of what is said once of a table


def _make_column(name: str, values: Column, by: Mapping[str, GroupColumn]) -> pa.Array:
    if name in by:
        return type_values(values, by[name])
    return pa.array(values, from_pandas=True)  # NaN is no number, and null in the table


def _make_table(table: Table, by: Mapping[str, GroupColumn]) -> pa.Table:
    made = pa.table({name: _make_column(name, values, by) for name, values in table.columns.items()})
    return made if table.totals is None else made.replace_schema_metadata({METADATA: json.dumps(table.totals)})


def tabulate(summary: Summary, states: Iterable[Any], subject: Subject, by: Sequence[GroupColumn] = ()) -> dict[str, pa.Table]:
    """Merge states of a summary, in the order of their rows and never in order of completion, and lay out its tables.

    Parameters
    ----------
    summary : Summary
    states : iterable
        Of slices or parts, in the order of their rows.
    subject : Subject
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
    merged = merge_all(summary.reduction, states, len(subject.outputs), subject.place.size)
    with refused():
        return {name: _make_table(table, {column.name: column for column in by}) for name, table in summary.tabulate(merged, subject).items()}


def describe_subject(plan: Plan, used: Sequence[int], players: Sequence[int], pairs: Sequence[Sequence[int]]) -> Subject:
    """Name what a run's summaries are about.

    Parameters
    ----------
    plan : Plan
    used : sequence of int
        Features that some split asks for, as ``Prepared.bins.column``.
    players : sequence of int
        Those that some split asks for, as ``Prepared.players``.
    pairs : sequence of two int
        Players that interact, as ``Prepared.pairs.players``; may be empty.

    Returns
    -------
    Subject
    """
    return Subject(
        outputs=plan.written_outputs,
        players=plan.players,
        place=np.asarray(players, np.int64),
        pairs=np.asarray(pairs, np.int32).reshape(-1, 2),
        n_steps=plan.n_steps,
        by=tuple(column.name for column in plan.by),
        inputs=tuple(plan.features[column].name for column in used),
    )


def aggregate(
    plan: Plan, used: Sequence[int], players: Sequence[int], pairs: Sequence[Sequence[int]], states: Sequence[dict[str, str]]
) -> dict[str, pa.Table]:
    """Make all summaries of a run from the states of its parts.

    Parameters
    ----------
    plan : Plan
    used : sequence of int
        Features that some split asks for, as ``Prepared.bins.column``.
    players : sequence of int
        Those that some split asks for, as ``Prepared.players``.
    pairs : sequence of two int
        Players that interact, as ``Prepared.pairs.players``; may be empty.
    states : sequence of dict of str to str
        Of every part, in part order, its packed states by the name of the summary.

    Returns
    -------
    dict of str to pa.Table
        By name.

    Raises
    ------
    InvalidRun
        A state is damaged.
    UsageError
        There are more groups of rows than are worth a table.
    """
    subject, tables = describe_subject(plan, used, players, pairs), dict[str, pa.Table]()
    for summary in plan.summaries:
        tables |= tabulate(summary, (unpack_state(summary.reduction, state[summary.name]) for state in states), subject, plan.by)
    return tables


def add_groups(plan: Plan, names: np.ndarray, states: Mapping[str, str]) -> np.ndarray:
    """Add the groups of rows of a part to those of other parts, so that too many are refused as soon as they are there.

    Parameters
    ----------
    plan : Plan
    names : (groups,) str
        Of the other parts, ascending.
    states : mapping of str to str
        Of the part, packed, by the name of the summary.

    Returns
    -------
    (groups,) str
        Of all of them, ascending.

    Raises
    ------
    UsageError
        There are more than are worth a table.
    """
    if not plan.by:
        return names
    for summary in list_grouped(plan.summaries):
        names = np.union1d(names, unpack_state(summary.reduction, states[summary.name]).names)
    with refused():
        check_groups(tuple(column.name for column in plan.by), names.size, len(plan.written_outputs) * len(plan.players))
    return names


def read_totals(tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """Read what is said once of tables.

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
