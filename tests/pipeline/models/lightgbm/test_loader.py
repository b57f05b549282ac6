"""The LightGBM loader against LightGBM itself, and against damaged and unrepresentable models.

The loader reproduces comparisons exactly and adds leaves in the library's order, in float64; RTOL leaves room for a random forest's
leaves being divided before they are added instead of after.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from leafledger.kernels.slices.links import predict
from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models.lightgbm.loader import LOADER
from leafledger.pipeline.models.objectives import Margin
from tests import naive
from tests.trees import assert_same_bits

RTOL = ATOL = 1e-12
LARGEST_ZERO = float(np.float32(1e-35))
PARAMETERS = {
    "objective": "regression",
    "num_threads": 1,
    "verbosity": -1,
    "num_leaves": 6,
    "min_data_in_leaf": 3,
    "min_data_per_group": 3,
    "cat_smooth": 1,
    "deterministic": True,
}
CODES = [np.nan, np.inf, -np.inf, -1, -0.5, -1e-40, 0.5, 3.9, 31, 32, 70.5, 71, 999, 1000, 1001, 1e5]
CODES += [2**31 - 1, 2**31, 2**31 + 3, 2**32 + 3, 1e18, 1e308, -1e18, -(2**31), 3 - 2**32]


def train(rows, target, n_iterations=6, categorical="auto", **parameters):
    data = lgb.Dataset(rows, target, categorical_feature=categorical)
    return lgb.train(PARAMETERS | parameters, data, n_iterations)


def numeric_data(n_rows=200):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(n_rows, 3))
    rows[::4, 1] = np.nan
    rows[::3, 2] = 0.0
    return rows, rows[:, 0] + np.nan_to_num(rows[:, 1], nan=3.0) + 2.0 * (rows[:, 2] == 0)


def frame(n_rows=240):
    rng = np.random.default_rng(2)
    data = pd.DataFrame(
        {
            "x": rng.normal(size=n_rows),
            "colour": pd.Categorical(rng.choice(list("abcd"), n_rows)),
            "shop": rng.choice([0, 3, 40, 70, 1000], n_rows),
            "day": rng.integers(0, 3, n_rows),
        }
    )
    return data, data.x + data.colour.cat.codes * 2 % 3 + (data.shop == 40) * 2 + (data.day == 1)


@functools.cache
def numeric_booster():
    return train(*numeric_data())


@functools.cache
def frame_booster():
    data, target = frame()
    return train(data, target)


def load(booster):
    return LOADER.parse(LOADER.serialise(booster), "model.txt")[:3]


def edge_rows(ensemble, n_rows=600):
    """Every threshold, its neighbours in float64 and float32, and every special value, in every column."""
    thresholds = np.unique(ensemble.threshold)
    special = [0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1e300, -1e300, 1e308, -1e308]
    near_zero = [LARGEST_ZERO, -LARGEST_ZERO, LARGEST_ZERO / 2, -LARGEST_ZERO / 2]
    outside = [np.nextafter(LARGEST_ZERO, 1), np.nextafter(-LARGEST_ZERO, -1)]
    with np.errstate(over="ignore"):
        neighbours = [np.nextafter(thresholds, -np.inf), np.nextafter(thresholds, np.inf), thresholds.astype(np.float32)]
    values = np.unique(np.concatenate([thresholds, *neighbours, special, near_zero, outside]))
    values = np.concatenate((values, [-0.0]))
    rows = np.random.default_rng(3).choice(values, (max(n_rows, values.size), ensemble.n_features))
    rows[: values.size] = values[:, None]
    return rows


def raw(booster, rows):
    return booster.predict(rows, raw_score=True).reshape(len(rows), -1)


def assert_contributions(booster, ensemble, rows, scale=1.0):
    wanted = booster.predict(rows, pred_contrib=True).reshape(len(rows), ensemble.base.size, -1) * scale
    for row, phi in zip(rows, wanted, strict=True):
        assert_allclose(naive.semivalue(ensemble, row, naive.shapley_weight), phi[:, :-1], rtol=RTOL, atol=ATOL)
        for k in range(ensemble.base.size):
            assert_allclose(float(naive.coalition_value(ensemble, row, (), k)), phi[k, -1], rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"zero_as_missing": True}, {"use_missing": False}, {"boosting": "dart", "drop_rate": 0.5}, {"extra_trees": True}],
    ids=str,
)
def test_margins_and_contributions_are_the_librarys(parameters):
    """For each missing type, rows at thresholds, zeros, infinities and NaN get LightGBM's score and contributions."""
    booster = train(*numeric_data(), **parameters)
    ensemble, features, outputs = load(booster)
    rows = edge_rows(ensemble)
    assert_allclose(naive.margins(ensemble, rows), raw(booster, rows), rtol=RTOL, atol=ATOL)
    assert_contributions(booster, ensemble, rows[::150])
    assert ensemble.zero_missing.any() == ("zero_as_missing" in parameters)
    assert outputs == ("0",)
    assert [feature.name for feature in features] == booster.feature_name()
    assert not any(feature.categorical for feature in features)


def test_missing_values_read_as_zero_go_where_zero_goes():
    """A feature without NaN in training has missing type None: NaN takes the branch of 0.0, left or right."""
    rows, target = numeric_data()
    ensemble, _, _ = load(train(np.nan_to_num(rows, nan=-1.0), target))
    inner = ensemble.feature >= 0
    assert (ensemble.missing_left[inner] == (ensemble.threshold[inner] >= 0)).all()
    assert set(ensemble.missing_left[inner]) == {True, False}


def test_values_too_small_for_lightgbm_are_zero():
    """LightGBM reads |x| <= 1e-35f as 0, so -1e-35f itself goes right of the threshold -1e-35f that its binning makes."""
    booster = numeric_booster()
    assert str(-LARGEST_ZERO) in booster.model_to_string()
    ensemble, _, _ = load(booster)
    assert np.nextafter(-LARGEST_ZERO, -1) in ensemble.threshold
    rows = np.full((1, 3), -LARGEST_ZERO)
    assert_allclose(naive.margins(ensemble, rows), raw(booster, np.zeros((1, 3))), rtol=RTOL)


def test_huge_and_infinite_training_data_keep_their_side():
    """A model that splits 1e305 and inf from the rest sends numbers and infinities where LightGBM does."""
    rows, target = numeric_data()
    rows[::5, 0] = np.inf
    rows[1::5, 0] = 1e305
    booster = train(rows, target + 5 * (rows[:, 0] > 1e300))
    ensemble, _, _ = load(booster)
    edges = edge_rows(ensemble)
    assert_allclose(naive.margins(ensemble, edges), raw(booster, edges), rtol=RTOL, atol=ATOL)


def test_splits_of_the_missing_from_the_rest():
    """LightGBM writes them with an infinite threshold, which every number is on the same side of."""
    rows, _ = numeric_data()
    booster = train(rows, np.isnan(rows[:, 1]) * 2.0 + rows[:, 2])
    assert re.search(r"^threshold=.*\binf\b", booster.model_to_string(), re.M)
    ensemble, _, _ = load(booster)
    assert ensemble.threshold.max() == np.inf
    edges = edge_rows(ensemble)
    assert np.isin([-np.inf, np.inf], edges).all()
    assert_allclose(naive.margins(ensemble, edges), raw(booster, edges), rtol=RTOL, atol=ATOL)
    assert_contributions(booster, ensemble, edges[::150])


def test_weighted_training_has_counts_as_covers():
    """Row weights do not enter ``pred_contrib``, nor the covers."""
    rows, target = numeric_data()
    data = lgb.Dataset(rows, target, weight=np.arange(1.0, 201.0))
    booster = lgb.train(PARAMETERS | {"bagging_freq": 1, "bagging_fraction": 0.5}, data, 3)
    ensemble, _, _ = load(booster)
    assert (ensemble.cover == ensemble.cover.round()).all()
    assert (np.abs(ensemble.cover[ensemble.root] - 100) < 30).all()
    assert_contributions(booster, ensemble, rows[:3])


def test_multiclass_trees_add_to_their_class():
    """Tree t of a model with K trees per iteration adds to output t mod K."""
    rows, target = numeric_data()
    booster = train(rows, np.digitize(target, [0, 2]), 4, objective="multiclass", num_class=3)
    ensemble, _, outputs = load(booster)
    assert outputs == ("0", "1", "2")
    edges = edge_rows(ensemble, 300)
    assert_allclose(naive.margins(ensemble, edges), raw(booster, edges), rtol=RTOL, atol=ATOL)
    assert_contributions(booster, ensemble, edges[:2])


def test_random_forests_are_averaged():
    """The margin of a forest is what its predict averages; LightGBM's own raw scores and contributions are sums over iterations."""
    rows, target = numeric_data()
    booster = train(rows, target, 5, boosting="rf", bagging_freq=1, bagging_fraction=0.6)
    ensemble, _, _ = load(booster)
    edges = edge_rows(ensemble, 300)
    margins = naive.margins(ensemble, edges)
    assert_allclose(margins[:, 0], booster.predict(edges), rtol=RTOL, atol=ATOL)
    assert_allclose(margins * 5, raw(booster, edges), rtol=RTOL, atol=ATOL)
    assert_contributions(booster, ensemble, edges[:3], scale=1 / 5)


def test_integer_categories_are_their_codes():
    """Fractions are cut, NaN, negative, unseen and huge codes go right; codes in no set need no bit."""
    data, target = frame()
    rows = data.assign(colour=data.colour.cat.codes).to_numpy(float)
    booster = train(rows, target, categorical=[1, 2])
    ensemble, features, _ = load(booster)
    assert [feature.categorical for feature in features] == [False, True, True, False]
    assert all(feature.categories is None for feature in features)
    assert ensemble.n_categories[0] == 0
    assert 4 <= ensemble.n_categories[2] <= 1001
    assert (ensemble.category_set >= 0).any()
    edges = np.tile(rows, (3, 1))
    rng = np.random.default_rng(4)
    for column in (1, 2):
        edges[rng.permutation(len(edges))[:300], column] = rng.choice(CODES, 300)
    assert_allclose(naive.margins(ensemble, edges), raw(booster, edges), rtol=RTOL, atol=ATOL)
    assert_contributions(booster, ensemble, edges[:3])


def test_pandas_categories_are_stored_with_their_feature():
    """A value's code is its position in the stored list, whatever order or categories the frame to explain has."""
    data, _ = frame()
    booster = frame_booster()
    ensemble, features, _ = load(booster)
    assert features[1].categories == ("a", "b", "c", "d")
    assert [feature.categorical for feature in features] == [False, True, False, False]
    assert ensemble.n_categories.tolist() == [0, 4, 0, 0]
    other = data.assign(colour=data.colour.cat.set_categories(["d", "z", "c", "a"]))
    codes = other.colour.map({value: code for code, value in enumerate("abcd")}).astype(float)
    rows = other.assign(colour=codes).to_numpy(float)
    assert_allclose(naive.margins(ensemble, rows), raw(booster, other), rtol=RTOL, atol=ATOL)


def test_pandas_categories_of_every_scalar_type():
    """Texts, integers and floats survive; a constant category column keeps its list."""
    rng = np.random.default_rng(5)
    data = pd.DataFrame(
        {
            "constant": pd.Categorical(["é"] * 200),
            "number": pd.Categorical(rng.choice([2.5, -1.0, 7.0], 200)),
            "x": rng.normal(size=200),
            "integer": pd.Categorical(rng.choice([10, 20, 30], 200)),
        }
    )
    _, features, _ = load(train(data, data.number.cat.codes + data.x + data.integer.cat.codes % 2))
    assert [feature.categories for feature in features] == [("é",), (-1.0, 2.5, 7.0), None, (10, 20, 30)]
    assert [feature.categorical for feature in features] == [True, True, False, True]


def test_category_lists_find_their_columns_among_integer_codes():
    """With integer-coded categorical columns too, a list belongs to the only feature whose codes fit into it."""
    data, target = frame()
    _, features, _ = load(train(data.drop(columns="day"), target, categorical=["colour", "shop"]))
    assert [feature.categories for feature in features] == [None, ("a", "b", "c", "d"), None]
    assert [feature.categorical for feature in features] == [False, True, True]


def test_ambiguous_category_lists_are_refused():
    """A list that could belong to two columns, or to one split as a number, is not guessed."""
    data, target = frame()
    with pytest.raises(UnsupportedModel, match="1 columns and has 2 categorical"):
        load(train(data, target, categorical=["colour", "day"]))
    ordered = data.assign(colour=data.colour.cat.as_ordered())
    with pytest.raises(UnsupportedModel, match="1 columns and has 0 categorical"):
        load(train(ordered, target))


def test_early_stopping_keeps_the_best_iteration():
    """A Booster is cut at its best iteration, as its predict is."""
    rows, target = numeric_data()
    rng = np.random.default_rng(6)
    valid = lgb.Dataset(rows, target + rng.normal(size=200) * 3)
    parameters = PARAMETERS | {"learning_rate": 0.5}
    stop: list[Callable[..., Any]] = [lgb.early_stopping(2, verbose=False)]
    data = lgb.Dataset(rows, target)
    booster = lgb.train(parameters, data, 50, [valid], callbacks=stop, keep_training_booster=True)
    assert 0 < booster.best_iteration < booster.num_trees()
    ensemble, _, _ = load(booster)
    assert ensemble.root.size == booster.best_iteration
    assert_allclose(naive.margins(ensemble, rows), raw(booster, rows), rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize(
    ("parameters", "name", "margin"),
    [
        ({}, "regression", Margin.LABEL),
        ({"objective": "binary", "sigmoid": 2.0}, "binary", Margin.CLASS),
        ({"reg_sqrt": True}, "regression sqrt", Margin.OTHER),
    ],
)
def test_objectives_are_those_that_the_file_names(parameters, name, margin):
    """What was trained for; of a label's root nothing is said of the label. Probabilities are LightGBM's own, whatever the sigmoid's slope."""
    rows, target = numeric_data()
    booster = train(rows, target > 0 if parameters.get("objective") == "binary" else target, **parameters)
    ensemble, _, _, objective = LOADER.parse(LOADER.serialise(booster), "m")
    assert (objective.name, objective.margin) == (name, margin)
    if margin is Margin.CLASS:
        assert_allclose(predict(objective.link, naive.margins(ensemble, rows)[:, 0]), booster.predict(rows), rtol=RTOL)


def test_estimators_and_boosters_are_owned_and_serialised():
    """Scikit-learn estimators are read through their booster; an unfitted one is refused, other objects are not owned."""
    data, target = frame()
    model = lgb.LGBMClassifier(n_estimators=3, num_leaves=4, n_jobs=1, verbosity=-1).fit(data, target > 2)
    ensemble, _, outputs = load(model)
    rows = data.assign(colour=data.colour.cat.codes).to_numpy(float)
    assert outputs == ("0",)
    assert_allclose(naive.margins(ensemble, rows), raw(model, data), rtol=RTOL, atol=ATOL)
    assert LOADER.owns(model)
    assert LOADER.owns(model.booster_)
    assert not LOADER.owns(rows)
    assert not LOADER.owns(lgb.Dataset(rows))
    with pytest.raises(InvalidModel, match="LGBMRegressor: is not fitted"):
        LOADER.serialise(lgb.LGBMRegressor())
    dated = pd.DataFrame({"date": pd.Categorical(pd.to_datetime(["2020-01-01", "2020-01-02"] * 50))})
    with pytest.raises(UnsupportedModel, match="Booster: its categories cannot be written"):
        LOADER.serialise(lgb.Booster(PARAMETERS, lgb.Dataset(dated, dated.date.cat.codes)))


def test_saved_and_reloaded_files_read_alike(tmp_path):
    """``save_model``, ``model_to_string`` and a file saved by a reloaded booster hold the same model."""
    path = tmp_path / "model.txt"
    frame_booster().save_model(path)
    assert LOADER.recognise(path.read_bytes()[:64])
    first = LOADER.parse(path.read_bytes(), str(path))
    for other in (frame_booster(), lgb.Booster(model_file=path)):
        ensemble, features, outputs = load(other)
        assert (features, outputs) == first[1:3]
        assert_same_bits(ensemble, first[0])


def test_models_without_splits():
    """A constant target makes single-leaf trees, an untrained booster no trees: both are constants."""
    rows, target = numeric_data()
    ensemble, _, _ = load(train(rows, np.full(200, 2.5)))
    assert ensemble.feature.max() == -1
    assert_allclose(naive.margins(ensemble, rows[:2]), 2.5)
    data = lgb.Dataset(rows, target)
    ensemble, features, _ = load(lgb.Booster(PARAMETERS, data))
    assert ensemble.root.size == 0
    assert len(features) == 3
    assert (naive.margins(ensemble, rows[:2]) == 0).all()


def test_missing_types_may_mix_only_where_zeros_agree():
    """Continued training can make zeros missing in some trees only: loaded where that changes no row, else refused by name."""
    rows, target = numeric_data()
    rows[:, 0] = np.abs(rows[:, 0])
    first = train(rows, target, 3, zero_as_missing=True)
    mixed = lgb.train(PARAMETERS | {"zero_as_missing": False}, lgb.Dataset(rows, target, free_raw_data=False), 3, init_model=first)
    with pytest.raises(UnsupportedModel, match=r"feature 'Column_1' counts zeros as missing in some trees only \(tree 3\)"):
        load(mixed)
    complete = np.nan_to_num(rows, nan=-1.0)
    mixed = lgb.train(PARAMETERS, lgb.Dataset(complete, target), 3, init_model=first)
    ensemble, _, _ = load(mixed)
    edges = edge_rows(ensemble)
    assert ensemble.zero_missing.any()
    assert_allclose(naive.margins(ensemble, edges), raw(mixed, edges), rtol=RTOL, atol=ATOL)


def test_numeric_and_categorical_splits_of_one_feature_are_refused():
    """Continued training with another list of categorical features is refused by name."""
    data, target = frame()
    rows = data.assign(colour=data.colour.cat.codes).to_numpy(float)
    first = train(rows, target, 2, categorical=[2])
    mixed = lgb.train(PARAMETERS, lgb.Dataset(rows, rows[:, 2]), 2, init_model=first)
    with pytest.raises(UnsupportedModel, match="feature 'Column_2' has both numeric and categorical splits"):
        load(mixed)


def test_linear_trees_are_refused_by_number():
    """Leaves that hold linear models are not constants."""
    with pytest.raises(UnsupportedModel, match=r"tree 0: has linear models in its leaves, expected constants: train it with linear_tree=False$"):
        load(train(*numeric_data(), linear_tree=True))
