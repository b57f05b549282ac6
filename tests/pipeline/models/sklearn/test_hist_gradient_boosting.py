"""scikit-learn's histogram gradient boosting: its categories, whatever it makes of the columns' order."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn import ensemble

from leafledger import attribute, load_ensemble
from leafledger.pipeline.errors import UnsupportedModel

SEED = {"random_state": 0}


@pytest.mark.parametrize("names", [["number", "city", "code"], ["city", "number", "code"]])
def test_categories_are_those_of_a_data_frame(names):
    """Known, unseen and missing ones, whatever the order of the columns, which scikit-learn changes."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=400),
            "city": pd.Categorical(rng.choice(["Oslo", "Rome", "Bern", None], 400), categories=["Bern", "Oslo", "Rome"]),
            "code": pd.Categorical(rng.integers(3, 9, 400)),
        }
    )[names]
    target = frame["number"] * (frame["city"] == "Oslo") + (frame["code"].astype(int) % 2) + (frame["city"].isna() * 2)
    model = ensemble.HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5, categorical_features="from_dtype", **SEED)
    model.fit(frame, target)
    other = frame.assign(city=frame["city"].astype(object).where(rng.random(400) > 0.1, "Paris"))
    other = other.assign(city=pd.Categorical(other["city"]), code=pd.Categorical(rng.integers(1, 11, 400)))
    for rows in (frame, other):
        found = attribute(model, rows, allow_unseen=True)
        assert found.players == tuple(names)
        assert_allclose(found.margin[:, 0], model.predict(rows), rtol=1e-12, atol=1e-12)
    assert load_ensemble(model).features[names.index("city")].categories == ("Bern", "Oslo", "Rome")


def test_categories_may_be_numbers_in_a_matrix():
    """Told by their columns; values that training did not see go where missing ones do."""
    rng = np.random.default_rng(6)
    rows = np.column_stack((rng.normal(size=300), rng.choice([2.0, 5.0, 9.0, np.nan], 300)))
    target = rows[:, 0] * (rows[:, 1] == 5) + np.isnan(rows[:, 1])
    model = ensemble.HistGradientBoostingRegressor(max_iter=10, min_samples_leaf=5, categorical_features=[1], **SEED).fit(rows, target)
    assert load_ensemble(model).features[1].categories == (2.0, 5.0, 9.0)
    frame = pd.DataFrame(rows, columns=["0", "1"])
    frame.loc[:50, "1"] = 7.0
    assert_allclose(attribute(model, frame, allow_unseen=True).margin[:, 0], model.predict(frame.to_numpy()), rtol=1e-12, atol=1e-12)


def test_a_category_that_only_the_encoder_knows_is_a_missing_one():
    """Rows that stop the training early are not trained on, and may have categories of their own."""
    rng = np.random.default_rng(7)
    rows = np.column_stack((rng.normal(size=300), rng.integers(0, 3, 300)))
    rows[:3, 1] = [40, 41, 42]
    model = ensemble.HistGradientBoostingRegressor(
        max_iter=30, min_samples_leaf=5, categorical_features=[1], early_stopping=True, validation_fraction=0.5, **SEED
    ).fit(rows, rows[:, 0] + (rows[:, 1] == 1))
    assert_allclose(attribute(model, pd.DataFrame(rows, columns=["0", "1"])).margin[:, 0], model.predict(rows), rtol=1e-12, atol=1e-12)


def test_integers_that_became_floating_point_numbers_are_no_categories():
    """Where some are missing, pandas' categories of integers reach scikit-learn so: beyond 2^53 it finds one that rows do not have."""
    rng = np.random.default_rng(9)
    code = pd.Categorical.from_codes(rng.integers(-1, 3, 300), categories=[3, 2**53 - 1, 2**53 + 1])
    frame = pd.DataFrame({"number": rng.normal(size=300), "code": code})
    shape = {"max_iter": 3, "min_samples_leaf": 5, "categorical_features": "from_dtype", **SEED}
    model = ensemble.HistGradientBoostingRegressor(**shape).fit(frame, frame["number"] + code.codes)
    with pytest.raises(UnsupportedModel, match="feature 1 has category 9007199254740992 in double precision, which it may not tell from its neighb"):
        load_ensemble(model)
    smaller = frame.assign(code=code.rename_categories([3, 4, 2**53 - 1]))
    model.fit(smaller, frame["number"] + code.codes)
    assert_allclose(attribute(model, smaller).margin[:, 0], model.predict(smaller), rtol=1e-12, atol=1e-12)
