"""Requested measures of a comparison, and their validation."""

from dataclasses import dataclass

import numpy as np

from leafledger.kernels.prediction_gap.noise import NOISES
from leafledger.kernels.prediction_gap.tables import BUDGET

from ..arguments.readers import shorten
from ..display.nearest import did_you_mean
from ..errors import UnsupportedModel, UsageError
from ..models.model import Model
from ..models.objectives import Margin

TOP = (1, 3, 10)
SCALES = (0.1, 0.5, 1.0)
NOISE = NOISES[0].name
GAP_ROWS = 200  # prediction gaps cost thousands of times as much as attributions
DIFFERING_ROWS = 10


@dataclass(frozen=True, slots=True)
class Measures:
    """Requested measures of a comparison."""

    top: tuple[int, ...] = TOP
    scales: tuple[float, ...] = SCALES
    noise: str = NOISE
    gap_rows: int = GAP_ROWS
    budget: float = BUDGET
    approximate: bool = False
    seed: int = 0
    label: str | None = None
    differing_rows: int = DIFFERING_ROWS

    @property
    def removed(self) -> tuple[int, ...]:
        """Numbers of removed features, with none for the full model; empty without labels."""
        return () if self.label is None else (0, *self.top)


def check_measures(measures: Measures) -> None:
    """Refuse meaningless measures."""
    top, scales, known = measures.top, measures.scales, [noise.name for noise in NOISES]
    if not top or any(k < 1 for k in top) or len(set(top)) < len(top):
        raise UsageError(f"top is {', '.join(map(str, top)) or 'empty'}, expected different numbers of features, at least 1 each")
    if not all(0 < scale < np.inf for scale in scales) or len({f"{scale:g}" for scale in scales}) < len(scales):
        raise UsageError(f"scales are {', '.join(map(str, scales))}, expected different numbers above 0")
    if measures.noise not in known:
        raise UsageError(f"noise is {shorten(measures.noise)}, expected one of {', '.join(known)}{did_you_mean(measures.noise, known)}")


def check_label(label: str | None, model: Model) -> None:
    """Refuse labels that the model's margin does not predict."""
    if label is None:
        return
    expected = f"label {label!r} is compared with the margin, expected a regression of it"
    if model.objective.margin is not Margin.LABEL:
        raise UnsupportedModel(f"{expected}, got objective {model.objective.name!r}")
    if len(model.outputs) > 1:
        raise UnsupportedModel(f"{expected} with one output, got {len(model.outputs)} outputs")
