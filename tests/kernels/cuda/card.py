"""Attributions of a few rows by the card's kernels; the simulator plays the card unless NUMBA_ENABLE_CUDASIM is 0."""

import warnings
from dataclasses import replace

import numpy as np

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.cuda.card import find_obstacle, on_card
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.slices.buffers import make_buffers
from tests.kernels.attributing import defaults

EQUAL = 1e-12  # of the largest attribution: the bound that is promised between devices


def tables(name, ensemble, group=None, background=None, **parameters):
    return prepare(ensemble, METHODS[name], defaults(name) | parameters, group, background=background)


def on(method, prepared, rows):
    """phi ``(outputs, rows of phi, n)`` and margins of a few rows; the simulator's integers of 32 bits wrap, and NumPy says so."""
    buffers = make_buffers(prepared, len(rows))
    buffers.values[:, : len(rows)] = rows.T[prepared.bins.column]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        attribute_batch(method, prepared, buffers, len(rows))
    return buffers.phi[:, :, : len(rows)].copy(), buffers.margin[:, : len(rows)].copy()


def both(name, prepared, rows):
    """phi by the processor, and by the card."""
    assert find_obstacle(METHODS[name], prepared) == ""
    return on(METHODS[name], prepared, rows)[0], on(on_card(METHODS[name], prepared), prepared, rows)[0]


def scattered(name, prepared, rows, n_players):
    """phi ``(n, outputs, n_players)`` by the card."""
    phi = np.zeros((len(rows), prepared.base.size, n_players))
    phi[:, :, prepared.players] = on(on_card(METHODS[name], prepared), prepared, rows)[0].transpose(2, 0, 1)
    return phi


def unwalked(method):
    """The method with a kernel that must not be called."""
    return replace(method, kernel=None)
