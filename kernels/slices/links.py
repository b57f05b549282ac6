"""Links from margins to predictions: attributions are transformed along the line from base value to margin.

Trees are additive in margins only. A prediction is g(scale * margin). On the line from the base value b to the margin m, along which all players move
together, a player's contribution to the prediction is

    sum over outputs k of phi_k * (mean over the line of d g_c / d m_k)

of output c. This is Aumann–Shapley cost sharing along the diagonal (1974), and adds up to g(m) - g(b). It is not the Shapley value of the game whose
values are predictions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..quotients.curves import NODES, WEIGHTS, sigmoid, slope_of_exp, slope_of_sigmoid
from .buffers import Buffers, Prepared

PANEL = 4.0  # length of line per rule: a softmax has no pole within pi of it, so that the error is below (sqrt(1 + pi²/4) + pi/2)**-32
MOST_PANELS = 1 << 13  # beyond this, rows fail the additivity check
LinkName = Literal["identity", "sigmoid", "softmax", "exp"]


@dataclass(frozen=True, slots=True)
class Link:
    """The link of a model: a function of ``scale`` times the margin."""

    name: LinkName
    scale: float = 1.0

    @property
    def joint(self) -> bool:
        """Whether a prediction depends on the margins of all outputs."""
        return KINDS[self.name].joint


IDENTITY = Link("identity")


def _softmax(margin: np.ndarray) -> np.ndarray:
    odds = np.exp(margin - margin.max(axis=0))
    return odds / odds.sum(axis=0)


@jit
def _carry_softmax(base: np.ndarray, margin: np.ndarray, nodes: np.ndarray, weights: np.ndarray, phi: np.ndarray) -> None:
    """Overwrite ``phi (outputs, rows, n)`` with attributions of softmax probabilities."""
    n_outputs, n_rows, n = phi.shape
    mean, odds, rise = np.empty((n_outputs, n_outputs)), np.empty(n_outputs), np.empty(n_outputs)
    held = np.empty(n_outputs)
    for i in range(n):
        for k in range(n_outputs):
            rise[k] = margin[k, i] - base[k]
        n_panels = min(MOST_PANELS, max(1, int(np.ceil(min((rise.max() - rise.min()) / PANEL, float(MOST_PANELS))))))
        mean[:] = 0.0
        for node in range(n_panels * nodes.size):
            panel, q = node // nodes.size, node % nodes.size
            t, weight = (panel + (nodes[q] + 1.0) / 2.0) / n_panels, weights[q] / (2.0 * n_panels)
            highest = -np.inf
            for k in range(n_outputs):
                odds[k] = base[k] + t * rise[k]
                highest = max(highest, odds[k])
            total = 0.0
            for k in range(n_outputs):
                odds[k] = np.exp(odds[k] - highest)
                total += odds[k]
            for c in range(n_outputs):
                odds[c] /= total
            for c in range(n_outputs):
                mean[c, c] += weight * odds[c]
                for k in range(n_outputs):
                    mean[c, k] -= weight * odds[c] * odds[k]
        for r in range(n_rows):
            for k in range(n_outputs):
                held[k] = phi[k, r, i]
            for c in range(n_outputs):
                total = 0.0
                for k in range(n_outputs):
                    total += mean[c, k] * held[k]
                phi[c, r, i] = total


def _carry_each(slope: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    """Transform attributions where each output has its own link, by the link's mean slope along the line."""

    def carry(base: np.ndarray, margin: np.ndarray, phi: np.ndarray) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            phi *= slope(margin, base[:, None])[:, None]

    return carry


def _carry_classes(base: np.ndarray, margin: np.ndarray, phi: np.ndarray) -> None:
    _carry_softmax(base, margin, NODES, WEIGHTS, phi)


def _stay(base: np.ndarray, margin: np.ndarray, phi: np.ndarray) -> None:
    """Leave attributions unchanged, for the identity link."""


class _Kind(NamedTuple):
    """Functions of one kind of link."""

    predict: Callable[[np.ndarray], np.ndarray]  # ``margin (outputs, …) -> prediction (outputs, …)``
    carry: Callable[[np.ndarray, np.ndarray, np.ndarray], None]  # ``(base (outputs,), margin (outputs, n), phi (outputs, rows, n))`` overwrites phi
    reach: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # ``(base, bound, prediction) -> reach``, see ``find_reach``
    joint: bool = False  # a prediction depends on the margins of all outputs


def _one(base: np.ndarray, bound: np.ndarray, prediction: np.ndarray) -> np.ndarray:  # noqa: ARG001 - the shape of a reach
    return np.ones(prediction.shape)


KINDS: dict[LinkName, _Kind] = {
    "identity": _Kind(lambda margin: margin, _stay, lambda base, bound, prediction: np.broadcast_to(bound, prediction.shape)),
    "sigmoid": _Kind(sigmoid, _carry_each(slope_of_sigmoid), _one),
    "softmax": _Kind(_softmax, _carry_classes, _one, joint=True),
    "exp": _Kind(np.exp, _carry_each(slope_of_exp), lambda base, bound, prediction: bound * np.maximum(prediction, base)),
}


def predict(link: Link, margin: np.ndarray) -> np.ndarray:
    """Turn margins into predictions.

    Parameters
    ----------
    margin : (outputs, …) float64

    Returns
    -------
    (outputs, …) float64
        probabilities, or numbers in the label's units; infinite where they are beyond float64
    """
    with np.errstate(over="ignore"):
        return KINDS[link.name].predict(link.scale * margin)


def carry(link: Link, base: np.ndarray, margin: np.ndarray, phi: np.ndarray) -> None:
    """Overwrite attributions of margins with attributions of predictions.

    Parameters
    ----------
    base : (outputs,) float64
        margin units
    margin : (outputs, n) float64
    phi : (outputs, rows, n) float64
        that sum to margin minus base value over the rows
    """
    if link.scale != 1.0:
        phi *= link.scale
    KINDS[link.name].carry(link.scale * base, link.scale * margin, phi)


def carry_outputs(link: Link, prepared: Prepared, buffers: Buffers) -> Buffers:
    """Transform all buffers from margins to predictions.

    Parameters
    ----------
    buffers : Buffers
        as ``batch.attribute_batch`` left them; attributions are overwritten, with and without each lot of the background

    Returns
    -------
    Buffers
        with predictions in the place of margins
    """
    carry(link, prepared.base, buffers.margin, buffers.phi)
    for base, phi in zip(prepared.without.base, buffers.without, strict=True):
        carry(link, base, buffers.margin, phi)
    return buffers._replace(margin=predict(link, buffers.margin))


def find_reach(link: Link, base: np.ndarray, bound: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """Bound the magnitude of a row's predictions, as the scale of allowed errors.

    Parameters
    ----------
    base : (outputs, 1 or n) float64
        predictions with every feature absent
    bound : (outputs, 1 or n) float64
        no margin is further from its base value
    prediction : (outputs, n) float64

    Returns
    -------
    (outputs, n) float64
        of margins their bound; 1 of probabilities; of exponentials the bound times the larger of both ends
    """
    return KINDS[link.name].reach(base, link.scale * bound, prediction)


def find_misses(link: Link, prepared: Prepared, buffers: Buffers, n_rows: int) -> np.ndarray:
    """Measure each row's additivity residual of predictions.

    Parameters
    ----------
    buffers : Buffers
        as ``carry_outputs`` returned them
    n_rows : int
        how many of the rows count, the first

    Returns
    -------
    (outputs, n_rows) float64
        as fractions of the reach; a row breaks its promise above ``method.TOLERANCE``, or where it is NaN
    """
    prediction, base = buffers.margin[:, :n_rows], predict(link, prepared.base)[:, None]
    reach = find_reach(link, base, prepared.bound[:, None], prediction)
    with np.errstate(invalid="ignore"):
        return np.abs(buffers.phi[:, :, :n_rows].sum(axis=1) + base - prediction) / np.maximum(reach, np.finfo(np.float64).tiny)
