"""Choice of the ascent's rate: the largest at which the objective converges (Li, Yu and Low 2026, Appendix H).

The paper selects "the largest ε in the candidate set {…, 0.1, 0.5, 1, 5, 10, …}" that "provides consistent convergence" of the objective. Here the
objective is the mean over some rows, and it converges if no step lowers it for any output. With plain ascent rates are in units of 1 / margin, and
the candidates span powers of ten from a thousandth to a thousand times the rate that moves z by 1 at the largest possible gradient. ADAM's steps have
about the length of the rate, and those above 1 would leave the cube from anywhere.
"""

import math
from collections.abc import Callable

import numpy as np

from ..slices.buffers import Prepared
from .ranker import RankerTables

AUTO = "auto"
RATE_ROWS = 200  # number of instances that the paper averages over
LEADS = (1, 5)  # leading digits of candidates: 0.1, 0.5, 1, 5, …
DECADES = 3  # decades of candidates below and above 1 / margin
FALL = 1e-9  # fall allowed relative to the largest objective, above rounding errors


def candidate_rates(bound: float, adaptive: bool) -> tuple[float, ...]:
    """List the candidate rates."""
    unit = 1.0 if adaptive or not bound else 1.0 / bound
    first = math.ceil(math.log10(unit * 10.0**-DECADES))
    last = math.floor(math.log10(unit * (1.0 if adaptive else 10.0**DECADES)))
    exponents = range(last, first - 1, -1)
    return tuple(rate for k in exponents for rate in (float(f"{lead}e{k}") for lead in reversed(LEADS)) if not adaptive or rate <= 1)


def never_falls(path: np.ndarray) -> bool:
    """Return whether the mean objective of no output falls at any step."""
    if not path.shape[2]:
        return True
    mean = path.mean(axis=2)
    return bool((np.diff(mean, axis=1) >= -FALL * np.abs(mean).max(axis=1, keepdims=True)).all())


def choose_rate(prepared: Prepared, follow: Callable[[Prepared], np.ndarray]) -> float | None:
    """Find the largest candidate rate at which the objective of some rows converges."""
    tables: RankerTables = prepared.method
    for rate in candidate_rates(float(prepared.bound.max()), bool(tables.adaptive[0])):
        if never_falls(follow(prepared._replace(method=tables._replace(rate=np.array([rate]))))):
            return rate
    return None
