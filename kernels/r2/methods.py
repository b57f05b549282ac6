"""The method ``r2``: each feature's reduction of the squared error, by row, and its share of R²."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..method.method import Check, Games, Method, Phi
from ..reductions.reduction import Reduction
from ..reductions.summary import Shown, Summary
from ..slices.buffers import Buffers, Prepared
from . import shares
from .qshap import QshapTables, add_losses, prepare_qshap
from .summary import COLUMNS, tabulate


def _attribute(buffers: Buffers, tables: QshapTables) -> None:
    labels = buffers.labels
    add_losses(buffers.bins, tables, buffers.phi, labels.label, labels.residual, labels.remainder)


def _miss_losses(prepared: Prepared, buffers: Buffers, n_rows: int) -> np.ndarray:
    """Return |(label - start)^2 - residual^2 + remainder - sum of phi|, as a fraction of the largest possible square; 0 for missing labels."""
    labels, start = buffers.labels, prepared.method.start[0]
    total = (labels.label - start) ** 2 - labels.residual**2 + labels.remainder - buffers.phi[0].sum(axis=0)
    most = (np.abs(labels.label - start) + prepared.bound[0]) ** 2
    found = np.where(labels.missing, 0.0, np.abs(total) / np.maximum(most, np.finfo(np.float64).tiny))
    return found[None, :n_rows]


def _write_number(value: float | None) -> str:
    return "–" if value is None else format(value, ".4g")


def _headline(totals: Mapping[str, Any]) -> str:
    total, error, rest, sst = (_write_number(totals[name]) for name in ("total_r2", "total_standard_error", "remainder", "sst"))
    counts = f"{totals['n']:,} rows, {totals['n_unlabelled']:,} without a label"
    return f"R² {total} ± {error}, shares and a remainder of {rest}; SST {sst}; {counts}"


SHARES = Summary(
    name="r2",
    reduction=Reduction(
        name="r2",
        init=lambda outputs, values: shares.no_rows(values),
        update=lambda state, phi, n, labels: shares.update(state, phi[0], labels, n),
        merge=shares.merge,
        finalize=shares.finalize,
    ),
    reads=lambda buffers: buffers.phi,
    tabulate=tabulate,
    columns=COLUMNS,
    description="shares of R²",
    display=(
        Shown("rank", "rank", "d"),
        Shown("feature", "feature"),
        Shown("r2", "share of R²", ".4f"),
        Shown("standard_error", "standard error", ".1g"),
    ),
    headline=_headline,
    grouped=True,
)

R2 = Method(
    name="r2",
    meaning="what a feature takes off the squared error of a regression, row by row, and so its share of R^2 (Q-SHAP)",
    games=Games(lambda forest, _: prepare_qshap(forest)),
    kernel=_attribute,
    phi=Phi(column="loss"),
    check=Check(_miss_losses, "losses miss what trees take off the squared error by {missed:.3g} of its bound"),
    summaries=(SHARES,),
    labelled=True,
)

METHODS = (R2,)
