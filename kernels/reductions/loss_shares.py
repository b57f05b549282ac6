"""The summary ``loss``: the mean loss, its base, and every player's part of what lies between them; over all rows and by group."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays.ordering import ranks_by_score
from ..slices.buffers import BASE, TOTAL, Buffers
from ..slices.labels import check_groups
from .group_moments import sort_groups
from .summary import ABOUT_VALUES, IMPORTANCE, Column, Shown, Subject, Summary, Table, find_importance, tabulate_moments
from .weighted_moments import WEIGHTED_MOMENTS, WeightedMoments, alone, find_errors_of_means, take_group, whole

TOTALS = "mean_loss", "mean_loss_error", "mean_base", "mean_base_error", "n", "n_unlabelled", "weight"
ENDS = (BASE, TOTAL)  # follow the players' rows


def _read(buffers: Buffers) -> np.ndarray:
    """Return attributions, base values and losses, ``(outputs, rows + 2, n)``."""
    return np.concatenate((buffers.phi, buffers.ends[:, : len(ENDS)]), axis=1)


def _columns(state: WeightedMoments, subject: Subject) -> dict[str, np.ndarray]:
    """Return columns of one group's players, ``(outputs, players)`` each."""
    n, errors = len(subject.players), find_errors_of_means(state)
    moments, found = alone(state), {}
    for name, values in (("mean", moments.mean), ("standard_error", errors)):
        found[name] = np.zeros((values.shape[0], n))
        found[name][:, subject.place] = values[:, : -len(ENDS)]
    return {**found, "rank": ranks_by_score(np.abs(found["mean"]), axis=1)}


def _sum_up(state: WeightedMoments) -> dict[str, float | int | None]:
    """Return the totals of one group, None where there are none."""
    mean, errors, weight = alone(state).mean[0], find_errors_of_means(state)[0], float(state.moments.rows[0])
    found = {f"mean_{name}": (mean[at], errors[at]) for name, at in (("loss", TOTAL - len(ENDS)), ("base", BASE - len(ENDS)))}
    numbers = {f"{name}{suffix}": float(value) for name, pair in found.items() for suffix, value in zip(("", "_error"), pair, strict=True)}
    told: dict[str, float | int | None] = {name: value if weight > 0 and math.isfinite(value) else None for name, value in numbers.items()}
    return told | {"n": int(state.counts[0, 0]), "n_unlabelled": int(state.counts[1, 0]), "weight": weight}


def _of_importance(state: WeightedMoments, subject: Subject) -> dict[str, np.ndarray]:
    moments = alone(state)
    taken = (each[:, : -len(ENDS)] for each in moments[1:])
    return find_importance(type(moments)(moments.rows, *taken), subject)


def _tabulate_groups(state: WeightedMoments, subject: Subject) -> dict[str, Table]:
    """Tabulate all groups: group values first, ascending with None last."""
    n = len(subject.outputs) * len(subject.players)
    check_groups(subject.by, state.names.size, n)
    order, values = sort_groups(state.names)
    named: dict[str, Column] = {name: [group[k] for group in values for _ in range(n)] for k, name in enumerate(subject.by)}
    named["output"] = [output for output in subject.outputs for _ in subject.players] * len(order) or np.zeros(0, str)
    named["feature"] = list(subject.players) * len(subject.outputs) * len(order) or np.zeros(0, str)
    groups, parts, importances = [take_group(state, g) for g in order], dict[str, Column](named), dict[str, Column](named)
    about_parts, about_values = ("mean", "standard_error", "rank"), (*ABOUT_VALUES, "share", "rank")
    for columns, find, names in ((parts, _columns, about_parts), (importances, _of_importance, about_values)):
        found = [find(group, subject) for group in groups]
        for name in names:
            kind = np.int64 if name == "rank" else np.float64
            columns[name] = np.concatenate([np.zeros(0, kind), *(each[name].ravel() for each in found)])
    importances["rows"] = np.repeat(state.counts[0, order].astype(np.int64), n)
    totals = [_sum_up(group) for group in groups]
    for name in TOTALS:
        told = np.array([np.nan if each[name] is None else each[name] for each in totals], np.float64)
        parts[name] = np.repeat(told.astype(np.int64) if name in ("n", "n_unlabelled") else told, n)
    return {"loss_by": Table(parts), "importance_by": Table(importances)}


def _tabulate(state: WeightedMoments, subject: Subject) -> dict[str, Table]:
    """Tabulate parts of the loss with its totals, and importances; for grouped rows also ``loss_by`` and ``importance_by``."""
    together, labels = whole(state), {"feature": list(subject.players)}
    (table,) = tabulate_moments("loss", _columns(together, subject), labels, subject).values()
    tables = {"loss": replace(table, totals=_sum_up(together))} | tabulate_moments("importance", _of_importance(together, subject), labels, subject)
    return tables | (_tabulate_groups(state, subject) if subject.by else {})


def _write(value: float | None) -> str:
    return "–" if value is None else format(value, ".4g")


def _headline(totals: Mapping[str, Any]) -> str:
    loss, error, base = (_write(totals[name]) for name in ("mean_loss", "mean_loss_error", "mean_base"))
    counts = f"{totals['n']:,} rows, {totals['n_unlabelled']:,} without a label"
    return f"mean loss {loss} ± {error}, {base} for predictions of the background's rows; {counts}"


LOSS_SHARES = Summary(
    name="loss",
    reduction=WEIGHTED_MOMENTS,
    reads=_read,
    tabulate=_tabulate,
    columns=tuple(dict.fromkeys(("output", "feature", "mean", "standard_error", "rank", *TOTALS, *IMPORTANCE.columns, "rows"))),
    description="mean loss and every feature's part of it, negative where it helps; with importances of these parts",
    display=(
        Shown("rank", "rank", "d"),
        Shown("feature", "feature"),
        Shown("mean", "mean part", ".4g"),
        Shown("standard_error", "standard error", ".1g"),
    ),
    headline=_headline,
    grouped=True,
)
