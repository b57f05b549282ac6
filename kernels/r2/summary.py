"""The summary ``r2``: every player's share of R², over all rows and by group."""

import math
from typing import Any

import numpy as np

from ..reductions.group_moments import sort_groups
from ..reductions.summary import Subject, Table
from ..slices.labels import check_groups
from .shares import R2State, Shares, finalize, whole

TOTALS = "total_r2", "total_standard_error", "sst", "n", "n_unlabelled", "weight", "remainder", "remainder_standard_error"
COLUMNS = "feature", "r2", "standard_error", "rank", *TOTALS


def _sum_up(shares: Shares, group: int) -> dict[str, float | int | None]:
    """Return the totals of a group's shares, None where they are NaN."""
    found = {
        "total_r2": shares.r2.value,
        "total_standard_error": shares.r2.standard_error,
        "sst": shares.sst,
        "n": shares.rows,
        "n_unlabelled": shares.missing,
        "weight": shares.weight,
        "remainder": shares.remainder.value,
        "remainder_standard_error": shares.remainder.standard_error,
    }
    numbers = {name: float(values[group]) for name, values in found.items()}
    counts = {name: int(numbers[name]) for name in ("n", "n_unlabelled")}
    return {name: value if math.isfinite(value) else None for name, value in numbers.items()} | counts


def _columns(players: tuple[str, ...], shares: Shares, group: int) -> dict[str, Any]:
    return {
        "feature": list(players),
        "r2": shares.share.value[group],
        "standard_error": shares.share.standard_error[group],
        "rank": shares.rank[group],
    }


def _tabulate_groups(state: R2State, subject: Subject) -> Table:
    """Tabulate the shares of every group: group values first, ascending with None last, totals last."""
    check_groups(subject.by, state.names.size, len(subject.players))
    n, shares = len(subject.players), finalize(state, subject.place, len(subject.players))
    order, values = sort_groups(state.names)
    columns: dict[str, Any] = {name: [group[k] for group in values for _ in range(n)] for k, name in enumerate(subject.by)}
    parts = [_columns(subject.players, shares, g) for g in order]
    columns["feature"] = list(subject.players) * len(order) or np.zeros(0, str)
    columns |= {name: np.concatenate([np.zeros(0), *(part[name] for part in parts)]) for name in ("r2", "standard_error")}
    columns["rank"] = np.concatenate([np.zeros(0, np.int64), *(part["rank"] for part in parts)])
    totals = [_sum_up(shares, g) for g in order]
    for name in TOTALS:
        found = np.array([np.nan if each[name] is None else each[name] for each in totals])
        columns[name] = np.repeat(found.astype(np.int64) if name in ("n", "n_unlabelled") else found, n)
    return Table(columns)


def tabulate(state: R2State, subject: Subject) -> dict[str, Table]:
    """Tabulate ``r2``, a row per player, with totals; for grouped rows also ``r2_by``, a row per group and player."""
    shares = finalize(whole(state), subject.place, len(subject.players))
    tables = {"r2": Table(_columns(subject.players, shares, 0), _sum_up(shares, 0))}
    return tables | ({"r2_by": _tabulate_groups(state, subject)} if subject.by else {})
