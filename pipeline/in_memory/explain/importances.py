"""Importance of features over rows, as a data frame."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from leafledger.kernels.methods import METHODS

from ...arguments.choices import LOSS
from ...errors import UsageError
from .picked import refuse_ranks

SHARES, LOSS_PARTS, IMPORTANCE, BACKGROUND = "r2", "loss", "importance", "background_errors"  # summaries
KEYS = ["output", "feature"]
COLUMNS = ("mean_abs", "standard_error", "background_error", "share", "mean", "std", "min", "max")
OF_LOSSES = ("mean", "standard_error", "mean_abs", "share", "std", "min", "max")


def list_importance(found: Any) -> Any:
    """List the players of Attributions by mean magnitude, by their parts of the mean loss, or by their shares of R^2."""
    import pandas as pd

    refuse_ranks(found, "importance")
    if SHARES in found.summaries:
        shares = found.summaries[SHARES].to_pandas().sort_values("rank", kind="stable", ignore_index=True)
        return shares[["feature", "r2", "standard_error"]]
    if METHODS[found.method].labelled or (found.space == LOSS and not found.summaries):
        raise UsageError("importance of what labels are for is of all rows that were explained, and these are some of them, or of a run")
    table = found.summaries[IMPORTANCE].to_pandas() if IMPORTANCE in found.summaries else pd.DataFrame(_measure(found))
    if LOSS_PARTS in found.summaries:
        parts = found.summaries[LOSS_PARTS].to_pandas()[[*KEYS, "mean", "standard_error", "rank"]]
        return _lay_out(found, table.drop(columns=["mean", "rank"]).merge(parts, on=KEYS), OF_LOSSES)
    square = (table["std"] ** 2 + table["mean"] ** 2 - table["mean_abs"] ** 2).clip(lower=0)
    table["standard_error"] = (square / (len(found) - 1)) ** 0.5 if len(found) > 1 else float("nan")
    if BACKGROUND in found.summaries:
        errors = found.summaries[BACKGROUND].to_pandas()[[*KEYS, "mean_abs_error"]]
        table = table.merge(errors.rename(columns={"mean_abs_error": "background_error"}), on=KEYS, how="left")
    return _lay_out(found, table, COLUMNS)


def _lay_out(found: Any, table: Any, columns: Sequence[str]) -> Any:
    """Sort by output and rank, and choose columns."""
    number = table["output"].map({name: number for number, name in enumerate(found.outputs)})
    ordered = table.assign(output_number=number).sort_values(["output_number", "rank"], kind="stable", ignore_index=True)
    return ordered[["feature", *(["output"] if len(found.outputs) > 1 else []), *(name for name in columns if name in table)]]


def _measure(found: Any) -> dict[str, Any]:
    """Measure phi over rows with a label, as the summary of importances does."""
    n_names, outputs = len(found.names), len(found.outputs)
    phi = found.phi[~np.isnan(found.phi).any(axis=(1, 2)), :, :n_names]
    phi = phi if len(phi) else np.full((1, outputs, n_names), np.nan)
    size = np.abs(phi).mean(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = size / size.sum(axis=1, keepdims=True)
    rank = np.argsort(np.argsort(-size, axis=1, kind="stable"), axis=1, kind="stable") + 1
    columns = {"mean_abs": size, "mean": phi.mean(axis=0), "std": phi.std(axis=0), "min": phi.min(axis=0), "max": phi.max(axis=0)}
    columns |= {"share": share, "rank": rank}
    named = {"output": np.repeat(np.array(found.outputs, object), n_names), "feature": np.tile(np.array(found.names, object), outputs)}
    return named | {name: values.reshape(-1) for name, values in columns.items()}
