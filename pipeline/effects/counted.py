"""Backgrounds counted for effects: rows by what they have in common with each leaf, and by the state of every axis."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafledger.kernels.effects.axes import Axis, find_states
from leafledger.kernels.effects.curves import Curve, draw_curve, draw_surface
from leafledger.kernels.effects.shares import as_shares, count_shares, weigh_shares
from leafledger.kernels.effects.sums import CountedRows
from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.method.jackknife import N_GROUPS, JackknifeGroups
from leafledger.kernels.method.method import BackgroundQuery
from leafledger.kernels.methods import METHODS
from leafledger.kernels.trees.binning import bin_dtype, bin_rows, padded

from ..errors import UsageError
from ..methods.tables import ask_model, weigh_model
from ..methods.unseen_categories import count_unseen
from .asked import AskedEffects

COUNTED_FOR = "shapley"  # method whose counts have all that curves need
CELLS = 1 << 24  # numbers of shares held at a time


@dataclass(frozen=True, slots=True)
class Margins:
    """Partial dependence of margins: a curve of every axis, a surface of every pair, and the share of rows in every state, if rows were counted."""

    curves: tuple[Curve, ...]
    surfaces: tuple[Curve, ...]
    shares: tuple[np.ndarray, ...]
    n_rows: int | None  # of the background; None without one


def ask_background(asked: AskedEffects, n_rows: int | None, budget: int) -> BackgroundQuery:
    """Ask what to count of a background; dealt out to lots, for standard errors, where it has rows enough."""
    errors = n_rows is not None and n_rows >= 2 * N_GROUPS
    return ask_model(asked.model, METHODS[COUNTED_FOR], asked.groups, n_rows, budget, False, errors)


def find_own(axis: Axis, binned: np.ndarray, n_rows: int, name: str) -> np.ndarray:
    """Find the state of every row, ``(n_rows,) int64``; refuse rows that are in none."""
    states = find_states(axis, binned)[:n_rows] if axis.member.size else np.zeros(n_rows, np.int64)
    outside = int((states < 0).sum())
    if outside:
        raise UsageError(f"group {name!r}: {outside} rows of the background have other values than one 1 and zeros, expected one-hot columns")
    return states


def count_values(query: BackgroundQuery, named: Sequence[tuple[str, Axis]], values: np.ndarray, first_row: int, measured: bool = True) -> CountedRows:
    """Count rows of a background, ``values (used, n)``, and find the states of named axes; ``first_row`` is the first one's number in the whole.

    Without ``measured`` states alone are counted.
    """
    n_rows = values.shape[1]
    seen = count_unseen(query.bins, values)
    values = np.concatenate((values, np.zeros((values.shape[0], padded(n_rows) - n_rows))), axis=1)
    bins = np.zeros(values.shape, bin_dtype(query.bins))
    bin_rows(values, query.bins, bins)
    states = tuple(np.bincount(find_own(axis, bins, n_rows, name), minlength=axis.n_states) for name, axis in named)
    return CountedRows(query.measure(values, bins, n_rows, first_row) if measured else (), states, seen)


def _draw(asked: AskedEffects, weigh: Callable[[np.ndarray], np.ndarray], sizes: np.ndarray) -> tuple[tuple[Curve, ...], tuple[Curve, ...]]:
    """Draw all curves and surfaces, with shares of a few sets of players at a time."""
    nodes, axes, base, sets = asked.nodes, asked.axes, asked.forest.ensemble.base, asked.sets
    runs, found = asked.find_runs(), list[Curve]()
    step = max(1, CELLS // (sizes.size * max(1, nodes.feature.size)))
    for first in range(0, len(sets), step):
        for k, weight in enumerate(np.ascontiguousarray(weigh(sets[first : first + step]).swapaxes(0, 1)), first):
            if k < len(axes):
                found.append(draw_curve(nodes, runs[k], weight, sizes, base, axes[k].n_states))
            else:
                a, b = asked.pairs[k - len(axes)]
                found.append(draw_surface(nodes, runs[a], runs[b], weight, sizes, base, (axes[a].n_states, axes[b].n_states)))
    return tuple(found[: len(axes)]), tuple(found[len(axes) :])


def draw_counted(asked: AskedEffects, query: Any, counted: CountedRows) -> Margins:
    """Draw partial dependence from a background's counts."""
    statistics, n_nodes = counted.statistics, asked.nodes.feature.size
    if isinstance(statistics, JackknifeGroups):
        lots, sizes, partitioning = statistics.parts, statistics.n_rows.astype(np.float64), query.query.partitioning
    else:
        lots, sizes, partitioning = (statistics,), np.array([float(counted.states[0].sum())]), query.partitioning
    lots = frozen(lots)  # mapped or in memory, as kernels are compiled for them
    curves, surfaces = _draw(asked, lambda sets: count_shares(partitioning, lots, asked.forest.n_players, sets, n_nodes), sizes)
    return Margins(curves, surfaces, tuple(states / states.sum() for states in counted.states), int(sizes.sum()))


def draw_weighed(asked: AskedEffects, budget: int) -> Margins:
    """Draw partial dependence with the model's own leaf weights as background."""
    query: Any = ask_background(asked, None, budget)
    own: Any = weigh_model(asked.model, METHODS[COUNTED_FOR], asked.groups, query)
    weights = as_shares(query.partitioning, own)
    n_players, n_nodes = asked.forest.n_players, asked.nodes.feature.size
    return Margins(*_draw(asked, lambda sets: count_shares(query.partitioning, (weights,), n_players, sets, n_nodes), np.ones(1)), (), None)


def draw_covered(asked: AskedEffects) -> Margins:
    """Draw partial dependence by the trees' covers: scikit-learn's method ``recursion``."""
    return Margins(*_draw(asked, lambda sets: weigh_shares(asked.forest, asked.nodes, sets), np.ones(1)), (), None)
