"""What one pass over rows adds up for effects, slice by slice, as states that merge.

Of every axis, from each row's own curve g over its states, carried through a link if there is one:

* the mean of g, and how rows spread around it: partial dependence, also of predictions, which are no sums over trees;
* how many rows have g, less its mean over the states as the background has them, in every cell: quantiles of centred curves (ICE);
* of a feature with numbers, the mean rise of g across each interval between two edges, over the rows whose own value lies there: accumulated
  local effects (Apley and Zhu 2020, Eq. 15);
* the spread of F - PD_j - PD_rest in margins, where PD_rest is the mean of g over the states: the numerator of Friedman's H of the feature against
  all others (Friedman and Popescu 2008, Eq. 45).

Cells are as wide as a 16th of what they hold, or of a thousandth of the curves' reach where they hold less.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..trees.binning import BinTables
from .axes import Axis, Nodes, Runs, find_states
from .rows import row_curves

PARTS = 16  # cells of an octave
OCTAVES = 10  # from a thousandth of the reach to all of it
SIDE = PARTS * OCTAVES  # cells on either side of zero
Carry = Callable[[np.ndarray], np.ndarray]  # from margins (outputs, …) to predictions of the same shape


class RowAxis(NamedTuple):
    """An axis of a pass over rows, and what is known of it before."""

    axis: Axis
    runs: Runs
    share: np.ndarray  # (states,) float64, of the background's rows in every state
    curve: np.ndarray  # (outputs, states) float64, partial dependence of margins
    edges: np.ndarray  # (intervals + 1,) int64, ascending states between which local effects are taken; empty where values have no order
    reach: np.ndarray  # (outputs,) float64, no curve is further from its mean, in the units of what is carried


class PairAxis(NamedTuple):
    """Two axes as one, where a surface needs a pass over rows: one of predictions."""

    axis: Axis
    runs: Runs


class RowTables(NamedTuple):
    """What a pass over rows reads."""

    bins: BinTables
    nodes: Nodes
    base: np.ndarray  # (outputs,) float64, margin units
    axes: tuple[RowAxis, ...]  # at least one
    pairs: np.ndarray  # (pairs, 2) int64, positions of axes
    surfaces: tuple[PairAxis, ...]  # of every pair, or none


class Moments(NamedTuple):
    """Means of some rows, and sums of squared distances from them."""

    n: np.ndarray  # (1,) float64, rows; or of every interval, (intervals,)
    mean: np.ndarray  # float64
    spread: np.ndarray  # float64

    def merge(self, other: "Moments") -> "Moments":
        """Add the moments of other rows (Chan et al. 1979)."""
        n = self.n + other.n
        part = other.n / np.maximum(n, 1.0)
        apart = other.mean - self.mean
        return Moments(n, self.mean + apart * part, self.spread + other.spread + apart**2 * self.n * part)


class CountedRows(NamedTuple):
    """What a first pass counts of some rows."""

    statistics: Any  # what they have in common with each leaf: of a background query's own kind, () where that is known from elsewhere
    states: tuple[np.ndarray, ...]  # of every axis (states,) int64, rows in each state
    seen: np.ndarray  # (read, 2) int64, categories that the model knows, and all

    def merge(self, others: Sequence["CountedRows"]) -> "CountedRows":
        """Add the counts of other rows: whole numbers, the same in any order."""
        statistics, states, seen = zip(self, *others, strict=True)
        each_axis = tuple(np.sum(each, axis=0) for each in zip(*states, strict=True))
        merged = statistics[0].merge(statistics[1:]) if len(statistics[0]) else ()
        return CountedRows(merged, each_axis, np.sum(seen, axis=0))


class AxisSums(NamedTuple):
    """Sums of one axis."""

    curve: Moments  # (outputs, states)
    cells: np.ndarray  # (outputs, states, 2 * SIDE) int64
    rises: Moments  # (outputs, intervals)
    rest: Moments  # (outputs,)


class EffectSums(NamedTuple):
    """Sums of all axes, and of margins."""

    axes: tuple[AxisSums, ...]
    margin: Moments  # (outputs,)
    together: tuple[np.ndarray, ...]  # of every pair (states, states) int64, rows in both
    surfaces: tuple[Moments, ...]  # (outputs, states of both)

    def merge(self, others: Sequence["EffectSums"]) -> "EffectSums":
        """Add the sums of other rows, in order."""
        total = self
        for other in others:
            axes = (
                AxisSums(a.curve.merge(b.curve), a.cells + b.cells, a.rises.merge(b.rises), a.rest.merge(b.rest))
                for a, b in zip(total.axes, other.axes, strict=True)
            )
            together = (a + b for a, b in zip(total.together, other.together, strict=True))
            surfaces = (a.merge(b) for a, b in zip(total.surfaces, other.surfaces, strict=True))
            total = EffectSums(tuple(axes), total.margin.merge(other.margin), tuple(together), tuple(surfaces))
        return total


def choose_edges(share: np.ndarray, n_intervals: int) -> np.ndarray:
    """Choose states that cut rows into intervals of about the same number: quantiles.

    Parameters
    ----------
    share : (states,) float64
        of rows in every state

    Returns
    -------
    (edges,) int64
        ascending, ``n_intervals`` + 1 at most, each once
    """
    total = np.cumsum(share)
    wanted = np.linspace(0.0, 1.0, n_intervals + 1) * total[-1]
    found = np.searchsorted(total, np.maximum(wanted * (1 - 1e-12), np.nextafter(0.0, 1.0)))
    return np.unique(found) if total[-1] > 0 else np.zeros(0, np.int64)


def find_moments(values: np.ndarray) -> Moments:
    """Find the moments of ``values (outputs, n, …)`` over rows, the second axis."""
    mean = values.mean(axis=1) if values.shape[1] else np.zeros((values.shape[0], *values.shape[2:]))
    return Moments(np.array([float(values.shape[1])]), mean, ((values - mean[:, None]) ** 2).sum(axis=1))


@jit
def _count_cells(curves: np.ndarray, middle: np.ndarray, reach: np.ndarray, out: np.ndarray) -> None:
    """Count ``curves (outputs, n, states)`` less their rows' ``middle (outputs, n)`` into ``out (outputs, states, 2 * SIDE)``."""
    for k in range(curves.shape[0]):
        unit = reach[k] / ((1 << OCTAVES) - 1) if reach[k] > 0 else 1.0
        for i in range(curves.shape[1]):
            for s in range(curves.shape[2]):
                apart = curves[k, i, s] - middle[k, i]
                part, octave = math.frexp(1.0 + abs(apart) / unit)
                cell = min(SIDE - 1, (octave - 1) * PARTS + int((2.0 * part - 1.0) * PARTS))
                out[k, s, SIDE + cell if apart >= 0 else SIDE - 1 - cell] += 1


def cell_ends(reach: float) -> np.ndarray:
    """Return the ends of all cells, ascending, ``(2 * SIDE + 1,) float64``; of curves that reach nowhere all are 0."""
    at = np.arange(SIDE + 1)
    side = (2.0 ** (at // PARTS) * (1 + at % PARTS / PARTS) - 1.0) * (reach / ((1 << OCTAVES) - 1))
    return np.concatenate((0.0 - side[:0:-1], side))


def read_quantiles(cells: np.ndarray, reach: float, quantiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Read quantiles off cells.

    Parameters
    ----------
    cells : (states, 2 * SIDE) int64
        rows in every cell
    reach : float
        by which cells were made
    quantiles : (q,) float64
        from 0 to 1

    Returns
    -------
    lower, upper : (states, q) float64 each
        ends of the cell that holds the quantile, the least value that at least so many rows do not exceed
    """
    ends, total = cell_ends(reach), cells.cumsum(axis=1)
    wanted = np.maximum(np.ceil(quantiles * total[:, -1:] * (1 - 1e-12)), 1)
    place = np.array([np.searchsorted(mine, asked) for mine, asked in zip(total, wanted, strict=True)]).reshape(len(cells), -1)
    place = np.minimum(place, 2 * SIDE - 1)
    return ends[place], ends[place + 1]


def _sum_rises(curves: np.ndarray, states: np.ndarray, edges: np.ndarray) -> Moments:
    """Find the moments of rises across every interval, of the rows whose own state lies there."""
    n_intervals = max(0, edges.size - 1)
    interval = np.maximum(np.searchsorted(edges, states), 1) - 1
    inside = (states >= edges[0]) & (states <= edges[-1]) if n_intervals else np.zeros(states.size, bool)
    found = []
    for m in range(n_intervals):
        rows = inside & (interval == m)
        found.append(find_moments(curves[:, rows, edges[m + 1]] - curves[:, rows, edges[m]]))
    if not found:
        return Moments(np.zeros(0), np.zeros((len(curves), 0)), np.zeros((len(curves), 0)))
    return Moments(np.concatenate([each.n for each in found]), *(np.stack([each[part] for each in found], axis=1) for part in (1, 2)))


def _sum_axis(tables: RowTables, asked: RowAxis, bins: np.ndarray, states: np.ndarray, carry: Carry | None) -> tuple[AxisSums, np.ndarray]:
    """Sum one axis, and return rows' margins too."""
    margins = row_curves(tables.nodes, tables.base, asked.axis, asked.runs, bins, states.size)
    margin = margins[:, np.arange(states.size), states]
    rest = find_moments(margin - asked.curve[:, states] - margins @ asked.share)
    curves = margins if carry is None else carry(margins)
    cells = np.zeros((len(margins), asked.axis.n_states, 2 * SIDE), np.int64)
    _count_cells(curves, curves @ asked.share, asked.reach, cells)
    return AxisSums(find_moments(curves), cells, _sum_rises(curves, states, asked.edges), rest), margin


def sum_rows(tables: RowTables, bins: np.ndarray, n_rows: int, carry: Carry | None) -> EffectSums:
    """Sum what some rows say of effects.

    Parameters
    ----------
    bins : (used, n) unsigned integers
    n_rows : int
        how many of the rows count, the first; each is in a state of every axis
    carry : callable or None
        from margins to what curves are of; None for margins
    """
    axes = tables.axes
    states = [find_states(each.axis, bins)[:n_rows] if each.axis.member.size else np.zeros(n_rows, np.int64) for each in axes]
    found = [_sum_axis(tables, each, bins, own, carry) for each, own in zip(axes, states, strict=True)]
    together, surfaces = [], []
    for a, b in tables.pairs:
        shape = axes[a].axis.n_states, axes[b].axis.n_states
        together.append(np.bincount(states[a] * shape[1] + states[b], minlength=shape[0] * shape[1]).reshape(shape))
    for pair in tables.surfaces:
        margins = row_curves(tables.nodes, tables.base, pair.axis, pair.runs, bins, n_rows)
        surfaces.append(find_moments(margins if carry is None else carry(margins)))
    return EffectSums(tuple(sums for sums, _ in found), find_moments(found[0][1]), tuple(together), tuple(surfaces))
