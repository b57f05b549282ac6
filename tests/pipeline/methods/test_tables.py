"""A model's tables for a method: whose values come out, what kernels refuse as a mistake of the caller's, and models that do not fit."""

from dataclasses import replace

import lightgbm
import numpy as np
import pytest
import xgboost
from numpy.testing import assert_allclose
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.metrics import r2_score
from sklearn.tree import DecisionTreeRegressor

from leafledger import attribute, inspect_model, save_model
from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.method.method import TOLERANCE
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import measure_background
from leafledger.pipeline.errors import UnsupportedModel, UsageError
from leafledger.pipeline.methods.tables import ask_model, player_names, prepare_model, refused, set_names, weigh_model
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.models.objectives import Margin, Objective
from tests import naive
from tests.pipeline.conftest import FEATURES

GROUPS = (("late", ("delay", "month")), ("distance", ("distance",)), ("carrier", ("carrier",)))


@pytest.fixture(scope="module")
def model(example):
    return load_ensemble(example.model)


X = np.random.default_rng(0).normal(size=(300, 3))
Y = X[:, 0] * X[:, 1] + X[:, 2]
STUMP = {"max_depth": 2, "random_state": 0}
UNORDERED = {
    "random forest": lambda: RandomForestRegressor(3, **STUMP).fit(X, Y),
    "extra trees": lambda: ExtraTreesRegressor(3, **STUMP).fit(X, Y),
    "bagging": lambda: BaggingRegressor(DecisionTreeRegressor(**STUMP), 3, random_state=0).fit(X, Y),
    "LightGBM": lambda: lightgbm.train(
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5, "verbosity": -1, "num_threads": 1}, lightgbm.Dataset(X, Y), 3
    ),
    "XGBoost": lambda: xgboost.train({"num_parallel_tree": 3, "subsample": 0.5, "max_depth": 2, "nthread": 1}, xgboost.DMatrix(X, Y), 2),
}
ORDERED = {
    "one tree": lambda: DecisionTreeRegressor(**STUMP).fit(X, Y),
    "a forest of one": lambda: RandomForestRegressor(1, **STUMP).fit(X, Y),
    "gradient boosting": lambda: GradientBoostingRegressor(n_estimators=3, **STUMP).fit(X, Y),
    "histograms": lambda: HistGradientBoostingRegressor(max_iter=3, random_state=0).fit(X, Y),
    "XGBoost": lambda: xgboost.train({"max_depth": 2, "nthread": 1}, xgboost.DMatrix(X, Y), 3),
}


@pytest.mark.parametrize("kind", UNORDERED)
def test_trees_without_an_order_have_no_shares(kind, tmp_path):
    """Those of a mean may be taken in any: the same model's shares would be others. Of a file of no library too, and in one line."""
    trained = UNORDERED[kind]()
    save_model(trained, tmp_path / "model.trees")
    for same in (trained, tmp_path / "model.trees"):
        with pytest.raises(
            UnsupportedModel, match=r"^method 'r2' takes trees in the order .*; these are averaged or parallel, and shares depend on it$"
        ):
            attribute(same, X, "r2", label=Y)
    assert {cost.method for cost in inspect_model(trained, ["r2"]).costs if cost.refused} == {"r2"}


@pytest.mark.parametrize("kind", ORDERED)
def test_trees_with_an_order_have_shares(kind, tmp_path):
    """One after the other, or one alone; with a remainder they make R² as scikit-learn has it."""
    trained = ORDERED[kind]()
    save_model(trained, tmp_path / "model.trees")
    for same in (trained, tmp_path / "model.trees"):
        found = attribute(same, X, "r2", label=Y)
        assert_allclose(found.totals["r2"]["total_r2"], r2_score(Y, found.margin[:, 0]), rtol=1e-9)


def test_players_are_features_or_groups_and_then_scores(model):
    """With a partition the groups, but for methods whose values stay the features'."""
    assert player_names(METHODS["shapley"], (), model.features) == tuple(FEATURES)
    assert player_names(METHODS["shapley"], GROUPS, model.features) == ("late", "distance", "carrier")
    assert player_names(METHODS["owen"], GROUPS, model.features) == tuple(FEATURES)
    assert player_names(METHODS["gap"], (), model.features) == (*FEATURES, "pgi2", "pgi2_error")


def test_tables_name_the_players_that_splits_ask_for(model):
    """Features without a split have none; a group has one if any of its features does."""
    used = {FEATURES[column] for column in model.ensemble.feature.tolist() if column >= 0}
    prepared = prepare_model(model, METHODS["shapley"], {}, ())
    assert {FEATURES[player] for player in prepared.players.tolist()} == used
    grouped = prepare_model(model, METHODS["shapley"], {}, GROUPS)
    names = player_names(METHODS["shapley"], GROUPS, model.features)
    assert {names[player] for player in grouped.players.tolist()} == {group for group, members in GROUPS if used & set(members)}


def test_pairs_are_named_by_their_players(model):
    """Every two that meet on a path of some tree, once, and no other."""
    prepared, ensemble = prepare_model(model, METHODS["shapley"], {}, (), interactions=True), model.ensemble
    meet = set()

    def descend(node, above):
        if ensemble.feature[node] >= 0:
            name = FEATURES[ensemble.feature[node]]
            meet.update(frozenset((name, other)) for other in above - {name})
            for child in (ensemble.left[node], ensemble.right[node]):
                descend(child, above | {name})

    for root in ensemble.root:
        descend(root, frozenset())
    found = set_names(prepared, FEATURES)
    assert len(found) == len(meet) > 0
    assert {frozenset(pair) for pair in found} == meet


def test_what_kernels_refuse_is_a_mistake_of_the_caller_s(model):
    """In the same words; other errors go on."""
    with pytest.raises(UsageError, match=r"^method 'owen' needs a partition of the features: give --partition, in Python partition=$"):
        prepare_model(model, METHODS["owen"], {}, ())
    with pytest.raises(UsageError, match=r"in Python partition=, \{\} for groups of one feature each$"):
        prepare_model(model, METHODS["asymmetric"], {}, ())
    with pytest.raises(UsageError, match=r"^as it was said$") as raised, refused():
        raise InvalidParameters("as it was said")
    assert isinstance(raised.value.__cause__, InvalidParameters)
    with pytest.raises(KeyError), refused():
        raise KeyError("x")


@pytest.mark.parametrize(
    ("margin", "says"),
    [
        (Margin.CLASS, r"is not meaningful for a classifier \(objective 'binary'\)"),
        (Margin.CLASSES, r"is not meaningful for a classifier \(objective 'binary'\)"),
        (Margin.OTHER, r"is not meaningful where the margin is not known to be a prediction of the label \(objective 'binary'\)"),
    ],
)
def test_margins_that_are_no_predictions_have_no_error_to_share(model, margin, says):
    """For methods that need labels, and no others."""
    other = replace(model, objective=Objective("binary", margin))
    with pytest.raises(UnsupportedModel, match=f"^method 'r2' measures the margin against the label, which {says}"):
        prepare_model(other, METHODS["r2"], {}, ())
    assert prepare_model(other, METHODS["shapley"], {}, ()).players.size


def test_a_background_is_asked_about_or_the_model_weighs_for_it(model):
    """Tables made of a count of all rows have their mean margin as base; leaf weights are a background of symmetric trees alone."""
    rows = np.random.default_rng(3).normal(100, 200, (50, 4))
    rows[:, 2] = np.random.default_rng(4).integers(0, 4, 50)
    asked = ask_model(model, METHODS["shapley"], (), len(rows), 1 << 30, False)
    counted = measure_background(asked, np.ascontiguousarray(rows.T[asked.bins.column]))
    prepared = prepare_model(model, METHODS["shapley"], {}, (), background=(asked, counted))
    assert abs(prepared.base[0] - naive.margins(model.ensemble, rows).mean()) <= TOLERANCE * prepared.bound[0]
    with pytest.raises(UsageError, match="symmetric"):
        weigh_model(model, METHODS["shapley"], (), ask_model(model, METHODS["shapley"], (), None, 1 << 30, False))
    with pytest.raises(UsageError, match="marginal game"):
        ask_model(model, METHODS["r2"], (), 10, 1 << 30, False)
