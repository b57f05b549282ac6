"""Jiang, Zhang and Zhang 2025 at a size that takes seconds."""

from fractions import Fraction

import numpy as np
from numpy.testing import assert_allclose

from tests.papers import explained


def test_theory_is_table_6():
    """All 36 shares as printed; of model a they are the variances of independent terms."""
    _, claims = explained.table_6()
    assert all(claim.holds for claim in claims)
    x1, x2, x3 = (p * (1 - p) * c**2 for p, c in zip(explained.PROBABILITIES, (4, 5, 6), strict=True))
    total = x1 + x2 + x3 + Fraction(9, 4)
    assert explained.theory(explained.MODELS[0], Fraction(3, 2)) == [x1 / total, x2 / total, x3 / total, (x1 + x2 + x3) / total]


def test_rows_are_those_of_the_simulation():
    """Features are 1 as often as the paper has them; the variance of the label is that of theory."""
    model = explained.MODELS[2]
    rows, labels = explained.draw_rows(model, 5, 1, 40_000)
    assert_allclose(rows.mean(axis=0), [0.6, 0.7, 0.5, 0.5, 0.5], atol=0.01)
    noise = explained.SIGMA**2
    assert_allclose(labels.var(), noise / (1 - float(explained.theory(model, Fraction(3, 2))[3])), rtol=0.03)


def test_few_repetitions_come_near_theory(monkeypatch):
    """Table 1 with few features and without a choice of trees: every claim holds."""
    monkeypatch.setattr(explained, "choose", lambda model, n_features: ({"max_depth": model.depth, "eta": 0.1, "nthread": 1}, 60))
    figure, claims = explained.table_1(10, repetitions=5)
    assert [claim.text for claim in claims if not claim.holds] == []
    assert len(figure.lines) == 12
    assert all(np.isfinite(list(line.numbers.values())).all() for line in figure.lines)
