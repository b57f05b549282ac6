"""The summary of R^2: which share of it every player owns, of all rows and of every group of them."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.r2.shares import Shares

METADATA = b"leafledger"
TOTALS = "total_r2", "total_standard_error", "sst", "n", "n_unlabelled", "weight", "remainder", "remainder_standard_error"
COLUMNS = "feature", "r2", "standard_error", "rank", *TOTALS  # a column of groups cannot be called so


@dataclass(frozen=True, slots=True)
class R2:
    """How R^2 is shared: ``share`` and ``standard_error (players,) float64`` of each player's share, ``rank (players,) int64``, 1 for the largest.

    Shares and the remainder, what the trees' own means and a start other than the mean of the labels make, add up to R^2. All are NaN where labels do
    not differ.
    """

    total_r2: float
    total_standard_error: float
    sst: float  # sum of w (label - mean)^2
    n: int  # rows with a label and a weight
    n_unlabelled: int
    weight: float  # of these rows
    remainder: float
    remainder_standard_error: float
    share: np.ndarray
    standard_error: np.ndarray
    rank: np.ndarray

    @property
    def totals(self) -> dict[str, Any]:
        """What is said once of all shares; None where it is no number."""
        found = {name: getattr(self, name) for name in TOTALS}
        return {name: value if math.isfinite(value) else None for name, value in found.items()}


def take(shares: Shares, group: int = 0) -> R2:
    """One group's."""
    numbers = {
        "total_r2": shares.r2,
        "total_standard_error": shares.r2_standard_error,
        "sst": shares.sst,
        "weight": shares.weight,
        "remainder": shares.remainder,
        "remainder_standard_error": shares.remainder_standard_error,
    }
    return R2(
        **{name: float(values[group]) for name, values in numbers.items()},
        n=int(shares.rows[group]),
        n_unlabelled=int(shares.missing[group]),
        share=shares.share[group],
        standard_error=shares.standard_error[group],
        rank=shares.rank[group],
    )


def _shares(players: Sequence[str], found: R2) -> dict[str, pa.Array]:
    numbers = {"r2": found.share, "standard_error": found.standard_error}
    columns = {name: pa.array(values, mask=~np.isfinite(values)) for name, values in numbers.items()}
    return {"feature": pa.array(players, pa.string()), **columns, "rank": pa.array(found.rank)}


def _group(values: dict[str, pa.Scalar], players: Sequence[str], found: R2) -> pa.Table:
    """Shares of one group, its values before them and its totals behind."""
    totals = {name: pa.scalar(value, pa.int64() if isinstance(value, int) else pa.float64()) for name, value in found.totals.items()}
    before, behind = ({name: pa.repeat(scalar, len(players)) for name, scalar in some.items()} for some in (values, totals))
    return pa.table({**before, **_shares(players, found), **behind})


def tabulate(players: Sequence[str], by: Sequence[str], whole: Shares, groups: Shares, names: np.ndarray) -> dict[str, pa.Table]:
    """``r2``, a row per player, with the totals as metadata; where rows are grouped ``r2_by`` too, a row per group and player, with its totals.

    ``names`` are those of ``labels.read_labels``.
    """
    found = take(whole)
    tables = {"r2": pa.table(_shares(players, found)).replace_schema_metadata({METADATA: json.dumps(found.totals)})}
    if by:
        values = [json.loads(name) for name in names.tolist()]
        order = sorted(range(len(values)), key=lambda g: [(value is None, 0 if value is None else value) for value in values[g]])
        columns = {name: pa.array([value[k] for value in values]) for k, name in enumerate(by)}
        nothing = _group({name: pa.scalar(None, column.type) for name, column in columns.items()}, players, found).slice(0, 0)
        parts = [_group({name: column[g] for name, column in columns.items()}, players, take(groups, g)) for g in order]
        tables["r2_by"] = pa.concat_tables([nothing, *parts]).combine_chunks()
    return tables


def read_totals(table: pa.Table) -> dict[str, Any]:
    """The totals that ``tabulate`` wrote beside the shares."""
    return json.loads(table.schema.metadata[METADATA])
