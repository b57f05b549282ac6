"""Slopes are those of the errors."""

import numpy as np

from tests.papers import sampling
from tests.papers.figures import Figure, Line


def figure(slope_mc, slope_qmc):
    """Errors that go exactly with a power of the count."""
    lines = tuple(Line((n,), {"MC, σ = 1": n**slope_mc, "QMC, σ = 1": 0.6 * n**slope_qmc}) for n in (100, 400, 1_600, 6_400))
    return Figure("", ("samples",), lines)


def test_slopes_by_least_squares():
    """Of a power they are its exponent; a claim fails where Monte Carlo's is not -1/2, or quasi-Monte Carlo's is no steeper."""
    assert np.isclose(sampling.slope(figure(-0.5, -0.8), "QMC, σ = 1"), -0.8)
    assert [claim.holds for claim in sampling.slope_claims(figure(-0.5, -0.8))] == [True, True, True]
    assert [claim.holds for claim in sampling.slope_claims(figure(-0.7, -0.6))] == [False, False, False]
