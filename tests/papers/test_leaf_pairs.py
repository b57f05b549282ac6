"""Algorithm 1 of Jiang, Zhang and Zhang 2025 is right where trees are small."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.naive_r2 import losses
from tests.papers import leaf_pairs
from tests.papers.exact import squared_fractions
from tests.papers.trees import bushy


@pytest.mark.parametrize("seed", range(3))
def test_three_ways_to_the_squared_predictions_values(seed):
    """Roots of unity, whole numbers and the kernels equal the enumeration of all coalitions, where features are asked again too."""
    tree, rows = bushy(4, seed), np.random.default_rng(seed).integers(0, 2, (3, 4)).astype(float)
    exact = np.array([-losses(tree, row, 0.0)[0] for row in rows])
    assert_allclose(squared_fractions(tree, rows), exact, rtol=0, atol=1e-14)
    assert_allclose(leaf_pairs.squared_by_roots(tree, rows), exact, rtol=0, atol=1e-12)
    assert_allclose(leaf_pairs.squared_by_kernels(tree, rows)(), exact, rtol=0, atol=1e-13)


def test_proposition_2():
    """The dot product of two polynomials' coefficients, for even and odd degrees."""
    _, claims = leaf_pairs.proposition_2((2, 3, 5, 8))
    assert all(claim.holds for claim in claims)
