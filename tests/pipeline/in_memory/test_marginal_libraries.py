"""The marginal game of trained models: what the libraries themselves say it is, what it must not depend on, and what becomes of one-hot columns."""

import itertools
import json

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.testing import assert_allclose

from leafledger import attribute
from leafledger.kernels.marginal import query
from tests.naive import shapley_weight

N, N_BACKGROUND, N_EXPLAINED = 600, 40, 6
CARRIERS = ("AA", "B6", "DL", "UA", "WN")
FEATURES = ["delay", "distance", "hour", "carrier"]
CATBOOST = {"iterations": 12, "learning_rate": 0.3, "random_seed": 1, "thread_count": 1, "verbose": False, "allow_writing_files": False}
ATOL = 1e-12  # of numbers around one, where both sides are float64
SINGLE = 2e-5  # where a library adds up in float32


def make_frame(seed):
    """Rows with missing numbers, ties and categories; carriers depend on the hour, so that no two columns may be mixed at will."""
    rng = np.random.default_rng(seed)
    hour = rng.integers(0, 24, N).astype(float)
    frame = pd.DataFrame({"delay": rng.normal(size=N), "distance": rng.normal(size=N), "hour": hour})
    frame["carrier"] = pd.Categorical.from_codes(np.where(hour > 12, rng.integers(0, 3, N), rng.integers(1, 5, N)), CARRIERS)
    frame.loc[rng.random(N) < 0.1, "delay"] = np.nan
    return frame


def make_target(frame):
    """Interactions of every feature."""
    carrier, delay = frame["carrier"].astype(str), frame["delay"].fillna(-0.5)
    return (
        delay * (carrier == "UA") + 2.0 * (carrier == "DL") * (frame["hour"] > 12) + frame["distance"] * delay - (carrier == "B6") * frame["distance"]
    )


def train_xgboost(frame, target=None, max_cat_to_onehot=2):
    data = xgboost.DMatrix(frame, make_target(frame) if target is None else target, enable_categorical=True)
    return xgboost.train({"max_depth": 5, "nthread": 1, "max_cat_to_onehot": max_cat_to_onehot}, data, 12)


def train_lightgbm(frame):
    given = {"verbosity": -1, "num_threads": 1, "deterministic": True, "seed": 1, "num_leaves": 15, "min_data_per_group": 5, "cat_smooth": 1.0}
    return lightgbm.train(given, lightgbm.Dataset(frame, make_target(frame)), 12)


def train_catboost(frame):
    model = catboost.CatBoostRegressor(**CATBOOST, depth=5, one_hot_max_size=10)
    return model.fit(catboost.Pool(frame, make_target(frame), cat_features=["carrier"]))


def predict_xgboost(model, frame):
    return model.predict(xgboost.DMatrix(frame, enable_categorical=True), output_margin=True).astype(float)


def predict(model, frame):
    return model.predict(frame)


def subsets(players):
    players = list(players)
    return itertools.chain.from_iterable(itertools.combinations(players, size) for size in range(len(players) + 1))


def owen(v, group):
    """Owen 1977, Eq. 7, of a game on sets of features; every feature in a group of its own gives Shapley values."""
    everyone, groups = range(len(group)), range(max(group) + 1)
    phi = np.zeros((len(v[frozenset()]), len(group)))
    for j in everyone:
        mine = [i for i in everyone if group[i] == group[j] and i != j]
        for others in subsets([g for g in groups if g != group[j]]):
            whole = [i for i in everyone if group[i] in others]
            for some in subsets(mine):
                weight = shapley_weight(len(others), len(groups)) * shapley_weight(len(some), len(mine) + 1)
                rest = frozenset([*whole, *some])
                phi[:, j] += float(weight) * (v[rest | {j}] - v[rest])
    return phi


@pytest.mark.parametrize(
    ("train", "predictions", "atol"),
    [(train_xgboost, predict_xgboost, SINGLE), (train_lightgbm, predict, ATOL), (train_catboost, predict, ATOL)],
    ids=["xgboost", "lightgbm", "catboost"],
)
@pytest.mark.slow
def test_values_are_those_of_the_library_s_own_predictions(train, predictions, atol, monkeypatch):
    """All subsets and background rows, each mixed row through the library's ``predict``: missing values and categories go where they go there.

    On a card too, with all that can be kept of a background: tables, sums over subsets, and patterns.
    """
    frame, background = make_frame(1), make_frame(2)[:N_BACKGROUND].reset_index(drop=True)
    model, rows = train(frame), frame[:N_EXPLAINED]
    v = {}
    for present in map(frozenset, subsets(range(len(FEATURES)))):
        own, others = np.repeat(np.arange(len(rows)), N_BACKGROUND), np.tile(np.arange(N_BACKGROUND), len(rows))
        columns = {
            name: (rows[name].iloc[own] if j in present else background[name].iloc[others]).reset_index(drop=True) for j, name in enumerate(FEATURES)
        }
        v[present] = predictions(model, pd.DataFrame(columns)).reshape(len(rows), -1).mean(axis=1)
    for device, kept in (("cpu", query.COARSE_TO_FINE), ("cuda", [(2, 2)])):
        monkeypatch.setattr(query, "COARSE_TO_FINE", kept)
        found = attribute(model, rows, background=background, device=device)
        assert (np.abs(found.phi).max(axis=(0, 1)) > 0.05).all(), "every feature matters, or this would show little"
        assert_allclose(found.phi[:, 0], owen(v, (0, 1, 2, 3)), rtol=0, atol=atol)
        assert_allclose(found.base[0], v[frozenset()][0], rtol=0, atol=atol)
        found = attribute(model, rows, "owen", background=background, partition={"flight": ["carrier", "hour"]}, device=device)
        assert_allclose(found.phi[:, 0], owen(v, (0, 1, 2, 2)), rtol=0, atol=atol)


def numbers(seed, missing=0.1):
    """A matrix that CatBoost makes symmetric trees of, and its target."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((N, 6)).astype(np.float32)
    rows[rng.random(rows.shape) < missing] = np.nan
    x = np.nan_to_num(rows)
    return rows, x[:, 0] * x[:, 1] + np.abs(x[:, 2]) + x[:, 3] * x[:, 4]


def exact(model, rows):
    return np.asarray(model.get_feature_importance(catboost.Pool(rows), type="ShapValues", shap_calc_type="Exact", thread_count=1))


@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
def test_symmetric_trees_against_their_own_weights_are_catboost_s_exact(nan_mode):
    """CatBoost's "Exact" needs no background, as these do not, and both are the values against the rows that the model was trained on."""
    rows, target = numbers(3)
    model = catboost.CatBoostRegressor(**CATBOOST, depth=6, nan_mode=nan_mode, bootstrap_type="No").fit(rows, target)
    expected = exact(model, rows[:50])
    for background in ("model", rows.astype(float)):
        found = attribute(model, rows[:50].astype(float), background=background)
        assert_allclose(found.phi[:, 0], expected[:, :-1], rtol=0, atol=ATOL)
        assert_allclose(found.base[0], expected[0, -1], rtol=0, atol=ATOL)


def test_weighted_rows_weigh_in_the_leaves():
    """Leaf weights are not counts where rows had weights; one row in the background for every unit of weight gives the same."""
    rows, target = numbers(4)
    weight = np.random.default_rng(5).integers(0, 4, N)
    model = catboost.CatBoostRegressor(**CATBOOST, depth=4, bootstrap_type="No").fit(rows, target, sample_weight=weight / 4)
    expected = exact(model, rows[:50])
    for background in ("model", np.repeat(rows, weight, axis=0).astype(float)):
        assert_allclose(attribute(model, rows[:50].astype(float), background=background).phi[:, 0], expected[:, :-1], rtol=0, atol=ATOL)


def test_every_class_has_catboost_s_exact_values():
    """Vectors at leaves, and a scale and a bias for each class."""
    rows, target = numbers(6)
    label = np.digitize(target, np.quantile(target, (0.3, 0.7)))
    model = catboost.CatBoostClassifier(**CATBOOST, depth=4).fit(rows, label)
    model.set_scale_and_bias(1.0, [0.5, -1.0, 0.25])
    expected = exact(model, rows[:50])
    found = attribute(model, rows[:50].astype(float), background="model")
    assert_allclose(found.phi, expected[:, :, :-1], rtol=0, atol=ATOL)
    assert_allclose(found.base, expected[0, :, -1], rtol=0, atol=ATOL)


def test_other_rows_are_catboost_s_reference_data():
    """Interventional values of CatBoost's own, whose time grows with the background, against rows that the model has not seen."""
    (rows, target), (others, unused) = numbers(7), numbers(8)
    model = catboost.CatBoostRegressor(**CATBOOST, depth=4).fit(rows, target)
    pools = catboost.Pool(rows[:50], target[:50]), catboost.Pool(others, unused)
    expected = model.get_feature_importance(pools[0], type="ShapValues", reference_data=pools[1], thread_count=1)
    found = attribute(model, rows[:50].astype(float), background=others.astype(float))
    assert_allclose(found.phi[:, 0], expected[:, :-1], rtol=0, atol=ATOL)
    assert np.abs(found.phi - attribute(model, rows[:50].astype(float), background="model").phi).max() > 1e-3


def reordered(model, path, rng):
    """A symmetric model with the levels of every tree in another order: other splits at other nodes, the same function."""
    model.save_model(path, format="json")
    written = json.loads(path.read_text())
    for tree in written["oblivious_trees"]:
        order = rng.permutation(len(tree["splits"]))
        tree["splits"] = [tree["splits"][level] for level in order]
        codes = np.arange(2**order.size)
        before = sum((codes >> level & 1) << old for level, old in enumerate(order))
        tree |= {name: np.array(tree[name])[before].tolist() for name in ("leaf_values", "leaf_weights")}
    path.write_text(json.dumps(written))
    return catboost.CatBoostRegressor().load_model(path, format="json")


def test_values_are_those_of_the_function(tmp_path):
    """Two structures of one function: path-dependent values tell them apart, marginal ones must not (Filom et al. 2024, Section 3.1)."""
    (rows, target), (others, _) = numbers(9), numbers(10)
    model = catboost.CatBoostRegressor(**CATBOOST, depth=5).fit(rows, target)
    other = reordered(model, tmp_path / "model.json", np.random.default_rng(11))
    rows = rows.astype(float)
    assert_allclose(other.predict(rows), model.predict(rows), rtol=0, atol=ATOL)
    assert np.abs(attribute(other, rows).phi - attribute(model, rows).phi).max() > 0.05
    for method, given in {"shapley": {}, "banzhaf": {"p": 0.3}, "beta": {"alpha": 2.0, "beta": 3.0}}.items():
        for background in ("model", others.astype(float)):
            found, expected = (attribute(some, rows, method, background=background, parameters=given) for some in (other, model))
            assert_allclose(found.phi, expected.phi, rtol=0, atol=ATOL)


def test_one_hot_columns_give_the_category_its_value_as_owen_values():
    """Its value is the sum of its columns' Owen values, or their group's value, not the sum of their Shapley values (Filom et al. 2024, Prop. B.13).

    XGBoost that asks for one category at a time grows the same trees on categories as on their one-hot columns.
    """
    frame = make_frame(12)
    encoded = pd.get_dummies(frame, columns=["carrier"], dtype=float)
    columns = [name for name in encoded.columns if name.startswith("carrier_")]
    of_categories, of_columns = (train_xgboost(some, make_target(frame), max_cat_to_onehot=10) for some in (frame, encoded))
    assert_allclose(predict_xgboost(of_columns, encoded), predict_xgboost(of_categories, frame), rtol=0, atol=0)

    rows, partition = slice(0, 50), {"carrier": columns}
    category = attribute(of_categories, frame[rows], background=frame).phi[:, 0]
    group = attribute(of_columns, encoded[rows], background=encoded, partition=partition).phi[:, 0]
    assert_allclose(group, category, rtol=0, atol=ATOL)
    at = [list(encoded.columns).index(name) for name in columns]
    owen_values = attribute(of_columns, encoded[rows], "owen", background=encoded, partition=partition).phi[:, 0]
    assert_allclose(owen_values[:, at].sum(axis=1), category[:, -1], rtol=0, atol=ATOL)
    assert_allclose(owen_values[:, : -len(columns)], category[:, :-1], rtol=0, atol=ATOL)
    shapley_values = attribute(of_columns, encoded[rows], background=encoded).phi[:, 0]
    assert np.abs(shapley_values[:, at].sum(axis=1) - category[:, -1]).max() > 0.01
