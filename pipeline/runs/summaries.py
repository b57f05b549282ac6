"""Summaries of all rows: the tables that merged states become."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.summaries import Column, Subject, Summary, Table

from ..dataset.grouping import GroupColumn, type_values
from .plan import Plan
from .prepare import refused

METADATA = b"leafledger"  # key of what is said once of a table


def _make_column(name: str, values: Column, by: Mapping[str, GroupColumn]) -> pa.Array:
    if name in by:
        return type_values(values, by[name])
    return pa.array(values, from_pandas=True)  # NaN is no number, and null in the table


def _make_table(table: Table, by: Mapping[str, GroupColumn]) -> pa.Table:
    made = pa.table({name: _make_column(name, values, by) for name, values in table.columns.items()})
    return made if table.totals is None else made.replace_schema_metadata({METADATA: json.dumps(table.totals)})


def tabulate(summary: Summary, state: Any | None, subject: Subject, by: Sequence[GroupColumn] = ()) -> dict[str, pa.Table]:
    """Lay out a summary's tables.

    Parameters
    ----------
    summary : Summary
    state : state or None
        Of all rows; None where there are none.
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
    if state is None:
        state = summary.reduction.init(len(subject.outputs), subject.place.size)
    with refused():
        return {name: _make_table(table, {column.name: column for column in by}) for name, table in summary.tabulate(state, subject).items()}


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
        untold=frozenset(plan.features[column].name for column in used if not plan.features[column].tells_seen),
    )


def aggregate(
    plan: Plan, used: Sequence[int], players: Sequence[int], pairs: Sequence[Sequence[int]], states: Mapping[str, Any]
) -> dict[str, pa.Table]:
    """Make all summaries of a run.

    Parameters
    ----------
    plan : Plan
    used : sequence of int
        Features that some split asks for, as ``Prepared.bins.column``.
    players : sequence of int
        Those that some split asks for, as ``Prepared.players``.
    pairs : sequence of two int
        Players that interact, as ``Prepared.pairs.players``; may be empty.
    states : mapping of str to state or None
        Of all rows, by the names of summaries, see `MergedStates.total`.

    Returns
    -------
    dict of str to pa.Table
        By name.

    Raises
    ------
    UsageError
        There are more groups of rows than are worth a table.
    """
    subject, tables = describe_subject(plan, used, players, pairs), dict[str, pa.Table]()
    for summary in plan.summaries:
        tables |= tabulate(summary, states[summary.name], subject, plan.by)
    return tables


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
