"""Quotients of curves, against 60 digits."""

from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest

from leafledger.kernels.quotients.curves import CURVES

ROUNDING = 2e-13  # relative: a last digit of an exponent of up to 700
EXACT = {
    "line": lambda m: m,
    "square": lambda m: m * m,
    "sigmoid": lambda m: 1 / (1 + (-m).exp()),
    "exp": Decimal.exp,
    "softplus": lambda m: (1 + m.exp()).ln(),
}


@cache
def exact_value(curve, margin):
    with localcontext() as context:
        context.prec = 700
        return EXACT[curve](Decimal(margin))


def exact_quotient(curve, u, w):
    """The quotient of two different margins."""
    with localcontext() as context:
        context.prec = 700
        return float((exact_value(curve, u) - exact_value(curve, w)) / (Decimal(u) - Decimal(w)))


@pytest.mark.parametrize("curve", CURVES)
def test_quotients_keep_their_digits_wherever_margins_lie(curve):
    """Far out, saturated, near each other and on both sides of the length up to which a rule averages."""
    margins = [-680.0, -33.0, -30.0, -30.0 + 1e-9, -4.0, -0.5, -1e-12, 0.3, 3.4999, 3.5, 3.5001, 28.0, 30.0, 30.0 + 1e-7, 33.0, 680.0]
    for u in margins:
        for w in margins:
            found = CURVES[curve].quotient(np.array([u]), np.array([w]))[0]
            if u != w and u + w != 0.0:
                assert found == pytest.approx(exact_quotient(curve, u, w), rel=ROUNDING if curve != "square" else 1e-12, abs=0)


@pytest.mark.parametrize("curve", CURVES)
def test_the_quotient_of_equal_margins_is_the_derivative(curve):
    """It is what nearly equal margins have."""
    for margin in (-31.0, -2.0, 0.0, 0.7, 25.0):
        found = CURVES[curve].quotient(np.array([margin]), np.array([margin]))[0]
        step = 1e-9
        assert found == pytest.approx(exact_quotient(curve, margin + step, margin - step), rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("curve", CURVES)
def test_values_are_those_of_the_functions(curve):
    """Saturated values too."""
    for margin in (-300.0, -40.0, -1.0, 0.0, 2.5, 40.0, 300.0):
        exact = float(exact_value(curve, margin))
        assert CURVES[curve].value(np.array([margin]))[0] == pytest.approx(exact, rel=1e-14, abs=0)
