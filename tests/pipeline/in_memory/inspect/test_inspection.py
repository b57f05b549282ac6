"""What a model is made of, counted by its library; and what methods cost."""

import json

import numpy as np
import pandas as pd
import pytest
import xgboost

from leafledger import inspect_model, load_ensemble
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.in_memory.inspect import inspection
from leafledger.pipeline.in_memory.inspect.inspection import Cost
from tests.trees import STATISTICS, one_tree


@pytest.fixture(scope="module")
def booster():
    """Trees of several sizes, on numbers and categories; one feature is in no split."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(size=400), "never": np.zeros(400), "city": pd.Categorical(rng.choice(list("abcd"), 400))})
    target = rows["x"] ** 2 + (rows["city"] == "b")
    return xgboost.train({"max_depth": 4, "gamma": 0.01}, xgboost.DMatrix(rows, target, enable_categorical=True), 7)


def test_trees_and_features_are_counted_as_the_library_counts_them(booster):
    """By XGBoost's own table of nodes."""
    found, nodes = inspect_model(booster), booster.trees_to_dataframe()
    splits = nodes[nodes["Feature"] != "Leaf"]
    assert (found.library, found.n_trees, found.n_leaves) == ("xgboost", 7, int((nodes["Feature"] == "Leaf").sum()))
    assert {each.name: each.splits for each in found.features} == {"never": 0, **splits["Feature"].value_counts()}
    assert {each.name: each.trees for each in found.features} == {"never": 0, **splits.groupby("Feature")["Tree"].nunique()}
    leaves, distinct = nodes[nodes["Feature"] == "Leaf"].groupby("Tree").size(), splits.groupby("Tree")["Feature"].nunique()
    assert (found.leaves.mean, found.leaves.most) == (leaves.mean(), leaves.max())
    assert found.distinct_features.mean == pytest.approx(distinct.sum() / 7)
    assert found.distinct_features.most == distinct.max()
    assert found.depth.most <= 4
    assert [each.values for each in found.features] == ["numbers", "numbers", "4 categories"]
    assert found.costs == ()
    assert (found.margin, found.single_precision, len(found.digest)) == ("label", True, 64)


def test_costs_are_measured_or_refused_with_the_reason(booster):
    """Of every method; some need what nobody gave."""
    told = []
    found = inspect_model(booster, list(METHODS), told.append)
    assert told == [cost.method for cost in found.costs] == list(METHODS)
    for cost in found.costs:
        assert (cost.refused is None) == (cost.microseconds is not None and cost.table_bytes is not None)
        assert cost.refused is not None or (cost.microseconds > 0 and cost.table_bytes > 0)
    refused = {cost.method: cost.refused for cost in found.costs if cost.refused is not None}
    assert refused.keys() == {"semivalue", "probabilistic", "owen", "two_step", "asymmetric", "r2"}
    assert Cost("r2", None, None, "needs a label of every row") in found.costs
    assert refused["semivalue"] == "method 'semivalue' needs parameter 'atoms' or 'density'"


@pytest.mark.parametrize(("slow", "times"), [(0.0, 2), (1e9, inspection.REPEATS + 1)])
def test_a_slow_method_is_measured_once(booster, monkeypatch, slow, times):
    """Besides the first time, which compiles."""
    done = []
    monkeypatch.setattr(inspection, "SLOW", slow)
    monkeypatch.setattr(inspection, "attribute_batch", lambda method, *_: done.append(method.name))
    inspect_model(booster, ["shapley"])
    assert done == ["shapley"] * times


def test_rows_are_drawn_for_columns_that_are_asked_once():
    """Also of those that are computed from statistics, which have a bin below every border and one beyond all."""
    columns = {"n_categories": np.array([0, 40, 0, 0], np.int32), "zero_missing": np.zeros(4, bool), "statistics": STATISTICS}
    stump = one_tree([2, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 1, 2], [2, 1, 1], 4)._replace(**columns)
    assert set(inspection._draw_rows(stump)[2]) == {0.0, 1.0}


def test_rows_are_drawn_at_the_model_s_own_thresholds(booster):
    """Each value is a threshold or just above one; of categories there are all, and a value that is none of them; who is not asked is 0."""
    ensemble = load_ensemble(booster).ensemble
    number, never, city = inspection._draw_rows(ensemble)
    asked = np.unique(ensemble.threshold[ensemble.feature == 0])
    below = asked[np.searchsorted(asked, number, side="right") - 1]
    assert (number >= asked[0]).all()
    assert (number - below <= 0.002 * (1 + np.abs(below))).all()
    assert 0 < (number > below).mean() < 1
    assert {*city} == {0.0, 1.0, 2.0, 3.0, 4.0}
    assert not never.any()


def test_a_method_that_the_model_does_not_have_is_refused_for_that():
    """Labels do not help a classifier."""
    rows = np.random.default_rng(0).normal(size=(99, 2))
    classifier = xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1).fit(rows, rows[:, 0] > 0)
    found = inspect_model(classifier, ["r2", "owen"])
    assert "is not meaningful for a classifier (objective 'binary:logistic')" in found.costs[0].refused
    assert {refusal.what: refusal.why for refusal in found.refused}["method r2"] == found.costs[0].refused
    assert found.costs[1].refused == "needs a partition of the features"


def test_it_prints_and_is_json(booster):
    """A line, a table of the features that are asked for most, and everything."""
    found = inspect_model(booster)
    assert repr(found) == f"Inspection(xgboost, 7 trees, {found.n_leaves} leaves)"
    assert found._repr_html_().index("<td>x</td>") < found._repr_html_().index("<td>never</td>")
    said = json.loads(json.dumps(found.to_dict()))
    assert said["features"][0]["name"] == "x"
    assert said["statistics"] is None
    assert {"what": "method owen", "why": "needs a partition of the features"} in said["refused"]


def test_a_model_without_trees_is_empty(tmp_path):
    """Nothing is divided by."""
    booster = xgboost.train({}, xgboost.DMatrix(np.zeros((9, 2)), np.zeros(9)), 0)
    found = inspect_model(booster, ["shapley"])
    assert (found.n_trees, found.n_leaves, found.leaves.mean, found.depth.most) == (0, 0, 0.0, 0)
    assert "background model" not in {refusal.what for refusal in found.refused}


def test_a_name_of_no_method_is_refused(booster):
    """With those that there are."""
    with pytest.raises(UsageError, match=r"^there is no method 'shap', expected some of shapley, banzhaf, "):
        inspect_model(booster, ["shap"])
