"""How features are perturbed: noise added to a numeric feature by a distribution function, or values drawn anew from rows of data."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from ..trees.binning import BinTables, bin_dtype
from ..trees.forest import Forest
from .exact import Tails
from .leaf_regions import Atoms, Boxes

SMALLEST = 1e-300  # what stands for a probability of the upper side that is 0, so that its sign tells the side
SPREAD = {"uniform": 3.0**0.5, "laplace": 0.5**0.5}  # of a distribution whose standard deviation is 1


@dataclass(frozen=True, slots=True)
class Noise:
    """A distribution of mean 0, by the probabilities that it is at most z, and above z; ``z`` and both are arrays of one shape."""

    name: str
    lower: Callable[[Any], Any]
    upper: Callable[[Any], Any]


def _symmetric(name: str, lower: Callable[[Any], Any]) -> Noise:
    return Noise(name, lower, lambda z: lower(-z))


def _uniform(z):
    return np.clip((z / SPREAD["uniform"] + 1) / 2, 0.0, 1.0)


def _laplace(z):
    half = np.exp(-np.abs(z) / SPREAD["laplace"]) / 2
    return np.where(z < 0, half, 1 - half)


# Each with standard deviation 1.
NOISES = (_symmetric("normal", ndtr), _symmetric("uniform", _uniform), _symmetric("laplace", _laplace))


class Measured(NamedTuple):
    """What has to be known of data; adds up over parts of them."""

    n: np.ndarray  # (used,) float64, values that are finite
    mean: np.ndarray  # (used,) float64, of these
    spread: np.ndarray  # (used,) float64, sum of squared distances from the mean
    start: np.ndarray  # (units + 1,) int64, what was seen of unit u is seen[start[u]:start[u + 1]]
    seen: np.ndarray  # (patterns, most members) int64, distinct bins of the unit's features, -1 beyond them
    times: np.ndarray  # (patterns,) float64

    def merge(self, others: Iterable["Measured"]) -> "Measured":
        """Add up with what was measured of other parts, in their order (Chan, Golub and LeVeque 1983)."""
        return _merge((self, *others))


class Moves(NamedTuple):
    """How a model's moved units are spread."""

    unit: np.ndarray  # (moved,) int64
    feature: np.ndarray  # (moved,) int64, used feature
    scale: np.ndarray  # (moved,) float64, standard deviation of the noise
    start: np.ndarray  # (moved + 1,) int64, thresholds of each
    threshold: np.ndarray  # float64
    fixed: np.ndarray  # (moved,) bool, drawn from data instead, whatever the row: then
    tail: np.ndarray  # (cells,) float64,
    mass: np.ndarray  # (units,) float64,
    missing: np.ndarray  # (units,) float64, as in Tails


def _signed(lower, upper, mass=1.0):
    return np.where(lower <= mass / 2, lower, -np.maximum(upper, SMALLEST))


def measure(values, bins, player, drawn) -> Measured:
    """Moments of the used features, and what units are drawn from: ``values (used, n) float64`` and their bins, ``player (used,)``, which unit's a
    feature is, ``drawn (units,) bool``."""
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


def deviations(measured: Measured):
    """Standard deviations of the used features, ``(used,) float64``; 0 where there is no value."""
    return np.sqrt(measured.spread / np.maximum(measured.n, 1.0))


def atoms_of(measured: Measured, forest: Forest, units: Iterable[int]) -> dict[int, Atoms]:
    """What these units are drawn from."""
    atoms = {}
    for u in units:
        some, n_members = slice(measured.start[u], measured.start[u + 1]), int((forest.player == u).sum())
        atoms[u] = Atoms(measured.seen[some, :n_members], measured.times[some] / measured.times[some].sum())
    return atoms


def prepare_moves(forest: Forest, boxes: Boxes, bins: BinTables, scale, measured: Measured | None, drawn) -> Moves:
    """How moved units are spread.

    Parameters
    ----------
    scale : (used,) float64, standard deviation of the noise of each used feature
    measured, drawn : what was seen of data, and ``(units,) bool``, of which moved units the values are drawn from it
    """
    units = np.flatnonzero(boxes.moved)
    feature = np.array([int(np.flatnonzero(forest.player == u)[0]) for u in units], np.int64)
    sizes = np.diff(boxes.cell)[units] - 2
    tail, mass, missing = (np.zeros(size) for size in (boxes.cell[-1], boxes.moved.size, boxes.moved.size))
    thresholds = [bins.threshold[bins.start[f] : bins.start[f] + n] for f, n in zip(feature, sizes, strict=True)]
    top = np.iinfo(bin_dtype(bins)).max
    for u, n in zip(units.tolist(), sizes.tolist(), strict=True):
        if measured is not None and drawn[u]:
            some = slice(measured.start[u], measured.start[u + 1])
            seen, times = measured.seen[some, 0], measured.times[some] / measured.times[some].sum()
            missing[u] = times[seen == top].sum()
            there = np.bincount(seen[seen < top], times[seen < top], minlength=n + 1)
            mass[u] = there.sum()
            lower = np.concatenate(([0.0], np.cumsum(there)))
            upper = np.concatenate((np.cumsum(there[::-1])[::-1], [0.0]))
            tail[boxes.cell[u] : boxes.cell[u + 1]] = _signed(lower, upper, mass[u])
    return Moves(
        unit=units,
        feature=feature,
        scale=np.asarray(scale, np.float64)[feature],
        start=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        threshold=np.concatenate([np.zeros(0), *thresholds]),
        fixed=np.asarray(drawn, bool)[units],
        tail=tail,
        mass=mass,
        missing=missing,
    )


def spread_rows(values, moves: Moves, noise: Noise) -> Tails:
    """How the moved units of every row are spread, ``values (used, n) float64`` as ``bin_rows`` left them.

    A missing value stays missing, an infinite one as it is.
    """
    n = values.shape[1]
    tail, mass, missing = (np.tile(array, (n, 1)) for array in (moves.tail, moves.mass, moves.missing))
    end = 0
    for m, u in enumerate(moves.unit):
        t = moves.threshold[moves.start[m] : moves.start[m + 1]]
        cell, end = end, end + t.size + 2
        if moves.fixed[m]:
            continue
        x = values[moves.feature[m]]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = (t - x[:, None]) / moves.scale[m]
            at = np.isnan(z)  # a threshold that the value equals, without noise or both infinite
            z[at] = np.inf
            # A distribution function may fall by a rounding from a threshold to the next.
            lower, upper = np.maximum.accumulate(noise.lower(z), axis=1), np.minimum.accumulate(noise.upper(z), axis=1)
            tail[:, cell + 1 : end - 1] = _signed(lower, upper)
        tail[:, end - 1] = -SMALLEST
        lost = np.isnan(x)
        tail[lost, cell:end], mass[:, u], missing[:, u] = 0.0, ~lost, lost
    return Tails(tail, mass, missing)
