"""What is asked is checked before rows are there, and holds names alone, not the trees."""

import pickle

import lightgbm
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from leafledger import attribute, load_ensemble
from leafledger.kernels.ranking.rates import candidate_rates
from leafledger.pipeline.errors import SchemaMismatch
from leafledger.pipeline.in_memory.explain import question as preparation
from leafledger.pipeline.in_memory.explain.question import ask
from leafledger.pipeline.in_memory.rows.given_rows import read_header
from tests.hypercubes import full_tree
from tests.pipeline.conftest import FEATURES
from tests.pipeline.running import as_model

DRAWN = np.random.default_rng(3).normal(size=(300, 4))
FRAME = pd.DataFrame(DRAWN, columns=list("abcd"))
UNNAMED = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1).fit(DRAWN, DRAWN[:, 0] * DRAWN[:, 1] + DRAWN[:, 2])


def put(model, partition=None, method="shapley", parameters=None, background=None, rows=None):
    return ask(model, None, method, parameters, partition, None, "shared", background, False, False, "margin", "cpu", rows)


def test_a_question_is_small(example):
    """However large the trees are."""
    model = load_ensemble(example.model)
    question, _ = put(model)
    assert question.model.features == model.features
    assert question.n_trees == model.ensemble.root.size
    assert question.model.ensemble.feature.size == 0
    assert len(pickle.dumps(question)) < len(pickle.dumps(model)) / 3


def test_players_are_called_as_the_columns(example):
    """Groups by their names, features by those of the rows."""
    question, _ = put(load_ensemble(example.model), {"when": ["month", 1]})
    names = question.name_players(read_header(example.frame))
    assert names.players == ("distance", "when", "carrier")
    assert names.groups == (("distance", ("distance",)), ("when", ("delay", "month")), ("carrier", ("carrier",)))
    assert names.features == tuple(FEATURES)
    assert question.name_players(None) == names


def test_a_background_is_counted_to_its_last_row(monkeypatch):
    """The empty coalition is worth what the model says of its rows on average, however many are counted at a time."""
    model = load_ensemble(UNNAMED)
    for n_rows in (1, 64, 299, 300):
        expected = UNNAMED.predict(DRAWN[:n_rows]).mean()
        for at_a_time in (64, 300):
            monkeypatch.setattr(preparation, "SLICE_ROWS", at_a_time)
            assert_allclose(put(model, background=DRAWN[:n_rows])[1].base, expected, rtol=1e-12)


@pytest.mark.parametrize("at_a_time", [64, 300])
@pytest.mark.slow
def test_a_background_of_unknown_categories_is_refused(example, monkeypatch, at_a_time):
    """As rows are: one in a hundred is known at the most, of a hundred values that are there. What is allowed of rows is allowed of it."""
    monkeypatch.setattr(preparation, "SLICE_ROWS", at_a_time)
    rows = example.frame[FEATURES][:300].reset_index(drop=True).assign(carrier="UA")
    for n_unknown, n_missing in ((300, 0), (297, 0), (295, 5), (200, 100)):
        carrier = np.where(np.arange(300) < n_unknown, "ua", "UA").astype(object)
        carrier[300 - n_missing :] = None
        written = rows.assign(carrier=carrier)
        for method, parameters in (("shapley", {}), ("gap", {}), ("ranker", {"rate": "auto"})):
            with pytest.raises(SchemaMismatch) as refusal:
                attribute(example.model, rows[:5], method, parameters=parameters, background=written)
            there = f"{n_unknown} of {300 - n_missing} values are no category of the model"
            says = "expected 'AA', 'B6', 'DL' and 1 more, got 'ua'; allow_unseen takes them as they are"
            assert str(refusal.value) == f"rows of the background: column 'carrier': {there}, {says}"
        assert attribute(example.model, rows[:5], background=written, allow_unseen=True).base.shape == (1,)
    for some in (rows.assign(carrier=np.where(np.arange(300) < 296, "ua", "UA")), rows[:99].assign(carrier="ua")):
        attribute(example.model, rows[:5], background=some)


@pytest.mark.filterwarnings("ignore:.*features by position:UserWarning")
@pytest.mark.filterwarnings("ignore:.*features by position")
def test_a_model_without_names_keeps_to_the_columns_of_its_background():
    """In their order, since their places are all that it knows; without a background any names will do."""
    model = load_ensemble(UNNAMED)
    free, bound = put(model)[0], put(model, background=FRAME)[0]
    other = read_header(FRAME[list("dcba")])
    assert free.name_players(other).features == tuple("dcba")
    assert bound.name_players(read_header(FRAME)).features == tuple("abcd")
    with pytest.raises(SchemaMismatch, match=r"^rows: columns are d, c, b, a, those of the background a, b, c, d: the model has no names"):
        bound.name_players(other)


@pytest.mark.parametrize("n_rows", [1, 5])
def test_rows_choose_what_is_left_open(n_rows):
    """The largest rate with which no step lowers the mean objective of the first rows, of which the very first one falls soonest."""
    model, steps = as_model(full_tree(np.random.default_rng(35).normal(size=8), [0, 1, 2])), {"steps": 6, "optimizer": "ascent"}
    rows = np.array([[1.0, 0.0, 0.0]] + [[0.0, 0.0, 0.0]] * (n_rows - 1))
    rate = put(model, method="ranker", parameters=steps | {"rate": "auto"}, rows=rows)[0].parameters["rate"]

    def rises(tried):
        return (np.diff(attribute(model, rows, "ranker", parameters=steps | {"rate": tried}).path.mean(axis=0)) >= -1e-9).all()

    larger = [tried for tried in candidate_rates(float(np.ptp(model.ensemble.value)), False) if tried > rate]
    assert rises(rate)
    assert larger
    assert not any(map(rises, larger))
