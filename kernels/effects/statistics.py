"""Numbers that sums of rows give: accumulated local effects, and Friedman's H."""

import numpy as np

from .sums import AxisSums, Moments


def accumulate(rises: Moments) -> tuple[np.ndarray, np.ndarray]:
    """Add up local effects, and centre them.

    Parameters
    ----------
    rises : Moments
        of every interval, ``(outputs, intervals)``

    Returns
    -------
    effect : (outputs, intervals + 1) float64
        at every edge; its mean over all rows is 0, where a row's effect is the mean of its interval's two ends (Apley and Zhu 2020, Eq. 16)
    error : (outputs, intervals) float64
        standard errors of the local effects; NaN of fewer than two rows
    """
    effect = np.concatenate((np.zeros((len(rises.mean), 1)), np.cumsum(rises.mean, axis=1)), axis=1)
    if rises.n.sum() > 0:
        effect -= ((effect[:, 1:] + effect[:, :-1]) / 2 @ rises.n / rises.n.sum())[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        return effect, np.sqrt(rises.spread / (rises.n - 1) / rises.n)


def _share(part: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return a part of a spread, ``(outputs,) float64``; NaN where nothing spreads."""
    return np.where(total > 0, part / np.where(total > 0, total, 1.0), np.nan)


def against_all(sums: AxisSums, margin: Moments) -> np.ndarray:
    """Find Friedman's H² of a feature and all others together, ``(outputs,) float64`` (Friedman and Popescu 2008, Eq. 45)."""
    return _share(sums.rest.spread, margin.spread)


def against_one(together: np.ndarray, surface: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Find Friedman's H² of two features (Friedman and Popescu 2008, Eq. 44).

    Parameters
    ----------
    together : (states, states) int64
        rows in every two states
    surface : (outputs, states, states) float64
        their joint partial dependence, margin units
    first, second : (outputs, states) float64
        the partial dependence of each

    Returns
    -------
    (outputs,) float64
        NaN where their joint partial dependence is the same for all rows
    """
    weight = together / together.sum()
    found = []
    for values in (surface - first[:, :, None] - second[:, None, :], surface):
        mean = (values * weight).sum(axis=(1, 2))
        found.append((weight * (values - mean[:, None, None]) ** 2).sum(axis=(1, 2)))
    return _share(*found)
