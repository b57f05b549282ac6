"""What is removed is not seen."""

import numpy as np
from numpy.testing import assert_allclose

from leafledger.pipeline.models import load_ensemble
from tests.papers import removal


def test_models_do_not_split_on_what_was_removed():
    """Nor does what stands there change a prediction; a model is trained once for a set of features, in whichever order it is removed."""
    data, models = removal.split("diabetes"), {}
    removed = np.tile([[2, 8]], (len(data.test_rows), 1))
    found = removal.retrained(data, removed, models)
    assert_allclose(removal.retrained(data, removed[:, ::-1], models), found, rtol=0, atol=0)
    ((some, booster),) = models.items()
    assert not set(load_ensemble(booster).ensemble.feature) & some
    shifted = removal.Split(data.name, data.rows, data.labels, data.test_rows + 9.0 * np.isin(np.arange(10), list(some)), data.test_labels)
    assert_allclose(removal.retrained(shifted, removed, models), found, rtol=0, atol=0)


def test_features_drawn_at_random_come_from_the_test_rows():
    """Without any, predictions are the model's; with all of them, every row's is the mean over independent draws, the same for all but for chance."""
    data = removal.split("diabetes")
    booster = removal.fit(data)
    n, d = data.test_rows.shape
    assert_allclose(removal.randomised(data, np.zeros((n, 0), int), booster), booster.inplace_predict(data.test_rows), rtol=1e-5)
    everything = removal.randomised(data, np.tile(np.arange(d), (n, 1)), booster)
    each = booster.inplace_predict(data.test_rows)
    assert everything.std() < 2.5 * each.std() / np.sqrt(removal.DRAWS)
