"""Weighted backgrounds: few margins have the quotients of all, relative to each row's own."""

import numpy as np
import pytest

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.quotients.nodes import MOST, choose_nodes, rise_of, weigh_rows
from leafledger.kernels.quotients.quantities import KINDS, Quantity

RELATIVE = 1e-9  # of a row's largest quotient; found are 1e-11
RANGES = [(3, -3, 3), (10, -10, 10), (30, -5, 5), (30, -30, 30), (100, -10, 10), (30, 10, 14), (30, 28, 33), (30, -33, -28), (900, -8, 8)]


def find_error(quantity, rows_within, low, high, n_rows=100_000):
    """The largest error of any row and term relative to its own largest quotient, and how many margins there are."""
    rng = np.random.default_rng(4)
    nodes = choose_nodes(quantity, np.array([[-rows_within, rows_within]], float), np.array([[low, high]], float), n_rows)
    u = np.concatenate((rng.uniform(-rows_within, rows_within, 300), rng.uniform(low, high, 100)))
    w = np.concatenate((rng.uniform(low, high, 300), [low, high]))
    weights = np.ldexp(weigh_rows(quantity, nodes, w[None])[0][0].astype(float), -int(nodes.exponent[0]))
    shift, worst = nodes.shift[0], 0.0
    for term in quantity.terms:
        exact = term.quotient(u[:, None] - shift, w[None] - shift)
        found = term.quotient(u[:, None] - shift, nodes.margin[0][None]) @ weights
        worst = max(worst, (np.abs(found - exact).max(axis=1) / np.abs(exact).max(axis=1)).max())
    return worst, int(nodes.size[0])


@pytest.mark.again
@pytest.mark.parametrize(("rows_within", "low", "high"), RANGES)
@pytest.mark.parametrize("name", KINDS)
def test_few_margins_have_the_quotients_of_all(name, rows_within, low, high):
    """Also of saturated rows and backgrounds, and of rows far outside of the background."""
    worst, size = find_error(Quantity(name), rows_within, low, high)
    assert worst < RELATIVE
    assert size <= (2 if name == "squared" else 27)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("width", [0.0, 1e-12, 1e-6])
def test_backgrounds_of_equal_margins_need_one_margin(name, width):
    """Of one row, say; of nearly equal ones two or three."""
    worst, size = find_error(Quantity(name), 30, 2.0, 2.0 + width)
    assert worst < RELATIVE
    assert size <= (1 if width == 0.0 else 3)


def test_each_output_has_its_own_margins():
    """One that needs fewer has no weights beyond them."""
    quantity, ranges = Quantity("sigmoid"), np.array([[-8.0, 8.0], [1.0, 1.0]])
    nodes = choose_nodes(quantity, np.array([[-20.0, 20.0]] * 2), ranges, 10)
    assert nodes.size.tolist() == [12, 1]
    weights, _ = weigh_rows(quantity, nodes, np.array([[-8.0, 0.0, 8.0], [1.0, 1.0, 1.0]]))
    assert not weights[1, 1:].any()
    assert np.ldexp(weights[1, 0].astype(float), -int(nodes.exponent[0])) == pytest.approx(1.0)


@pytest.mark.parametrize("name", KINDS)
def test_rises_are_those_of_the_curves(name):
    """From the first margin, to 1e-9 of the largest, as whole numbers whose sum over a background fits."""
    quantity, n_rows = Quantity(name), 1_000_000
    nodes = choose_nodes(quantity, np.array([[-9.0, 9.0]]), np.array([[-6.0, 5.0]]), n_rows)
    w = np.linspace(-6.0, 5.0, 57)
    weights, rises = weigh_rows(quantity, nodes, w[None])
    for j, term in enumerate(quantity.terms):
        exact = rise_of(term, w - nodes.shift[0], nodes.margin[0, 0])
        found = np.ldexp(rises[0, j].astype(float), -int(nodes.rise_exponent[0, j]))
        assert found == pytest.approx(exact, rel=0, abs=1e-9 * np.abs(exact).max())
    assert max(np.abs(weights).max(), np.abs(rises).max()) < 2**62 / n_rows


def test_squares_far_from_zero_keep_their_digits():
    """Margins are taken from the background's middle: dates in seconds, say."""
    quantity, far = Quantity("squared"), 1.7e9
    nodes = choose_nodes(quantity, np.array([[far - 50, far + 50]]), np.array([[far - 20, far + 20]]), 100)
    assert nodes.shift[0] == far
    assert np.abs(nodes.margin).max() <= 20.0


@pytest.mark.parametrize(
    ("name", "background", "expected"),
    [
        ("exp", (-5.0, 800.0), "beyond what probabilities or exponentials have"),
        ("log", (-600.0, 600.0), "too far apart"),
        ("sigmoid", (-np.inf, 0.0), "infinite or NaN"),
    ],
)
def test_margins_too_far_out_are_refused(name, background, expected):
    """In one line with what was got."""
    with pytest.raises(InvalidParameters, match=expected):
        choose_nodes(Quantity(name), np.array([[-1000.0, 1000.0]]), np.array([background]), 100)
    assert MOST == 32
