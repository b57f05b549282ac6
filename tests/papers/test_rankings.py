"""The trees on which Figures 3, 4, 14 and 19 of Li, Yu and Low 2026 are drawn."""

import numpy as np
from numpy.testing import assert_allclose

from tests.papers import rankings


def test_margins_are_the_classes_probabilities():
    """What is explained is what scikit-learn predicts: they sum to one, and most rows are certain."""
    ensemble, rows = rankings.classifier("wine", 10)
    _, margin = rankings.areas(ensemble, rows, {"Banzhaf": rankings.CANDIDATES["Banzhaf"]})
    assert_allclose(margin.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert np.median(margin.max(axis=1)) == 1.0
