"""Groups of rows of two nights side by side: those that are new or gone, those of too few rows, and how the others changed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leafledger.kernels.reductions.group_moments import sort_groups

from ...dataset.columns.grouping import GroupColumn, same_values
from ...display.text import count, printable
from ...errors import UsageError
from ..measure.measured_groups import MeasuredGroups, count_rows, say_group, values_of
from ..measure.measured_run import Measured
from .compared import compare_columns
from .mix import Mix, split_mix
from .shifts import Shift
from .split import Split

FEW_ROWS = 50  # in either night, of which tests tell little
NEW, GONE, FEW, TESTED = "new", "gone", "few", "tested"
SOME = 5  # groups that are listed in words
SHOWN = 60  # characters of a group


@dataclass(frozen=True, slots=True)
class GroupDrift:
    """How a group of rows changed.

    Attributes
    ----------
    group : str
        In words, such as "carrier=AA".
    values : tuple
        Of the columns that make groups; None where rows have none.
    state : str
        "tested"; "new" or "gone" where one night has no rows of it; "few" where one has fewer than FEW_ROWS.
    reference_rows, rows : int
    outputs : tuple of Split
        As of all rows. None of a group that one night alone has.
    shifts : tuple of Shift
        As of all rows. None of a group that is not tested.
    """

    group: str
    values: tuple[Any, ...]
    state: str
    reference_rows: int
    rows: int
    outputs: tuple[Split, ...]
    shifts: tuple[Shift, ...]


def refuse_other_types(current: Measured, reference: Measured, groups: tuple[MeasuredGroups, MeasuredGroups]) -> None:
    """Refuse columns whose values are of other types in the two nights: none of their groups would be the same.

    Parameters
    ----------
    groups : two MeasuredGroups
        Of both, the current run first.
    """
    for mine, other in zip(groups[0].by, groups[1].by, strict=True):
        if not same_values(mine, other):
            raise UsageError(f"{current.uri}: {mine.name!r} is {mine.type}, {reference.uri} has {other.type}; expected the same of both")


def list_groups(groups: tuple[MeasuredGroups, MeasuredGroups]) -> list[str]:
    """List the groups of both nights, in the order of their values, none last."""
    names = np.array(sorted({*groups[0].groups, *groups[1].groups}), str)
    return [str(names[g]) for g in sort_groups(names)[0]]


def compare_groups(groups: tuple[MeasuredGroups, MeasuredGroups]) -> tuple[GroupDrift, ...]:
    """Compare every group of rows that both nights have.

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
    """Split the change of every output's mean margin into what comes of the mix of groups, and of the groups themselves.

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
        now, before = ({name: (each.total(output).n, each.total(output).mean) for name, each in night.groups.items()} for night in groups)
        found.append(split_mix(output, names, before, now))
    return tuple(found)


def _list(found: Sequence[GroupDrift], say_rows: bool) -> str:
    said = [printable(each.group)[:SHOWN] + (f" ({count(max(each.rows, each.reference_rows), 'row')})" if say_rows else "") for each in found[:SOME]]
    return "; ".join(said) + (f"; and {len(found) - SOME} more" if len(found) > SOME else "")


def list_states(by: Sequence[GroupColumn], found: Sequence[GroupDrift]) -> tuple[str, ...]:
    """Say which groups are new, gone, or of too few rows to be tested.

    Returns
    -------
    tuple of str
        Lines, in which names are escaped.
    """
    columns = printable(", ".join(column.name for column in by))
    told = {NEW: "that are new", GONE: "that are gone", FEW: f"of fewer than {FEW_ROWS} rows in a night, which are not tested"}
    mine = {state: [each for each in found if each.state == state] for state in told}
    return tuple(f"groups by {columns} {what}: {_list(mine[state], state != FEW)}" for state, what in told.items() if mine[state])
