"""Shares of R² with standard errors, from sums of losses over rows that merge in a fixed order.

R^2 = 1 - sum w (y - margin)^2 / SST with SST = sum w (y - mean)^2 over rows of weight w. A player's share is its reduction of the squared errors,
divided by SST (Jiang, Zhang and Zhang 2025, Section 4). The remainder of R^2 belongs to no player: it comes from the means of trees, and from an
initial prediction other than the mean of the labels.

Every share is a ratio of sums over rows, sum w a / sum w (y - mean)^2. Given the model, rows are independent draws, so by the delta method its
variance is n / (n - 1) times the sum of w^2 (a - share (y - mean)^2)^2 / SST^2; estimating the mean adds nothing, since SST is smallest there
(Cochran 1977, Section 2.11). The sums are kept about the mean of the rows seen so far, and shifted when it moves (Chan, Golub and LeVeque 1983).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays.ordering import ranks_by_score
from ..jit.decorator import jit
from ..slices.labels import Labels

POWERS = 5  # powers of y - mean, from 0 to 4
PRECISE = 1e-300  # mean square of a row's part of SST above which sums of these squares keep all digits


class Sums(NamedTuple):
    """Sums over the rows of every group.

    Labels are relative to one of them, so that labels far from 0 lose no digits. A row's values are the players' losses, the squared residual, and
    the sum of all these. Losses, values and totals are in squared units of the label, and w is a row's weight.
    """

    rows: np.ndarray  # (groups,) float64, number of rows with weight
    missing: np.ndarray  # (groups,) float64, number of rows without a label
    weight: np.ndarray  # (groups,) float64
    low: np.ndarray  # (groups,) float64, smallest label
    high: np.ndarray  # (groups,) float64, largest label
    origin: np.ndarray  # (groups,) float64, label that others are relative to
    mean: np.ndarray  # (groups,) float64, of label - origin
    total: np.ndarray  # (groups,) float64, SST
    value: np.ndarray  # (groups, players + 2) float64, sums of w value
    square: np.ndarray  # (groups, players + 2) float64, sums of (w value)^2
    moments: np.ndarray  # (groups, POWERS) float64, sums of w^2 (y - mean)^power
    products: np.ndarray  # (groups, players + 2, 3) float64, sums of w^2 value (y - mean)^power


class R2State(NamedTuple):
    """Sums of groups, with their names."""

    names: np.ndarray  # (groups,) str, ascending
    sums: Sums


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio to every group's SST, NaN where its labels are all equal."""

    value: np.ndarray  # (groups,) or (groups, players) float64
    standard_error: np.ndarray  # float64, of the same shape


@dataclass(frozen=True, slots=True)
class Shares:
    """Decomposition of every group's R² over the players."""

    rows: np.ndarray  # (groups,) float64, number of rows with weight
    missing: np.ndarray  # (groups,) float64, number of rows without a label
    weight: np.ndarray  # (groups,) float64
    sst: np.ndarray  # (groups,) float64, squared units of the label
    r2: Estimate  # (groups,)
    share: Estimate  # (groups, players)
    remainder: Estimate  # (groups,), R^2 less all shares
    rank: np.ndarray  # (groups, players) int64, 1 for the largest share


def _no_sums(groups: int, players: int) -> Sums:
    zero, values = np.zeros(groups), players + 2
    return Sums(
        rows=zero.copy(),
        missing=zero.copy(),
        weight=zero.copy(),
        low=np.full(groups, np.inf),
        high=np.full(groups, -np.inf),
        origin=zero.copy(),
        mean=zero.copy(),
        total=zero.copy(),
        value=np.zeros((groups, values)),
        square=np.zeros((groups, values)),
        moments=np.zeros((groups, POWERS)),
        products=np.zeros((groups, values, 3)),
    )


def no_rows(n_players: int) -> R2State:
    """Make the state before the first row."""
    return R2State(np.zeros(0, "U1"), _no_sums(0, n_players))


@jit
def _sum_up(loss: np.ndarray, label: np.ndarray, weight: np.ndarray, group: np.ndarray, residual: np.ndarray, n: int, sums: Sums) -> None:
    """Sum over the first n rows into zeroed sums; missing labels have no weight."""
    players, groups = loss.shape[0], sums.rows.size
    for i in range(n):
        g, w = group[i], weight[i]
        if w > 0:
            if sums.rows[g] == 0:
                sums.origin[g] = label[i]
            sums.rows[g] += 1
            sums.weight[g] += w
            sums.low[g], sums.high[g] = min(sums.low[g], label[i]), max(sums.high[g], label[i])
            sums.mean[g] += w * (label[i] - sums.origin[g])
    for g in range(groups):
        sums.mean[g] /= max(sums.weight[g], np.finfo(np.float64).tiny)
    drift = np.zeros(groups)
    for i in range(n):
        if weight[i] > 0:
            drift[group[i]] += weight[i] * (label[i] - sums.origin[group[i]] - sums.mean[group[i]])
    for g in range(groups):
        sums.mean[g] += drift[g] / max(sums.weight[g], np.finfo(np.float64).tiny)  # rounding error of the mean
    for i in range(n):
        g, w = group[i], weight[i]
        if w > 0:
            y = label[i] - sums.origin[g] - sums.mean[g]
            sums.total[g] += w * y * y
            power = w * w
            for k in range(POWERS):
                sums.moments[g, k] += power
                power *= y
            everything = residual[i] ** 2
            for j in range(players + 2):
                if j < players:
                    value = loss[j, i]
                    everything += value
                else:
                    value = residual[i] ** 2 if j == players else everything
                sums.value[g, j] += w * value
                sums.square[g, j] += (w * value) ** 2
                power = w * w * value
                for k in range(3):
                    sums.products[g, j, k] += power
                    power *= y


def update(state: R2State, loss: np.ndarray, labels: Labels, n: int) -> R2State:
    """Add rows to a state."""
    here = _no_sums(labels.names.size, loss.shape[0])
    here.missing[:] = np.bincount(labels.group[:n], labels.missing[:n], labels.names.size)
    _sum_up(loss, labels.label, labels.weight, labels.group, labels.residual, n, here)
    return merge(state, R2State(labels.names, here))


def _about_other_means(sums: Sums, by: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return moments and products about means reduced by ``by (groups,)``."""
    m, p = sums.moments.T, np.moveaxis(sums.products, 2, 0)
    moments = [m[0]]
    for k, binomials in enumerate(((1,), (1, 2), (1, 3, 3), (1, 4, 6, 4)), 1):
        moments.append(m[k] + sum(c * m[i] * by ** (k - i) for i, c in enumerate(binomials)))
    along = by[:, None]
    products = (p[0], p[1] + along * p[0], p[2] + 2 * along * p[1] + along**2 * p[0])
    return np.stack(moments, axis=1), np.stack(products, axis=2)


def _merge_sums(a: Sums, b: Sums) -> Sums:
    weight = a.weight + b.weight
    share = np.divide(b.weight, weight, out=np.zeros_like(weight), where=weight > 0)
    first = a.rows > 0
    distance = np.where(first & (b.rows > 0), b.mean - a.mean + (b.origin - a.origin), 0.0)
    start = np.where(first, a.mean, b.mean)
    mean = start + distance * share
    moments, products = _about_other_means(a, start - mean)
    more_moments, more_products = _about_other_means(b, distance + start - mean)
    return Sums(
        rows=a.rows + b.rows,
        missing=a.missing + b.missing,
        weight=weight,
        low=np.minimum(a.low, b.low),
        high=np.maximum(a.high, b.high),
        origin=np.where(first, a.origin, b.origin),
        mean=mean,
        total=a.total + b.total + distance**2 * (a.weight * share),
        value=a.value + b.value,
        square=a.square + b.square,
        moments=moments + more_moments,
        products=products + more_products,
    )


def _spread(state: R2State, names: np.ndarray) -> Sums:
    """Expand the sums to the groups ``names``, ascending, which include the state's own."""
    out = _no_sums(names.size, state.sums.value.shape[1] - 2)
    place = np.searchsorted(names, state.names)
    for array, found in zip(out, state.sums, strict=True):
        array[place] = found
    return out


def merge(a: R2State, b: R2State) -> R2State:
    """Add two states, group by group (Chan, Golub and LeVeque 1983); rounding depends on the order."""
    names = np.union1d(a.names, b.names)
    return R2State(names, _merge_sums(_spread(a, names), _spread(b, names)))


def whole(state: R2State) -> R2State:
    """Add up all groups, in the order of their names."""
    parts = (Sums(*(array[g : g + 1] for array in state.sums)) for g in range(state.names.size))
    total = next(parts, _no_sums(1, state.sums.value.shape[1] - 2))
    for part in parts:
        total = _merge_sums(total, part)
    return R2State(np.array([""]), total)


def finalize(state: R2State, place: np.ndarray, n_places: int) -> Shares:
    """Compute every group's R², the players' shares, and standard errors (formulas and sources: module docstring)."""
    sums = state.sums
    rows, sst, differ = sums.rows[:, None], sums.total[:, None], (sums.high > sums.low)[:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(differ, sums.value / sst, np.nan)
        squares = sums.square - 2 * ratio * sums.products[:, :, 2] + ratio**2 * sums.moments[:, 4:]
        error = np.where(sst**2 > PRECISE * rows**2, np.sqrt(np.maximum(squares, 0.0) * np.divide(rows, rows - 1)) / sst, np.nan)
    share, standard_error = (np.where(differ, 0.0, np.full((1, n_places), np.nan)) for _ in range(2))
    share[:, place], standard_error[:, place] = ratio[:, :-2], error[:, :-2]
    return Shares(
        rows=sums.rows,
        missing=sums.missing,
        weight=sums.weight,
        sst=sums.total,
        r2=Estimate(1 - ratio[:, -2], error[:, -2]),
        share=Estimate(share, standard_error),
        remainder=Estimate(1 - ratio[:, -1], error[:, -1]),
        rank=ranks_by_score(share, axis=1),
    )
