"""Precision of published numbers, float32 or float64, with range checks."""

import numpy as np

from ..errors import UsageError
from ..models.model import Model

_ADVICE = {"float32": "use precision float64", "float64": "train on a label in other units"}


def check_precision(model: Model, precision: str) -> None:
    """Refuse a precision in which margins and attributions overflow or lose digits.

    Parameters
    ----------
    precision : {"float32", "float64"}
    """
    ensemble, kind = model.ensemble, np.finfo(precision)
    leaves = np.abs(ensemble.value[ensemble.feature < 0]).max(initial=0.0)
    most, least = (float(kind.max), float(kind.tiny / kind.eps)) if kind.bits == 32 else (float(kind.max) ** 0.5, float(kind.tiny) ** 0.5)
    margin = float(np.abs(ensemble.base).max() + ensemble.root.size * leaves)
    if margin > most:
        raise UsageError(f"{model!r}: margins may be as large as {margin:.3g}, {precision} holds {most:.3g}; {_ADVICE[precision]}")
    if 0 < leaves < least:
        raise UsageError(f"{model!r}: leaf values are {leaves:.3g} at most, {precision} keeps all digits from {least:.3g} on; {_ADVICE[precision]}")


def round_to(values: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Round numbers to the published type.

    Parameters
    ----------
    values : float64 array
    kind : dtype
        float32 or float64; or an integer type, for ranks.

    Raises
    ------
    UsageError
        A number would become infinite.
    """
    with np.errstate(over="ignore"):
        found = values.astype(kind)
    if np.isinf(found).any():
        raise UsageError(f"attributions are up to {np.abs(values).max():.3g}, {kind} holds {np.finfo(kind).max:.3g}; {_ADVICE[str(kind)]}")
    return found
