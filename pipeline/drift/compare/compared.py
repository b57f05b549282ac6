"""Comparison of two runs, or of one group of rows: shifts of columns, and splits of margins."""

import math

import numpy as np

from leafledger.kernels.distributions.distances import measure_ndcg

from ...methods.output_space import TOTALS
from ..measure.losses import find_parts
from ..measure.measured_run import Measured
from .shifts import Shift, shift_loss, shift_mean, shift_phi, shift_total, shift_values
from .split import Split, split_change, take_night


def compare_columns(current: Measured, reference: Measured) -> tuple[tuple[Split, ...], tuple[Shift, ...]]:
    """Compare every column of two runs.

    Parameters
    ----------
    current, reference : Measured
        Of runs that were made alike, see `refuse_unlike`.

    Returns
    -------
    splits : tuple of Split
        Of every output.
    shifts : tuple of Shift
        Of every column; tests are not corrected yet.
    """
    plan, kind, shifts, splits = current.plan, TOTALS[current.plan.space], list[Shift](), list[Split]()
    for output in plan.written_outputs:
        nights = take_night(reference, find_parts(reference, output), output), take_night(current, find_parts(current, output), output)
        mine = shift_phi(output, current, reference, nights)
        before, now = (np.array([getattr(shift, name) for shift in mine], np.float64) for name in ("reference_mean_abs", "mean_abs"))
        ndcg = math.nan if np.isnan(before).any() or np.isnan(now).any() else measure_ndcg(before, now)  # a run without rows
        splits.append(split_change(output, *nights, plan.additive, ndcg))
        means = (*shift_mean(kind, output, nights), *shift_loss(plan.space, output, nights))
        shifts += [shift_total(kind, output, current, reference, nights), *means, *mine]
    return tuple(splits), (*shifts, *shift_values(current, reference))
