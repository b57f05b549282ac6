"""Examples of Filom et al. 2024."""

from fractions import Fraction

import numpy as np
from numpy.testing import assert_allclose

from tests.papers import marginal
from tests.papers.synthetic import make_rows, make_target
from tests.papers.trees import eject, lay_out


def test_two_trees_of_one_function():
    """Examples 3.1 and C.2 to all digits: how a tree was grown decides path-dependent and eject values, and no marginal ones."""
    figure, claims = marginal.example_3_1()
    assert all(claim.holds for claim in claims)
    (_, _, line, _) = figure.lines
    expected = {
        "marginal, tree 1": -0.0498,
        "marginal, tree 2": -0.0498,
        "path-dependent, tree 1": -0.2407090909090909,
        "path-dependent, tree 2": 0.1665,
    }
    assert_allclose([line.numbers[f"ours: {game}"] for game in expected], list(expected.values()), rtol=0, atol=1e-15)
    figure, claims = marginal.example_c_2()
    assert all(claim.holds for claim in claims)
    first, second = figure.column("ours: marginal").values()
    assert abs(first - second) < 1e-15


def test_the_eject_game_of_example_c_2():
    """Equation C.6: v({1}) and v({2}) change places with the trees, and Shapley values follow, in fractions."""
    c1, c2, c3 = 1, 2, 4
    first = lay_out((0, (1, (c1, 25.0), (c2, 25.0)), (1, (c3, 25.0), (c1, 25.0))), 2)
    v1, v2 = Fraction(c1 + c2, 2), Fraction(2 * c1 + c2 + c3, 4)
    expected = [(v1 - v2 + c2 - v2) / 2, (v2 - v2 + c2 - v1) / 2]
    assert_allclose(eject(first, np.array([0.0, 1.0])), [float(x) for x in expected], rtol=0, atol=1e-15)


def test_the_synthetic_model_is_equation_4_1():
    """Every coefficient is in its interval, and the same for whoever draws."""
    rows = np.concatenate([np.zeros((1, 4)), np.eye(4), np.eye(4)[[0]] + np.eye(4)[[1]]])
    target = make_target(rows)
    a, b = target[1:5], target[5] - target[1] - target[2]
    assert (np.abs(target[0]) < 0.3).all()
    assert ((a > 0.7) & (a < 5.3)).all()
    assert abs(b) < 1.0
    assert (make_target(rows) == target).all()
    assert make_rows(3, 1).shape == (3, 40)
