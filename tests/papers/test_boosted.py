"""The models of which Figures 8 to 13 and Tables 1 and 2 of Li, Yu and Low 2026 are made."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import datasets
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import train_test_split

from tests.papers import boosted, rankings

BANZHAF = {"Banzhaf": rankings.CANDIDATES["Banzhaf"]}


@pytest.mark.parametrize("name", ["breast_cancer", "wine"])
def test_margins_are_the_classes_logits(name):
    """What scikit-learn's own model decides by; of two classes that of the first is the other way round."""
    found = boosted.train(name, boosted.BOOSTED, 3)
    rows, target = getattr(datasets, f"load_{name}")(return_X_y=True)
    training, _, labels, _ = train_test_split(rows, target, test_size=0.2, random_state=2025)
    decision = GradientBoostingClassifier(n_estimators=5, max_depth=3, random_state=2025).fit(training, labels).decision_function(found.rows)
    _, margin = rankings.areas(found.ensemble, found.rows, BANZHAF)
    assert_allclose(margin, decision if decision.ndim > 1 else np.stack((-decision, decision), axis=1), rtol=0, atol=1e-12)


def test_labels_are_in_units_of_their_deviation():
    """Predictions lie about the mean label, and a tree that grows long predicts rows of its training."""
    found = boosted.train("diabetes", boosted.TREE, 10)
    _, margin = rankings.areas(found.ensemble, found.rows, BANZHAF)
    labels = datasets.load_diabetes(return_X_y=True)[1]
    assert abs(margin.mean() - labels.mean() / labels.std()) < 0.3
    assert 0.5 < margin.std() < 1.5
    assert (found.n_classes, found.ensemble.root.size) == (0, 1)
