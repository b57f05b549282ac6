"""The XGBoost loader against XGBoost itself, on every booster and kind of split."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models.xgboost.loader import LOADER
from tests import naive
from tests.pipeline.models.xgboost.training import (
    ATOL,
    CLASS,
    RAW_CODES,
    ROWS,
    RTOL,
    SIGNAL,
    TARGETS,
    VERSION,
    assert_agrees,
    document,
    frame,
    load,
    margins,
    parse_document,
    train,
    trees_of,
)
from tests.trees import assert_same_bits

CODES = [-0.0, 0, 1, 1.7, 3.99, 4, 5, 31, 32, 33, 63, 64, 65, 70, 71, -1, -7, -1e9, 1e9, 2**24 - 1, 2**24, 2**24 + 1, 2**31, 3e38, 1e308]
CODES += [np.nan, np.inf, -np.inf]


@pytest.mark.parametrize(
    ("parameters", "target"),
    [
        ({"booster": "dart", "rate_drop": 0.5, "one_drop": 1}, SIGNAL),
        ({"booster": "dart", "rate_drop": 0.5, "one_drop": 1, "objective": "multi:softprob", "num_class": 3}, CLASS),
        ({"num_parallel_tree": 3, "subsample": 0.5}, SIGNAL),
        ({"num_parallel_tree": 2, "subsample": 0.5, "objective": "multi:softprob", "num_class": 3}, CLASS),
        ({}, TARGETS),
        ({"multi_strategy": "multi_output_tree"}, TARGETS),
        ({"multi_strategy": "multi_output_tree", "num_parallel_tree": 2, "subsample": 0.5}, TARGETS),
        ({"multi_strategy": "multi_output_tree", "objective": "multi:softprob", "num_class": 3}, CLASS),
        ({"multi_strategy": "multi_output_tree", "min_child_weight": 1e9}, TARGETS),
        ({"tree_method": "exact", "max_depth": 5, "gamma": 4}, SIGNAL),
        ({"tree_method": "approx", "grow_policy": "lossguide", "max_leaves": 6, "max_depth": 0}, SIGNAL),
        ({"min_child_weight": 1e9}, SIGNAL),
        ({"n_rounds": 0}, SIGNAL),
    ],
    ids=lambda part: ",".join(map(str, part.values())) if isinstance(part, dict) else f"{part.ndim}d",
)
def test_margins_are_the_librarys_for_every_booster(parameters, target):
    """Dropout weights, forests, classes, targets, vector leaves, pruned trees, single leaves and no trees at all."""
    assert_agrees(train(target=target, **parameters))


def test_vector_leaves_with_dropout():
    """XGBoost 3.4 gives dropout weights to trees with vector leaves; older versions refuse to train them."""
    parameters = {"booster": "dart", "rate_drop": 0.5, "one_drop": 1, "multi_strategy": "multi_output_tree"}
    if VERSION < (3, 4):
        with pytest.raises(xgb.core.XGBoostError, match="dart"):
            train(target=TARGETS, **parameters)
    else:
        assert_agrees(train(target=TARGETS, **parameters))


def test_dropout_weights_are_found_in_old_and_new_places():
    """Until 3.3 the weights are the booster's and its name is "dart", since 3.4 they are the model's and its name is "gbtree"."""
    booster = train(booster="dart", rate_drop=0.5, one_drop=1)
    model = document(booster)
    old = model["learner"]["gradient_booster"]
    if old["name"] == "gbtree":
        old = {"name": "dart", "weight_drop": old["model"].pop("weight_drop"), "gbtree": {"name": "gbtree", "model": old["model"]}}
    new = {"name": "gbtree", "model": old["gbtree"]["model"] | {"weight_drop": old["weight_drop"]}}
    assert len(set(old["weight_drop"])) > 1
    for part in (old, new):
        model["learner"]["gradient_booster"] = part
        ensemble, _, _ = parse_document(model)
        assert_allclose(naive.margins(ensemble, ROWS), margins(booster, ROWS), rtol=RTOL, atol=ATOL)


def test_pruned_nodes_are_dropped():
    """Nodes that pruning deleted stay in the file; the ensemble has only those that are reached."""
    booster = train(tree_method="exact", max_depth=5, gamma=4, n_rounds=2)
    deleted = sum(int(tree["tree_param"]["num_deleted"]) for tree in trees_of(document(booster)))
    ensemble, _, _ = load(booster)
    assert deleted > 0
    assert ensemble.feature.size == sum(len(tree["parents"]) for tree in trees_of(document(booster))) - deleted


@pytest.mark.parametrize(
    ("estimator", "parameters"),
    [
        (xgb.XGBRegressor, {}),
        (xgb.XGBRegressor, {"num_parallel_tree": 2, "subsample": 0.7}),
        (xgb.XGBRegressor, {"booster": "dart", "rate_drop": 0.5}),
        (xgb.XGBClassifier, {"num_parallel_tree": 2, "subsample": 0.7}),
    ],
)
def test_estimators_stop_at_their_best_iteration(estimator, parameters):
    """``XGBModel.predict`` uses the rounds up to the best one of early stopping, and so does the loader, without iteration_indptr too."""
    model = estimator(n_jobs=1, max_depth=3, learning_rate=0.9, n_estimators=7, early_stopping_rounds=4, **parameters)
    target = CLASS if estimator is xgb.XGBClassifier else SIGNAL + np.random.default_rng(5).normal(size=SIGNAL.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(ROWS[:80], target[:80], eval_set=[(ROWS[80:], target[80:])], verbose=False)
    assert model.get_booster().attr("best_iteration") is not None
    model.get_booster().set_attr(best_iteration="2")  # dropout goes on improving
    wanted = model.predict(ROWS, output_margin=True).reshape(len(ROWS), -1)
    ensemble, _, _ = load(model)
    assert_allclose(naive.margins(ensemble, ROWS), wanted, rtol=RTOL, atol=ATOL)
    content = document(model.get_booster())
    assert ensemble.root.size < len(trees_of(content))
    booster = content["learner"]["gradient_booster"]
    del booster.get("gbtree", booster)["model"]["iteration_indptr"]
    assert_array_equal(parse_document(content)[0].value, ensemble.value)


@pytest.mark.parametrize("onehot", [1, 100])
@pytest.mark.parametrize("multi", [False, True])
def test_raw_category_codes_go_where_the_library_sends_them(onehot, multi):
    """Codes without a category list: known, unseen, negative, huge, fractional, infinite and missing ones."""
    rows = np.stack([RAW_CODES, ROWS[:, 0], ROWS[:, 1]], axis=1)
    rows[::7, 0] = np.nan
    target = SIGNAL + 3 * np.isin(RAW_CODES, [3, 32, 70])
    if multi and VERSION < (3, 4):
        with pytest.raises(xgb.core.XGBoostError, match="Categorical features support for multi-target tree"):
            train(rows, TARGETS, types=["c", "q", "q"], multi_strategy="multi_output_tree")
        return
    extra = {"multi_strategy": "multi_output_tree"} if multi else {}
    target = np.stack([target, -target], axis=1) if multi else target
    booster = train(rows, target, types=["c", "q", "q"], max_cat_to_onehot=onehot, **extra)
    probe = np.concatenate((rows, np.stack([CODES, np.zeros(len(CODES)), np.ones(len(CODES))], axis=1)))
    ensemble, features = assert_agrees(booster, probe)
    assert (ensemble.category_set >= 0).sum() > 2
    assert [feature.categorical for feature in features] == [True, False, False]
    assert features[0].categories is None
    assert ensemble.n_categories[0] in (70, 71)  # codes beyond the largest that goes right somewhere count as unseen
    assert ensemble.n_categories[1:].tolist() == [0, 0]


def test_an_empty_set_is_refused():
    """As XGBoost itself does; a set of one code is none."""
    rows, target = np.stack([RAW_CODES, ROWS[:, 0]], axis=1), SIGNAL + 3 * (RAW_CODES == 3)
    model = document(train(rows, target, types=["c", "q"], max_cat_to_onehot=100, n_rounds=1))
    (tree,) = trees_of(model)
    assert 1 in tree["categories_sizes"]
    parse_document(model)
    tree["categories_sizes"][0] = 0
    with pytest.raises(xgb.core.XGBoostError):
        xgb.Booster(model_file=bytearray(json.dumps(model).encode()))
    with pytest.raises(InvalidModel, match=r"m: tree 0: position 0: category segment size is 0, expected 1\.\.\d+$"):
        parse_document(model)


def test_no_targets_are_one_output():
    """Of a file that counts none."""
    booster = train()
    model = document(booster)
    model["learner"]["learner_model_param"]["num_target"] = "0"
    assert_allclose(naive.margins(parse_document(model)[0], ROWS), margins(booster, ROWS), rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("file_format", ["ubj", "json"])
def test_category_lists_are_read_from_the_model(file_format):
    """Text and integer categories come in the data frame's own order; a code is a position in them."""
    data = frame(["zeta", "alpha", "", "a b", "q=1"])
    target = SIGNAL + 3 * data["word"].isin(["alpha", ""]) + 2 * (data["number"] == 70000)
    booster = train(data, target.to_numpy(), max_cat_to_onehot=1)
    ensemble, features, *_ = LOADER.parse(bytes(booster.save_raw(file_format)), "m")
    assert [feature.name for feature in features] == ["word", "number", "x", "idle"]
    assert features[0].categories == ("zeta", "alpha", "", "a b", "q=1")
    assert features[1].categories == (7, 70000, -5)
    assert (features[2].categorical, features[2].categories) == (False, None)
    assert features[3].categories == ("only",)
    assert ensemble.n_categories.tolist() == [5, 3, 0, 1]
    data.loc[::9, "word"] = np.nan
    rows = np.stack([column.cat.codes.replace(-1, np.nan) if name != "x" else column for name, column in data.items()], axis=1)
    assert_allclose(naive.margins(ensemble, rows), margins(booster, data), rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"] + (["uint16", "uint32", "uint64"] if VERSION >= (3, 4) else []))
def test_every_integer_type_of_category_lists(dtype):
    """UBJSON has no wide unsigned integers: XGBoost stores them as signed ones and the stated type restores them."""
    values = [2, 7, int(np.iinfo(dtype).max) if dtype != "uint64" else 2**40]
    column = pd.Categorical(np.array(values * 20).astype(dtype), categories=np.array(values).astype(dtype))
    booster = train(pd.DataFrame({"c": column}), np.tile([0.0, 1.0, 2.0], 20), n_rounds=1)
    for data in (bytes(booster.save_raw("ubj")), bytes(booster.save_raw("json"))):
        assert LOADER.parse(data, "m")[1][0].categories == tuple(values)


def test_names_that_older_versions_cut_are_refused():
    """Before 3.4 a pandas category that is not ASCII is stored in pieces, so its list cannot be believed; 3.4 stores it whole."""
    names = ["été", "日本", "b"]
    booster = train(frame(names), SIGNAL)
    if VERSION >= (3, 4):
        assert load(booster)[1][0].categories == tuple(names)
    else:
        with pytest.raises(UnsupportedModel, match="m: categories of feature 'word': are not ASCII"):
            load(booster)


def test_features_have_their_names_or_default_ones():
    """Names are the model's; without any they are f0, f1, ..., as in XGBoost's own dumps."""
    named = train(pd.DataFrame(ROWS, columns=["a", "é b", "c"]))
    assert [feature.name for feature in load(named)[1]] == ["a", "é b", "c"]
    assert [feature.name for feature in load(train())[1]] == ["f0", "f1", "f2"]


@pytest.mark.parametrize(
    ("parameters", "target"),
    [
        ({}, SIGNAL),
        ({"objective": "binary:logistic"}, CLASS > 0),
        ({"objective": "multi:softprob", "num_class": 3}, CLASS),
        ({"booster": "dart", "rate_drop": 0.5}, SIGNAL),
        ({"objective": "reg:absoluteerror"}, SIGNAL),
        ({"multi_strategy": "multi_output_tree"}, TARGETS),
    ],
    ids=lambda part: ",".join(map(str, part.values())) if isinstance(part, dict) else f"{part.ndim}d",
)
def test_contributions_agree_so_covers_are_the_librarys(parameters, target):
    """Path-dependent Shapley values by definition equal ``pred_contribs``; vector leaves have them since 3.4 (3.2 has covers only)."""
    booster = train(target=target, n_rounds=2, **parameters)
    ensemble, _, outputs = load(booster)
    data = xgb.DMatrix(ROWS[:12], nthread=1)
    if "multi_strategy" in parameters and VERSION < (3, 4):
        with pytest.raises(xgb.core.XGBoostError, match="not yet implemented"):
            booster.predict(data, pred_contribs=True)
        assert_array_equal(ensemble.cover[ensemble.root], 2 * len(ROWS))  # one hessian of 1 per row and output
        return
    wanted = booster.predict(data, pred_contribs=True).reshape(12, len(outputs), -1)
    found = np.array([naive.semivalue(ensemble, row, naive.shapley_weight) for row in ROWS[:12]])
    assert_allclose(found, wanted[:, :, :-1], rtol=RTOL, atol=ATOL)
    base = [float(naive.coalition_value(ensemble, ROWS[0], (), k)) for k in range(len(outputs))]
    assert_allclose(base, wanted[0, :, -1], rtol=RTOL, atol=ATOL)


def test_contributions_agree_on_categories():
    """Covers of categorical splits are the library's too."""
    rows = np.stack([RAW_CODES, ROWS[:, 0]], axis=1)
    booster = train(rows, SIGNAL + 3 * np.isin(RAW_CODES, [3, 32, 70]), types=["c", "q"], max_cat_to_onehot=1)
    ensemble, _, _ = load(booster)
    data = xgb.DMatrix(rows[:12], nthread=1, feature_types=["c", "q"], enable_categorical=True)
    found = np.array([naive.semivalue(ensemble, row, naive.shapley_weight)[0] for row in rows[:12]])
    assert_allclose(found, booster.predict(data, pred_contribs=True)[:, :-1], rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("target", [SIGNAL, TARGETS], ids=["scalar", "vector"])
def test_json_and_ubjson_are_the_same_model(target):
    """Both encodings of a model give the same bits."""
    booster = train(target=target, multi_strategy="multi_output_tree")
    raw = [bytes(booster.save_raw(file_format)) for file_format in ("json", "ubj")]
    assert all(LOADER.recognise(data) for data in raw)
    indented = json.dumps(json.loads(raw[0]), indent=1).encode()
    assert LOADER.recognise(indented)
    first, *others = (LOADER.parse(data, "m")[0] for data in (*raw, indented))
    for other in others:
        assert_same_bits(other, first)


@pytest.mark.slow
def test_the_library_is_imported_only_to_serialise():
    """Importing the loader and asking whose an object is does not import XGBoost."""
    code = (
        "import sys, leafledger.pipeline.models.xgboost.loader as m; assert not m.LOADER.owns(object()) and not m.LOADER.recognise(b'tree'); "
        "sys.exit('xgboost' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_only_the_librarys_models_are_owned():
    """Boosters, estimators and classes derived from them are; other objects of the library are not."""

    class Mine(xgb.XGBRegressor):
        pass

    assert all(LOADER.owns(model) for model in (train(), Mine(), xgb.XGBClassifier(), xgb.XGBRanker()))
    assert not any(LOADER.owns(model) for model in (xgb.DMatrix(ROWS, nthread=1), Booster(), {}, "model.json"))
    with pytest.raises(InvalidModel, match="Mine: is not fitted"):
        LOADER.serialise(Mine())


class Booster:
    """Nobody's model that is called like XGBoost's."""


def test_other_formats_are_not_recognised():
    """Only documents that open with a model's own keys are XGBoost's."""
    for data in (b"", b"{", b"tree\n", b"CBM1", b"\x80\x04", b'{"oblivious_trees": []}', b"{L" + bytes(7) + b"\x07unknown", b"binf"):
        assert not LOADER.recognise(data)
