"""Summary tables of a run, from merged states."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.reductions.summary import Subject

from ...methods.summary_tables import tabulate
from ..records.plan import Plan


def _lay_out(sets: Sequence[Sequence[int]], order: int) -> np.ndarray:
    """Return sets of players as an array, ``(sets, order) int32``, -1 behind smaller ones."""
    return np.array([(*members, *(-1,) * (order - len(members))) for members in sets], np.int32).reshape(-1, order)


def describe_subject(plan: Plan, used: Sequence[int], players: Sequence[int], pairs: Sequence[Sequence[int]]) -> Subject:
    """Describe the names and dimensions of a run for its summaries."""
    return Subject(
        outputs=plan.written_outputs,
        players=plan.players,
        place=np.asarray(players, np.int64),
        pairs=_lay_out(pairs, 2 if plan.sets is None else plan.sets.order),
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
    used : sequence of int
        Features that some split asks for, as ``Prepared.bins.column``.
    players : sequence of int
        Those that some split asks for, as ``Prepared.players``.
    pairs : sequence of sequences of int
        Players that interact, two each or as many as a set has, as ``Prepared.pairs.players``; may be empty.
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
