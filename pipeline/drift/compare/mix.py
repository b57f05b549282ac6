"""Decomposition of a mean's change into the mix of groups and changes within groups (Kitagawa 1955)."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GroupMix:
    """A group's contribution to the change of the mean."""

    values: tuple[Any, ...]  # of the grouping columns
    reference_share: float  # share of the rows, or of their weights
    share: float
    reference_mean: float  # mean of its margins; NaN without rows
    mean: float
    mix: float  # contribution of its changed share
    within: float  # contribution of its changed mean


@dataclass(frozen=True, slots=True)
class Mix:
    """Decomposition of the change of an output's mean margin: the sums of ``mix`` and ``within`` over the groups add up to it."""

    output: str
    change: float
    mix: float
    within: float
    groups: tuple[GroupMix, ...]


Group = tuple[float, float]  # number of rows or sum of their weights, and their mean
NOBODY: Group = (0, math.nan)


def split_mix(output: str, names: Sequence[str], reference: Mapping[str, Group], current: Mapping[str, Group]) -> Mix:
    """Split the change of a mean (Kitagawa 1955). With shares w and means m of the groups in both runs, and m̄ the means of all rows,

    mix = sum (w1 - w0) ((m0 + m1) / 2 - (m̄0 + m̄1) / 2), within = sum (w0 + w1) / 2 (m1 - m0).

    Subtracting m̄ changes no sum, since changes of shares add up to 0: so a growing group contributes positively if its mean is above that of all
    rows. A group of only one run is all mix.
    """
    totals = [sum(rows for rows, _ in night.values()) for night in (reference, current)]
    if not all(totals):
        return Mix(output, math.nan, math.nan, math.nan, ())
    means = [
        math.fsum(rows * mean for rows, mean in night.values() if rows) / total for night, total in zip((reference, current), totals, strict=True)
    ]
    center, groups = (means[0] + means[1]) / 2, list[GroupMix]()
    for name in names:
        (old_rows, old_mean), (rows, mean) = reference.get(name, NOBODY), current.get(name, NOBODY)
        old_share, share = old_rows / totals[0], rows / totals[1]
        before, now = (mean if not old_rows else old_mean), (old_mean if not rows else mean)
        if not rows and not old_rows:  # none of its rows has a label
            before = now = center
        mix, within = (share - old_share) * ((before + now) / 2 - center), (old_share + share) / 2 * (now - before)
        groups.append(GroupMix(tuple(json.loads(name)), old_share, share, old_mean, mean, mix, within))
    mix, within = (math.fsum(getattr(group, what) for group in groups) for what in ("mix", "within"))
    return Mix(output, means[1] - means[0], mix, within, tuple(groups))
