"""A threshold of margins or predictions as margins: from where on a row is surely above it, and below what surely not."""

import math

import numpy as np

from leafledger.kernels.slices.links import Link, predict
from leafledger.kernels.trees.forest import Forest
from leafledger.kernels.trees.paths import value_range

from ..arguments.choices import Space
from ..errors import UsageError
from ..methods.output_space import choose_link
from ..models.model import Model

SINGLE, DOUBLE = 1e-6, 1e-12  # rounding of a sum, as a share of all that trees can add up to
SINGLE_LINK, DOUBLE_LINK = 2.0**-21, 2.0**-50  # rounding of a prediction, as a share of it


def _as_margin(link: Link | None, threshold: float, space: Space) -> tuple[float, float]:
    """Return the margin of a prediction, and how much of it a relative change of the prediction is."""
    if link is None or link.name == "identity":
        scale = 1.0 if link is None else link.scale
        return threshold / scale, abs(threshold) / scale
    if link.name == "exp":
        if threshold <= 0:
            raise UsageError(f"threshold is {threshold:g}, expected one above 0 in space {space!r}")
        return math.log(threshold) / link.scale, 1.0 / link.scale
    if not 0 < threshold < 1:
        raise UsageError(f"threshold is {threshold:g}, expected one between 0 and 1 in space {space!r}")
    return (math.log(threshold) - math.log1p(-threshold)) / link.scale, 1.0 / (1.0 - threshold) / link.scale


def find_link(model: Model, space: Space) -> Link | None:
    """Find the link of a space's predictions; None for margins."""
    return choose_link(space, model)


def find_sides(model: Model, forest: Forest, threshold: float, space: Space) -> tuple[float, float]:
    """Find margins: those from ``at`` on are above the threshold, those smaller than ``below`` are below it; refuse one that no prediction crosses.

    Where a library adds up in single precision, its prediction and this one may differ in the last digits: a row so close is on neither side. Where
    it adds up in double precision, a row that is no further from the threshold than rounding is on it, and so above.
    """
    link, ensemble = find_link(model, space), forest.stored
    margin, share = _as_margin(link, threshold, space)
    low, high = value_range(ensemble, forest.trace, 0)
    base = float(ensemble.base[0])
    reach = abs(base) + float(np.maximum(np.abs(low), np.abs(high)).sum())
    rounding = (SINGLE * reach + SINGLE_LINK * share) if model.single_sums else (DOUBLE * reach + DOUBLE_LINK * share)
    below, at = margin - rounding, margin + (rounding if model.single_sums else -rounding)
    ends = base + float(low.sum()), base + float(high.sum())
    if not (ends[0] < below and at <= ends[1]):
        least, most = ends if link is None else predict(link, np.array([ends])[0]).tolist()
        side = "below" if at > ends[1] else "above"
        raise UsageError(f"threshold is {threshold:.6g}, but all that the model can say is {side} it: from {least:.6g} to {most:.6g}")
    return at, below
