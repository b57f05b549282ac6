"""Interactions as matrices and frames: beside shap and XGBoost, and as they are defined here; attributions for Polars."""

import sys
from dataclasses import replace

import lightgbm
import numpy as np
import pandas as pd
import polars
import pytest
import shap
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from polars.testing import assert_frame_equal

from leafledger import attribute
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.in_memory.explain.frames import show_rows

RNG = np.random.default_rng(11)
FRAME = pd.DataFrame(RNG.normal(size=(80, 4)).round(1), columns=list("abcd"), index=[f"row {i}" for i in range(80)])
SCORE = FRAME["a"] * FRAME["b"] + FRAME["c"]
GIVEN = {"max_depth": 4, "nthread": 1}
TREES = xgboost.train(GIVEN, xgboost.DMatrix(FRAME, SCORE), 10)
CLASSES = xgboost.train(GIVEN | {"objective": "multi:softprob", "num_class": 3}, xgboost.DMatrix(FRAME, np.digitize(SCORE, [-0.5, 0.5])), 5)
LIGHT = lightgbm.LGBMRegressor(n_estimators=10, num_leaves=8, verbose=-1, n_jobs=1).fit(FRAME, SCORE)
ATOL = 2e-5  # XGBoost computes in single precision


@pytest.mark.parametrize("model", [TREES, CLASSES], ids=["one output", "classes"])
def test_a_matrix_is_that_of_xgboost(model):
    """Its last line and column are the base value's."""
    theirs = model.predict(xgboost.DMatrix(FRAME), pred_interactions=True).reshape(80, -1, 5, 5)[:, :, :4, :4]
    assert_allclose(attribute(model, FRAME, interactions="all").interaction_matrix(), theirs, rtol=0, atol=ATOL)


def test_a_matrix_is_that_of_shap():
    """Of a model of LightGBM, in double precision."""
    theirs = shap.TreeExplainer(LIGHT).shap_interaction_values(FRAME)
    assert_allclose(attribute(LIGHT, FRAME, interactions="all").interaction_matrix()[:, 0], theirs, rtol=0, atol=1e-9)


@pytest.mark.parametrize("asked", [{}, {"background": FRAME[:20]}, {"method": "banzhaf"}, {"partition": {"both": ["a", "d"]}}], ids=str)
def test_halves_are_of_the_interactions_and_lines_add_up_to_attributions(asked):
    """In both games, of other values and of groups; whole entries are the interactions, and nothing stands on their diagonal."""
    found = attribute(CLASSES, FRAME, interactions="all", **asked)
    halves, whole = found.interaction_matrix(), found.interaction_matrix(halves=False)
    assert_allclose(halves.sum(axis=3), found.phi, rtol=0, atol=1e-12)
    assert_array_equal(halves, halves.swapaxes(2, 3))
    for k, (first, second) in enumerate(found.pairs):
        i, j = found.players.index(first), found.players.index(second)
        assert_array_equal(whole[:, :, j, i], found.interactions[:, :, k])
        assert_array_equal(halves[:, :, i, j], found.interactions[:, :, k] / 2)
    assert not whole[:, :, range(len(found.players)), range(len(found.players))].any()
    assert_array_equal(found[3:5].interaction_matrix(), halves[3:5])


def test_a_frame_of_interactions_has_a_column_for_every_pair():
    """With the rows' index; of several outputs there is a level for them."""
    one, several = (attribute(model, FRAME, interactions="all") for model in (TREES, CLASSES))
    frame = one.to_frame(interactions=True)
    assert (frame.columns.names, frame.columns.tolist(), frame.index.tolist()) == (["first", "second"], list(one.pairs), FRAME.index.tolist())
    assert_array_equal(frame.to_numpy(), one.interactions[:, 0])
    assert_array_equal(frame["a"]["b"], one.interactions[:, 0, one.pairs.index(("a", "b"))])
    frame = several.to_frame(interactions=True)
    assert frame.columns.tolist() == [(output, *pair) for output in several.outputs for pair in several.pairs]
    assert_array_equal(frame["1"].to_numpy(), several.interactions[:, 1])
    flat = xgboost.train({"max_depth": 1, "nthread": 1}, xgboost.DMatrix(FRAME, SCORE), 2)
    assert attribute(flat, FRAME, interactions="all").to_frame(interactions=True).shape == (80, 0)
    assert attribute(flat, FRAME, interactions="all").interaction_matrix().shape == (80, 1, 4, 4)


def test_sets_have_a_level_for_every_member():
    """Those of smaller sets end with nothing; a matrix has no place for them."""
    found = attribute(TREES, FRAME, interactions="all", order=4)
    frame = found.to_frame(interactions=True)
    assert frame.columns.names == ["first", "second", "third", "4th"]
    assert [tuple(filter(None, column)) for column in frame.columns] == list(found.sets)
    assert_array_equal(frame.to_numpy(), found.interactions[:, 0])
    assert frame["a"]["b"].columns.tolist()[0] == ("", "")
    with pytest.raises(UsageError, match=r"^interaction_matrix is of pairs, but interactions are of sets of players; leave out the order$"):
        found.interaction_matrix()


def test_a_diagonal_needs_all_interactions():
    """What a few of them leave is nobody's number; the few themselves can be laid out."""
    few = attribute(TREES, FRAME, interactions=2)
    with pytest.raises(
        UsageError, match=r"what all 6 interactions leave of attributions, but the 2 largest of a row were kept; give interactions='all'"
    ):
        few.interaction_matrix()
    assert ((few.interaction_matrix(halves=False) != 0).sum(axis=(2, 3)) <= 4).all()
    enough = attribute(TREES, FRAME, interactions=99)
    assert_array_equal(enough.interaction_matrix(), attribute(TREES, FRAME, interactions="all").interaction_matrix())


def test_what_was_not_asked_for_is_refused():
    """One line says what to give."""
    found = attribute(TREES, FRAME)
    with pytest.raises(UsageError, match=r"^interaction_matrix needs interactions, and none were asked for; give interactions='all'$"):
        found.interaction_matrix()
    with pytest.raises(UsageError, match=r"^to_frame needs interactions"):
        found.to_frame(interactions=True)
    with pytest.raises(UsageError, match="interactions is 'all', expected True or False"):
        found.to_frame(interactions="all")
    with pytest.raises(UsageError, match="halves is 2, expected True or False"):
        attribute(TREES, FRAME, interactions="all").interaction_matrix(2)


def test_polars_gets_what_arrow_gets():
    """With ids of the rows it was given; and a line where Polars is not installed."""
    found = attribute(TREES, polars.from_pandas(FRAME).with_columns(customer=polars.int_range(80)))
    table = found.to_polars("customer")
    assert table.columns == ["customer", "margin", "phi_a", "phi_b", "phi_c", "phi_d"]
    assert_frame_equal(table, polars.from_arrow(found.to_arrow("customer")))
    assert_array_equal(table["phi_b"].to_numpy(), found["b"])


def test_without_polars_the_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match=r"^to_polars needs polars: pip install polars$"):
        attribute(TREES, FRAME).to_polars()


def test_a_notebook_s_table_has_values_beside_attributions():
    """Missing ones by this word; what rounding leaves is 0."""
    frame = FRAME[:3].assign(a=[np.nan, 20261128.0, 1.5])
    html = attribute(TREES, frame)._repr_html_()
    assert all(text in html for text in ("(missing)", "(20261128)", "(1.5)"))
    assert "0 (" in show_rows(replace(attribute(TREES, frame), phi=np.full((3, 1, 4), 1e-19)))
    assert "e-19" not in show_rows(replace(attribute(TREES, frame), phi=np.full((3, 1, 4), 1e-19)))
