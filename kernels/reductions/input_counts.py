"""Counts of input values by kind: missing, unknown category, or below or above all thresholds."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..trees.binning import BinTables
from .reduction import Reduction
from .summary import Column, Subject, Summary, Table

UNSEEN = "unseen"
KINDS = ("missing", UNSEEN, "below", "above")  # columns of the table, numbered from 1; other values are 0


class InputCounts(NamedTuple):
    """Counts of every feature's values by kind."""

    rows: np.ndarray  # (1,) int64
    values: np.ndarray  # (1, read, kinds) int64


@jit
def _classify(bins: np.ndarray, start: np.ndarray, threshold: np.ndarray, n_codes: np.ndarray, top: int, out: np.ndarray) -> None:
    """Classify every value; see ``classify``. Arrays that it does not need would cost time to compile and to call."""
    for j in range(out.shape[0]):
        missing, unseen, above = top, top, 0
        if n_codes[j] > 0:
            missing, unseen = n_codes[j] + 1, n_codes[j]
        else:
            while above < start[j + 1] - start[j] and threshold[start[j] + above] < np.inf:
                above += 1
        for i in range(bins.shape[1]):
            bin_ = np.int64(bins[j, i])
            if bin_ == missing:
                out[j, i] = 1
            elif n_codes[j] > 0:
                out[j, i] = 2 * (bin_ == unseen)
            elif above == 0:  # a feature that is split on missingness alone
                out[j, i] = 0
            else:
                out[j, i] = 3 if bin_ == 0 else 4 * (bin_ == above)


def classify(bins: np.ndarray, tables: BinTables, out: np.ndarray) -> None:
    """Classify every value.

    Parameters
    ----------
    bins : (used, n) unsigned integers
    tables : BinTables
        by which the values became bins
    out : (read, n) uint8, of the first features, overwritten: 0, or 1 + a position in KINDS. Below all thresholds of the model is a number that
        is no larger than the smallest, above all one that is larger than the largest
    """
    _classify(bins, tables.start, tables.threshold, tables.n_codes, np.iinfo(bins.dtype).max, out)


def _update(state: InputCounts, kinds: np.ndarray, n: int, labels: Any = None) -> InputCounts:  # noqa: ARG001 - the shape of an update
    found = [np.count_nonzero(kinds[0, :, :n] == kind, axis=1) for kind in range(1, len(KINDS) + 1)]
    return InputCounts(state.rows + n, state.values + np.stack(found, axis=1)[None])


def _tabulate(state: InputCounts, subject: Subject) -> dict[str, Table]:
    rows = int(state.rows[0])
    counts = state.values[0] if rows else np.zeros((len(subject.inputs), len(KINDS)), np.int64)  # without rows the number of features is unknown
    untold = np.array([name in subject.untold for name in subject.inputs], bool)
    unasked = {subject.inputs[j]: int(counts[j, 1]) for j in np.flatnonzero(untold & (counts[:, 1] > 0))}  # training may have known these categories
    counts = np.where(untold[:, None] & (np.array(KINDS) == UNSEEN), 0, counts)
    order = np.lexsort((-counts[:, 0], -counts[:, 1]))
    columns: dict[str, Column] = {kind: counts[order, k].tolist() for k, kind in enumerate(KINDS)}
    columns[UNSEEN] = np.ma.masked_array(counts[order, 1], untold[order]) if untold.any() else columns[UNSEEN]
    unseen = {subject.inputs[j]: int(counts[j, 1]) for j in order if counts[j, 1]}
    features = [subject.inputs[j] for j in order]
    totals = {"rows": rows, "unseen": unseen} | ({"unasked": unasked} if unasked else {})
    return {"inputs": Table({"feature": features, "rows": [rows] * len(features), **columns}, totals)}


def _headline(totals: Mapping[str, Any]) -> str:
    """Summarise the values unknown to the model; empty if there are none."""
    counts = ", ".join(f"{count:,} of {totals['rows']:,} in {feature!r}" for feature, count in totals["unseen"].items())
    return counts and f"values that are no category of the model: {counts}"


INPUTS = Summary(
    name="inputs",
    reduction=Reduction(
        name="inputs",
        init=lambda outputs, values: InputCounts(np.zeros(1, np.int64), np.zeros((outputs, values, len(KINDS)), np.int64)),
        update=_update,
        merge=lambda a, b: InputCounts(a.rows + b.rows, a.values + b.values),
        finalize=lambda state, place, n_places: state,
    ),
    reads=lambda buffers: buffers.kinds[None],
    tabulate=_tabulate,
    columns=("feature", "rows", *KINDS),
    description="values that are missing, unseen, or beyond all thresholds of the model",
    headline=_headline,
)
