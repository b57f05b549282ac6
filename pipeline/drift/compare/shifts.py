"""Shifts between two runs: one record for each margin, attribution, value, and missing or unseen share."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from leafledger.kernels.arrays.ordering import ranks_by_score
from leafledger.kernels.distributions.distances import correct_p

from ...arguments.choices import LOSS, Space
from ...methods.output_space import TOTALS
from ..measure.columns import has_categories, lists_categories
from ..measure.distribution import Categories, Distribution
from ..measure.means import INPUTS, Means, means_of, nothing, read_summary
from ..measure.measured_run import ColumnDistribution, Measured
from .alarm_thresholds import Thresholds
from .split import Night
from .statistics import Apart, compare_categories, compare_numbers, compare_shares

PHI, VALUE, MISSING, UNSEEN, GROUPS, MEAN_LOSS = "phi", "value", "missing", "unseen", "groups", "mean loss"
MEAN_TOTALS = tuple(f"mean {total}" for total in dict.fromkeys(TOTALS.values()) if total != LOSS)  # of margins, or predictions
MEANS = (*MEAN_TOTALS, MEAN_LOSS)
THRESHOLDS = {MISSING: "share", UNSEEN: "share", MEAN_LOSS: "loss"} | dict.fromkeys(MEAN_TOTALS, "mean")  # how far is far enough; else by distance
IGNORED = (PHI, VALUE, MISSING, UNSEEN, GROUPS)  # kinds that make no alarm where their feature is ignored
FEW = 50  # rows below which a night's mean loss or prediction is not tested
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Shift:
    """Change of a column from the reference to the current run; unknown numbers are NaN."""

    # margin, prediction or loss; mean margin, mean prediction or mean loss; phi, value, groups; or missing and unseen, whose means are shares
    kind: str
    output: str  # "" for values
    feature: str  # "" for margins
    reference_rows: int  # number of nonmissing values; for shares, of rows
    rows: int  # the same of the run
    reference_mean: float
    mean: float
    change: float  # of the mean
    standard_error: float  # of the change
    reference_mean_abs: float  # of magnitudes, as the next three
    mean_abs: float
    change_abs: float
    standard_error_abs: float
    reference_share: float  # share in the sum of mean |phi| over features
    share: float
    reference_rank: int | None  # by mean |phi|
    rank: int | None
    psi: float  # population stability index
    psi_expected: float  # expected without drift
    wasserstein: float  # distance, in the column's units
    # Kolmogorov–Smirnov; total variation of categories; difference of shares; of the mean loss its rise, as a share of what it was; of a mean margin
    # or prediction its change, in standard deviations of what the rows had
    distance: float
    p: float  # how probable so large a distance is without drift
    corrected: float  # p, corrected for all tests of both runs
    data: float = math.nan  # change of mean phi due to the data, with --both-ways
    model: float = math.nan  # and due to the model
    drifted: bool = False  # a threshold is crossed
    group: str = ""  # of the rows: its values as a JSON list; "" for all rows
    unsure: bool = False  # most values of both runs share a histogram bin: distances are lower bounds


def _shift(kind: str, output: str, feature: str, before: Means, now: Means, apart: Apart) -> Shift:
    return Shift(
        kind=kind,
        output=output,
        feature=feature,
        reference_rows=before.rows,
        rows=now.rows,
        reference_mean=before.mean,
        mean=now.mean,
        change=now.mean - before.mean,
        standard_error=math.hypot(before.error, now.error),
        reference_mean_abs=before.mean_abs,
        mean_abs=now.mean_abs,
        change_abs=now.mean_abs - before.mean_abs,
        standard_error_abs=math.hypot(before.error_abs, now.error_abs),
        reference_share=math.nan,
        share=math.nan,
        reference_rank=None,
        rank=None,
        psi=apart.psi,
        psi_expected=apart.psi_expected,
        wasserstein=apart.wasserstein,
        distance=apart.distance,
        p=apart.p,
        corrected=math.nan,
        unsure=apart.unsure,
    )


def _compare(before: ColumnDistribution | None, now: ColumnDistribution | None) -> Apart:
    if isinstance(before, Distribution) and isinstance(now, Distribution):
        return compare_numbers(before, now)
    if isinstance(before, Categories) and isinstance(now, Categories):
        return compare_categories(before, now)
    return Apart()


def _means(found: ColumnDistribution) -> Means:
    return means_of(found) if isinstance(found, Distribution) else Means(found.there, math.nan, math.nan, math.nan, math.nan)


def _total(measured: Measured, output: str) -> ColumnDistribution | None:
    return None if measured.plan.global_only else measured.total(output)


def shift_total(kind: str, output: str, current: Measured, reference: Measured, nights: tuple[Night, Night]) -> Shift:
    """Compare margins or predictions."""
    return _shift(kind, output, "", nights[0].total, nights[1].total, _compare(_total(reference, output), _total(current, output)))


def shift_loss(space: Space, output: str, nights: tuple[Night, Night]) -> list[Shift]:
    """Compare mean losses, of loss runs: whether the mean rose, by a one-sided test; its distance is the rise as a share of what it was."""
    before, now = (night.total for night in nights)
    if space != LOSS:
        return []
    rise, error = now.mean - before.mean, math.hypot(before.error, now.error)
    tested = min(before.rows, now.rows) >= FEW and error > 0
    p = math.erfc(rise / error / math.sqrt(2)) / 2 if tested else math.nan
    return [_shift(MEAN_LOSS, output, "", before, now, Apart(distance=rise / before.mean if before.mean > 0 else math.nan, p=p))]


def shift_mean(kind: str, output: str, nights: tuple[Night, Night]) -> list[Shift]:
    """Compare mean margins or predictions by a two-sided test; their distance is the change in standard deviations of the reference's rows."""
    before, now = (night.total for night in nights)
    if kind == LOSS:
        return []
    error, spread = math.hypot(before.error, now.error), before.error * math.sqrt(before.rows)
    tested = min(before.rows, now.rows) >= FEW and error > 0
    p = math.erfc(abs(now.mean - before.mean) / error / math.sqrt(2)) if tested else math.nan
    return [_shift(f"mean {kind}", output, "", before, now, Apart(distance=abs(now.mean - before.mean) / spread if spread > 0 else math.nan, p=p))]


def _rank(values: np.ndarray) -> tuple[np.ndarray, list[int] | list[None]]:
    """Return shares and ranks, unknown for a run without rows."""
    if np.isnan(values).any():
        return np.full(values.size, np.nan), [None] * values.size
    total = values.sum()
    return (values / total if total > 0 else np.zeros(values.size)), ranks_by_score(values, axis=0).tolist()


def shift_phi(output: str, current: Measured, reference: Measured, nights: tuple[Night, Night]) -> list[Shift]:
    """Compare attributions; features that one of two models lacks have 0."""
    before, now = (night.phi for night in nights)
    players = list(dict.fromkeys((*now, *before)))
    pairs = [(before.get(player, nothing(nights[0].total.rows)), now.get(player, nothing(nights[1].total.rows))) for player in players]
    (old_share, old_rank), (share, rank) = (_rank(np.array([pair[k].mean_abs for pair in pairs], np.float64)) for k in (0, 1))
    return [
        replace(
            _shift(PHI, output, player, pairs[j][0], pairs[j][1], _compare(reference.phi(output, player), current.phi(output, player))),
            reference_share=float(old_share[j]),
            share=float(share[j]),
            reference_rank=old_rank[j],
            rank=rank[j],
        )
        for j, player in enumerate(players)
    ]


def _inputs(measured: Measured) -> dict[str, tuple[int, int, int | None]]:
    """Return counts of missing and unseen values by feature, as the model saw them, or by group from the values themselves."""
    found: dict[str, tuple[int, int, int | None]] = {}
    for feature in measured.plan.features:
        values = measured.value(feature.name)
        if values is not None:
            found[feature.name] = values.rows, values.missing, getattr(values, "unseen", None)
    rows = [] if measured.group else read_summary(measured.uri, measured.manifest, INPUTS) or []
    return found | {row["feature"]: (row["rows"], row["missing"], row["unseen"]) for row in rows}


def _share(of_kind: int, rows: int) -> Means:
    share = of_kind / rows if rows else math.nan
    error = math.sqrt(share * (1 - share) / (rows - 1)) if rows > 1 else math.nan
    return Means(rows, share, error, math.nan, math.nan)


def _shift_share(kind: str, feature: str, before: tuple[int, int], now: tuple[int, int]) -> Shift:
    return _shift(kind, "", feature, _share(*before), _share(*now), compare_shares(*before, *now))


def _known(measured: Measured) -> dict[str, set[str]]:
    """Return the categories of features that the model lists."""
    return {feature.name: set(map(str, feature.categories or ())) for feature in measured.plan.features if lists_categories(feature)}


def _fold(found: ColumnDistribution, known: set[str]) -> ColumnDistribution:
    """Count all other categories as unseen."""
    if not isinstance(found, Categories) or found.counts is None:
        return found
    kept = tuple(each for each in found.counts if each[0] in known)
    rest = sum(n for _, n in found.counts) - sum(n for _, n in kept)
    return replace(found, unseen=(found.unseen or 0) + rest, counts=kept)


def shift_values(current: Measured, reference: Measured) -> Iterator[Shift]:
    """Compare the values of features in both runs, and their missing and unseen shares.

    Categories that only one model lists count as unseen, so that equal data do not shift with the list.
    """
    before, now = _inputs(reference), _inputs(current)
    lists = [_known(reference), _known(current)]
    for feature in current.plan.features:
        name = feature.name
        old, new = reference.value(name), current.value(name)
        for known in (each[name] for each in lists if name in each):  # a run has no names for categories that its model does not list
            old, new = (None if found is None else _fold(found, known) for found in (old, new))
        if old is not None and new is not None:
            yield _shift(VALUE, "", name, _means(old), _means(new), _compare(old, new))
        if name in before and name in now:
            (old_rows, old_missing, old_unseen), (rows, missing, unseen) = before[name], now[name]
            yield _shift_share(MISSING, name, (old_missing, old_rows), (missing, rows))
            if has_categories(feature) and old_unseen is not None and unseen is not None:
                yield _shift_share(UNSEEN, name, (old_unseen, old_rows), (unseen, rows))


def shift_groups(by: str, before: Mapping[str, int], now: Mapping[str, int]) -> Shift:
    """Compare the shares of groups of rows.

    Parameters
    ----------
    by : str
        Names of the columns that make the groups.
    before, now : mapping of str to int
        Rows of each group.

    Returns
    -------
    Shift
        Whose distance is total variation, of categories that are groups.
    """
    nights = [Categories(sum(rows.values()), 0, None, tuple(sorted(rows.items()))) for rows in (before, now)]
    return _shift(GROUPS, "", by, _means(nights[0]), _means(nights[1]), _compare(*nights))


def judge(shifts: list[Shift], thresholds: Thresholds) -> list[Shift]:
    """Correct all tests for their number, and decide which columns drifted."""
    corrected = correct_p(np.array([shift.p for shift in shifts], np.float64)).tolist()
    return [replace(shift, corrected=q, drifted=_drifts(shift, q, thresholds)) for shift, q in zip(shifts, corrected, strict=True)]


def rank_alarms(drifted: Sequence[S], shifts: Sequence[S], read: Callable[[S, str], Any] = getattr) -> list[S]:
    """Order what drifted by how much it moved predictions: their mean first, then features by the change of their mean attributions, groups last.

    Parameters
    ----------
    drifted : sequence of Shift
        Some of the shifts.
    shifts : sequence of Shift
        All of them.
    read : callable
        Reads a field of one: of records, or of what JSON has in their place.
    """
    moved = dict[str, float]()
    for shift in shifts:
        change = read(shift, "change") if read(shift, "kind") == PHI else None
        if change is not None and change == change:
            feature = read(shift, "feature")
            moved[feature] = max(moved.get(feature, 0.0), abs(change))

    def place(shift: S) -> tuple[int, float]:
        kind, feature = read(shift, "kind"), read(shift, "feature")
        return (0, 0.0 if kind in MEANS else 1.0) if not feature else (2 if kind == GROUPS else 1, -moved.get(feature, 0.0))

    return sorted(drifted, key=place)


def _drifts(shift: Shift, corrected: float, thresholds: Thresholds) -> bool:
    if shift.kind in IGNORED and shift.feature in thresholds.ignore:
        return False
    far = getattr(thresholds, THRESHOLDS.get(shift.kind, "distance"))
    sure = corrected <= thresholds.false_discovery_rate and shift.distance >= far  # false for NaN
    return sure or (thresholds.psi is not None and shift.psi - shift.psi_expected >= thresholds.psi)


def set_parts(shifts: list[Shift], parts: Mapping[tuple[str, str], tuple[float, float]]) -> list[Shift]:
    """Set the changes of attributions due to the data and the model.

    Parameters
    ----------
    parts : mapping of (str, str) to (float, float)
        By output and player.
    """
    return [
        replace(shift, data=parts[shift.output, shift.feature][0], model=parts[shift.output, shift.feature][1])
        if shift.kind == PHI and (shift.output, shift.feature) in parts
        else shift
        for shift in shifts
    ]
