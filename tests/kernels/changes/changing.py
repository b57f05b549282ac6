"""Nearest changes of a few rows, as the tests of their kernel need them."""

from unittest.mock import patch

import numpy as np
from numpy.testing import assert_allclose

from leafledger.kernels.changes import nearest
from leafledger.kernels.changes.nearest import Found, find_nearest, prepare_changes
from leafledger.kernels.changes.supported import Grid, Supported, support_numbers
from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.trees.binning import ZERO, bin_dtype, bin_rows, padded
from leafledger.kernels.trees.forest import make_forest
from leafledger.kernels.trees.margin import add_margins, prepare_margin

ATOL = 1e-12  # of sums of a few leaves around one


def choose_none(forest, asked):
    """No tree is looked up."""
    return np.zeros(forest.ensemble.root.size, bool)


def change_rows(ensemble, rows, at, below, up=True, down=True, grid=None, codes=None, asked=None):
    """The nearest changes of every used feature, or of those ``asked`` for by position, ``(features, n)`` each, and the features' columns.

    Trees are looked up and walked, which has to be the same.
    """
    found, columns = find(ensemble, rows, at, below, up, down, grid, codes, asked)
    with patch.object(nearest, "choose_flips", choose_none):
        walked, _ = find(ensemble, rows, at, below, up, down, grid, codes, asked)
    for mine, theirs in zip(found, walked, strict=True):
        assert_allclose(mine, theirs, rtol=0, atol=ATOL)
    return found, columns


def find(ensemble, rows, at, below, up, down, grid, codes, asked):
    """The same, in one way."""
    bins, forest = make_forest(ensemble)
    n, used = len(rows), np.arange(bins.read.size) if asked is None else np.array(asked)
    values = np.zeros((bins.read.size, padded(n)))
    values[:, :n] = rows[:, bins.read].T
    binned, margin = np.zeros(values.shape, bin_dtype(bins)), np.zeros((1, padded(n)))
    bin_rows(values, bins, binned)
    add_margins(binned, frozen(prepare_margin(forest.ensemble, forest.splits, forest.trace, forest.comparisons)), margin)
    grid, lists = grid or Grid(0.0, np.float32 if ensemble.single_precision else np.float64), []
    for j in used:
        thresholds = bins.threshold[bins.start[j] : bins.start[j + 1]]
        if bins.n_codes[j]:
            lists.append((np.arange(bins.n_codes[j], dtype=float) if codes is None else codes,) * 2)
        else:
            missing = [(-ZERO, ZERO)] if bins.zero_missing[j] else []
            lists.append(support_numbers(thresholds[np.isfinite(thresholds)], grid, -np.inf, np.inf, missing))
    start = np.cumsum([0, *(each[0].size for each in lists)])
    low, high = (np.concatenate([np.zeros(0), *(each[side] for each in lists)]) for side in (0, 1))
    supported = Supported(start, low, high, np.full(used.size, up), np.full(used.size, down))
    found = Found(*np.full((3, used.size, n), -7.0))
    find_nearest(binned, values, margin[0, :n], *frozen((prepare_changes(forest, bins, used, at, below), supported)), found)
    return found, bins.read[used]
