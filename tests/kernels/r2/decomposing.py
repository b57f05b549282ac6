"""Losses of a few rows, and forests to lose on."""

import numpy as np

from leafledger.kernels.batch import attribute_batch, find_residuals
from leafledger.kernels.method.method import TOLERANCE
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.slices.buffers import make_buffers
from tests.trees import grown


def explain(ensemble, rows, labels, groups=None):
    """Losses ``(n, groups)``, residuals, remainders ``(n,)`` and start."""
    n, method = len(rows), METHODS["r2"]
    prepared = prepare(ensemble, method, {}, groups)
    buffers = make_buffers(prepared, n)
    buffers.values[:, :n] = rows.T[prepared.bins.column]
    buffers.labels.label[:n] = labels
    attribute_batch(method, prepared, buffers)
    assert find_residuals(method.check, prepared, buffers, n).max(initial=0) < TOLERANCE
    found = np.zeros((n, ensemble.n_features if groups is None else max(groups) + 1))
    found[:, prepared.players] = buffers.phi[0, :, :n].T
    return found, buffers.labels.residual[:n], buffers.labels.remainder[:n], prepared.method.start[0]


def grow(draw, n_trees, depth, n_features, base=0.25):
    """Full trees with random splits, covers and leaves."""
    ensemble = grown(draw, n_trees, depth, n_features)
    leaf, cover = ensemble.feature < 0, np.ones(ensemble.feature.size)
    for v in np.flatnonzero(~leaf):
        share = draw.random()
        cover[ensemble.left[v]], cover[ensemble.right[v]] = cover[v] * share, cover[v] * (1 - share)
    missing_left, value = draw.random(leaf.size) < 0.5, np.where(leaf, ensemble.value[:, 0] + 0.5, 0.0)
    return ensemble._replace(cover=cover, missing_left=missing_left, value=value[:, None], base=np.array([base]))
