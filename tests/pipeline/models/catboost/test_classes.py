"""What a CatBoost model's outputs are called, of objects and both formats, against the columns and the classes that CatBoost itself predicts."""

import catboost
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger import attribute, save_model
from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models.catboost.classes import Classes, name_outputs, read_classes, read_threshold
from tests.pipeline.models.catboost.training import SHAPE, sample

ROWS, TARGET = sample(300)
THREE = np.digitize(TARGET, [-0.5, 0.5])


def labelled(labels):
    return np.array(labels)[THREE]


UNSEEN = [
    (labelled([0, 2, 3]), {"classes_count": 4}),
    (labelled([1, 2, 2]), {"classes_count": 3}),
    (labelled([0, 2, 3]), {"class_names": [0, 1, 2, 3]}),
    (labelled([3, 0, 2]), {"class_names": [3, 1, 0, 2]}),
    (labelled([0, 2, 3]), {"class_names": ["0", "1", "2", "3"]}),
    (labelled(["w", "y", "z"]), {"class_names": ["w", "x", "y", "z"]}),
    (labelled([0.5, 2.5, 3.5]), {"class_names": [0.5, 1.5, 2.5, 3.5]}),
    (labelled([0, 2, 3]), {"class_weights": dict.fromkeys(range(4), 1)}),
]


@pytest.mark.parametrize("loss", ["MultiClass", "MultiClassOneVsAll"])
@pytest.mark.parametrize(("labels", "declared"), UNSEEN)
def test_outputs_are_called_as_the_classes_that_were_seen(labels, declared, loss, tmp_path):
    """Where training was told of classes that it did not see, there are no outputs for these: CatBoost predicts -inf for them."""
    model = catboost.CatBoostClassifier(loss_function=loss, **SHAPE, **declared).fit(ROWS, labels)
    margins, predicted = model.predict(ROWS, prediction_type="RawFormulaVal"), model.predict(ROWS).reshape(-1)
    seen = np.isfinite(margins).all(axis=0)
    assert not seen.all()
    sources = [model]
    for form in ("cbm", "json"):
        model.save_model(str(tmp_path / form), format=form)
        sources.append(tmp_path / form)
    for source in sources:
        found = attribute(source, ROWS)
        assert found.outputs == tuple(map(str, model.classes_[seen]))
        assert_allclose(found.margin, margins[:, seen], rtol=1e-9, atol=1e-9)
        assert_array_equal(attribute(source, ROWS, output="predicted").output, predicted.astype(str))


@pytest.mark.parametrize("labels", [labelled([0.0, 2.0, 3.0]), np.where(TARGET > 0, 2.0, 1.0)])
def test_labels_that_are_floats_are_called_alike_of_objects_and_files(labels, tmp_path):
    """As the file writes them; the object's own are 0.0, 2.0, 3.0."""
    model = catboost.CatBoostClassifier(**SHAPE).fit(ROWS, labels)
    model.save_model(str(tmp_path / "cbm"), format="cbm")
    called = [set(attribute(source, ROWS, output="predicted").output) for source in (model, tmp_path / "cbm")]
    assert called[0] == called[1] == {f"{label:g}" for label in labels}


def test_an_object_with_fewer_names_than_classes_gives_none():
    """CatBoost names one class of a model that saw one, whose margin is of another."""
    model = catboost.CatBoostClassifier(allow_const_label=True, **SHAPE).fit(ROWS, np.ones(len(ROWS), int))
    assert model.classes_.tolist() == [1]
    assert attribute(model, ROWS).outputs == ("0",)


def test_what_a_file_says_of_classes_is_read():
    """Names as texts; numbers of classes where there are names, or instead of them."""
    assert read_classes(None, "m") == Classes()
    assert read_classes({"class_names": [0, 1.5, "x", False], "class_to_label": [3, 1]}, "m") == Classes(("0", "1.5", "x", "False"), (3, 1))
    assert name_outputs(Classes(("a", "b", "c"), (2, 0)), 2, "m") == ("c", "a")
    assert name_outputs(Classes((), (2, 0)), 2, "m") == ("2", "0")
    assert name_outputs(Classes(("a", "b")), 2, "m") == ("a", "b")
    assert name_outputs(Classes(), 2, "m") == ("0", "1")
    assert name_outputs(Classes(("no", "yes"), (0, 1)), 1, "m") == ("0",)


@pytest.mark.parametrize(
    "parameters", ["x", {"class_to_label": 3}, {"class_to_label": [0, "1"]}, {"class_to_label": [-1]}, {"class_to_label": [1, 1]}]
)
def test_what_is_no_list_of_classes_is_refused(parameters):
    """In one line with the place."""
    with pytest.raises(InvalidModel, match=r"^m: '?class_(params|to_label)'? is .*, expected"):
        read_classes(parameters, "m")


def test_other_classes_than_outputs_are_refused():
    """Their names would be those of others."""
    for classes in (Classes(("a", "b", "c")), Classes(("a", "b"), (0, 1, 2)), Classes((), (0,))):
        with pytest.raises(InvalidModel, match=r"^m: [13] classes, expected one for each of 2 outputs$"):
            name_outputs(classes, 2, "m")
    with pytest.raises(InvalidModel, match=r"^m: class_to_label has 3, expected 0\.\.2$"):
        name_outputs(Classes(("a", "b", "c"), (0, 3)), 2, "m")


@pytest.mark.parametrize("threshold", [0.75, 0.0])
@pytest.mark.parametrize("form", ["object", "cbm", "json", "trees"])
def test_a_class_that_is_not_predicted_from_one_half_on_is_not_chosen(form, threshold, tmp_path):
    """Rows between one half and the model's own threshold were explained for the class that CatBoost does not predict."""
    model = catboost.CatBoostClassifier(**SHAPE).fit(ROWS, THREE == 2)
    chosen = attribute(model, ROWS, output="predicted").output
    assert_array_equal(chosen, model.predict(ROWS).astype(str))
    model.set_probability_threshold(threshold)
    assert (chosen != model.predict(ROWS).astype(str)).any()
    source = model if form == "object" else tmp_path / form
    if form == "trees":
        save_model(model, source)
    elif form != "object":
        model.save_model(str(source), format=form)
    said = f"output 'other': expected a class from one half on, but the model predicts 'True' from probability {threshold:g} on"
    with pytest.raises(UnsupportedModel, match=said):
        attribute(source, ROWS, output="other")
    assert_allclose(attribute(source, ROWS, space="probability").prediction[:, 0], model.predict_proba(ROWS)[:, 1], atol=1e-12)


def test_a_threshold_is_a_probability():
    assert [read_threshold(text, "m") for text in (None, "0.5", "0.25", "1")] == [None, None, 0.25, 1.0]
    for text in ("", "2", "-0.1", "nan", 3.0, ["0.2"]):
        with pytest.raises(InvalidModel, match=r"m: binclass_probability_threshold is .*, expected a number from 0 to 1"):
            read_threshold(text, "m")
