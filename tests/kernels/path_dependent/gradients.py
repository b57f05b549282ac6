"""Gradients of a few rows, at points that are drawn."""

import numpy as np
from hypothesis import strategies as st

from leafledger.kernels import game_values
from leafledger.kernels.methods import METHODS
from leafledger.kernels.path_dependent.games import play
from leafledger.kernels.path_dependent.multilinear import add_gradients, prepare_gradient
from leafledger.kernels.prepare import prepare
from leafledger.kernels.trees.forest import make_forest
from tests.kernels.attributing import attributed

probabilities = st.sampled_from((0.0, 1.0, 0.5, 0.25, 1e-3, 0.9, 1e-17))


def gradients(ensemble, rows, z):
    """Gradients ``(n, outputs, features)`` and margins ``(n, outputs)`` at ``z (n, outputs, features)``."""
    tables = prepare_gradient(play(make_forest(ensemble)[1], game_values.shapley))
    prepared = prepare(ensemble, METHODS["banzhaf"], {"p": 0.5})
    buffers = attributed("banzhaf", prepared, rows)
    point, n = np.full(buffers.phi.shape, 0.5), len(rows)
    point[:, :, :n] = z[:, :, prepared.players].transpose(1, 2, 0)
    phi, margin = np.zeros(buffers.phi.shape), np.zeros(buffers.margin.shape)
    add_gradients(buffers.bins, tables, point, phi, margin)
    out = np.zeros(z.shape)
    out[:, :, prepared.players] = phi[:, :, :n].transpose(2, 0, 1)
    return out, margin[:, :n].T


def drawn_points(data, ensemble, rows):
    """A point for every row and output, faces and corners of the cube among them."""
    shape = (len(rows), ensemble.base.size, ensemble.n_features)
    return np.array(data.draw(st.lists(probabilities, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))).reshape(shape)
