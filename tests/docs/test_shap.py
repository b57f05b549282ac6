"""Every line of the table of "Coming from shap" is true: what is told to be the same is the same, and what is not has none."""

import inspect
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
import shap
import xgboost

import leafledger
from tests.docs.places import ROOT

RNG = np.random.default_rng(0)
DATA = pd.DataFrame(RNG.normal(size=(400, 4)), columns=["age", "bmi", "dose", "site"])
ROWS, BACKGROUND = DATA[:30], DATA[100:160]
CLASS = (DATA["age"] * DATA["bmi"] + DATA["dose"] > 0).astype(int)
SINGLE = 2e-5  # shap adds up in single precision


# Made when a test asks for them: every process of pytest's imports this.
@cache
def model():
    return xgboost.train({"objective": "binary:logistic", "max_depth": 3}, xgboost.DMatrix(DATA, CLASS), 20)


@cache
def kinds():
    return xgboost.train({"objective": "multi:softprob", "num_class": 3, "max_depth": 3}, xgboost.DMatrix(DATA, np.digitize(DATA["age"], [-1, 1])), 5)


@cache
def counts():
    return xgboost.train({"objective": "count:poisson", "max_depth": 3}, xgboost.DMatrix(DATA, RNG.poisson(np.exp(DATA["age"] / 2))), 10)


@cache
def attributed():
    return leafledger.attribute(model(), ROWS)


@cache
def explainer():
    return shap.TreeExplainer(model())


def near(ours, theirs):
    np.testing.assert_allclose(ours, theirs, atol=SINGLE, rtol=SINGLE)


def prepared():
    near(leafledger.prepare(model())(ROWS).phi[:, 0], explainer().shap_values(ROWS))


def values():
    near(attributed().phi[:, 0], explainer().shap_values(ROWS))
    near(leafledger.attribute(kinds(), ROWS).phi.transpose(0, 2, 1), shap.TreeExplainer(kinds()).shap_values(ROWS))


def base():
    near(attributed().base[0], explainer().expected_value)
    losses = leafledger.attribute(model(), ROWS, background=BACKGROUND, space="loss", label=CLASS[:30])
    assert losses.base.shape == (30, 1)


def explanation():
    theirs = explainer()(ROWS)
    near(attributed().phi[:, 0], theirs.values)
    near(np.broadcast_to(attributed().base, 30), theirs.base_values)
    assert np.array_equal(np.column_stack([attributed().values(name) for name in attributed().names]), theirs.data)
    assert list(attributed().names) == list(theirs.feature_names)


def one_feature():
    near(attributed()["age"], explainer()(ROWS)[:, "age"].values)


def background():
    near(leafledger.prepare(model(), background=BACKGROUND)(ROWS).phi[:, 0], shap.TreeExplainer(model(), BACKGROUND).shap_values(ROWS))
    assert len(shap.maskers.Independent(DATA[:150]).data) == 100


def path_dependent():
    near(attributed().phi[:, 0], shap.TreeExplainer(model(), feature_perturbation="tree_path_dependent").shap_values(ROWS))


def interventional():
    theirs = shap.TreeExplainer(model(), BACKGROUND, feature_perturbation="interventional").shap_values(ROWS)
    near(leafledger.attribute(model(), ROWS, background=BACKGROUND).phi[:, 0], theirs)


def raw():
    near(leafledger.attribute(model(), ROWS, space="margin").phi[:, 0], shap.TreeExplainer(model(), model_output="raw").shap_values(ROWS))
    assert inspect.signature(leafledger.attribute).parameters["space"].default == "margin"
    assert inspect.signature(shap.TreeExplainer).parameters["model_output"].default == "raw"


def probability():
    theirs = shap.TreeExplainer(model(), BACKGROUND, model_output="probability")
    ours = leafledger.attribute(model(), ROWS, background=BACKGROUND, space="probability")
    near(ours.phi[:, 0], theirs.shap_values(ROWS))
    near(ours.base[0], theirs.expected_value)
    along = leafledger.attribute(model(), ROWS, space="probability")
    assert np.abs(along.phi - ours.phi).max() > 0.01
    with pytest.raises(ValueError, match='Only model_output="raw" is supported'):
        shap.TreeExplainer(model(), model_output="probability")


def losses():
    ours = leafledger.attribute(model(), ROWS, background=BACKGROUND, space="loss", label=CLASS[:30])
    near(ours.phi[:, 0], shap.TreeExplainer(model(), BACKGROUND, model_output="log_loss").shap_values(ROWS, CLASS[:30].to_numpy()))
    assert leafledger.attribute(counts(), ROWS, background=BACKGROUND, space="loss", label=np.ones(30)).space == "loss"


def response():
    ours = leafledger.attribute(counts(), ROWS, background=BACKGROUND, space="response")
    near(ours.phi.sum(axis=2)[:, 0] + ours.base[0], counts().predict(xgboost.DMatrix(ROWS)))


def interactions():
    theirs = explainer().shap_interaction_values(ROWS)
    ours = leafledger.attribute(model(), ROWS, interactions="all")
    near(ours["age", "bmi"] / 2, theirs[:, 0, 1])
    near(ours.interaction_matrix()[:, 0], theirs)


def none():
    """Arguments that there are not."""
    for function in (leafledger.attribute, leafledger.prepare):
        assert not {"check_additivity", "approximate"} & {*inspect.signature(function).parameters}


def plots():
    found = attributed().to_shap()
    assert isinstance(found, shap.Explanation)
    near(found.values, explainer()(ROWS).values)


def waterfall():
    assert str(attributed().waterfall(7)).startswith("row 7\nbase value")


CHECKS = {
    "`TreeExplainer(model)`": prepared,
    "`explainer.shap_values(rows)`": values,
    "`explainer.expected_value`": base,
    "`explanation.values`, `.base_values`, `.data`, `.feature_names`": explanation,
    '`explanation[:, "age"].values`': one_feature,
    "`TreeExplainer(model, data)`": background,
    '`feature_perturbation="tree_path_dependent"`': path_dependent,
    '`feature_perturbation="interventional"`': interventional,
    '`model_output="raw"`': raw,
    '`model_output="probability"`': probability,
    '`model_output="log_loss"`, `shap_values(rows, y)`': losses,
    '`model_output="predict"`, of a regression with a link': response,
    "`shap_interaction_values(rows)[:, i, j]`": interactions,
    "`check_additivity=True`": none,
    "`approximate=True`": none,
    "`shap.plots.…(explanation)`": plots,
    "`shap.plots.waterfall` in a terminal": waterfall,
}


@pytest.mark.parametrize("line", CHECKS)
def test_a_line_of_the_table_is_true(line):
    CHECKS[line]()


def test_every_line_of_the_table_is_tested():
    """A new line needs a check."""
    table = (ROOT / "docs" / "shap.md").read_text().partition("|---|---|---|\n")[2].partition("\n\n")[0]
    assert [re.match(r"\| (.*?) \|", line)[1] for line in table.splitlines()] == list(CHECKS)
