"""The XGBoost loader against XGBoost itself, on every objective, booster and kind of split, and on whole and damaged files.

The loader reproduces comparisons exactly, but XGBoost adds leaves in float32: RTOL and ATOL leave each of a few trees' additions, of
margins near 1, a rounding of 6e-8 and its contributions (quadrature or weighted paths in float32) a few dozen of them.
"""

import copy
import functools
import json
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose, assert_array_equal

from kernels.ensemble import check
from pipeline.errors import InvalidModel, UnsupportedModel
from pipeline.models.xgboost import LINKS, LOADER
from tests import naive

RTOL = ATOL = 1e-5
VERSION = tuple(int(part) for part in xgb.__version__.split(".")[:2])
PARAMETERS = {"nthread": 1, "max_depth": 3, "seed": 1, "verbosity": 0}
LARGEST = float(np.finfo(np.float32).max)
CODES = [-0.0, 0, 1, 1.7, 3.99, 4, 5, 31, 32, 33, 63, 64, 65, 70, 71, -1, -7, -1e9, 1e9, 2**24 - 1, 2**24, 2**24 + 1, 2**31, 3e38, 1e308]
CODES += [np.nan, np.inf, -np.inf]


def numeric_rows(n_rows=160):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(n_rows, 3)).astype(np.float32)
    rows[::4, 1] = np.nan
    rows[::3, 2] = 0.0
    return rows


ROWS = numeric_rows()
SIGNAL = ROWS[:, 0] + np.nan_to_num(ROWS[:, 1], nan=3.0) * (ROWS[:, 2] == 0)
CLASS = np.digitize(SIGNAL, [-0.5, 0.5]).astype(float)
TARGETS = np.stack([SIGNAL, np.nan_to_num(ROWS[:, 1]) - ROWS[:, 0]], axis=1)
RAW_CODES = np.random.default_rng(2).choice([0.0, 3.0, 31.0, 32.0, 64.0, 70.0], ROWS.shape[0])


def train(rows=ROWS, target=SIGNAL, n_rounds=4, types=None, before=None, **parameters):
    data = xgb.DMatrix(rows, target, nthread=1, feature_types=types, enable_categorical=True)
    if parameters.get("objective") == "survival:aft":
        data.set_float_info("label_lower_bound", target)
        data.set_float_info("label_upper_bound", 2 * target)
    if parameters.get("objective", "").startswith("rank:"):
        data.set_group([len(rows) // 2, len(rows) - len(rows) // 2])
    with warnings.catch_warnings():  # deprecations of parameters that old models were trained with
        warnings.simplefilter("ignore", UserWarning)
        return xgb.train(PARAMETERS | parameters, data, n_rounds, xgb_model=before)


def load(booster):
    return LOADER.parse(LOADER.serialise(booster), "m")


def document(booster):
    return json.loads(booster.save_raw("json"))


def trees_of(model):
    booster = model["learner"]["gradient_booster"]
    return booster.get("gbtree", booster)["model"]["trees"]


def parse_document(model):
    return LOADER.parse(json.dumps(model).encode(), "m")


def probes(booster, n_features=3):
    """Training rows, and rows of specials: each value at, just below and just above a threshold, zeros, infinities, missing."""
    values = {0.0, -0.0, 1e-45, -1e-45, LARGEST, -LARGEST, 1e308, -1e308, np.inf, -np.inf, np.nan}
    for tree in trees_of(document(booster)):
        for threshold, left in zip(np.float32(tree["split_conditions"]), tree["left_children"], strict=True):
            if left != -1:
                near = (np.nextafter(threshold, np.float32(-np.inf)), threshold, np.nextafter(threshold, np.float32(np.inf)))
                # The last rounds to the threshold as float32 and lies below it as float64.
                values |= {*map(float, near), np.nextafter(float(threshold), -np.inf)}
    values = sorted(values, key=repr)
    rng = np.random.default_rng(3)
    return np.concatenate((ROWS[:40, :n_features].astype(float), rng.choice(values, (250, n_features))))


def margins(booster, rows, **options):
    with np.errstate(over="ignore"):
        predicted = booster.inplace_predict(rows, predict_type="margin", **options)
    return predicted.reshape(len(rows), -1)


def assert_agrees(booster, rows=None, **options):
    ensemble, features, outputs = load(booster)
    rows = probes(booster) if rows is None else rows
    wanted = margins(booster, rows, **options)
    assert_allclose(naive.margins(ensemble, rows), wanted, rtol=RTOL, atol=ATOL)
    assert ensemble.single_precision
    assert outputs == tuple(str(k) for k in range(wanted.shape[1]))
    return ensemble, features


OBJECTIVES = [
    *((name, SIGNAL) for name in ("squarederror", "linear", "absoluteerror", "pseudohubererror", "quantileerror", "expectileerror")),
    ("squaredlogerror", np.exp(SIGNAL)),
    ("gamma", np.exp(SIGNAL)),
    ("tweedie", np.exp(SIGNAL)),
    ("logistic", 1 / (1 + np.exp(-SIGNAL))),
]
OBJECTIVES = [(f"reg:{name}", target) for name, target in OBJECTIVES if name != "expectileerror" or VERSION >= (3, 3)]
OBJECTIVES += [(f"binary:{name}", CLASS > 0) for name in ("logistic", "logitraw", "hinge")]
OBJECTIVES += [("count:poisson", np.round(np.exp(SIGNAL))), ("survival:cox", np.exp(SIGNAL)), ("survival:aft", np.exp(SIGNAL))]
OBJECTIVES += [("multi:softmax", CLASS), ("multi:softprob", CLASS)]
OBJECTIVES += [(f"rank:{name}", CLASS > 0) for name in ("ndcg", "pairwise", "map")]


@pytest.mark.parametrize("base_score", [{}, {"base_score": 0.3}], ids=["estimated", "given"])
@pytest.mark.parametrize(("objective", "target"), OBJECTIVES, ids=[name for name, _ in OBJECTIVES])
def test_margins_are_the_librarys_for_every_objective(objective, target, base_score):
    """Base scores are stored as predictions; each objective's link turns them into the library's margin."""
    extra = {"num_class": 3} if objective.startswith("multi:") else {}
    if objective in ("reg:quantileerror", "reg:expectileerror"):
        extra = {objective[4:-5] + "_alpha": [0.2, 0.5, 0.9]}
    assert_agrees(train(target=target.astype(float), objective=objective, **extra, **base_score))


def test_every_objective_of_the_table_is_tested():
    """No link is in the table on faith; a link of a newer version is tested under that version."""
    assert set(LINKS) - {name for name, _ in OBJECTIVES} <= ({"reg:expectileerror"} if VERSION < (3, 3) else set())


@pytest.mark.parametrize("base_score", [0.9999, 0.99999, 1e-4, 1e-6])
def test_extreme_probabilities_keep_the_librarys_rounding(base_score):
    """Near 1 the float32 logit is off by far more than a rounding; the loader's is off by the same."""
    assert_agrees(train(target=CLASS > 0, objective="binary:logistic", base_score=base_score, n_rounds=1))


@pytest.mark.parametrize("base_score", ["0", "1", "[1E0]", "1e-9"])
def test_probabilities_outside_the_open_interval_are_clipped(base_score):
    """XGBoost 3.1 and later move a base score of 0 or 1 to within 1e-6 of it, instead of refusing it."""
    model = document(train(target=CLASS > 0, objective="binary:logistic", n_rounds=1))
    model["learner"]["learner_model_param"]["base_score"] = base_score
    ensemble, _, _ = parse_document(model)
    booster = xgb.Booster({"nthread": 1}, model_file=bytearray(json.dumps(model).encode()))
    assert_allclose(naive.margins(ensemble, ROWS), margins(booster, ROWS), rtol=RTOL, atol=ATOL)


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
        (xgb.XGBRFRegressor, {}),
    ],
)
def test_estimators_stop_at_their_best_iteration(estimator, parameters):
    """``XGBModel.predict`` uses the rounds up to the best one of early stopping, and so does the loader, without iteration_indptr too."""
    early = {} if estimator is xgb.XGBRFRegressor else {"n_estimators": 7, "early_stopping_rounds": 4}
    model = estimator(n_jobs=1, max_depth=3, learning_rate=0.9, **early, **parameters)
    target = CLASS if estimator is xgb.XGBClassifier else SIGNAL + np.random.default_rng(5).normal(size=SIGNAL.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(ROWS[:80], target[:80], eval_set=[(ROWS[80:], target[80:])], verbose=False)
    if early:
        assert model.get_booster().attr("best_iteration") is not None
        model.get_booster().set_attr(best_iteration="2")  # dropout goes on improving
    wanted = model.predict(ROWS, output_margin=True).reshape(len(ROWS), -1)
    ensemble, _, _ = load(model)
    assert_allclose(naive.margins(ensemble, ROWS), wanted, rtol=RTOL, atol=ATOL)
    if early:
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


def frame(names):
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "word": pd.Categorical(rng.choice(names, 160), categories=names),
            "number": pd.Categorical(rng.choice([70000, -5, 7], 160), categories=[7, 70000, -5]),
            "x": ROWS[:, 0],
            "idle": pd.Categorical(["only"] * 160),
        }
    )


@pytest.mark.parametrize("file_format", ["ubj", "json"])
def test_category_lists_are_read_from_the_model(file_format):
    """Text and integer categories come in the data frame's own order; a code is a position in them."""
    data = frame(["zeta", "alpha", "", "a b", "q=1"])
    target = SIGNAL + 3 * data["word"].isin(["alpha", ""]) + 2 * (data["number"] == 70000)
    booster = train(data, target.to_numpy(), max_cat_to_onehot=1)
    ensemble, features, _ = LOADER.parse(bytes(booster.save_raw(file_format)), "m")
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
        for field, array in first._asdict().items():
            assert_array_equal(getattr(other, field), array)


def test_files_of_older_versions():
    """Scalar base scores, booleans, absent categories, hessian-free vector leaves: what 1.0 to 3.1 wrote."""
    booster = train(target=CLASS > 0, objective="binary:logistic")
    model = document(booster)
    model["version"] = [1, 0, 0]
    learner = model["learner"]
    learner["learner_model_param"] = {"base_score": "5E-1", "num_class": "0", "num_feature": "3"}
    del learner["feature_names"], learner["feature_types"]
    content = learner["gradient_booster"]["model"]
    del content["cats"], content["iteration_indptr"]
    for tree in content["trees"]:
        for key in [key for key in tree if key.startswith("categories")]:
            del tree[key]
        del tree["split_type"]
        tree["default_left"] = [bool(side) for side in tree["default_left"]]
        tree["tree_param"]["size_leaf_vector"] = "0"
    ensemble, features, _ = parse_document(model)
    shift = naive.margins(ensemble, ROWS) - margins(booster, ROWS)
    assert_allclose(shift, np.broadcast_to(-load(booster)[0].base, shift.shape), atol=ATOL)
    assert len(features) == 3


def test_the_library_is_imported_only_to_serialise():
    """Importing the loader and asking whose an object is does not import XGBoost."""
    code = (
        "import sys, pipeline.models.xgboost as m; assert not m.LOADER.owns(object()) and not m.LOADER.recognise(b'tree'); "
        "sys.exit('xgboost' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_only_the_librarys_models_are_owned():
    """Boosters, estimators and classes derived from them are; other objects of the library are not."""

    class Mine(xgb.XGBRegressor):
        pass

    assert all(LOADER.owns(model) for model in (train(), Mine(), xgb.XGBClassifier(), xgb.XGBRFClassifier()))
    assert not any(LOADER.owns(model) for model in (xgb.DMatrix(ROWS, nthread=1), Booster(), {}, "model.json"))
    with pytest.raises(InvalidModel, match="Mine: is not fitted"):
        LOADER.serialise(Mine())


class Booster:
    """Nobody's model that is called like XGBoost's."""


def test_other_formats_are_not_recognised():
    """Only documents that open with a model's own keys are XGBoost's."""
    for data in (b"", b"{", b"tree\n", b"CBM1", b"\x80\x04", b'{"oblivious_trees": []}', b"{L" + bytes(7) + b"\x07unknown", b"binf"):
        assert not LOADER.recognise(data)


@functools.cache
def _sound(kind):
    if kind == "category":
        rows = np.stack([RAW_CODES, ROWS[:, 0], ROWS[:, 1]], axis=1)
        return train(rows, SIGNAL + 3 * np.isin(RAW_CODES, [3, 32]), 2, ["c", "q", "q"], max_depth=2, max_cat_to_onehot=1)
    if kind == "list":
        return train(frame(["a", "b", "c"])[["word", "x"]], SIGNAL, 2, max_depth=2)
    if kind == "vector":
        return train(target=TARGETS, n_rounds=2, multi_strategy="multi_output_tree", max_depth=2)
    return train(n_rounds=2, max_depth=2)


def sound(kind="numeric"):
    """A fresh, sound document: two trees of depth 2."""
    return copy.deepcopy(document(_sound(kind)))


def put(model, path, value):
    *parents, key = path
    for parent in parents:
        model = model[parent]
    if value is None:
        del model[key]
    else:
        model[key] = value


MODEL = ("learner", "gradient_booster", "model")
TREE = (*MODEL, "trees", 1)
PARAMETER = ("learner", "learner_model_param")
DAMAGES = [
    (("learner",), None, "'learner' is missing, expected an object"),
    (("learner",), [], "'learner' is 0 elements"),
    (("version",), None, "'version' is missing"),
    (("version",), [3, 2], "'version' has 2 numbers, expected 3"),
    ((*PARAMETER, "num_feature"), "0", "'num_feature' is '0', expected 1..100000"),
    ((*PARAMETER, "num_feature"), "9" * 18, "'num_feature' is '9+', expected 1..100000"),
    ((*PARAMETER, "num_feature"), "1", "tree 0: position .*: feature is 1, expected 0..0"),
    ((*PARAMETER, "num_class"), "x", "'num_class' is 'x'"),
    ((*PARAMETER, "base_score"), "[1,2]", "'base_score' is .*, expected 1 or 1 finite numbers"),
    ((*PARAMETER, "base_score"), "nan", "finite"),
    ((*PARAMETER, "base_score"), "[]", "expected numbers"),
    ((*PARAMETER, "base_score"), "1e999", "finite"),
    (("learner", "objective"), None, "'objective' is missing"),
    (("learner", "feature_names"), ["a"], "'feature_names' has 1 entries, expected 3"),
    (("learner", "feature_names"), ["a", 1, "b"], "'feature_names' has 3 entries, expected 3 texts"),
    (("learner", "feature_names"), ["a", "\ud800", "b"], "not Unicode"),
    (("learner", "attributes"), {"best_iteration": "2"}, "'best_iteration' is '2', expected 0..1"),
    (("learner", "attributes"), {"best_iteration": "-1"}, "'best_iteration' is '-1'"),
    (("learner", "attributes"), {"best_iteration": ["0"]}, "'best_iteration' is 1 elements"),
    ((*MODEL, "trees"), [], "0 trees, 'num_trees' is '2'"),
    ((*MODEL, "tree_info"), [0, 1], "position 1: output of a tree is 1, expected 0..0"),
    ((*MODEL, "tree_info"), [0], "'tree_info' has 1 numbers, expected 2"),
    ((*MODEL, "cats"), [], "'cats' is 0 elements"),
    ((*MODEL, "cats"), {"enc": [{}]}, "'cats' has 1 features, expected 3"),
    ((*MODEL, "weight_drop"), [1.0], "'weight_drop' has 1 numbers, expected 2"),
    (TREE, 7, "tree 1: is 7, expected an object"),
    ((*TREE, "id"), 0, "tree 1: 'id' is 0, expected 1"),
    ((*TREE, "tree_param", "num_nodes"), "9", "tree 1: 'left_children' has 7 numbers, expected 9"),
    ((*TREE, "tree_param", "num_nodes"), str(10**18 - 1), "'num_nodes' is"),
    ((*TREE, "tree_param", "num_deleted"), "1", "tree 1: 0 nodes are deleted, 'num_deleted' is '1'"),
    ((*TREE, "left_children"), None, "'left_children' is missing"),
    ((*TREE, "left_children"), "abc", "'left_children' is 'abc', expected a list of integers"),
    ((*TREE, "left_children", 0), 1.0, "expected a list of integers"),
    ((*TREE, "left_children", 0), [1], "expected a list of integers"),
    ((*TREE, "left_children", 0), 10**30, "expected a list of integers"),
    ((*TREE, "left_children", 0), 0, "node 7: has 2 parents"),
    ((*TREE, "left_children", 0), 2, "has 2 parents"),
    ((*TREE, "left_children", 0), 7, "tree 1: position 0: child is 7, expected 0..6"),
    ((*TREE, "left_children", 0), -1, "not reached from any root"),
    ((*TREE, "right_children", 0), -1, "tree 1: position 0: child is -1, expected 0..6"),
    ((*TREE, "split_indices", 0), 3, "tree 1: position 0: feature is 3, expected 0..2"),
    ((*TREE, "split_indices", 0), -1, "feature is -1"),
    ((*TREE, "split_indices", 0), 2**31 - 1, "1 nodes are deleted, 'num_deleted' is '0'"),
    ((*TREE, "split_conditions", 0), float("nan"), "threshold is nan"),
    ((*TREE, "split_conditions", 0), float("-inf"), "threshold is -inf"),
    ((*TREE, "split_conditions", 6), float("nan"), r"leaf value is \[nan\]"),
    ((*TREE, "split_conditions", 6), 1e300, r"leaf value is \[inf\]"),
    ((*TREE, "split_conditions", 6), "1", "expected a list of numbers"),
    ((*TREE, "default_left"), [1], "'default_left' has 1 numbers, expected 7"),
    ((*TREE, "sum_hessian"), None, "'sum_hessian' is missing"),
    ((*TREE, "sum_hessian", 0), float("nan"), "cover is nan"),
    ((*TREE, "sum_hessian", 0), float("inf"), "cover is inf"),
    ((*TREE, "sum_hessian", 0), 1e6, "cover is 1000000.0, its children's add up to"),
]


@pytest.mark.parametrize(("path", "value", "says"), DAMAGES, ids=[f"{'.'.join(map(str, d[0]))}={str(d[1])[:20]}" for d in DAMAGES])
def test_damaged_documents_are_refused(path, value, says):
    """Every broken invariant is one InvalidModel of one line that begins with where and says what was got."""
    model = sound()
    put(model, path, value)
    with pytest.raises(InvalidModel, match="^m: .*" + f"(?:{says})") as caught:
        parse_document(model)
    assert "\n" not in str(caught.value)


CATEGORY_DAMAGES = [
    (("categories", 0), -1, "category code is -1, expected 0..16777215"),
    (("categories", 0), 2**24, "category code is 16777216"),
    (("categories_sizes", 0), 10**6, "category segment size is 1000000"),
    (("categories_segments", 0), -1, "category segment is -1"),
    (("categories_segments", 0), "all", "end of a category segment"),
    (("categories_nodes", 0), 99, "category node is 99"),
    (("categories_nodes",), [], "'categories_segments' has"),
    (("split_type",), [0] * 7, "both numeric and categorical"),
    (("split_type",), [1] * 7, "expected one set of categories"),
    (("split_type",), [0], "'split_type' has 1 numbers"),
]


@pytest.mark.parametrize(("path", "value", "says"), CATEGORY_DAMAGES, ids=[d[2][:30] for d in CATEGORY_DAMAGES])
def test_damaged_category_sets_are_refused(path, value, says):
    """Segments outside the pool, codes that are no codes, splits without a set."""
    model = sound("category")
    tree = next(t for t in trees_of(model) if t["categories"] and 0 in t["split_type"][:3])
    if value == "all":
        value = len(tree["categories"])
    put(tree, path, value)
    with pytest.raises(InvalidModel, match=f"^m: .*{says}"):
        parse_document(model)


LIST_DAMAGES = [
    ({"offsets": [0, 1, 2, 99], "values": [97, 98, 99]}, "do not divide 3 bytes"),
    ({"offsets": [0, 2, 1, 3], "values": [97, 98, 99]}, "do not divide"),
    ({"offsets": [1, 2, 3], "values": [97, 98, 99]}, "do not divide"),
    ({"offsets": [0, 1, 2, 3], "values": [97, 97, 99]}, "are not distinct"),
    ({"offsets": [0, 1, 2], "values": [97, 98]}, "a split has category 2, expected 0..1"),
    ({"offsets": [0, 1], "values": "a"}, "expected a list of integers"),
    ({"offsets": [0, 1], "values": [-61]}, "not ASCII|not UTF-8"),
    ({"type": 15, "values": [1.5]}, "expected a list of integers"),
    ({"type": 3, "values": [1]}, "'type' is 3, expected 7..16"),
    ({"values": [1]}, "'type' is None"),
    (7, "are 7, expected an object"),
]


@pytest.mark.parametrize(("entry", "says"), LIST_DAMAGES, ids=[d[1] for d in LIST_DAMAGES])
def test_damaged_category_lists_are_refused(entry, says):
    """A category list that cannot be read, or is shorter than the codes that splits use."""
    model = sound("list")
    tree = next(tree for tree in trees_of(model) if tree["categories"])
    tree["categories"] = [2] * len(tree["categories"])
    put(model, (*MODEL, "cats", "enc", 0), entry)
    with pytest.raises((InvalidModel, UnsupportedModel), match=f"^m: .*(?:{says})"):
        parse_document(model)


def test_wide_unsigned_and_float_categories():
    """Type 12 is uint16 in signed storage; types 7 and 8 are floats, which 3.1 accepted."""
    model = sound("list")
    for entry, values in (
        ({"type": 12, "values": [1, -1, 5]}, (1, 65535, 5)),
        ({"type": 8, "values": [0.5, 2, -1.5]}, (0.5, 2.0, -1.5)),
    ):
        put(model, (*MODEL, "cats", "enc", 0), entry)
        assert parse_document(model)[1][0].categories == values


VECTOR_DAMAGES = [
    (("leaf_weights",), [1.0], InvalidModel, "'leaf_weights' has 1 numbers, expected a row each"),
    (("right_children", 6), 0, InvalidModel, "expected a row each"),
    (("right_children", 6), 99, InvalidModel, "row of leaf weights is 99"),
    (("tree_param", "size_leaf_vector"), "3", InvalidModel, "leaves have 3 values, expected 2"),
    (("tree_param", "size_leaf_vector"), "1", UnsupportedModel, "some trees have vector leaves and some have not"),
    (("sum_hessian",), None, UnsupportedModel, "tree 1: has vector leaves without covers .* since 3.2"),
]


@pytest.mark.parametrize(("path", "value", "error", "says"), VECTOR_DAMAGES, ids=[d[3][:30] for d in VECTOR_DAMAGES])
def test_damaged_vector_leaves_are_refused(path, value, error, says):
    """Each vector leaf owns one row of weights; files of 2.0 to 3.1 have no covers for them."""
    model = sound("vector")
    put(model, (*TREE, *path), value)
    with pytest.raises(error, match=f"^m: .*{says}"):
        parse_document(model)


REFUSALS = [
    (("learner", "objective", "name"), "reg:new", "objective is 'reg:new', its base score is not known as a margin"),
    (("learner", "gradient_booster", "name"), "gbnew", "booster is 'gbnew', expected 'gbtree' or 'dart'"),
    (("version",), [4, 0, 0], "written by XGBoost 4.0"),
    ((*MODEL, "tree_temperature"), [1, 2], r"with \['tree_temperature'\], not known here"),
    ((*TREE, "sum_hessian", 3), -1.0, "tree 1, node 3: cover .* is -1.0"),
]


@pytest.mark.parametrize(("path", "value", "says"), REFUSALS, ids=[d[2][:30] for d in REFUSALS])
def test_what_cannot_be_represented_is_refused(path, value, says):
    """A sound model outside the semantic is UnsupportedModel, which names the part."""
    model = sound()
    put(model, path, value)
    with pytest.raises(UnsupportedModel, match=f"^m: .*{says}"):
        parse_document(model)


def test_an_infinite_margin_is_refused():
    """A Poisson base score of 0 has the margin minus infinity."""
    model = sound()
    model["learner"]["objective"]["name"] = "count:poisson"
    model["learner"]["learner_model_param"]["base_score"] = "[0E0]"
    with pytest.raises(UnsupportedModel, match=r"base score \[0E0\] of count:poisson is the margin \[-inf\]"):
        parse_document(model)


def test_linear_models_are_refused():
    """gblinear is not a tree ensemble."""
    rows = np.nan_to_num(ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        booster = xgb.train({"booster": "gblinear", "nthread": 1}, xgb.DMatrix(rows, SIGNAL, nthread=1), 1)
    with pytest.raises(UnsupportedModel, match="m: booster is 'gblinear'"):
        load(booster)


def test_a_pool_of_huge_category_sets_is_refused():
    """One huge code makes every set of its feature wide; the memory is bounded before it is taken."""
    model = sound("category")
    tree = next(tree for tree in trees_of(model) if tree["categories"])
    tree["categories"] = [2**24 - 1] * len(tree["categories"])
    stored = trees_of(model)
    stored[:] = [copy.deepcopy(tree) | {"id": t} for t in range(200)]
    content = model["learner"]["gradient_booster"]["model"]
    content["gbtree_model_param"]["num_trees"] = "200"
    content["tree_info"] = [0] * 200
    with pytest.raises(UnsupportedModel, match=r"m: feature 'f0' has category codes up to 16777215: .* words of category sets"):
        parse_document(model)


def test_an_infinite_threshold_stays_exact():
    """x < inf is x <= the largest float32; XGBoost makes such cuts from values near it."""
    model = sound()
    model["learner"]["gradient_booster"]["model"]["trees"][0]["split_conditions"][0] = float("inf")
    ensemble, _, _ = parse_document(model)
    assert ensemble.threshold[0] == LARGEST


TEXTS = [
    (b"", "byte 0: 1 bytes are announced, 0 are left"),
    (b"{", "byte 1"),
    (b'{"learner": {}, "learner": {}}', "key 'learner' is given twice"),
    (b'{"learner": ' + b"[" * 200_000, "nested too deep"),
    (b'{"learner": ' + b'{"a":' * 200_000, "nested too deep"),
    (b'{"learner": "\xff"}', "utf-8"),
    (b'{"learner": ' + b"9" * 5000 + b"}", "not a whole document"),
    (b'{"learner": {}} x', "Extra data"),
    (b"[1]", "opens a value|opens a length|is 1 elements|announced|byte"),
    (b"{L" + bytes(7) + b"\x07learner" + b"[" * 100_000, "nested more than 32 deep"),
    (b"{L" + bytes(7) + b"\x07learner" + b"{i\x01a" * 100_000, "nested more than 32 deep"),
    (b"{L\x7f" + b"\xff" * 7, "bytes are announced"),
    (b"{L\xff" + b"\xff" * 7, "-1 bytes are announced"),
    (b"{L" + bytes(7) + b"\x07learner[$L#L\x7f" + b"\xff" * 7, "bytes are announced"),
    (b"{L" + bytes(7) + b"\x07learner[#L\x7f" + b"\xff" * 7, "elements are announced"),
    (b"{L" + bytes(7) + b"\x07learner[$T#L" + bytes(7) + b"\x07", "packed array of b'T'"),
    (b"{L" + bytes(7) + b"\x07learner[$l" + bytes(8), "packed array"),
    (b"{L" + bytes(7) + b"\x07learnerQ", "b'Q' opens a value"),
    (b"{i\x07learner{}i\x07learner{}}", "key 'learner' is given twice"),
    (b"{i\x07learner{}}extra", "the document ends, 5 bytes follow"),
    (b"{i\x07learner{}}", "'gradient_booster' is missing|'version' is missing"),
    (b"{i\x02\xff\xfe{}}", "utf-8"),
]


@pytest.mark.parametrize(("data", "says"), TEXTS, ids=[f"{d[0][:24]!r}{len(d[0])}" for d in TEXTS])
def test_hostile_bytes_are_refused(data, says):
    """Lengths are checked before anything is taken, nesting is bounded, nothing is named twice."""
    with pytest.raises(InvalidModel, match=f"^m: .*(?:{says})"):
        LOADER.parse(data, "m")


@pytest.mark.parametrize("file_format", ["json", "ubj"])
def test_no_truncation_is_read(file_format):
    """A file cut off anywhere is refused, never read as a smaller model."""
    data = bytes(_sound("numeric").save_raw(file_format))
    for size in range(0, len(data), 3):
        with pytest.raises(InvalidModel):
            LOADER.parse(data[:size], "m")


def test_ubjson_of_other_writers():
    """Untyped, uncounted and counted containers, small integers and constants are UBJSON too."""

    def encode(value):
        if isinstance(value, dict):
            members = b"".join(b"U" + bytes([len(key)]) + key.encode() + encode(member) for key, member in value.items())
            return b"{" + members + b"}" if len(value) % 2 else b"{#U" + bytes([len(value)]) + members
        if isinstance(value, list):
            return b"[" + b"".join(map(encode, value)) + b"]"
        if isinstance(value, str):
            return b"SU" + bytes([len(value)]) + value.encode()
        if isinstance(value, bool):
            return b"T" if value else b"F"
        if isinstance(value, int):
            return b"L" + value.to_bytes(8, "big", signed=True)
        return b"D" + np.array(value, ">f8").tobytes()

    model = sound()
    trees_of(model)[0]["default_left"] = [bool(side) for side in trees_of(model)[0]["default_left"]]
    for field, array in parse_document(model)[0]._asdict().items():
        assert_array_equal(getattr(LOADER.parse(encode(model), "m")[0], field), array)


@pytest.mark.parametrize("kind", ["numeric", "category", "list", "vector"])
@pytest.mark.parametrize("file_format", ["json", "ubj"])
def test_mutated_files_end_in_a_clean_error_or_a_sound_ensemble(file_format, kind):
    """Flipped bits, changed digits, removed, doubled and inserted bytes, anywhere."""
    data = bytes(_sound(kind).save_raw(file_format))
    rng = np.random.default_rng(6)
    refusals = []
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(damaged)))
            way = rng.integers(4)
            if way == 0:
                damaged[at] ^= 1 << int(rng.integers(8))
            elif way == 1:
                damaged[at] = rng.choice(np.frombuffer(b'0123456789-,[]{}":LlidSU#$\x00\xff', np.uint8))
            elif way == 2:
                del damaged[at : at + int(rng.integers(1, 9))]
            else:
                damaged[at:at] = damaged[at : at + int(rng.integers(1, 9))]
        try:
            ensemble, features, _ = LOADER.parse(bytes(damaged), "m")
        except (InvalidModel, UnsupportedModel) as error:
            refusals.append(str(error))
            continue
        check(ensemble)
        assert len(features) == ensemble.n_features
    assert len(refusals) > 100
    assert all(re.fullmatch("m: [^\n]+", text) for text in refusals)
