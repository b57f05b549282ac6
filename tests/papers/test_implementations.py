"""shap's own implementation of the same trees, by the sums that every one must give."""

import numpy as np
from numpy.testing import assert_allclose

from tests.papers import implementations
from tests.papers.banzhaf import models


def test_shaps_values_are_of_the_same_model():
    """They add up to the prediction, walked here, less the mean over covers."""
    name, ensemble, rows, _ = next(iter(models()))
    explainer = implementations.explainer(ensemble)
    asked = rows[:20].astype(float)
    expected = [sum(_leaf(ensemble, int(root), row) for root in ensemble.root) for row in asked]
    found = explainer.shap_values(asked, check_additivity=False).sum(axis=1) + np.ravel(explainer.expected_value)
    assert name == "Boston, 100 trees"
    assert_allclose(found, expected, rtol=1e-12)


def _leaf(ensemble, node, row):
    while ensemble.feature[node] >= 0:
        node = int((ensemble.left if row[ensemble.feature[node]] <= ensemble.threshold[node] else ensemble.right)[node])
    return ensemble.value[node, 0]
