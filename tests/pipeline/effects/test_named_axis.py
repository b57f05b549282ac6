"""Named axes: groups of one-hot columns, and categories by their values."""

import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestRegressor

import leafledger
from leafledger import partial_dependence
from leafledger.pipeline.errors import UsageError
from tests.pipeline.effects.trained import ATOL, COLOURS, NUMBERS, make_rows, make_target, train


def test_a_group_of_one_hot_columns_changes_as_one_feature():
    """One of its columns is 1, or none; a row with two ones is refused."""
    rows = make_rows(300, missing=False)
    wide = pd.concat([rows[NUMBERS], pd.get_dummies(rows["colour"]).astype(float)], axis=1)
    model = RandomForestRegressor(5, max_depth=6, random_state=0).fit(wide, make_target(rows))
    found = leafledger.partial_dependence(model, wide, features=["colour"], pairs=[("colour", "x")], partition={"colour": list(COLOURS)})
    for colour in (*COLOURS, None):
        changed = wide.assign(**{each: float(each == colour) for each in COLOURS})
        assert_allclose(found.at("colour", [colour])[0, 0], model.predict(changed).mean(), rtol=0, atol=ATOL)
        assert_allclose(found.at(("colour", "x"), ([colour], [0.3]))[0, 0], model.predict(changed.assign(x=0.3)).mean(), rtol=0, atol=ATOL)
    assert found.to_frame("colour")["category"].tolist()[-1] == "none of them"
    with pytest.raises(UsageError, match="group 'colour': 300 rows of the background have other values"):
        leafledger.partial_dependence(model, wide.assign(red=1.0, blue=1.0), partition={"colour": list(COLOURS)})
    with pytest.raises(UsageError, match="has no column 'rde'; did you mean 'red'"):
        found.at("colour", ["rde"])


def test_categories_known_by_their_hashes_are_spelled_as_the_background_spells_them():
    """CatBoost keeps hashes alone; what splits do not ask for goes together."""
    rows = make_rows(300)
    model, _ = train("catboost", rows)
    frame = leafledger.partial_dependence(model, rows, features=["colour"]).to_frame("colour")
    assert {*frame["category"].dropna()} <= {*COLOURS}
    assert frame["kind"].tolist()[-1] == "other", "CatBoost predicts no row whose category is missing"


def test_a_category_that_the_model_does_not_know_is_refused_where_it_is_asked_for():
    """A slip of the pen is no other category; what splits do not ask for, and None, are."""
    rows = make_rows(300)
    found = partial_dependence(train("lightgbm", rows)[0], rows)
    known = sorted(set(rows["colour"].dropna()))
    with pytest.raises(
        UsageError, match=rf"^colour has '{known[0].upper()}', expected categories that the model knows, or None; did you mean '{known[0]}'\?$"
    ):
        found.at("colour", [known[0], known[0].upper()])
    assert found.at("colour", [*known, None]).shape == (len(known) + 1, 1)
