"""The rate of an ascent, chosen on rows: the largest with which the objective converges (Li, Yu and Low 2026, Appendix H).

The paper selects "the largest ε in the candidate set {…, 0.1, 0.5, 1, 5, 10, …}" that "provides consistent convergence" of the objective. Here that
is the mean over some rows, and it converges where no step lowers it for any output. With ascent a rate is in units of 1 / margin, and so is the
set: its powers of ten go from a thousandth to a thousand times what moves z by 1 where the gradient is as large as a margin can be. Steps of ADAM
have about the length of the rate, and those above 1 would leave the cube from anywhere.
"""

import math
from collections.abc import Callable

import numpy as np

from ..slices.buffers import Prepared
from .ranker import RankerTables

AUTO = "auto"
RATE_ROWS = 200  # instances that the paper takes means over
LEADS = (1, 5)  # of candidates: 0.1, 0.5, 1, 5, …
DECADES = 3  # of candidates, below and above 1 / margin
FALL = 1e-9  # of the largest objective: rounding falls by less


def candidate_rates(bound: float, adaptive: bool) -> tuple[float, ...]:
    """List the rates that are tried."""
    unit = 1.0 if adaptive or not bound else 1.0 / bound
    first = math.ceil(math.log10(unit * 10.0**-DECADES))
    last = math.floor(math.log10(unit * (1.0 if adaptive else 10.0**DECADES)))
    exponents = range(last, first - 1, -1)
    return tuple(rate for k in exponents for rate in (float(f"{lead}e{k}") for lead in reversed(LEADS)) if not adaptive or rate <= 1)


def never_falls(path: np.ndarray) -> bool:
    """Tell whether the mean objective of every output rises, or stays, at every step."""
    if not path.shape[2]:
        return True
    mean = path.mean(axis=2)
    return bool((np.diff(mean, axis=1) >= -FALL * np.abs(mean).max(axis=1, keepdims=True)).all())


def choose_rate(prepared: Prepared, follow: Callable[[Prepared], np.ndarray]) -> float | None:
    """Find the largest rate with which the objective of some rows converges."""
    tables: RankerTables = prepared.method
    for rate in candidate_rates(float(prepared.bound.max()), bool(tables.adaptive[0])):
        if never_falls(follow(prepared._replace(method=tables._replace(rate=np.array([rate]))))):
            return rate
    return None
