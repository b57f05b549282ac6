"""Exact decomposition of the change of the mean margin over the features, by additivity."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from leafledger.kernels.method.method import TOLERANCE
from leafledger.kernels.slices.links import find_reach

from ...errors import InvalidRun
from ...methods.output_space import TOTALS, find_scale
from ...runs.check.check_parts import ROUNDING
from ..measure.losses import find_loss, find_reach_of_losses
from ..measure.means import Means, means_of
from ..measure.measured_run import Measured

OF_SUMS = 1e-12  # relative error allowed in sums of many float64 numbers


@dataclass(frozen=True, slots=True)
class Night:
    """Means of one run for one output."""

    total: Means  # mean margin, prediction or loss
    base: float  # base value; of losses the mean one; with an output per row, the mean margin less attributions; NaN if unknown
    phi: Mapping[str, Means]  # by player
    left: float  # mean of margins less base value and attributions: rounding of stored values; 0 if not additive


def _reach(measured: Measured, k: int) -> float:
    """Return the largest magnitude of an output's predictions, the scale of rounding errors."""
    plan, manifest = measured.plan, measured.manifest
    if plan.base_columns:
        return find_reach_of_losses(measured, plan.written_outputs[k])
    base, bound = (np.array(numbers, np.float64)[:, None] for numbers in (manifest.base, manifest.bound))
    ends = np.array([[found.low, found.high] for found in map(measured.total, plan.written_outputs)])
    return float(np.max(find_reach(find_scale(plan.link, plan.quantity), base, bound, ends)[k]))


def _check_sum(measured: Measured, k: int, night: Night) -> Night:
    """Refuse means that do not add up, and set what is left."""
    plan, phi, total = measured.plan, night.phi, night.total
    attributed = math.fsum(each.mean for each in phi.values())
    known = abs(total.mean) if math.isnan(total.mean_abs) else total.mean_abs
    size = math.fsum(each.mean_abs for each in phi.values()) + known + abs(night.base)
    left = total.mean - night.base - attributed
    allowed = (ROUNDING[plan.precision] + OF_SUMS) * size + TOLERANCE * _reach(measured, k)
    if not abs(left) <= allowed:
        raise InvalidRun(
            f"{measured.uri}: mean attributions miss mean {TOTALS[plan.space]} - base value by {left:.3g}, expected at most {allowed:.3g}"
        )
    return replace(night, left=left)


def take_night(measured: Measured, phi: Mapping[str, Means], output: str) -> Night:
    """Collect the means of an output, and check additivity."""
    plan, manifest = measured.plan, measured.manifest
    attributed, k = math.fsum(each.mean for each in phi.values()), plan.written_outputs.index(output)
    if plan.base_columns:
        found = Night(*find_loss(measured, output), phi, 0.0)
        return _check_sum(measured, k, found) if found.total.rows and phi else found
    base = manifest.base[k]
    if plan.global_only or (manifest.forgotten and not plan.wide):  # means of summaries, which were made with rows that are not there any more
        base = base if plan.row_output is None else math.nan
        mean = base + attributed if plan.additive else math.nan
        return Night(Means(manifest.n_explained, mean, math.nan, math.nan, math.nan), base, phi, 0.0)
    total = means_of(measured.total(output))
    if not plan.additive or not total.rows or not phi:
        return Night(total, base, phi, 0.0)
    if plan.row_output is not None:  # of every row its own
        return Night(total, total.mean - attributed, phi, 0.0)
    return _check_sum(measured, k, Night(total, base, phi, 0.0))


@dataclass(frozen=True, slots=True)
class Split:
    """Decomposition of the change of an output's mean margin, prediction or loss; the parts add up to it."""

    output: str
    reference_mean: float
    mean: float
    change: float
    standard_error: float
    base: float | None  # change of the base value: 0 for one model, of losses the labels'; None, as below, if not additive or unknown
    features: float | None  # sum of the changes of mean phi
    rounding: float | None  # rounding error
    ndcg: float  # of the order of features by mean |phi|; NaN if a run has no rows


def split_change(output: str, reference: Night, current: Night, additive: bool, ndcg: float) -> Split:
    """Decompose the change of the mean margin."""
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
