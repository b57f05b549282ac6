"""The version whose rules hold is that of the file, or in memory that which is installed."""

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import AdaBoostClassifier

from leafledger.pipeline.errors import UnsupportedModel
from leafledger.pipeline.models.sklearn.skops_types import Stored
from leafledger.pipeline.models.sklearn.version import VOTES_AGAINST, find_version


def test_a_file_s_version_and_that_in_memory():
    """An estimator that an older version trained predicts as the installed one does, whatever it says of itself."""
    stored = Stored(lambda node: node, {"_sklearn_version": "1.2.2"})
    assert find_version(stored) == (1, 2)
    assert find_version(stored) < VOTES_AGAINST
    model = AdaBoostClassifier(n_estimators=2).fit(np.arange(6.0).reshape(-1, 1), [0, 0, 0, 1, 1, 1])
    model._sklearn_version = "1.2.2"
    assert find_version(model) == tuple(map(int, sklearn.__version__.split(".")[:2]))


def test_a_file_without_a_version_is_refused():
    """What it says would hang on it."""
    with pytest.raises(UnsupportedModel, match=r"^Stored does not say which version of scikit-learn wrote it, on which its predictions hang$"):
        find_version(Stored(lambda node: node, {}))
