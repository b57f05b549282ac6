"""Drift by group of rows: new, vanished and small groups, and the changes of the others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leafledger.kernels.reductions.group_moments import sort_groups

from ...dataset.columns.grouping import GroupColumn, same_values
from ...display.text import count, printable
from ...errors import UsageError
from ..measure.losses import count_rows_of
from ..measure.measured_groups import MeasuredGroups, count_rows, say_group, values_of
from ..measure.measured_run import Measured
from .compared import compare_columns
from .mix import Mix, split_mix
from .shifts import Shift
from .split import Split

FEW_ROWS = 50  # rows below which a group is not tested
NEW, GONE, FEW, TESTED = "new", "gone", "few", "tested"
SOME = 5  # groups listed in words
SHOWN = 60  # characters of a group


@dataclass(frozen=True, slots=True)
class GroupDrift:
    """Change of a group of rows.

    Attributes
    ----------
    group : str
        In words, such as "carrier=AA".
    values : tuple
        Of the grouping columns; None for missing values.
    state : str
        "tested"; "new" or "gone" if only one run has rows of it; "few" if one has fewer than FEW_ROWS.
    reference_rows, rows : int
    outputs : tuple of Split
        As for all rows; empty if only one run has the group.
    shifts : tuple of Shift
        As for all rows; empty if the group is not tested.
    """

    group: str
    values: tuple[Any, ...]
    state: str
    reference_rows: int
    rows: int
    outputs: tuple[Split, ...]
    shifts: tuple[Shift, ...]


def refuse_other_types(current: Measured, reference: Measured, groups: tuple[MeasuredGroups, MeasuredGroups]) -> None:
    """Refuse grouping columns with different types in the two runs, since no groups would match.

    Parameters
    ----------
    groups : two MeasuredGroups
        Of both, the current run first.
    """
    for mine, other in zip(groups[0].by, groups[1].by, strict=True):
        if not same_values(mine, other):
            raise UsageError(f"{current.uri}: {mine.name!r} is {mine.type}, {reference.uri} has {other.type}; expected the same of both")


def list_groups(groups: tuple[MeasuredGroups, MeasuredGroups]) -> list[str]:
    """List the groups of both runs, sorted by values, with None last."""
    names = np.array(sorted({*groups[0].groups, *groups[1].groups}), str)
    return [str(names[g]) for g in sort_groups(names)[0]]


def compare_groups(groups: tuple[MeasuredGroups, MeasuredGroups]) -> tuple[GroupDrift, ...]:
    """Compare every group of rows that both runs have.

    Parameters
    ----------
    groups : two MeasuredGroups
        Of the current run, and of the reference.

    Returns
    -------
    tuple of GroupDrift
        Tests are not corrected yet.
    """
    current, reference = groups
    now, before, found = count_rows(current.groups), count_rows(reference.groups), list[GroupDrift]()
    for name in list_groups(groups):
        rows, old_rows = now.get(name, 0), before.get(name, 0)
        state = NEW if not old_rows else GONE if not rows else FEW if min(rows, old_rows) < FEW_ROWS else TESTED
        splits, shifts = compare_columns(current.groups[name], reference.groups[name]) if state in (FEW, TESTED) else ((), ())
        mine = tuple(replace(shift, group=name) for shift in shifts) if state == TESTED else ()
        found.append(GroupDrift(say_group(current.by, name), values_of(name), state, old_rows, rows, splits, mine))
    return tuple(found)


def mix_groups(groups: tuple[MeasuredGroups, MeasuredGroups], outputs: Sequence[str]) -> tuple[Mix, ...]:
    """Split the change of every output's mean margin into the mix of groups and changes within groups.

    Parameters
    ----------
    groups : two MeasuredGroups
        Of the current run, and of the reference.

    Returns
    -------
    tuple of Mix
        Of each output.
    """
    names, found = list_groups(groups), list[Mix]()
    for output in outputs:
        now, before = ({name: count_rows_of(each, output) for name, each in night.groups.items()} for night in groups)
        found.append(split_mix(output, names, before, now))
    return tuple(found)


def _list(found: Sequence[GroupDrift], say_rows: bool) -> str:
    said = [printable(each.group)[:SHOWN] + (f" ({count(max(each.rows, each.reference_rows), 'row')})" if say_rows else "") for each in found[:SOME]]
    return "; ".join(said) + (f"; and {len(found) - SOME} more" if len(found) > SOME else "")


def list_states(by: Sequence[GroupColumn], found: Sequence[GroupDrift]) -> tuple[str, ...]:
    """List in words the new, vanished and untested groups.

    Returns
    -------
    tuple of str
        Lines, in which names are escaped.
    """
    columns = printable(", ".join(column.name for column in by))
    told = {NEW: "that are new", GONE: "that are gone", FEW: f"of fewer than {FEW_ROWS} rows in a night, which are not tested"}
    mine = {state: [each for each in found if each.state == state] for state in told}
    return tuple(f"groups by {columns} {what}: {_list(mine[state], state != FEW)}" for state, what in told.items() if mine[state])
