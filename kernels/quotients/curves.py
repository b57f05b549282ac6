"""Curves of the margin and their quotients (g(u) - g(w)) / (u - w): the mean slope from w to u, without loss of digits."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)  # Gauss-Legendre rule on [-1, 1]
NEAR = 4.0  # length up to which the rule is exact: the logistic function has no pole within pi of it
CurveName = Literal["line", "square", "sigmoid", "exp", "softplus"]


def sigmoid(margin: np.ndarray) -> np.ndarray:
    """Compute 1 / (1 + exp(-margin)).

    Parameters
    ----------
    margin : (…) float64
    """
    half = np.exp(-np.abs(margin))  # does not overflow for either sign
    return np.where(margin < 0, half, 1.0) / (1.0 + half)


def softplus(margin: np.ndarray) -> np.ndarray:
    """Compute log(1 + exp(margin))."""
    return np.maximum(margin, 0.0) + np.log1p(np.exp(-np.abs(margin)))


def _mean_relative(rise: np.ndarray) -> np.ndarray:
    """Return (1 - exp(-x)) / x for x >= 0, the mean of exp(-t) over t from 0 to x."""
    return np.where(rise > 0, -np.expm1(-rise) / np.where(rise > 0, rise, 1.0), 1.0)


def slope_of_sigmoid(u: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Compute the quotient of the logistic function.

    Parameters
    ----------
    u, w : (…) float64
        that broadcast
    """
    rise, far, near = np.abs(u - w), np.abs(u), np.abs(w)
    return np.exp((rise - far - near) / 2) * _mean_relative(rise) / ((1.0 + np.exp(-far)) * (1.0 + np.exp(-near)))


def slope_of_exp(u: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Compute the quotient of the exponential function, as ``slope_of_sigmoid`` does.

    Parameters
    ----------
    u, w : (…) float64
        that broadcast
    """
    return np.exp(np.maximum(u, w)) * _mean_relative(np.abs(u - w))


def _slope_of_softplus(u: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Average the derivative on the way where u and w are near each other, since the quotient has no digits there."""
    u, w = np.broadcast_arrays(u, w)
    rise = u - w
    near = np.abs(rise) < NEAR
    found = (softplus(u) - softplus(w)) / np.where(near, 1.0, rise)
    start, way = w[near], rise[near]
    mean = np.zeros(start.shape)
    for node, weight in zip((NODES + 1.0) / 2.0, WEIGHTS / 2.0, strict=True):
        mean += weight * sigmoid(start + node * way)
    found[near] = mean
    return found


class Curve(NamedTuple):
    """A function of the margin."""

    value: Callable[[np.ndarray], np.ndarray]
    quotient: Callable[[np.ndarray, np.ndarray], np.ndarray]  # of arrays that broadcast


CURVES: dict[CurveName, Curve] = {
    "line": Curve(lambda margin: margin, lambda u, w: np.ones(np.broadcast_shapes(u.shape, w.shape))),
    "square": Curve(np.square, np.add),
    "sigmoid": Curve(sigmoid, slope_of_sigmoid),
    "exp": Curve(np.exp, slope_of_exp),
    "softplus": Curve(softplus, _slope_of_softplus),
}
