"""Perturbations of features: additive noise for numeric features, resampling from data for others."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..method.method import refuse_arrays, refuse_other, refuse_unless
from ..trees.binning import ZERO, BinTables, bin_dtype
from ..trees.forest import Forest
from .leaf_regions import Atoms, Units, numeric_alone

EMPIRICAL = "empirical"  # no noise: numeric features are resampled too
SMALLEST = 1e-300  # replaces an upper tail probability of 0, since its sign marks the tail
SPREAD = {"uniform": 3.0**0.5, "laplace": 0.5**0.5}  # scales of distributions with standard deviation 1
Distribution = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class Noise:
    """A noise distribution; those with a name have mean 0 and standard deviation 1."""

    name: str
    lower: Distribution  # probability that the noise is at most z, in units of the scale, float64 of z's shape
    upper: Distribution  # probability that it is above z
    atoms: tuple[tuple[float, float], ...] = ()  # (z, probability) of each value that it takes, where they are few; they replace both functions


Noises = Noise | Sequence[Noise]  # one for all units with noise, or one for each


def _symmetric(name: str, lower: Distribution) -> Noise:
    return Noise(name, lower, lambda z: lower(-z))


def _normal(z: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return ndtr(z)


def _uniform(z: np.ndarray) -> np.ndarray:
    return np.clip((z / SPREAD["uniform"] + 1) / 2, 0.0, 1.0)


def _laplace(z: np.ndarray) -> np.ndarray:
    half = np.exp(-np.abs(z) / SPREAD["laplace"]) / 2
    return np.where(z < 0, half, 1 - half)


# Each has standard deviation 1.
NOISES = (_symmetric("normal", _normal), _symmetric("uniform", _uniform), _symmetric("laplace", _laplace))
NOISE_NAMES = (*(noise.name for noise in NOISES), EMPIRICAL)


def resampled_units(forest: Forest, empirical: np.ndarray, resample: bool) -> np.ndarray:
    """Choose the units that are resampled from data.

    Parameters
    ----------
    forest : Forest
        its players are the units
    empirical : (features,) bool, numeric features that are, where they are units by themselves
    resample : bool
        categorical features and groups of features are

    Returns
    -------
    resampled : (units,) bool
    """
    alone = np.zeros(forest.n_players, bool)
    alone[forest.player] = empirical[forest.column]
    return np.where(numeric_alone(forest), alone, resample)


class Measured(NamedTuple):
    """Statistics of data for perturbations, additive over parts of the data."""

    n: np.ndarray  # (used,) float64, number of finite values
    mean: np.ndarray  # (used,) float64, of these
    spread: np.ndarray  # (used,) float64, sum of squared deviations from the mean
    start: np.ndarray  # (units + 1,) int64, combinations of unit u are seen[start[u]:start[u + 1]]
    seen: np.ndarray  # (combinations, most members) int64, distinct bins of the unit's used features, -1 beyond them
    times: np.ndarray  # (combinations,) float64, how often each occurs

    def merge(self, others: Iterable["Measured"]) -> "Measured":
        """Add the statistics of other parts of the data (Chan, Golub and LeVeque 1983).

        Parameters
        ----------
        others : iterable of Measured
            of the same units; sums are rounded, so their order counts
        """
        return _merge((self, *others))


class BinDistributions(NamedTuple):
    """Distributions of the bins of units with noise, for every row; in a kernel for one row, without the first axis.

    ``cumulative`` holds, from a unit's first cell on (see ``leaf_regions.Units``), P(bin < 0), P(bin <= 0), … up to all bins but the missing one.
    Values above half of ``present`` are stored as minus the upper tail, so that small probabilities keep their digits at both ends.
    """

    cumulative: np.ndarray  # (n, cells) float64
    present: np.ndarray  # (n, units) float64, P(not missing)
    missing: np.ndarray  # (n, units) float64, P(missing)


class NoiseTables(NamedTuple):
    """Noise of the units that get noise."""

    unit: np.ndarray  # (noised,) int64
    feature: np.ndarray  # (noised,) int64, used feature
    scale: np.ndarray  # (noised,) float64, standard deviation of the noise, in the feature's units
    start: np.ndarray  # (noised + 1,) int64, thresholds of each
    threshold: np.ndarray  # (start[-1],) float64
    single_precision: np.ndarray  # (1,) bool, perturbed values are rounded to float32 before they are compared
    zero_missing: np.ndarray  # (noised,) bool, a perturbed value of 0 is missing
    empirical: np.ndarray  # (noised,) bool, drawn from data independently of the row, by the next field
    distribution: BinDistributions  # (cells,), (units,), (units,)


def _signed(lower: np.ndarray, upper: np.ndarray, present: float | np.ndarray = 1.0) -> np.ndarray:
    """Combine both tails of cumulative probabilities as ``BinDistributions`` stores them."""
    return np.where(lower <= present / 2, lower, -np.maximum(upper, SMALLEST))


def measure(values: np.ndarray, bins: np.ndarray, player: np.ndarray, drawn: np.ndarray) -> Measured:
    """Measure rows of data.

    Parameters
    ----------
    values : (used, n) float64, NaN where missing
    bins : (used, n) unsigned integers, their bins
    player : (used,) int, which unit's a used feature is
    drawn : (units,) bool, combinations of the unit's values are listed
    """
    there = np.isfinite(values)
    n = there.sum(axis=1).astype(np.float64)
    total = np.where(there, values, 0.0)
    mean = total.sum(axis=1) / np.maximum(n, 1.0)
    spread = (np.where(there, values - mean[:, None], 0.0) ** 2).sum(axis=1)
    most = int(np.bincount(player, minlength=1).max(initial=1))
    seen, times, start = [np.zeros((0, most), np.int64)], [np.zeros(0)], [0]
    for u in range(len(drawn)):
        if drawn[u]:
            mine = np.flatnonzero(player == u)
            found, counts = np.unique(bins[mine].T.astype(np.int64), axis=0, return_counts=True)
            seen.append(np.pad(found, ((0, 0), (0, most - mine.size)), constant_values=-1))
            times.append(counts.astype(np.float64))
        start.append(sum(map(len, times)))
    return Measured(n, mean, spread, np.array(start), np.concatenate(seen), np.concatenate(times))


def check_measured(bins: BinTables, player: np.ndarray, measured: Any, n_rows: int) -> None:
    """Refuse statistics from a file that no rows can have."""
    refuse_other(bins, measured, (BinTables, Measured))
    sizes = np.bincount(player, minlength=1)
    used, units = (player.size,), int(player.max(initial=-1)) + 1
    kinds = {"n": (np.float64, used), "mean": (np.float64, used), "spread": (np.float64, used), "start": (np.int64, (units + 1,))}
    refuse_arrays(measured, {**kinds, "seen": (np.int64, (-1, int(sizes.max(initial=1)))), "times": (np.float64, (-1,))})
    start, times = measured.start, measured.times
    refuse_unless(start[0] == 0 and start[-1] == len(measured.seen) == times.size and (np.diff(start) > 0).all(), "combinations of every group")
    refuse_unless((measured.n >= 0) & (measured.n <= n_rows), f"at most {n_rows} values")
    refuse_unless((times > 0) & (np.add.reduceat(times, start[:-1]) == n_rows).all() if units else True, f"{n_rows} rows of every group")
    below = np.array([np.count_nonzero(bins.threshold[a:b] < np.inf) for a, b in zip(bins.start[:-1], bins.start[1:], strict=True)], np.int64)
    highest, missing = np.where(bins.n_codes > 0, bins.n_codes + 1, below), np.where(bins.n_codes > 0, -1, np.iinfo(bin_dtype(bins)).max)
    for u in range(units):
        seen, mine = measured.seen[start[u] : start[u + 1]], np.flatnonzero(player == u)
        inside = seen[:, : mine.size]
        refuse_unless((inside >= 0) & ((inside <= highest[mine]) | (inside == missing[mine])), "bins that values have")
        refuse_unless(seen[:, mine.size :] == -1, "-1 beyond a group's features")


def _merge(parts: Iterable[Measured]) -> Measured:
    total, *others = parts
    for part in others:
        n = total.n + part.n
        share, distance = part.n / np.maximum(n, 1.0), part.mean - total.mean
        seen, times, start = [], [], [0]
        for u in range(total.start.size - 1):
            both = [(p.seen[p.start[u] : p.start[u + 1]], p.times[p.start[u] : p.start[u + 1]]) for p in (total, part)]
            found, place = np.unique(np.concatenate([patterns for patterns, _ in both]), axis=0, return_inverse=True)
            seen.append(found)
            times.append(np.bincount(place.reshape(-1), np.concatenate([counts for _, counts in both]), minlength=len(found)))
            start.append(start[-1] + len(found))
        total = Measured(
            n=n,
            mean=total.mean + distance * share,
            spread=total.spread + part.spread + distance**2 * (total.n * share),
            start=np.array(start),
            seen=np.concatenate([total.seen[:0], *seen]),
            times=np.concatenate([total.times[:0], *times]),
        )
    return total


def deviations(measured: Measured) -> np.ndarray:
    """Compute standard deviations."""
    return np.sqrt(measured.spread / np.maximum(measured.n, 1.0))


def atoms_of(measured: Measured, forest: Forest, units: Iterable[int]) -> dict[int, Atoms]:
    """List the atoms that units are drawn from."""
    atoms = {}
    for u in units:
        some, n_members = slice(measured.start[u], measured.start[u + 1]), int((forest.player == u).sum())
        atoms[u] = Atoms(measured.seen[some, :n_members], measured.times[some] / measured.times[some].sum())
    return atoms


def _measured_distribution(units: Units, measured: Measured | None, drawn: np.ndarray, top: int) -> BinDistributions:
    """Return the distributions of units drawn from data, 0 elsewhere; ``top`` is the missing bin."""
    cumulative, present, missing = (np.zeros(size) for size in (units.cell[-1], units.noised.size, units.noised.size))
    for u in np.flatnonzero(units.noised).tolist():
        if measured is not None and drawn[u]:
            some, n_bins = slice(measured.start[u], measured.start[u + 1]), int(units.cell[u + 1] - units.cell[u] - 1)
            seen, times = measured.seen[some, 0], measured.times[some] / measured.times[some].sum()
            missing[u] = times[seen == top].sum()
            there = np.bincount(seen[seen < top], times[seen < top], minlength=n_bins)
            present[u] = there.sum()
            lower = np.concatenate(([0.0], np.cumsum(there)))
            upper = np.concatenate((np.cumsum(there[::-1])[::-1], [0.0]))
            cumulative[units.cell[u] : units.cell[u + 1]] = _signed(lower, upper, present[u])
    return BinDistributions(cumulative, present, missing)


def prepare_noise(forest: Forest, units: Units, bins: BinTables, scale: np.ndarray, measured: Measured | None, drawn: np.ndarray) -> NoiseTables:
    """Make the tables of ``perturb_rows``."""
    noised = np.flatnonzero(units.noised)
    feature = np.array([int(np.flatnonzero(forest.player == u)[0]) for u in noised], np.int64)
    sizes = np.diff(units.cell)[noised] - 2
    thresholds = [bins.threshold[bins.start[f] : bins.start[f] + n] for f, n in zip(feature, sizes, strict=True)]
    return NoiseTables(
        unit=noised,
        feature=feature,
        scale=np.asarray(scale, np.float64)[feature],
        start=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        threshold=np.concatenate([np.zeros(0), *thresholds]),
        single_precision=bins.single_precision,
        zero_missing=bins.zero_missing[feature].astype(bool),
        empirical=np.asarray(drawn, bool)[noised],
        distribution=_measured_distribution(units, measured, drawn, np.iinfo(bin_dtype(bins)).max),
    )


def _add_noise(x: np.ndarray, t: np.ndarray, scale: float, noise: Noise) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities, ``(n, thresholds)`` each, that values with noise are at most each threshold, and above it."""
    z = (t - x[:, None]) / scale
    z[np.isnan(z)] = np.inf  # the value equals the threshold, without noise or with both infinite
    # Rounding may make a distribution function fall from one threshold to the next.
    return np.maximum.accumulate(noise.lower(z), axis=1), np.minimum.accumulate(noise.upper(z), axis=1)


def _add_atoms(
    x: np.ndarray, t: np.ndarray, scale: float, atoms: Sequence[tuple[float, float]], single: bool, zero_missing: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same of noise with few values, which may make a value missing, and the probability ``(n,)`` that it does."""
    lower, upper, missing = np.zeros((x.size, t.size)), np.zeros((x.size, t.size)), np.zeros(x.size)
    for z, probability in atoms:
        moved = np.where(np.isinf(x), x, x + scale * z)
        moved = moved.astype(np.float32).astype(np.float64) if single else moved
        gone = zero_missing & (np.abs(moved) <= ZERO)
        weight, below = np.where(gone, 0.0, probability)[:, None], moved[:, None] <= t
        lower += np.where(below, weight, 0.0)
        upper += np.where(below, 0.0, weight)
        missing += np.where(gone, probability, 0.0)
    return lower, upper, missing


def perturb_rows(values: np.ndarray, tables: NoiseTables, noise: Noises) -> BinDistributions:
    """Compute the bin distributions of every row's units with noise, ``values (used, n)``; missing and infinite values stay."""
    n = values.shape[1]
    cumulative, present, missing = (np.tile(array, (n, 1)) for array in tables.distribution)
    each = [noise] * tables.unit.size if isinstance(noise, Noise) else noise
    end = 0
    for m, u in enumerate(tables.unit):
        t = tables.threshold[tables.start[m] : tables.start[m + 1]]
        cell, end = end, end + t.size + 2
        if tables.empirical[m]:
            continue
        x = values[tables.feature[m]]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            gone = np.zeros(n)
            if each[m].atoms:
                lower, upper, gone = _add_atoms(x, t, tables.scale[m], each[m].atoms, tables.single_precision[0], tables.zero_missing[m])
            else:
                lower, upper = _add_noise(x, t, tables.scale[m], each[m])
        gone = np.where(np.isnan(x), 1.0, gone)
        cumulative[:, cell + 1 : end - 1], cumulative[:, end - 1] = _signed(lower, upper, 1.0 - gone[:, None]), -SMALLEST
        cumulative[gone == 1.0, cell:end] = 0.0
        present[:, u], missing[:, u] = 1.0 - gone, gone
    return BinDistributions(cumulative, present, missing)
