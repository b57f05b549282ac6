"""A model whose features never meet."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from tests.pipeline.effects.trained import NUMBERS, make_rows


@pytest.fixture(scope="module")
def additive():
    """A model that uses x and y in trees of their own, and never z."""
    rows = make_rows(300, missing=False)[NUMBERS]
    given = {"max_iter": 6, "interaction_cst": "no_interactions", "random_state": 0}
    return HistGradientBoostingRegressor(**given).fit(rows.assign(z=0.0), rows["x"] + np.abs(rows["y"])), rows
