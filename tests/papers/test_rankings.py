"""Figures 3, 4, 14 and 19 of Li, Yu and Low 2026, at a size that takes seconds."""

import numpy as np
from numpy.testing import assert_allclose

from tests.papers import rankings


def hold(claims):
    assert [claim.text for claim in claims if not claim.holds] == []


def test_the_ranker_on_the_smaller_data():
    """Figures 3 and 4 on breast_cancer."""
    for figure in rankings.draw_areas({"breast_cancer": 15}).values():
        hold(rankings.area_claims(figure, ["breast_cancer"]))


def test_margins_are_the_classes_probabilities():
    """What is explained is what scikit-learn predicts: they sum to one, and most rows are certain."""
    ensemble, rows = rankings.classifier("wine", 10)
    _, margin = rankings.areas(ensemble, rows, {"Banzhaf": rankings.CANDIDATES["Banzhaf"]})
    assert_allclose(margin.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert np.median(margin.max(axis=1)) == 1.0


def test_more_steps_are_better():
    hold(rankings.convergence_claims(rankings.convergence("breast_cancer", (("adam", 0.1), ("ascent", 5.0)), (1, 10))))
