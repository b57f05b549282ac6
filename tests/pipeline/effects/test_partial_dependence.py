"""Partial dependence in memory: scikit-learn's own, brute force through every library, and what cannot be asked."""

from contextlib import suppress

import lightgbm
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.inspection import partial_dependence as theirs

import leafledger
from leafledger.pipeline.errors import LeafledgerError, UsageError
from tests.pipeline.conftest import WRONG
from tests.pipeline.effects.trained import ATOL, COLOURS, FORESTS, NUMBERS, brute, make_rows, make_target, train

SINGLE = 5e-6  # where a library adds up in float32
N = 300


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.slow
def test_curves_are_scikit_learn_s(name):
    """``brute`` on the background, in the units of the decision function, and ``recursion`` by covers, which is without the initial prediction."""
    rows = make_rows(N, missing=False)[NUMBERS]
    model = FORESTS[name](rows, make_target(make_rows(N, missing=False)))
    found, covered = leafledger.partial_dependence(model, rows[:50]), leafledger.partial_dependence(model)
    response = {"response_method": "decision_function"} if name == "classifier" else {}
    for feature in NUMBERS:
        slow = theirs(model, rows[:50], [feature], method="brute", grid_resolution=1000, **response)
        assert_allclose(found.at(feature, slow["grid_values"][0])[:, 0], slow["average"][0], rtol=0, atol=ATOL)
        fast = theirs(model, rows[:50], [feature], method="recursion", grid_resolution=1000)
        initial = covered.at(feature, fast["grid_values"][0])[:, 0] - fast["average"][0]
        assert_allclose(initial, initial[0], rtol=0, atol=ATOL)
        if name == "forest":
            assert abs(initial[0]) < ATOL
        elif name == "boosting":
            assert_allclose(initial[0], model.init_.constant_.ravel()[0], rtol=0, atol=ATOL)
        else:
            assert_allclose(initial[0], np.ravel(model._baseline_prediction)[0], rtol=0, atol=ATOL)
    both = theirs(model, rows[:50], ["x", "y"], method="brute", grid_resolution=7, **response)
    a, b = (grid.ravel() for grid in np.meshgrid(*both["grid_values"], indexing="ij"))
    found = leafledger.partial_dependence(model, rows[:50], features=[], pairs=[("x", "y")])
    assert_allclose(found.at(("x", "y"), (a, b))[:, 0], both["average"][0].ravel(), rtol=0, atol=ATOL)
    assert ("initial" in repr(covered)) == (name != "forest")


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "sklearn"])
def test_curves_are_brute_force_through_the_library(library):
    """At every threshold and between, for every category, an unknown one where it is taken, and the missing value; two features too."""
    rows = make_rows(N)
    model, predict = train(library, rows)
    background, atol = rows[40:90], SINGLE if library == "xgboost" else ATOL
    found = leafledger.partial_dependence(model, background, pairs=[("x", "colour")])
    for name in NUMBERS:
        frame = found.to_frame(name)
        frame = frame[frame["kind"] == "interval"]
        ends = np.concatenate((frame["upper"].to_numpy()[:-1], np.nextafter(frame["lower"].to_numpy()[1:], np.inf, dtype=np.float32), [np.nan]))
        if library != "catboost":  # which has its borders in float32, above which the next float64 is none of its values
            assert_allclose(found.at(name, ends)[:, 0], brute(predict, background, {name: ends}).mean(axis=1), rtol=0, atol=atol)
        inside = np.nan_to_num((frame["lower"] + frame["upper"]).to_numpy() / 2, neginf=-9.0, posinf=9.0)
        assert_allclose(frame["value"], brute(predict, background, {name: inside}).mean(axis=1), rtol=0, atol=atol)
    expected = brute(predict, background, {"colour": COLOURS}).mean(axis=1)
    assert_allclose(found.at("colour", COLOURS)[:, 0], expected, rtol=0, atol=atol)
    frame = found.to_frame("colour")
    shares, frame = background["colour"].value_counts(normalize=True), frame[frame["kind"] == "category"].set_index("category")
    assert len(frame) > 1, "colours matter, or this would show little"
    assert_allclose(frame["share"], shares[frame.index], rtol=0, atol=ATOL)
    xs = np.array([-1.0, 0.1, 0.4, 2.0])
    expected = brute(predict, background, {"x": xs, "colour": COLOURS}).mean(axis=1)
    assert_allclose(found.at(("x", "colour"), (xs, list(COLOURS)))[:, 0], expected, rtol=0, atol=atol)


def test_several_outputs():
    """A curve of every class's margin; or of one alone."""
    rows = make_rows(N)
    classes = np.digitize(make_target(rows), [-0.5, 0.8])
    given = {"objective": "multiclass", "num_class": 3, "verbosity": -1, "num_threads": 1, "min_data_per_group": 5}
    model = lightgbm.train(given, lightgbm.Dataset(rows, classes), 4)
    found, one = leafledger.partial_dependence(model, rows), leafledger.partial_dependence(model, rows, output=2)
    expected = model.predict(rows.assign(x=0.7), raw_score=True).mean(axis=0)
    assert_allclose(found.at("x", [0.7])[0], expected, rtol=0, atol=ATOL)
    assert_allclose(one.at("x", [0.7])[0], expected[2:], rtol=0, atol=ATOL)
    assert found.to_frame("x")["output"].unique().tolist() == ["0", "1", "2"]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["features", "pairs", "partition", "allow_unseen", "output"])
def test_wrong_arguments_are_refused_in_a_line(additive, name, wrong):
    """Whatever stands in the place of an argument."""
    model, rows = additive
    found = None
    with suppress(LeafledgerError):
        found = leafledger.partial_dependence(model, rows, **{name: wrong})
    assert found is None or isinstance(found, leafledger.PartialDependence)


def test_backgrounds_and_values_that_do_not_fit(additive):
    """Without a feature, without rows; what was not asked for; values of a pair."""
    model, rows = additive
    with pytest.raises(LeafledgerError, match="rows of the background"):
        leafledger.partial_dependence(model, rows.drop(columns="x"))
    with pytest.raises(UsageError, match="the background has no rows"):
        leafledger.partial_dependence(model, rows[:0])
    found = leafledger.partial_dependence(model, rows, features=["x"], pairs=[("x", "y")])
    assert found.names == ("x", "y", ("x", "y"))
    with pytest.raises(UsageError, match="'z' was not asked for"):
        found.at("z", [1.0])
    with pytest.raises(UsageError, match=r"was not asked for; did you mean \('x', 'y'\)\?"):
        found.at(("y", "x"), ([1.0], [1.0]))
    with pytest.raises(UsageError, match="expected two"):
        found.at(("x", "y"), [[1.0]])
    with pytest.raises(UsageError, match="values of a pair are 1 and 2, expected as many of each"):
        found.at(("x", "y"), ([1.0], [1.0, 2.0]))
    assert len(found.to_frame(("x", "y"))) == len(found.to_frame("x")) * len(found.to_frame("y"))
