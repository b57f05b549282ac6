"""Attributions as an Explanation of shap, whose plots want numbers or texts in a column, and never both."""

from typing import Any

import numpy as np

from ...extras import needing
from .picked import find_position, refuse_ranks

NUMBERS = "biuf"  # kinds of numeric dtypes
MISSING = "missing"


def as_explanation(found: Any, output: str | int | None) -> Any:
    """Convert Attributions to a shap.Explanation, of one output or of all."""
    refuse_ranks(found, "to_shap")
    with needing("to_shap", "shap"):
        from shap import Explanation
    several = output is None and len(found.outputs) > 1
    wanted = slice(None) if several else find_position(found, output)
    given = [None if (held := found.values(name)) is None else _of_one_kind(held) for name in found.names]
    data = np.full((len(found), len(found.names)), np.nan, object)
    for j, held in enumerate(given):
        if held is not None:
            data[:, j] = held
    numbers = all(held is None or held.dtype.kind in NUMBERS for held in given)
    return Explanation(
        values=found.phi[:, :, : len(found.names)].transpose(0, 2, 1)[:, :, wanted],
        base_values=np.broadcast_to(found.base, (len(found), len(found.outputs)))[:, wanted],
        data=data.astype(float) if numbers else data,
        feature_names=list(found.names),
        output_names=list(found.outputs) if several else None,
    )


def _of_one_kind(values: np.ndarray) -> np.ndarray:
    """Write missing texts as a text, and missing numbers as NaN: shap sorts values, and a text is not before or behind a NaN."""
    import pandas as pd

    missing = pd.isna(values)
    if values.dtype.kind in NUMBERS or not missing.any():
        return values
    if not any(isinstance(value, str) for value in values[~missing]):
        try:
            return np.where(missing, np.nan, values).astype(float)
        except (TypeError, ValueError):  # dates and others
            return values
    name = MISSING
    while name in {*values[~missing]}:
        name = f"({name})"
    return np.where(missing, name, values)
