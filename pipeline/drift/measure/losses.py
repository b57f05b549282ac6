"""Means of a loss run: of its columns where every row counts alike and has them, else of its summaries, which know the rows' weights."""

import json
import math
from typing import Any

from ...runs.records.plan import Plan
from .distribution import Distribution
from .means import IMPORTANCE, Means, find_means, means_of, read_summary
from .measured_run import Measured

LOSS = "loss"  # the summary, and the totals of the manifest; by group of rows it is loss_by


def has_weights(plan: Plan) -> bool:
    """Return whether the rows of a run's losses count by weights, of which parts have no column."""
    return bool(plan.base_columns) and plan.labels is not None and plan.labels.weight is not None


def _is_summed_up(plan: Plan) -> bool:
    return has_weights(plan) or plan.global_only or not plan.wide


def _number(found: float | None) -> float:
    return math.nan if found is None else float(found)


def _read_rows(measured: Measured, name: str) -> list[dict[str, Any]]:
    """Read what a summary says of every player, over all rows or over those of the group."""
    by = [column.name for column in measured.plan.by] if measured.group else []
    values = json.loads(measured.group) if measured.group else []
    rows = read_summary(measured.uri, measured.manifest, f"{name}_by" if measured.group else name) or []
    return [row for row in rows if [row[name] for name in by] == values]


def _read_totals(measured: Measured) -> dict[str, Any]:
    return next(iter(_read_rows(measured, LOSS)), {}) if measured.group else measured.manifest.totals.get(LOSS, {})


def find_loss(measured: Measured, output: str) -> tuple[Means, float]:
    """Return the means of a loss run's losses, and the mean of its base values.

    Parameters
    ----------
    measured : Measured
        Of all rows, or of a group of them.
    output : str
        One of the plan's ``written_outputs``.
    """
    if not _is_summed_up(measured.plan):
        bases = measured.base(output)
        return means_of(measured.total(output)), math.nan if bases is None else bases.mean
    totals = _read_totals(measured)
    loss, error, base = (_number(totals.get(name)) for name in ("mean_loss", "mean_loss_error", "mean_base"))
    return Means(int(totals.get("n") or 0), loss, error, math.nan, math.nan), base


def find_parts(measured: Measured, output: str) -> dict[str, Means]:
    """Return the means of the attributions to one output: by weight, where the rows of a loss run have weights.

    Parameters
    ----------
    output : str
        One of the plan's ``written_outputs``.

    Returns
    -------
    dict of str to Means
        By player, in the plan's order; of no rows NaN.
    """
    plan = measured.plan
    if not plan.base_columns or not _is_summed_up(plan):
        return find_means(measured, output)
    n, means = int(_read_totals(measured).get("n") or 0), dict[str, Means]()
    sizes = {row["feature"]: _number(row["mean_abs"]) for row in _read_rows(measured, IMPORTANCE)}
    for row in _read_rows(measured, LOSS):
        known = (_number(row["mean"]), _number(row["standard_error"]), sizes.get(row["feature"], math.nan))
        means[row["feature"]] = Means(n, *(known if n else (math.nan, math.nan, math.nan)), math.nan)
    return means


def count_rows_of(measured: Measured, output: str) -> tuple[float, float]:
    """Return how much the rows of a group count, and their mean margin, prediction or loss.

    Returns
    -------
    (float, float)
        Their number, or the sum of their weights; NaN in the place of the mean of none.
    """
    if not has_weights(measured.plan):
        total = measured.total(output)
        return total.n, total.mean
    totals = _read_totals(measured)
    return _number(totals.get("weight") or 0.0), _number(totals.get("mean_loss"))


def find_reach_of_losses(measured: Measured, output: str) -> float:
    """Return the largest magnitude of losses and base values that is known, the scale of rounding errors."""
    found = (measured.base(output), measured.total(output) if measured.found else None)
    return max((max(abs(each.low), abs(each.high)) for each in found if isinstance(each, Distribution) and each.n), default=0.0)
