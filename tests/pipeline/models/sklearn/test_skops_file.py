"""Files of skops: the same model as the estimator in memory, whatever estimator; other classes are names, and damage is refused in one line."""

import hashlib
import io
import json
import pickle
import subprocess
import sys
import zipfile

import lightgbm
import numpy as np
import pandas as pd
import pytest
import skops.io
import xgboost
from numpy.lib import recfunctions as rfn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import ensemble, linear_model, model_selection, pipeline, preprocessing, tree

from leafledger import attribute, load_ensemble, save_model
from leafledger.pipeline.errors import InvalidColumn, InvalidModel, LeafledgerError, UnsupportedModel
from leafledger.pipeline.models.sklearn import skops_file as reader
from tests import fuzz

ROWS = np.random.default_rng(0).normal(size=(200, 4)).round(2)
TARGET = ROWS[:, 0] + np.abs(ROWS[:, 1]) * (ROWS[:, 2] > 0)
CLASSES = np.digitize(TARGET, [-0.3, 0.9])
BINARY = np.where(TARGET > 0.5, "late", "in time")
FRAME = pd.DataFrame(ROWS, columns=list("abcd")).assign(kind=np.array(["x", "y", "z"])[CLASSES])
SEED = {"random_state": 0}
QUIET = {"n_estimators": 4, "verbosity": -1, "n_jobs": 1}
SHALLOW = tree.DecisionTreeClassifier(max_depth=2)

ESTIMATORS = {
    "decision tree": (tree.DecisionTreeClassifier(max_depth=4, **SEED), ROWS, CLASSES),
    "extra tree": (tree.ExtraTreeRegressor(max_depth=4, **SEED), ROWS, TARGET),
    "several outputs": (tree.DecisionTreeRegressor(max_depth=4, **SEED), ROWS, np.stack((TARGET, ROWS[:, 3]), axis=1)),
    "several targets": (ensemble.RandomForestClassifier(3, max_depth=3, **SEED), ROWS, np.stack((CLASSES, TARGET > 0), axis=1).astype(int)),
    "random forest": (ensemble.RandomForestClassifier(4, max_depth=4, **SEED), ROWS, BINARY),
    "extra trees": (ensemble.ExtraTreesRegressor(4, max_depth=4, **SEED), FRAME[["a", "b"]], TARGET),
    "bagging": (ensemble.BaggingClassifier(SHALLOW, 4, max_features=0.5, **SEED), ROWS, CLASSES),
    "isolation forest": (ensemble.IsolationForest(n_estimators=4, max_features=0.5, **SEED), ROWS, None),
    "adaptive boosting": (ensemble.AdaBoostClassifier(SHALLOW, n_estimators=4, **SEED), ROWS, CLASSES),
    "gradient boosting": (ensemble.GradientBoostingRegressor(n_estimators=4, **SEED), ROWS, TARGET),
    "quantiles": (ensemble.GradientBoostingRegressor(n_estimators=4, loss="quantile", **SEED), ROWS, TARGET),
    "from zero": (ensemble.GradientBoostingClassifier(n_estimators=4, init="zero", **SEED), ROWS, CLASSES),
    "classes": (ensemble.GradientBoostingClassifier(n_estimators=4, **SEED), ROWS, CLASSES),
    "two classes": (ensemble.GradientBoostingClassifier(n_estimators=4, **SEED), ROWS, BINARY),
    "exponential loss": (ensemble.GradientBoostingClassifier(n_estimators=4, loss="exponential", **SEED), ROWS, BINARY),
    "histograms": (ensemble.HistGradientBoostingClassifier(max_iter=4, **SEED), ROWS, CLASSES),
    "missing values": (ensemble.HistGradientBoostingRegressor(max_iter=4, **SEED), np.where(ROWS > 1, np.nan, ROWS), TARGET),
    "categories": (
        ensemble.HistGradientBoostingRegressor(max_iter=4, categorical_features="from_dtype", **SEED),
        FRAME.astype({"kind": "category"}),
        TARGET,
    ),
    "codes of categories": (
        ensemble.HistGradientBoostingRegressor(max_iter=4, categorical_features=[3], **SEED),
        np.column_stack((ROWS[:, :3], CLASSES)),
        TARGET,
    ),
    "LightGBM": (lightgbm.LGBMRegressor(**QUIET), FRAME.astype({"kind": "category"}).rename(columns={"a": "a b"}), TARGET),
    "LightGBM's classes": (lightgbm.LGBMClassifier(**QUIET), ROWS, np.array(["low", "mid", "high"])[CLASSES]),
    "LightGBM's two classes": (lightgbm.LGBMClassifier(**QUIET), ROWS, BINARY),
    "search of LightGBM": (model_selection.GridSearchCV(lightgbm.LGBMRegressor(**QUIET), {"max_depth": [2, 3]}, cv=2), ROWS, TARGET),
    "search": (model_selection.GridSearchCV(tree.DecisionTreeRegressor(**SEED), {"max_depth": [2, 3]}, cv=2), ROWS, TARGET),
}


def fitted(kind):
    model, rows, target = ESTIMATORS[kind]
    return model.fit(rows, target), rows


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_file_is_the_estimator_that_it_was_made_of(kind, tmp_path):
    """The same trees, names and objective, to the last bit but for a start that is computed anew."""
    model, rows = fitted(kind)
    skops.io.dump(model, tmp_path / "model.skops")
    found, expected = load_ensemble(tmp_path / "model.skops"), load_ensemble(model)
    assert (found.features, found.outputs, found.objective, found.library) == (
        expected.features,
        expected.outputs,
        expected.objective,
        expected.library,
    )
    for name, array in expected.ensemble._asdict().items():
        if name == "base":
            assert_allclose(found.ensemble.base, array, rtol=1e-14, atol=1e-14)
        elif isinstance(array, np.ndarray):
            assert_array_equal(getattr(found.ensemble, name), array)
    assert_allclose(attribute(found, rows).phi, attribute(model, rows).phi, rtol=0, atol=1e-14)


def test_files_of_versions_without_missing_values_take_none(tmp_path):
    """Their nodes do not say where these go, and the version that wrote them predicted no such row; others are as ever."""
    data = skops.io.dumps(fitted("random forest")[0])
    found = load_bytes(rewritten(data, _without_field("missing_go_to_left")), tmp_path)
    assert all(feature.refuses_missing for feature in found.features)
    rows = ROWS.copy()
    assert_array_equal(attribute(found, rows).margin, attribute(load_bytes(data, tmp_path), rows).margin)
    rows[3, :] = np.nan
    with pytest.raises(InvalidColumn, match=r"column '0' has 1 missing values, expected none"):
        attribute(found, rows)


def test_a_file_may_be_compressed(tmp_path):
    """As skops offers it."""
    model, rows = fitted("random forest")
    skops.io.dump(model, tmp_path / "model.skops", compression=zipfile.ZIP_DEFLATED, compresslevel=9)
    assert_allclose(attribute(load_ensemble(tmp_path / "model.skops"), rows).margin, model.predict_proba(rows), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_neither_skops_nor_the_estimator_s_library_is_imported(tmp_path):
    """A worker has none of them."""
    program = "import sys; sys.modules.update(skops=None, sklearn=None, lightgbm=None); import leafledger as l; print(l.load_ensemble(sys.argv[1]))"
    for kind, library in (("two classes", "scikit-learn"), ("LightGBM's two classes", "lightgbm")):
        skops.io.dump(fitted(kind)[0], tmp_path / "model.skops")
        said = subprocess.run([sys.executable, "-c", program, tmp_path / "model.skops"], check=True, capture_output=True, text=True).stdout
        assert said == f"Model({library}, 4 trees, 4 features, 1 output)\n"


def load_bytes(data, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(data)
    return load_ensemble(path)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (linear_model.LinearRegression(), "LinearRegression is no sum of trees, expected a decision tree, a forest"),
        (pipeline.make_pipeline(preprocessing.StandardScaler(), tree.DecisionTreeRegressor()), "Pipeline is no sum of trees: "),
        (ensemble.BaggingRegressor(linear_model.LinearRegression(), 2), "BaggingRegressor of LinearRegression, expected decision trees"),
        (
            ensemble.GradientBoostingRegressor(n_estimators=2, init=linear_model.LinearRegression()),
            "starts from a LinearRegression, expected a const",
        ),
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_is_no_sum_of_trees_is_refused(model, says, tmp_path):
    """As it is in memory, with the file's name."""
    with pytest.raises(UnsupportedModel, match=rf"model\.skops: {says}|{says}") as caught:
        load_bytes(skops.io.dumps(model.fit(ROWS, TARGET)), tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}/model.skops: ")


@pytest.mark.parametrize("extra", [{}, {"boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1}], ids=["boosted", "forest"])
def test_trees_behind_the_best_iteration_are_left_out(extra, tmp_path):
    """A Booster that is kept for training has them in its file, and leaves them out of its predictions; those of a forest are means."""
    noise = np.random.default_rng(0).integers(0, 3, 200)
    parameters = {"objective": "multiclass", "num_class": 3, "metric": "multi_logloss", "verbosity": -1, "num_threads": 1}
    data = lightgbm.Dataset(ROWS[:100], noise[:100])
    held_out, stop = lightgbm.Dataset(ROWS[100:], noise[100:], reference=data), lightgbm.early_stopping(5, verbose=False)
    model = lightgbm.train(parameters | extra, data, 30, valid_sets=[held_out], callbacks=[stop], keep_training_booster=True)
    assert 0 < model.best_iteration < model.num_trees() // 3
    found = load_bytes(skops.io.dumps(model), tmp_path)
    assert found.ensemble.root.size == 3 * model.best_iteration
    odds = np.exp(attribute(found, ROWS).margin)
    assert_allclose(odds / odds.sum(axis=1, keepdims=True), model.predict(ROWS), rtol=0, atol=1e-13)


def test_nodes_of_one_identity_are_the_same(tmp_path):
    """skops takes the first for all: a parameter that somebody changed is the best iteration too, where both were the same number."""
    data = skops.io.dumps(lightgbm.LGBMRegressor(**QUIET).fit(ROWS, TARGET))
    changed = rewritten(data, of_schema(lambda schema: _attributes(schema)["subsample_freq"].update(content="1")))
    trusted = skops.io.get_untrusted_types(data=changed)
    assert not np.allclose(skops.io.loads(changed, trusted=trusted).predict(ROWS), skops.io.loads(data, trusted=trusted).predict(ROWS))
    with pytest.raises(InvalidModel, match=r"no sound skops file: two nodes have the identity \d+, but are not the same$"):
        load_bytes(changed, tmp_path)


def test_the_digest_is_the_file_s(tmp_path):
    """Not that of the text inside."""
    data = skops.io.dumps(fitted("LightGBM")[0])
    assert load_bytes(data, tmp_path).digest == hashlib.sha256(data).hexdigest()


def test_other_libraries_estimators_are_refused(tmp_path):
    """With what to save instead."""
    model = xgboost.XGBRegressor(n_estimators=2).fit(ROWS, TARGET)
    with pytest.raises(UnsupportedModel, match=r"model\.skops: has a xgboost\.sklearn\.XGBRegressor, expected .* save_model of XGBoost"):
        load_bytes(skops.io.dumps(model), tmp_path)


def test_an_estimator_that_is_not_fitted_is_refused(tmp_path):
    """It has no trees."""
    with pytest.raises(InvalidModel, match=r"model\.skops: RandomForestRegressor object: not fitted$"):
        load_bytes(skops.io.dumps(ensemble.RandomForestRegressor()), tmp_path)
    with pytest.raises(InvalidModel, match=r"model\.skops: LGBMRegressor: is not fitted, expected a trained model$"):
        load_bytes(skops.io.dumps(lightgbm.LGBMRegressor()), tmp_path)


def rewritten(data, change):
    """The file with another schema or other arrays, its checksums made true."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def of_schema(change):
    """A change of the schema alone."""

    def apply(members):
        schema = json.loads(members["schema.json"])
        change(schema)
        members["schema.json"] = json.dumps(schema).encode()

    return apply


def _attributes(schema):
    return schema["content"]["content"]


def _of_class(module, name):
    return of_schema(lambda schema: schema.update(__module__=module, __class__=name))


def _first_array(members, change):
    name = next(name for name in members if name.endswith(".npy") and b"left_child" in members[name])
    members[name] = change(members[name])


def _node_field(field, value, node=0):
    """A tree with another number in one of its nodes."""

    def change(data):
        nodes = np.load(io.BytesIO(data))
        nodes[field][node] = value
        out = io.BytesIO()
        np.save(out, nodes)
        return out.getvalue()

    return lambda members: _first_array(members, change)


def _without_field(field):
    """Trees whose nodes do not have something, as older versions wrote them."""

    def change(members):
        for name in [name for name in members if name.endswith(".npy") and b"left_child" in members[name]]:
            nodes = np.load(io.BytesIO(members[name]))
            kept = rfn.repack_fields(rfn.drop_fields(nodes, field, usemask=False))
            out = io.BytesIO()
            np.save(out, kept)
            members[name] = out.getvalue()

    return change


def _objects(members):
    out = io.BytesIO()
    np.save(out, np.array([print], object), allow_pickle=True)
    _first_array(members, lambda data: out.getvalue())


DAMAGES = {
    "another package's class": (_of_class("evil", "RandomForestRegressor"), r"has a evil\.RandomForestRegressor, expected an estimator of scikit-"),
    "a class of a family's name": (_of_class("evil", "IsolationForest"), r"has a evil\.IsolationForest, expected an estimator of scikit-learn"),
    "code": (_of_class("os", "system"), r"has a os\.system, expected"),
    "another loader": (of_schema(lambda schema: schema.update(__loader__="MethodNode")), "is nothing that a model is made of"),
    "features beyond all bounds": (
        of_schema(lambda schema: _attributes(schema)["n_features_in_"].update(content="1000000000000", __id__=1)),
        r"has 1000000000000 features, expected 1 to 1048576",
    ),
    "fewer features": (
        of_schema(lambda schema: _attributes(schema)["n_features_in_"].update(content="1", __id__=1)),
        "no sound skops file|expected|feature",
    ),
    "no trees": (of_schema(lambda schema: _attributes(schema).pop("estimators_")), "not fitted"),
    "no schema": (lambda members: members.pop("schema.json"), "is a zip archive; name the model file inside"),
    "a child that is none": (_node_field("left_child", 10**6), "a node's child is no node behind it"),
    "a child before": (_node_field("left_child", 0, 1), "a node's child is no node behind it"),
    "half a leaf": (_node_field("right_child", -1), "a node has one child"),
    "another leaf's mark": (_node_field("left_child", -2), "a node's child is no node behind it"),
    "a feature that is none": (_node_field("feature", 4), "asks for a feature that is none of 4"),
    "a negative feature": (_node_field("feature", -1), "asks for a feature that is none of 4"),
    "no threshold": (_node_field("threshold", np.nan), "threshold|NaN"),
    "objects": (_objects, r"an array has type '\|O', expected numbers"),
    "half an array": (lambda members: _first_array(members, lambda data: data[: len(data) // 2]), r"an array of shape .* has \d+ bytes, expected"),
    "an empty file": (lambda members: _first_array(members, lambda data: b""), "no sound skops file"),
    "a pickle": (lambda members: _first_array(members, lambda data: pickle.dumps(1)), "no sound skops file"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_files_that_somebody_changed_are_refused(kind, tmp_path):
    """Their checksums are true; no class is imported, and no index leads out of an array."""
    change, says = DAMAGES[kind]
    sound = skops.io.dumps(ensemble.RandomForestRegressor(2, max_depth=3, **SEED).fit(ROWS, TARGET))
    with pytest.raises(LeafledgerError, match=says) as caught:
        load_bytes(rewritten(sound, change), tmp_path)
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).startswith(f"{tmp_path}/model.skops: ")


def test_a_file_is_not_unpacked_beyond_a_size(tmp_path, monkeypatch):
    """A few bytes may stand for many."""
    monkeypatch.setattr(reader, "MAX_BYTES", 10_000)
    with pytest.raises(InvalidModel, match=r"no sound skops file: more than 10000 bytes when unpacked$"):
        load_bytes(skops.io.dumps(fitted("random forest")[0]), tmp_path)
    with pytest.raises(InvalidModel, match=r"no sound skops file"):
        load_bytes(b"PK\x03\x04" + b"x" * 100 + b"schema.json", tmp_path)


@pytest.mark.parametrize("kind", ["random forest", "classes", "categories", "adaptive boosting", "isolation forest", "LightGBM's classes"])
def test_damaged_members_are_refused_or_read_the_same(kind, tmp_path):
    """Hundreds of files whose schema or arrays have other bytes under true checksums: each is refused in one line, or makes a sound model."""
    sound, draw, refused = skops.io.dumps(fitted(kind)[0]), np.random.default_rng(1), []
    for _ in range(60):
        try:
            found = load_bytes(fuzz.mutate_member(sound, draw), tmp_path)
        except LeafledgerError as error:
            refused.append(str(error))
        else:
            save_model(found, tmp_path / f"{draw.integers(2**60)}.trees")
    assert len(refused) > 10
    assert all(len(said.splitlines()) == 1 for said in refused)
