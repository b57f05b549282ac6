"""Buffers: as many rows as a batch has at least, as many columns as a method writes, nothing in them, each at the start of a cache line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.kernels.jit.lanes import LINE
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.slices.buffers import make_buffers, take_rows
from leafledger.kernels.trees.binning import BATCH
from tests.kernels.attributing import defaults, leaves
from tests.strategies import forests
from tests.trees import chain

TREE = chain([0, 1, 2], [1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0], 3)


@pytest.mark.parametrize("name", ["shapley", "ranker", "curves", "gap"])
@given(ensemble=forests(), n_rows=st.sampled_from((0, 1, BATCH - 1, BATCH, BATCH + 1)))
def test_buffers_have_room_for_all_that_is_written(name, ensemble, n_rows):
    """Of rows whole batches; of columns those of phi and of the path; used features' values and bins. All of it is zero."""
    prepared = prepare(ensemble, METHODS[name], defaults(name))
    buffers, n = make_buffers(prepared, n_rows), BATCH * ((n_rows + BATCH - 1) // BATCH)
    used, outputs = np.unique(ensemble.feature[ensemble.feature >= 0]).size, ensemble.base.size
    n_all = ensemble.n_features
    n_rows_of_phi = {"shapley": used, "ranker": used, "curves": n_all + 6, "gap": n_all + 2}
    n_steps = {"shapley": 0, "ranker": 10, "curves": 2 * (n_all + 1), "gap": 0}
    assert buffers.values.shape == buffers.bins.shape == (used, n)
    assert buffers.phi.shape == (outputs, n_rows_of_phi[name], n)
    assert buffers.path.shape == (outputs, n_steps[name], n)
    assert buffers.pairs.shape == (outputs, 0, n)
    assert buffers.margin.shape == (outputs, n)
    assert buffers.bins.dtype.itemsize == prepared.bins.width[0]
    assert buffers.n_rows == n
    for array in leaves(buffers._replace(labels=buffers.labels._replace(names=np.zeros(0)))[:-1]):
        assert not array.any()
    for array in (buffers.values, buffers.phi, buffers.path, buffers.margin):
        assert array.size == 0 or array.ctypes.data % LINE == 0


def test_every_two_players_that_interact_have_a_row():
    """Where interactions are asked for."""
    prepared = prepare(TREE, METHODS["shapley"], {}, interactions=True)
    assert make_buffers(prepared, 1).pairs.shape == (1, 3, BATCH)


def test_a_row_counts_only_once_it_has_a_label():
    """Labels of a new buffer have no weight, and one group."""
    labels = make_buffers(prepare(TREE, METHODS["r2"], {}), 5).labels
    assert labels.label.shape == labels.weight.shape == labels.missing.shape == labels.residual.shape == (BATCH,)
    assert not labels.weight.any()
    assert labels.names.tolist() == [""]


def test_some_rows_are_those_of_all_arrays():
    """In the order that kernels want, and so many as were asked for."""
    buffers = make_buffers(prepare(TREE, METHODS["shapley"], {}, interactions=True), 2 * BATCH)
    rng = np.random.default_rng(0)
    for array in leaves(buffers._replace(labels=buffers.labels._replace(names=np.zeros(0)))[:-1]):
        array[...] = rng.integers(0, 2, array.shape)
    found = take_rows(buffers._replace(labels=buffers.labels._replace(group=np.zeros(2 * BATCH, np.int64))), 3, 10)
    assert found.n_rows == 7
    for name in ("values", "bins", "kinds", "phi", "played", "pairs", "path", "margin", "without"):
        taken, every = getattr(found, name), getattr(buffers, name)
        assert taken.flags.c_contiguous
        assert taken.dtype == every.dtype
        assert np.array_equal(taken, every[..., 3:10])
    assert found.labels.label.tolist() == buffers.labels.label[3:10].tolist()
