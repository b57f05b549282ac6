"""Asking for a background: cut as coarsely as memory allows, and refused where there is no game or no room."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, prepare
from tests.kernels.attributing import ATOL, leaves, run
from tests.kernels.marginal.against import PLENTY, counted
from tests.trees import chain

TREE = chain([0, 1], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0], 2)


def test_a_smaller_budget_keeps_patterns_instead_of_tables():
    """Leaf by leaf; what fits nowhere is refused with its size."""
    rng = np.random.default_rng(0)
    ensemble = chain(rng.permutation(9), rng.standard_normal(10), np.ones(10), 9)
    rows, background = ((rng.random((n, 9)) < 0.7).astype(float) for n in (4, 6))
    found, budget = [], PLENTY
    for _ in range(4):
        asked = ask_background(ensemble, METHODS["shapley"], n_rows=len(background), budget=budget)
        prepared = prepare(ensemble, METHODS["shapley"], {}, background=(asked, counted(asked, background)))
        found.append(run("shapley", prepared, rows, 9)[0])
        budget = int(asked.n_bytes[0]) - 1
        assert sum(array.nbytes for array in leaves(prepared)) <= asked.n_bytes[0]
    assert asked.partitioning.deep.size > 3
    for phi in found:
        assert_allclose(phi, found[0], rtol=0, atol=ATOL)
    with pytest.raises(InvalidParameters, match=r"tables of the marginal game would have 0\.0 MiB, 0\.0 MiB are allowed"):
        ask_background(ensemble, METHODS["shapley"], n_rows=len(background), budget=1000)


def test_what_the_game_does_not_have_is_refused():
    """Values that are not made of the game's own weights."""
    with pytest.raises(InvalidParameters, match="'r2' has no marginal game"):
        ask_background(TREE, METHODS["r2"], n_rows=1, budget=PLENTY)
    with pytest.raises(InvalidParameters, match="'probabilistic' has no interactions"):
        ask_background(TREE, METHODS["probabilistic"], n_rows=1, budget=PLENTY, interactions=True)
    with pytest.raises(InvalidParameters, match="'owen' needs a partition"):
        ask_background(TREE, METHODS["owen"], n_rows=1, budget=PLENTY)
