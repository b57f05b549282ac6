"""What attributions can add up to beside margins: predictions and losses, each a sum of curves of the margin.

A quantity of a row with margin m and label y is

    sum over terms of (constant + slope * y) * curve(scale * m)

and a part that depends on the label alone. So one set of weighted backgrounds serves all labels, see ``nodes``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from .curves import CURVES, CurveName, sigmoid, softplus

QuantityName = Literal["sigmoid", "exp", "squared", "log", "poisson", "gamma"]


class Term(NamedTuple):
    """A curve of the scaled margin, times a number that depends on the label."""

    curve: CurveName
    scale: float = 1.0
    constant: float = 1.0
    slope: float = 0.0

    def factor(self, label: np.ndarray) -> np.ndarray:
        """Return what the curve is multiplied by, for every label.

        Parameters
        ----------
        label : (n,) float64
        """
        return self.constant + self.slope * label

    def quotient(self, u: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Compute the mean slope of the curve from margin w to margin u, without the factor.

        Parameters
        ----------
        u, w : (…) float64
            that broadcast
        """
        return self.scale * CURVES[self.curve].quotient(self.scale * u, self.scale * w)


def _log_loss(margin: np.ndarray, label: np.ndarray) -> np.ndarray:
    return label * softplus(-margin) + (1.0 - label) * softplus(margin)


def _poisson(margin: np.ndarray, label: np.ndarray) -> np.ndarray:
    entropy = label * np.log(np.where(label > 0, label, 1.0))
    return 2.0 * (entropy - label * (margin + 1.0) + np.exp(margin))


def _gamma(margin: np.ndarray, label: np.ndarray) -> np.ndarray:
    return 2.0 * (margin - np.log(label) + label * np.exp(-margin) - 1.0)


class _Kind(NamedTuple):
    """What is known of a quantity."""

    terms: tuple[Term, ...]
    value: Callable[[np.ndarray, np.ndarray], np.ndarray]  # ``(margin, label) -> quantity``
    labels: tuple[float, float] | None = None  # smallest and largest label; None of what takes no label
    open: bool = False  # the smallest label itself is none
    centred: bool = False  # depends on the difference of margin and label alone, which are then taken from a margin of the background


KINDS: dict[QuantityName, _Kind] = {
    "sigmoid": _Kind((Term("sigmoid"),), lambda margin, label: sigmoid(margin)),
    "exp": _Kind((Term("exp"),), lambda margin, label: np.exp(margin)),
    "squared": _Kind(
        (Term("square"), Term("line", constant=0.0, slope=-2.0)),
        lambda margin, label: np.square(margin - label),
        (-np.inf, np.inf),
        centred=True,
    ),
    "log": _Kind((Term("softplus", -1.0, 0.0, 1.0), Term("softplus", 1.0, 1.0, -1.0)), _log_loss, (0.0, 1.0)),
    "poisson": _Kind((Term("exp", constant=2.0), Term("line", constant=0.0, slope=-2.0)), _poisson, (0.0, np.inf)),
    "gamma": _Kind((Term("exp", -1.0, 0.0, 2.0), Term("line", constant=2.0)), _gamma, (0.0, np.inf), open=True),
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A function of ``scale`` times the margin, and of the label if it is a loss."""

    name: QuantityName
    scale: float = 1.0

    @property
    def terms(self) -> tuple[Term, ...]:
        """Its terms, as functions of the margin itself."""
        return tuple(term._replace(scale=term.scale * self.scale) for term in KINDS[self.name].terms)

    @property
    def polynomial(self) -> bool:
        """Whether its curves are polynomials of the second degree at most, of which two margins say all."""
        return all(term.curve in ("line", "square") for term in self.terms)

    @property
    def labelled(self) -> bool:
        """Whether it is a loss, which depends on the row's label."""
        return KINDS[self.name].labels is not None

    @property
    def centred(self) -> bool:
        """Whether it depends on the difference of margin and label alone."""
        return KINDS[self.name].centred

    def value(self, margin: np.ndarray, label: np.ndarray) -> np.ndarray:
        """Compute the quantity.

        Parameters
        ----------
        margin : (…) float64
        label : (…) float64
            that broadcasts with the margins; does not count where the quantity takes none

        Returns
        -------
        (…) float64
            infinite where it is beyond float64
        """
        with np.errstate(over="ignore"):
            return KINDS[self.name].value(self.scale * margin, label)

    def takes(self, label: np.ndarray) -> np.ndarray:
        """Return which labels it is defined for.

        Parameters
        ----------
        label : (n,) float64

        Returns
        -------
        (n,) bool
        """
        low, high = KINDS[self.name].labels or (-np.inf, np.inf)
        return (label > low if KINDS[self.name].open else label >= low) & (label <= high) & np.isfinite(label)

    def encode(self) -> np.ndarray:
        """Return the quantity as numbers, for records of arrays.

        Returns
        -------
        (2,) float64
        """
        return np.array([float(list(KINDS).index(self.name)), self.scale])

    @property
    def said(self) -> str:
        """Which labels it is defined for, in words; empty if any number is one."""
        low, high = KINDS[self.name].labels or (-np.inf, np.inf)
        if np.isfinite(high):
            return f"a number from {low:g} to {high:g}"
        return f"a number {'above' if KINDS[self.name].open else 'of at least'} {low:g}" if np.isfinite(low) else ""


def decode(code: np.ndarray) -> Quantity:
    """Return the quantity that ``Quantity.encode`` made numbers of.

    Parameters
    ----------
    code : (2,) float64
    """
    return Quantity(list(KINDS)[int(code[0])], float(code[1]))
