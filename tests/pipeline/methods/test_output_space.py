"""Which space there is for which model and method."""

from dataclasses import replace

import numpy as np
import pytest

from leafledger.kernels.methods import METHODS
from leafledger.kernels.quotients.quantities import Quantity
from leafledger.kernels.slices.buffers import NOT_WEIGHTED
from leafledger.kernels.slices.links import Link
from leafledger.pipeline.arguments.choices import SPACES
from leafledger.pipeline.errors import UnsupportedModel, UsageError
from leafledger.pipeline.methods.output_space import TOTALS, choose_space, find_base
from leafledger.pipeline.models.objectives import EXP, SIGMOID, SOFTMAX, Margin, Objective
from tests.pipeline.running import as_model
from tests.trees import grown

MODEL = as_model(grown(np.random.default_rng(0), 2, 2, 3))
SHAPLEY = METHODS["shapley"]
ROWS = np.zeros((2, 3))  # of a background
OWEN = {parameter.name: parameter.default for parameter in METHODS["owen"].parameters}


def of(margin, link, name="some", **changes):
    return replace(MODEL, objective=Objective(name, margin, link), **changes)


def choose_link(*asked, background=None):
    """The link, where there is no quantity."""
    link, quantity = choose_space(*asked, background)
    assert quantity is None
    return link


def test_margins_need_no_link():
    """Whatever the model, the method, or what else is asked for."""
    for model in (MODEL, of(Margin.OTHER, None)):
        assert choose_link("margin", model, METHODS["banzhaf"], {"p": 0.5}, True) is None
        assert choose_space("margin", model, SHAPLEY, {}, True, ROWS) == (None, None)
    assert TOTALS == {"margin": "margin", "probability": "prediction", "response": "prediction", "loss": "loss"}


def test_the_link_is_the_objective_s():
    """Probabilities of classifiers alone; a response of all whose link is known."""
    for link in (SIGMOID, SOFTMAX, Link("identity")):
        for margin in (Margin.CLASS, Margin.CLASSES):
            assert [choose_link(space, of(margin, link, outputs=("a", "b")), SHAPLEY, {}, False) for space in SPACES[:3]] == [None, link, link]
    assert choose_link("response", of(Margin.OTHER, EXP), SHAPLEY, {}, False) == EXP
    assert choose_link("response", MODEL, METHODS["owen"], OWEN, False) == Link("identity")
    assert choose_link("response", MODEL, METHODS["shapley"], {}, True) == Link("identity")


@pytest.mark.parametrize(
    ("space", "model", "method", "interactions", "error", "says"),
    [
        ("probability", MODEL, "shapley", False, UnsupportedModel, "is of classifiers, got objective ''; its predictions are space 'response'"),
        ("probability", of(Margin.OTHER, EXP), "shapley", False, UnsupportedModel, "is of classifiers, got objective 'some'"),
        ("response", of(Margin.OTHER, None), "shapley", False, UnsupportedModel, "predictions of objective 'some' are no known function"),
        ("response", MODEL, "banzhaf", False, UsageError, "what method 'banzhaf' finds need not add up; expected one of shapley"),
        ("response", MODEL, "r2", False, UsageError, "what method 'r2' finds need not add up"),
        ("response", MODEL, "ranker", False, UsageError, "what method 'ranker' finds need not add up"),
        (
            "response",
            of(Margin.OTHER, EXP),
            "shapley",
            True,
            UsageError,
            "expected rows of a background and a prediction that is a function of one margin, got link 'exp' without such rows",
        ),
        ("response", of(Margin.CLASSES, SOFTMAX, outputs=("a", "b")), "shapley", True, UsageError, "got several classes without such rows"),
        (
            "probability",
            of(Margin.CLASSES, SOFTMAX, only_output=1),
            "shapley",
            False,
            UsageError,
            "depends on the margins of all classes; expected all outputs",
        ),
        ("response", of(Margin.CLASSES, SOFTMAX), "shapley", False, UsageError, "depends on the margins of all classes; expected all outputs"),
        (
            "loss",
            of(Margin.CLASSES, SOFTMAX, "multi:softprob"),
            "shapley",
            False,
            UnsupportedModel,
            "objective 'multi:softprob' is no known",
        ),
        (
            "loss",
            of(Margin.LABEL, None, "reg:absoluteerror"),
            "shapley",
            False,
            UnsupportedModel,
            "objective 'reg:absoluteerror' is no known",
        ),
        ("loss", of(Margin.CLASSES, SOFTMAX, "log_loss"), "shapley", False, UnsupportedModel, "the loss of objective 'log_loss' is no known"),
        (
            "loss",
            of(Margin.CLASS, SIGMOID, "Logloss", outputs=("a", "b")),
            "shapley",
            False,
            UnsupportedModel,
            "models of one output, got 2: a, b",
        ),
        ("loss", of(Margin.CLASS, SIGMOID, "binary"), "shapley", False, UsageError, "give a background of rows"),
        ("loss", of(Margin.CLASS, SIGMOID, "binary"), "banzhaf", False, UsageError, "shares out losses, but what method 'banzhaf' finds"),
        ("loss", of(Margin.CLASS, SIGMOID, "binary"), "shapley", True, UsageError, "give a background of rows"),
    ],
)
def test_what_has_no_meaning_is_refused(space, model, method, interactions, error, says):
    """In one line, with what there is instead."""
    chosen = METHODS[method]
    given = {parameter.name: parameter.default for parameter in chosen.parameters}
    with pytest.raises(error, match=f"^space '{space}'.*{says}"):
        choose_link(space, model, chosen, given, interactions)


def test_with_rows_of_a_background_predictions_go_row_by_row():
    """Where they are a function of one margin; along a line without rows, of a softmax, and of what is a line itself."""
    for link in (SIGMOID, EXP, Link("sigmoid", 0.5)):
        model = of(Margin.CLASS, link)
        assert choose_space("response", model, SHAPLEY, {}, False, ROWS) == (None, Quantity(link.name, link.scale))
        assert choose_space("response", model, METHODS["owen"], OWEN, False, "rows.parquet") == (None, Quantity(link.name, link.scale))
        assert [choose_link("response", model, SHAPLEY, {}, False, background=each) for each in (None, "model")] == [link, link]
    for link in (SOFTMAX, Link("identity")):
        assert choose_link("probability", of(Margin.CLASSES, link, outputs=("a", "b")), SHAPLEY, {}, False, background=ROWS) == link


@pytest.mark.parametrize(
    ("name", "link", "loss"),
    [
        ("reg:squarederror", Link("identity"), Quantity("squared")),
        ("regression", Link("identity"), Quantity("squared")),
        ("RMSE", Link("identity"), Quantity("squared")),
        ("squared_error", Link("identity"), Quantity("squared")),
        ("binary:logistic", SIGMOID, Quantity("log")),
        ("binary", Link("sigmoid", 0.5), Quantity("log", 0.5)),
        ("Logloss", SIGMOID, Quantity("log")),
        ("log_loss", SIGMOID, Quantity("log")),
        ("count:poisson", EXP, Quantity("poisson")),
        ("reg:gamma", EXP, Quantity("gamma")),
    ],
)
def test_a_loss_is_the_objective_s(name, link, loss):
    """By its name in each library, of the margin as the link scales it."""
    assert choose_space("loss", of(Margin.OTHER, link, name), SHAPLEY, {}, False, ROWS) == (None, loss)
    raw = replace(MODEL, objective=Objective("binary:logitraw", Margin.CLASS, Link("identity"), SIGMOID))
    assert choose_space("loss", raw, SHAPLEY, {}, False, ROWS) == (None, Quantity("log"))


def test_base_values_are_predictions():
    """With every feature absent."""
    prepared = type("Prepared", (), {"base": np.array([0.0, np.log(3)]), "weighted": NOT_WEIGHTED})
    assert find_base(None, prepared) is prepared.base
    np.testing.assert_allclose(find_base(SIGMOID, prepared), [0.5, 0.75])
    np.testing.assert_allclose(find_base(SOFTMAX, prepared), [0.25, 0.75])
