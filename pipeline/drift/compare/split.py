"""The change of the mean margin shared out among the features: what each adds to it, exactly, since attributions add up on every row."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from leafledger.kernels.method.method import TOLERANCE
from leafledger.kernels.slices.links import IDENTITY, find_reach

from ...errors import InvalidRun
from ...methods.output_space import TOTALS
from ...runs.check.check_parts import ROUNDING
from ..measure.means import Means, means_of
from ..measure.measured_run import Measured

OF_SUMS = 1e-12  # of what is added up, that sums of many numbers in float64 may miss


@dataclass(frozen=True, slots=True)
class Night:
    """Means of one night and output."""

    total: Means  # of margins or predictions
    base: float  # value; where every row has one of its own, what attributions leave of the mean margin; NaN where that is not known either
    phi: Mapping[str, Means]  # by player
    left: float  # mean of the margins less base value and attributions: rounding of what is stored; 0 where attributions need not add up


def _reach(measured: Measured, k: int) -> float:
    """How large the predictions of an output can be, in units of which rounding is a fraction."""
    plan, manifest = measured.plan, measured.manifest
    base, bound = (np.array(numbers, np.float64)[:, None] for numbers in (manifest.base, manifest.bound))
    ends = np.array([[found.low, found.high] for found in map(measured.total, plan.written_outputs)])
    return float(np.max(find_reach(plan.link or IDENTITY, base, bound, ends)[k]))


def take_night(measured: Measured, phi: Mapping[str, Means], output: str) -> Night:
    """Put the means of an output together, and check that they add up."""
    plan, manifest = measured.plan, measured.manifest
    attributed, k = math.fsum(each.mean for each in phi.values()), plan.written_outputs.index(output)
    base = manifest.base[k]
    if plan.global_only:
        base = base if plan.row_output is None else math.nan
        mean = base + attributed if plan.additive else math.nan
        return Night(Means(manifest.n_rows, mean, math.nan, math.nan, math.nan), base, phi, 0.0)
    total = means_of(measured.total(output))
    if not plan.additive or not total.rows or not phi:
        return Night(total, base, phi, 0.0)
    if plan.row_output is not None:
        return Night(total, total.mean - attributed, phi, 0.0)
    size = math.fsum(each.mean_abs for each in phi.values()) + total.mean_abs + abs(base)
    left = total.mean - base - attributed
    allowed = (ROUNDING[plan.precision] + OF_SUMS) * size + TOLERANCE * _reach(measured, k)
    if not abs(left) <= allowed:
        raise InvalidRun(
            f"{measured.uri}: mean attributions miss mean {TOTALS[plan.space]} - base value by {left:.3g}, expected at most {allowed:.3g}"
        )
    return Night(total, base, phi, left)


@dataclass(frozen=True, slots=True)
class Split:
    """The change of the mean margin of an output, and what it is made of: the parts add up to it."""

    output: str
    reference_mean: float
    mean: float
    change: float
    standard_error: float
    base: float | None  # change of the base value: 0 with one model. None, as below, where attributions need not add up, or base values are not known
    features: float | None  # sum of the changes of mean phi
    rounding: float | None  # what rounding leaves
    ndcg: float  # of the order of the features by mean |phi|; NaN where a night has no rows


def split_change(output: str, reference: Night, current: Night, additive: bool, ndcg: float) -> Split:
    """Share out the change of the mean margin."""
    before, now = reference.total, current.total
    adds_up = additive and before.rows > 0 and now.rows > 0 and not math.isnan(current.base - reference.base)
    features = math.fsum((*(each.mean for each in current.phi.values()), *(-each.mean for each in reference.phi.values())))
    return Split(
        output=output,
        reference_mean=before.mean,
        mean=now.mean,
        change=now.mean - before.mean,
        standard_error=math.hypot(before.error, now.error),
        base=current.base - reference.base if adds_up else None,
        features=features if adds_up else None,
        rounding=current.left - reference.left if adds_up else None,
        ndcg=ndcg,
    )
