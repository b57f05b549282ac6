"""A loaded model says in a line what it holds, and in a notebook what each feature's column holds; what claims too much is none."""

import json
from dataclasses import replace
from types import SimpleNamespace

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from hypothesis import given

from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models import FEW_OUTPUTS, load_ensemble
from leafledger.pipeline.models.catboost.cityhash import NO_CATEGORY, HashedCategory
from leafledger.pipeline.models.model import Feature, find_classes
from tests.pipeline.models.catboost.training import SHAPE, sample, saved
from tests.pipeline.models.xgboost.training import load, train
from tests.pipeline.running import as_model
from tests.strategies import forests


@pytest.mark.parametrize(
    ("feature", "kind"),
    [
        (Feature("x"), "numbers"),
        (Feature("x", True), "codes of categories"),
        (Feature("x", True, perhaps_codes=True), "codes of categories, whose list is not there"),
        (Feature("x", True, ("a", "b", "c")), "3 categories"),
        (Feature("x", True, ("a",)), "1 category"),
        (Feature("x", True, (HashedCategory(7),), partial=True), "categories, of which splits ask for 1"),
        (Feature("x", True, (HashedCategory(7), HashedCategory(8)), hashed=True, partial=True), "categories, of which splits ask for 2"),
        (Feature("x", True, (NO_CATEGORY,), hashed=True), "categories that statistics know"),
    ],
)
def test_a_feature_says_what_its_column_holds(feature, kind):
    """Numbers, codes, or one of a list."""
    assert feature.kind == kind


def test_what_nobody_says_of_a_model_does_not_hold(tmp_path):
    """Nor of a feature, but that its name is its own."""
    names = "categorical", "categories", "perhaps_codes", "underscored", "missing", "hashed", "named", "by_value"
    assert [getattr(Feature("x"), name) for name in names] == [*(False, None, False, False, None, False), True, False]
    model = as_model(load(train(n_rounds=1))[0])
    assert (model.only_output, model.by_position, model.origin) == (None, False, None)


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        (np.array(["no", "yes"]), ("no", "yes")),
        (np.array([1, 2]), ("1", "2")),
        (["a", "b"], ("a", "b")),
        ([np.array([0, 1]), np.array([0, 1])], ()),
        (None, ()),
        ("ab", ()),
    ],
)
def test_classes_have_the_names_that_an_object_knows(classes, names):
    """In its own order; several targets have none of one kind, and who is no classifier has none at all."""
    assert find_classes(SimpleNamespace(classes_=classes)) == names
    assert find_classes(SimpleNamespace()) == ()


@given(ensemble=forests())
def test_a_model_prints_as_one_line(ensemble):
    """Counted one by one: trees, features, outputs; never an array."""
    counts = []
    for n, noun in ((len(ensemble.root), "tree"), (len(ensemble.n_categories), "feature"), (len(ensemble.base), "output")):
        counts.append(f"{n} {noun}" + ("s" if n != 1 else ""))
    assert repr(as_model(ensemble)) == f"Model(xgboost, {', '.join(counts)})"


def test_a_notebook_shows_the_first_features_with_their_names_escaped():
    """A feature may be called anything, markup too; the table names what every column holds."""
    ensemble, *_ = load(train(n_rounds=1))
    model = replace(as_model(ensemble), features=(Feature("<b>"), Feature("codes", True), Feature("words", True, ("a", "b"))))
    html = model._repr_html_()
    assert "<b>" not in html
    for cell in ("&lt;b&gt;", "codes of categories", "2 categories", "numbers"):
        assert f"<td>{cell}</td>" in html


@pytest.mark.parametrize(("n_classes", "taken"), [(FEW_OUTPUTS, True), (FEW_OUTPUTS + 1, False), (100_000, False)])
def test_a_few_bytes_are_not_100000_classes(tmp_path, n_classes, taken):
    """A number in a file of some kilobytes would become that many columns; every class of a model that was trained has its trees."""
    rows = xgboost.DMatrix(np.arange(30.0)[:, None], np.arange(30) % 3)
    document = json.loads(xgboost.train({"objective": "multi:softprob", "num_class": 3}, rows, 1).save_raw("json"))
    document["learner"]["learner_model_param"] |= {"num_class": str(n_classes), "base_score": "5E-1"}
    document["learner"]["objective"]["softmax_multiclass_param"]["num_class"] = str(n_classes)
    (tmp_path / "model.json").write_text(json.dumps(document))
    if taken:
        assert len(load_ensemble(tmp_path / "model.json").outputs) == n_classes
    else:
        with pytest.raises(InvalidModel, match=rf"model\.json: {n_classes} outputs, but its trees add to 3 of them$"):
            load_ensemble(tmp_path / "model.json")


def test_a_feature_whose_name_cannot_be_written_is_refused(tmp_path):
    """JSON may hold half a character, which no file of results can."""
    model = json.loads(saved(catboost.CatBoostRegressor(**SHAPE).fit(*sample()), tmp_path, "json"))
    model["features_info"]["float_features"][0]["feature_id"] = "\ud800"
    (tmp_path / "model.json").write_text(json.dumps(model))
    with pytest.raises(InvalidModel, match=r"model\.json: the name '\\ud800' has half a character, which cannot be written$"):
        load_ensemble(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("kind", "given", "own", "package"),
    [
        (xgboost.XGBRegressor, {"n_estimators": 2}, "predict", "xgboost"),
        (xgboost.XGBClassifier, {"n_estimators": 2}, "predict_proba", "xgboost"),
        (lightgbm.LGBMRegressor, {"n_estimators": 2, "verbose": -1}, "predict", "lightgbm"),
        (catboost.CatBoostRegressor, {"iterations": 2, "verbose": 0, "allow_writing_files": False}, "predict", "catboost"),
    ],
)
def test_objects_must_predict_as_their_library_does(kind, given, own, package):
    """A class that is made from the library's may do as it likes elsewhere; what it predicts is explained."""
    rows = np.random.default_rng(0).normal(size=(60, 2))
    label = (rows[:, 0] > 0).astype(int)
    same = type("Same", (kind,), {"summary": lambda self: "as the library's"})(**given).fit(rows, label)
    assert load_ensemble(same).library == package
    other = type("Halved", (kind,), {own: lambda self, data: getattr(kind, own)(self, data) / 2})(**given).fit(rows, label)
    with pytest.raises(UnsupportedModel, match=rf"^Halved has a {own} of its own \(.*test_model\), expected {package}'s$"):
        load_ensemble(other)
