"""Tables of sets: symmetric trees are looked up, others walked, both add to the same sets; what adds up is said."""

import numpy as np
import pytest

from leafledger.kernels.batch import find_set_residuals
from leafledger.kernels.method.method import TOLERANCE
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.set_indices import INDICES
from tests.kernels.attributing import attributed
from tests.kernels.interacting import asked, by_index, check_sets, find
from tests.trees import chain, join, symmetric


def model():
    """A symmetric tree, and two long paths."""
    rng = np.random.default_rng(5)
    return join([symmetric(rng, np.arange(4), 5), chain(np.arange(5), rng.standard_normal(6), rng.uniform(1, 9, 6), 5)])


@pytest.mark.parametrize("index", INDICES)
def test_looked_up_and_walked_trees_add_to_the_same_sets(index):
    """Of orders 1 to 4, by definition."""
    ensemble, rows = model(), np.array([[1.0, 0.0, 1.0, 1.0, 0.0]])
    for order in (1, 2, 3, 4):
        found, prepared = find(ensemble, rows, asked(index, order))
        assert prepared.pairs.tables.looked_up.first.size > 0
        check_sets(found, ensemble, rows, by_index(index, order), 5, 1e-12)


@pytest.mark.parametrize("index", INDICES)
def test_only_what_adds_up_has_a_residual(index):
    """And it is found where a set is wrong."""
    ensemble, rows = model(), np.array([[1.0, 0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0, 1.0]])
    prepared = prepare(ensemble, METHODS["shapley"], {}, interactions=True, sets=asked(index, 2))
    buffers = attributed("shapley", prepared, rows)
    residuals = find_set_residuals(prepared, buffers, 2)
    assert residuals.shape == (int(INDICES[index].adds_up), 2)
    assert (residuals <= TOLERANCE).all()
    buffers.pairs[0, 3, 1] += 1e-6
    assert (find_set_residuals(prepared, buffers, 2) > TOLERANCE).tolist() == ([[False, True]] if INDICES[index].adds_up else [])


def test_pairs_add_up_to_nothing():
    """Without single players."""
    prepared = prepare(model(), METHODS["shapley"], {}, interactions=True)
    assert find_set_residuals(prepared, attributed("shapley", prepared, np.ones((1, 5))), 1).shape == (0, 1)
