"""Base scores become margins by the objective's link: XGBoost's own predictions, its own rounding, and each link's inverse."""

import json
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose

from leafledger.pipeline.models.xgboost.base_score import LINKS, RT_EPS
from tests import naive
from tests.pipeline.models.xgboost.training import ATOL, CLASS, ROWS, RTOL, SIGNAL, VERSION, assert_agrees, document, margins, parse_document, train

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
    extra: dict[str, Any] = {"num_class": 3} if objective.startswith("multi:") else {}
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


PREDICTED = {  # what each family of objectives makes of a margin, by its documentation
    "reg:squarederror": lambda margin: margin,
    "binary:logistic": lambda margin: 1 / (1 + np.exp(-margin)),
    "count:poisson": np.exp,
    "reg:expectileerror": lambda margin: np.cumsum([margin[0], *np.log1p(np.exp(margin[1:]))]),  # soft-plus of the steps
}


@pytest.mark.parametrize("objective", PREDICTED)
def test_a_link_undoes_what_the_objective_does_to_margins(objective):
    """A stored prediction becomes the margin of which the objective makes that prediction again."""
    stored = np.array([0.125, 0.25, 0.625], np.float32)
    margin = LINKS[objective](stored)
    assert margin.shape == stored.shape
    assert_allclose(PREDICTED[objective](margin), stored, rtol=2e-7, atol=2 * RT_EPS)  # a step of expectiles is at least so large
