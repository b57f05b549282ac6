"""Prediction gaps by randomised quasi-Monte Carlo, with standard errors, for ensembles with too many pairs of leaves.

Several scrambled Halton sequences (Owen 2017) are each used for all rows and prefixes: differences are more precise than single values, and errors of
rows are not independent.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ..arrays.ordering import ranks_from_order
from ..trees.binning import BATCH
from ..trees.margin import add_margins
from .exact import Prefixes
from .greedy import TIE
from .noise import BinDistributions, Noises, perturb_rows
from .tables import GapTables, movable_units

REPEATS = 16  # independent scramblings
POINTS = 1 << 10  # points of a sequence

Size = Callable[[np.ndarray], np.ndarray]  # np.square or np.abs, of changes
Sequence = Callable[[int], np.ndarray]  # points in the unit cube of a dimension, (points, dimensions), a multiple of BATCH points


def halton(seed: int, number: int) -> Sequence:
    """Scramble a Halton sequence."""
    from scipy.stats import qmc  # takes a second to import, and exact values do not need it

    return lambda n_units: qmc.Halton(n_units, scramble=True, rng=np.random.default_rng([seed, number])).random(POINTS)


def haltons(seed: int) -> Iterator[Sequence]:
    """Generate REPEATS scrambled sequences."""
    return (halton(seed, repeat) for repeat in range(REPEATS))


def _points(sequence: Sequence, n_units: int) -> np.ndarray:
    return sequence(n_units) if n_units else np.zeros((POINTS, 0))


def _members(tables: GapTables) -> list[np.ndarray]:
    """Return the used features of every unit."""
    return [np.flatnonzero(tables.unit_of == u) for u in range(tables.units.size)]


def _draw(tables: GapTables, distributions: BinDistributions, i: int, points: np.ndarray, bins: np.ndarray) -> None:
    """Overwrite ``bins (used, points)`` with row i's perturbed bins, drawn by each unit's column of ``points``."""
    top, units, atoms = np.iinfo(bins.dtype).max, tables.regions.units, tables.atoms
    for u in np.flatnonzero(units.perturbed):
        members, p = np.flatnonzero(tables.unit_of == u), points[:, u]
        if units.noised[u]:
            signed, present = distributions.cumulative[i, units.cell[u] + 1 : units.cell[u + 1]], distributions.present[i, u]
            cumulative = np.where(signed < 0, present + signed, signed)
            bins[members[0]] = np.where(p < present, np.minimum(np.searchsorted(cumulative, p, side="right"), signed.size - 1), top)
        else:
            some = slice(atoms.start[u], atoms.start[u + 1])
            atom = np.minimum(np.searchsorted(atoms.cumulative[some], p, side="right"), some.stop - some.start - 1)
            bins[members] = atoms.bins[some][atom, : members.size].T


def _margins(tables: GapTables, bins: np.ndarray) -> np.ndarray:
    """Return the margins, ``(outputs, n) float64``."""
    margin = np.zeros((tables.regions.outputs.start.size - 1, bins.shape[1]))
    add_margins(bins, tables.margin, margin)
    return margin


def _each_row(
    tables: GapTables, noise: Noises, values: np.ndarray, bins: np.ndarray, points: np.ndarray
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield every row's margins ``(outputs,)``, its bins repeated for every point, and its perturbed bins, ``(used, points)`` each."""
    distributions = perturb_rows(values, tables.noise, noise)
    for i in range(bins.shape[1]):
        still = np.repeat(bins[:, i : i + 1], len(points), axis=1)
        moved = still.copy()
        _draw(tables, distributions, i, points, moved)
        yield i, _margins(tables, np.ascontiguousarray(still[:, :BATCH]))[:, 0], still, moved


def _gap(tables: GapTables, moved: np.ndarray, margin: np.ndarray, k: int, size: Size = np.square) -> float:
    """Return the mean size of an output's change at bins ``(used, points)``."""
    return float(size(_margins(tables, moved)[k] - margin[k]).mean())


def _sample(
    tables: GapTables, noise: Noises, values: np.ndarray, bins: np.ndarray, prefixes: Prefixes, points: np.ndarray, size: Size = np.square
) -> np.ndarray:
    """Estimate PG² of prefixes with weight (0 for others) as means over ``points (points, units)``: ``(n, outputs, prefixes) float64``."""
    found, members = np.zeros(prefixes.weight.shape), _members(tables)
    for i, margin, still, moved in _each_row(tables, noise, values, bins, points):
        for k in range(margin.size):
            mixed, gap, known = still.copy(), 0.0, True
            for prefix in range(prefixes.weight.shape[2]):
                for u in np.flatnonzero(prefixes.place[i, k] == prefix + 1):
                    mixed[members[u]], known = moved[members[u]], False
                if prefixes.weight[i, k, prefix] > 0:
                    gap, known = gap if known else _gap(tables, mixed, margin, k, size), True
                    found[i, k, prefix] = gap
    return found


def average(estimates: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Average the estimates of the sequences, with standard errors."""
    return np.mean(estimates, axis=0), np.std(estimates, axis=0, ddof=1) / np.sqrt(len(estimates))


def sample_rows(
    tables: GapTables,
    noise: Noises,
    values: np.ndarray,
    bins: np.ndarray,
    prefixes: Prefixes,
    sequences: Iterable[Sequence],
    size: Size = np.square,
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate PGI² of rankings, or PG² of sets; with ``np.abs`` PGI and PG (Gajewski et al. 2024, Eq. 1).

    Parameters
    ----------
    values : (used, n) float64, as ``bin_rows`` left them
    bins : (used, n) unsigned integers
    sequences : iterable of Sequence
        as ``haltons`` makes them
    size : callable
        of changes

    Returns
    -------
    gaps, errors : (n, outputs) float64
        squared margin units, or margin units
    """
    points = (_points(sequence, tables.units.size) for sequence in sequences)
    return average([(_sample(tables, noise, values, bins, prefixes, some, size) * prefixes.weight).sum(axis=2) for some in points])


def _choose(tables: GapTables, noise: Noises, values: np.ndarray, bins: np.ndarray, steps: int, points: np.ndarray) -> np.ndarray:
    """Rank groups greedily by gaps at the points, ``(n, outputs, steps)``; ties as in ``greedy.rank_greedily``."""
    outputs, members, unit = tables.regions.outputs.start.size - 1, _members(tables), movable_units(tables)
    order = np.zeros((bins.shape[1], outputs, steps), np.int64)
    for i, margin, still, moved in _each_row(tables, noise, values, bins, points):
        for k in range(outputs):
            mixed, gap, left = still.copy(), 0.0, list(range(unit.size))
            for step in range(steps):
                gaps = [gap] * len(left)  # for groups without effect
                for candidate, group in enumerate(left):
                    if unit[group] >= 0:
                        mine = members[unit[group]]
                        mixed[mine] = moved[mine]
                        gaps[candidate] = _gap(tables, mixed, margin, k)
                        mixed[mine] = still[mine]
                best = 0
                for candidate, found in enumerate(gaps):
                    if found - gaps[best] > TIE * found:
                        best = candidate
                gap, group = gaps[best], left.pop(best)
                order[i, k, step] = group
                if unit[group] >= 0:
                    mixed[members[unit[group]]] = moved[members[unit[group]]]
    return order


def sample_greedily(
    tables: GapTables, noise: Noises, values: np.ndarray, bins: np.ndarray, steps: int, seed: int = 0
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Estimate what ``tables.greedy_rows`` computes.

    Groups are chosen on a separate sequence, since the maximum of estimates is biased upwards.
    """
    n_units = tables.units.size
    order = _choose(tables, noise, values, bins, steps, _points(halton(seed, REPEATS), n_units))
    place = np.where(tables.regions.units.perturbed, ranks_from_order(order, int(tables.n_all[0]), axis=2)[:, :, tables.units], 0)
    prefixes = Prefixes(place, np.ones(order.shape))
    return order, [_sample(tables, noise, values, bins, prefixes, _points(sequence, n_units)) for sequence in haltons(seed)]
