"""Sides and leaves as plain loops read them: where a combination of bins lies, which leaf a row reaches, how bins are distributed."""

import numpy as np

from tests import naive


def holds(sides, s, bins, top):
    """Whether bins ``(used,)`` fulfil all conditions of side s; ``top`` is the missing bin."""
    conditions, found = sides.conditions, True
    for c in range(conditions.start[s], conditions.start[s + 1]):
        bin_, first = int(bins[conditions.feature[c]]), int(conditions.first_member[c])
        if first >= 0:
            found &= bool(conditions.member[first + bin_])
        elif bin_ == top:
            found &= bool(conditions.interval.missing[c])
        else:
            found &= bool(conditions.interval.lower[c] < bin_ <= conditions.interval.upper[c])
    return found


def leaves_below(ensemble, node):
    """Leaves as recursion comes to them, left before right."""
    if ensemble.left[node] < 0:
        return [int(node)]
    return [*leaves_below(ensemble, ensemble.left[node]), *leaves_below(ensemble, ensemble.right[node])]


def leaf_of(ensemble, root, row):
    """The leaf that a row reaches."""
    node = root
    while ensemble.left[node] >= 0:
        node = (ensemble.left if naive.goes_left(ensemble, node, float(row[ensemble.feature[node]])) else ensemble.right)[node]
    return int(node)


def masses(distribution, units, u):
    """Of one row, the probability of each of a noised unit's bins, and of the missing one behind them."""
    signed, present = distribution.cumulative[units.cell[u] : units.cell[u + 1]], distribution.present[u]
    return np.append(np.diff(np.where(signed < 0, present + signed, signed)), distribution.missing[u])


def bins_on(interval, s, n_bins):
    """Whether each of a feature's bins, and the missing one behind them, is in the interval of side s, ``(n_bins + 1,) bool``."""
    bins = np.arange(n_bins)
    return np.append((interval.lower[s] < bins) & (bins <= interval.upper[s]), interval.missing[s] > 0)
