"""The change of a mean between nights whose rows are in groups: what comes of how many rows each group has, and what of the groups themselves."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GroupMix:
    """What a group adds to the change of the mean."""

    values: tuple[Any, ...]  # of the columns that make groups
    reference_share: float  # of the rows
    share: float
    reference_mean: float  # of its margins; NaN where it has no rows
    mean: float
    mix: float  # since it has another share of the rows
    within: float  # since its mean is another one


@dataclass(frozen=True, slots=True)
class Mix:
    """The change of the mean margin of an output: ``mix`` and ``within`` add up to it, each over the groups."""

    output: str
    change: float
    mix: float
    within: float
    groups: tuple[GroupMix, ...]


Group = tuple[int, float]  # rows, and their mean
NOBODY: Group = (0, math.nan)


def split_mix(output: str, names: Sequence[str], reference: Mapping[str, Group], current: Mapping[str, Group]) -> Mix:
    """Split the change of a mean (Kitagawa 1955): with shares w and means m of the groups of two nights, of which m̄ are all rows' means,

    mix = sum (w1 - w0) ((m0 + m1) / 2 - (m̄0 + m̄1) / 2), within = sum (w0 + w1) / 2 (m1 - m0).

    That all rows' means are taken off adds up to nothing, since shares change by 0 in all: so a group that grows adds to the mean where it is above
    it. A group that one night alone has is all mix.
    """
    totals = [sum(rows for rows, _ in night.values()) for night in (reference, current)]
    if not all(totals):
        return Mix(output, math.nan, math.nan, math.nan, ())
    means = [math.fsum(rows * mean for rows, mean in night.values()) / total for night, total in zip((reference, current), totals, strict=True)]
    center, groups = (means[0] + means[1]) / 2, list[GroupMix]()
    for name in names:
        (old_rows, old_mean), (rows, mean) = reference.get(name, NOBODY), current.get(name, NOBODY)
        old_share, share = old_rows / totals[0], rows / totals[1]
        before, now = (mean if not old_rows else old_mean), (old_mean if not rows else mean)
        mix, within = (share - old_share) * ((before + now) / 2 - center), (old_share + share) / 2 * (now - before)
        groups.append(GroupMix(tuple(json.loads(name)), old_share, share, old_mean, mean, mix, within))
    mix, within = (math.fsum(getattr(group, what) for group in groups) for what in ("mix", "within"))
    return Mix(output, means[1] - means[0], mix, within, tuple(groups))
