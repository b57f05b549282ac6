"""Definitions of effects by brute force: rows with a feature set to a value, through the definition of a margin."""

import numpy as np

from leafledger.kernels.effects.axes import feature_axis, find_runs, hot_axis, list_nodes
from leafledger.kernels.trees.binning import bin_dtype, bin_rows, padded
from leafledger.kernels.trees.forest import make_forest
from tests import naive


class Grown:
    """A forest with an axis for every used feature, and a value for every state."""

    def __init__(self, ensemble, groups=None):
        self.ensemble = ensemble
        self.tables, self.forest = make_forest(ensemble, groups)
        self.nodes = list_nodes(self.forest)
        self.axes = [feature_axis(self.tables, j) for j in range(self.forest.n_used)]
        self.runs = [find_runs(self.nodes, axis) for axis in self.axes]

    def values(self, j):
        """A value of every state of a used feature, chosen from the ensemble's own thresholds."""
        column = self.forest.column[j]
        if self.ensemble.n_categories[column]:
            return np.append(np.arange(self.ensemble.n_categories[column] + 1.0), np.nan)
        thresholds = np.unique(self.ensemble.threshold[self.ensemble.feature == column])
        inner = (thresholds[:-1] + thresholds[1:]) / 2
        return np.concatenate(([thresholds[0] - 1.0 - abs(thresholds[0]) / 2], inner, [np.inf, np.nan]))

    def bins(self, rows):
        values = np.zeros((self.forest.n_used, padded(len(rows))))
        values[:, : len(rows)] = rows.T[self.forest.column]
        out = np.zeros(values.shape, bin_dtype(self.tables))
        bin_rows(values, self.tables, out)
        return out

    def changed(self, rows, settings):
        """Margins ``(n, outputs)`` of rows with columns set: ``{column: value}``."""
        rows = rows.copy()
        for column, value in settings.items():
            rows[:, column] = value
        return naive.margins(self.ensemble, rows)

    def hot(self, used):
        axis = hot_axis(self.tables, np.asarray(used))
        return axis, find_runs(self.nodes, axis)
