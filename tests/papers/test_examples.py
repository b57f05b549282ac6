"""Closed forms of Filom et al. 2024."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.papers import examples
from tests.trees import grown


@pytest.mark.parametrize(
    "example",
    [lambda: examples.theorem_3_2(500), examples.example_3_3, examples.example_3_10, lambda: examples.example_3_11(3)],
    ids=["theorem_3_2", "example_3_3", "example_3_10", "example_3_11"],
)
def test_claims_hold(example):
    _, claims = example()
    assert [claim.text for claim in claims if not claim.holds] == []


def test_example_3_10_by_hand():
    """Scores 1, 2, 3, 5, 7 and 11 in six cells of the same probability: A1 - A2 is 3 - 47/12."""
    figure, _ = examples.example_3_10()
    a1 = Fraction((3 + 5) * 2, 12) + Fraction(5 * 2, 6)
    a2 = Fraction(1 + 7 + 2 + 11, 12) + Fraction(2 + 11, 6)
    assert np.isclose(figure.lines[0].numbers["A1 - A2, as printed"], float(a1 - a2), rtol=0, atol=1e-15)
    assert a1 - a2 == Fraction(-11, 12)


def test_formula_3_24_of_one_level_is_the_difference():
    """Score less mean score; two summands."""
    value, summands = examples.formula_3_24(1, 0, 1, np.array([2.0, 8.0]), [Fraction(1, 4), Fraction(3, 4)])
    assert (value, summands) == (Fraction(3, 2), 2)


def test_predictions_by_walking():
    """Those of two trees are the sum of each one's."""
    tree, rows = grown(np.random.default_rng(1), 2, 3, 4), np.random.default_rng(2).standard_normal((9, 4))
    one, other = (tree._replace(root=tree.root[t : t + 1], output=tree.output[t : t + 1]) for t in range(2))
    assert_allclose(examples.predict(tree, rows), examples.predict(one, rows) + examples.predict(other, rows), rtol=0, atol=1e-15)
