"""Shares of R^2: losses of rows summed up, mergeable in a fixed order, with standard errors.

R^2 = 1 - sum w (y - margin)^2 / SST with SST = sum w (y - mean)^2 over rows of weight w. A player's share is what it takes off the squared errors,
divided by SST (Jiang, Zhang and Zhang 2025, Section 4). What is left of R^2, the remainder, is nobody's: it comes of the trees' own
means, and of residuals that start from something else than the mean of the labels.

Every share is a ratio of sums over rows, sum w a / sum w (y - mean)^2. Given the model rows are independent draws, so by the delta method its
variance is n / (n - 1) times the sum of w^2 (a - share (y - mean)^2)^2 / SST^2; that the mean is estimated too does not count, since SST is
smallest there (Cochran 1977, Section 2.11). The sums that needs are kept about the mean of the rows seen so far, and moved when it moves (Chan,
Golub and LeVeque 1983).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ._jit import jit

POWERS = 5  # of y - mean, from 0 to 4


class R2State(NamedTuple):
    """Sums over rows; labels are counted from one of them, so that those far from 0 lose no digits. Values of a row are the players' losses, then
    the squared residual, then the sum of all."""

    rows: np.ndarray  # (1,) float64, how many with weight
    weight: np.ndarray  # (1,) float64
    low: np.ndarray  # (1,) float64, least label
    high: np.ndarray  # (1,) float64, largest
    origin: np.ndarray  # (1,) float64, a label
    mean: np.ndarray  # (1,) float64, of label - origin
    total: np.ndarray  # (1,) float64, SST
    value: np.ndarray  # (players + 2,) float64, sums of w value
    square: np.ndarray  # (players + 2,) float64, sums of (w value)^2
    moments: np.ndarray  # (POWERS,) float64, sums of w^2 (y - mean)^power
    products: np.ndarray  # (players + 2, 3) float64, sums of w^2 value (y - mean)^power


@dataclass(frozen=True, slots=True)
class Shares:
    """How R^2 is shared; all NaN but counts where the labels do not differ."""

    rows: int
    weight: float
    sst: float
    r2: float
    r2_standard_error: float
    share: np.ndarray  # (players,) float64
    standard_error: np.ndarray  # (players,) float64
    remainder: float  # R^2 less all shares
    remainder_standard_error: float


def no_rows(n_players: int) -> R2State:
    """The state before the first row."""
    values = n_players + 2
    return R2State(
        rows=np.zeros(1),
        weight=np.zeros(1),
        low=np.full(1, np.inf),
        high=np.full(1, -np.inf),
        origin=np.zeros(1),
        mean=np.zeros(1),
        total=np.zeros(1),
        value=np.zeros(values),
        square=np.zeros(values),
        moments=np.zeros(POWERS),
        products=np.zeros((values, 3)),
    )


@jit
def _sum_up(loss, residual, labels, weights, n, state):
    """Sums over n rows, into a state of zeros."""
    players = loss.shape[0]
    for i in range(n):
        if weights[i] > 0:
            if state.rows[0] == 0:
                state.origin[0] = labels[i]
            state.rows[0] += 1
            state.weight[0] += weights[i]
            state.low[0], state.high[0] = min(state.low[0], labels[i]), max(state.high[0], labels[i])
            state.mean[0] += weights[i] * (labels[i] - state.origin[0])
    if state.rows[0] == 0:
        return
    state.mean[0] /= state.weight[0]
    drift = 0.0
    for i in range(n):
        if weights[i] > 0:
            drift += weights[i] * (labels[i] - state.origin[0] - state.mean[0])
    state.mean[0] += drift / state.weight[0]  # what rounding left of the mean
    for i in range(n):
        w = weights[i]
        if w > 0:
            y = labels[i] - state.origin[0] - state.mean[0]
            state.total[0] += w * y * y
            power = w * w
            for k in range(POWERS):
                state.moments[k] += power
                power *= y
            everything = residual[i] ** 2
            for j in range(players + 2):
                if j < players:
                    value = loss[j, i]
                    everything += value
                else:
                    value = residual[i] ** 2 if j == players else everything
                state.value[j] += w * value
                state.square[j] += (w * value) ** 2
                power = w * w * value
                for k in range(3):
                    state.products[j, k] += power
                    power *= y


def update(state: R2State, loss, residual, labels, weights, n: int) -> R2State:
    """Add n rows.

    Parameters
    ----------
    loss : (players, at least n) float64, what players take off the squared errors
    residual : (at least n,) float64, label - margin
    labels : (at least n,) float64
    weights : (at least n,) float64, not negative; a row of weight 0 does not count, whatever its label
    n : rows
    """
    here = no_rows(loss.shape[0])
    _sum_up(loss, residual, labels, weights, n, here)
    return merge(state, here)


def _moved(state: R2State, by: float):
    """Moments and products about a mean that is less by ``by``."""
    m, p = state.moments, state.products
    moments = [m[0]]
    for k, binomials in enumerate(((1,), (1, 2), (1, 3, 3), (1, 4, 6, 4)), 1):
        moments.append(m[k] + sum(c * m[i] * by ** (k - i) for i, c in enumerate(binomials)))
    products = (p[:, 0], p[:, 1] + by * p[:, 0], p[:, 2] + 2 * by * p[:, 1] + by**2 * p[:, 0])
    return np.array(moments), np.stack(products, axis=1)


def merge(a: R2State, b: R2State) -> R2State:
    """The state of the rows of both."""
    if b.rows[0] == 0:
        return a
    if a.rows[0] == 0:
        return b
    weight = a.weight + b.weight
    distance = b.mean - a.mean + (b.origin - a.origin)
    mean = a.mean + distance * (b.weight / weight)
    moments, products = _moved(a, float((a.mean - mean)[0]))
    more_moments, more_products = _moved(b, float((distance + a.mean - mean)[0]))
    return R2State(
        rows=a.rows + b.rows,
        weight=weight,
        low=np.minimum(a.low, b.low),
        high=np.maximum(a.high, b.high),
        origin=a.origin,
        mean=mean,
        total=a.total + b.total + distance**2 * (a.weight * b.weight / weight),
        value=a.value + b.value,
        square=a.square + b.square,
        moments=moments + more_moments,
        products=products + more_products,
    )


def finalize(state: R2State) -> Shares:
    """Shares and their standard errors."""
    rows, sst = float(state.rows[0]), float(state.total[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(state.high > state.low, state.value / sst, np.nan)
        squares = state.square - 2 * ratio * state.products[:, 2] + ratio**2 * state.moments[4]
        error = np.sqrt(np.maximum(squares, 0.0) * np.divide(rows, rows - 1)) / sst
    return Shares(
        rows=int(rows),
        weight=float(state.weight[0]),
        sst=sst,
        r2=float(1 - ratio[-2]),
        r2_standard_error=float(error[-2]),
        share=ratio[:-2],
        standard_error=error[:-2],
        remainder=float(1 - ratio[-1]),
        remainder_standard_error=float(error[-1]),
    )
