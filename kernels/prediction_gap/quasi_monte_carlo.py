"""The prediction gap by quasi-Monte Carlo, for ensembles with too many pairs of leaves: scrambled Halton sequences (Owen 2017), several of them,
whose spread is the standard error.

Every sequence is used for all rows and prefixes, so that differences between them are more precise than each is; errors of rows are not independent.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..ordering import ranks_from_order
from ..trees.binning import BATCH
from ..trees.margin import add_margins
from .exact import Tails
from .greedy import TIE
from .noise import Noise, spread_rows
from .tables import GapTables

REPEATS = 16  # independent scramblings
POINTS = 1 << 10  # of a sequence

Sequence = Callable[[int], Any]  # points in the unit cube of so many dimensions, (points, dimensions), a multiple of BATCH points


def halton(seed: int) -> Sequence:
    """A scrambled sequence."""
    from scipy.stats import qmc  # takes a second to import, which exact values need not wait for

    return lambda n_units: qmc.Halton(n_units, scramble=True, rng=np.random.default_rng(seed)).random(POINTS)


def _points(sequence: Sequence, n_units: int):
    return sequence(n_units) if n_units else np.zeros((POINTS, 0))


def _members(tables: GapTables) -> list:
    """Used features of every unit."""
    return [np.flatnonzero(tables.member == u) for u in range(tables.boxes.perturbed.size)]


def _draw(tables: GapTables, tails: Tails, i: int, points, bins) -> None:
    """Ranks of perturbed values: ``bins (used, points)`` are overwritten; a unit's by its column of ``points``."""
    top = np.iinfo(bins.dtype).max
    for u in np.flatnonzero(tables.boxes.perturbed):
        members, p = np.flatnonzero(tables.member == u), points[:, u]
        if tables.boxes.moved[u]:
            tail, mass = tails.tail[i, tables.boxes.cell[u] + 1 : tables.boxes.cell[u + 1]], tails.mass[i, u]
            lower = np.where(tail < 0, mass + tail, tail)
            bins[members[0]] = np.where(p < mass, np.minimum(np.searchsorted(lower, p, side="right"), tail.size - 1), top)
        else:
            some = slice(tables.atom_start[u], tables.atom_start[u + 1])
            atom = np.minimum(np.searchsorted(tables.upto[some], p, side="right"), some.stop - some.start - 1)
            bins[members] = tables.atoms[some][atom, : members.size].T


def _margins(tables: GapTables, bins):
    """``(outputs, n) float64``."""
    margin = np.zeros((tables.boxes.target_start.size - 1, bins.shape[1]))
    add_margins(bins, tables.margin, margin)
    return margin


def _each_row(tables: GapTables, noise: Noise, values, bins, points) -> Iterator[tuple[int, Any, Any, Any]]:
    """Every row with its margins ``(outputs,)``, and ``(used, points)`` its bins at every point, as they are and as they are perturbed."""
    tails = spread_rows(values, tables.moves, noise)
    for i in range(bins.shape[1]):
        still = np.repeat(bins[:, i : i + 1], len(points), axis=1)
        moved = still.copy()
        _draw(tables, tails, i, points, moved)
        yield i, _margins(tables, np.ascontiguousarray(still[:, :BATCH]))[:, 0], still, moved


def _sample(tables: GapTables, noise: Noise, values, bins, places, wanted, points):
    """PG² of those prefixes that are wanted, 0 of others, ``(n, outputs, prefixes) float64``: means over ``points (points, units)``."""
    found, members = np.zeros(wanted.shape), _members(tables)
    for i, margin, still, moved in _each_row(tables, noise, values, bins, points):
        for k in range(wanted.shape[1]):
            mixed = still.copy()
            for prefix in range(wanted.shape[2]):
                for u in np.flatnonzero(places[i, k] == prefix + 1):
                    mixed[members[u]] = moved[members[u]]
                if wanted[i, k, prefix]:
                    found[i, k, prefix] = ((_margins(tables, mixed)[k] - margin[k]) ** 2).mean()
    return found


def average(estimates) -> tuple[Any, Any]:
    """Means of several sequences' estimates, and their standard errors."""
    return np.mean(estimates, axis=0), np.std(estimates, axis=0, ddof=1) / np.sqrt(len(estimates))


def sample_rows(tables: GapTables, noise: Noise, values, bins, places, weights, seed: int = 0, sequence=halton, repeats: int = REPEATS):
    """What ``prediction_gap.gap_rows`` gives, estimated: values and standard errors, ``(n, outputs) float64`` each."""
    sequences = (_points(sequence(seed + r), places.shape[2]) for r in range(repeats))
    return average([(_sample(tables, noise, values, bins, places, weights > 0, points) * weights).sum(axis=2) for points in sequences])


def _choose(tables: GapTables, noise: Noise, values, bins, steps: int, points):
    """Units in greedy order ``(n, outputs, steps)``, by gaps at the points; among equal ones, as ``greedy.rank_greedily`` has it, the first."""
    outputs, members = tables.boxes.target_start.size - 1, _members(tables)
    order = np.zeros((bins.shape[1], outputs, steps), np.int64)
    for i, margin, still, moved in _each_row(tables, noise, values, bins, points):
        for k in range(outputs):
            mixed, left = still.copy(), np.flatnonzero(tables.boxes.perturbed).tolist()
            for step in range(steps):
                gaps = []
                for u in left:
                    mixed[members[u]] = moved[members[u]]
                    gaps.append(((_margins(tables, mixed)[k] - margin[k]) ** 2).mean())
                    mixed[members[u]] = still[members[u]]
                best = 0
                for candidate, gap in enumerate(gaps):
                    if gap - gaps[best] > TIE * gap:
                        best = candidate
                order[i, k, step] = u = left.pop(best)
                mixed[members[u]] = moved[members[u]]
    return order


def sample_greedily(tables: GapTables, noise: Noise, values, bins, steps: int, seed: int = 0) -> tuple[Any, list]:
    """What ``prediction_gap.greedy_rows`` gives, estimated: units in order ``(n, outputs, steps) int64``, and of each of REPEATS sequences PG² of
    every prefix, ``(n, outputs, steps) float64``.

    Units are chosen at the points of one more sequence, for the largest of several estimates is too large.
    """
    n_units = tables.boxes.perturbed.size
    order = _choose(tables, noise, values, bins, steps, _points(halton(seed + REPEATS), n_units))
    places = ranks_from_order(order, n_units, axis=2)
    sequences = (_points(halton(seed + r), n_units) for r in range(REPEATS))
    return order, [_sample(tables, noise, values, bins, places, np.ones(order.shape, bool), points) for points in sequences]
