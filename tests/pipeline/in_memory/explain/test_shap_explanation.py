"""Categories that are missing have a name of their own in shap's plots, which sort the values of a feature."""

import lightgbm
import matplotlib
import numpy as np
import pandas as pd
import shap

from leafledger import attribute

matplotlib.use("Agg")
RNG = np.random.default_rng(8)
SITE = pd.Categorical(np.where(np.arange(90) % 5 == 0, None, RNG.choice(["Oslo", "Rome"], 90)))
FRAME = pd.DataFrame({"age": np.where(np.arange(90) % 7 == 0, np.nan, RNG.normal(size=90)), "site": SITE})
TARGET = FRAME["age"].fillna(0) + (FRAME["site"] == "Oslo")
MODEL = lightgbm.LGBMRegressor(n_estimators=5, min_child_samples=5, verbose=-1, n_jobs=1).fit(FRAME, TARGET)


def test_shap_draws_a_category_that_is_missing():
    """Its scatter plot fails where texts stand beside NaN; numbers stay numbers."""
    given = attribute(MODEL, FRAME).to_shap()
    assert given.data[0].tolist()[1] == "missing"
    assert given.data[1, 1] == FRAME["site"][1]
    assert np.isnan(given.data[0, 0])
    shap.plots.scatter(given[:, "site"], show=False)
    labels = {text.get_text() for text in matplotlib.pyplot.gca().get_xticklabels()}
    assert {"Oslo", "Rome", "missing"} <= labels
    matplotlib.pyplot.close("all")


def test_what_is_missing_is_no_category_of_the_data():
    frame = FRAME.assign(site=FRAME["site"].cat.rename_categories({"Rome": "missing"}))
    given = attribute(lightgbm.LGBMRegressor(n_estimators=2, verbose=-1, n_jobs=1).fit(frame, TARGET), frame).to_shap()
    assert {*given.data[:, 1]} == {"Oslo", "missing", "(missing)"}


def test_numbers_with_none_are_numbers():
    rows = {"age": [None, 1.0, 2.0], "site": pd.Categorical(["Oslo", "Rome", "Oslo"])}
    given = attribute(MODEL, pd.DataFrame(rows).astype({"age": object}).infer_objects()).to_shap()
    assert np.isnan(given.data[0, 0])
