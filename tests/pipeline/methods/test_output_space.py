"""Which space there is for which model and method."""

from dataclasses import replace

import numpy as np
import pytest

from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.links import Link
from leafledger.pipeline.arguments.choices import SPACES
from leafledger.pipeline.errors import UnsupportedModel, UsageError
from leafledger.pipeline.methods.output_space import TOTALS, choose_link, find_base
from leafledger.pipeline.models.objectives import EXP, SIGMOID, SOFTMAX, Margin, Objective
from tests.pipeline.running import as_model
from tests.trees import grown

MODEL = as_model(grown(np.random.default_rng(0), 2, 2, 3))
SHAPLEY = METHODS["shapley"]
OWEN = {parameter.name: parameter.default for parameter in METHODS["owen"].parameters}


def of(margin, link, **changes):
    return replace(MODEL, objective=Objective("some", margin, link), **changes)


def test_margins_need_no_link():
    """Whatever the model, the method, or what else is asked for."""
    for model in (MODEL, of(Margin.OTHER, None)):
        assert choose_link("margin", model, METHODS["banzhaf"], {"p": 0.5}, True) is None
    assert TOTALS == {"margin": "margin", "probability": "prediction", "response": "prediction"}


def test_the_link_is_the_objective_s():
    """Probabilities of classifiers alone; a response of all whose link is known."""
    for link in (SIGMOID, SOFTMAX, Link("identity")):
        for margin in (Margin.CLASS, Margin.CLASSES):
            assert [choose_link(space, of(margin, link, outputs=("a", "b")), SHAPLEY, {}, False) for space in SPACES] == [None, link, link]
    assert choose_link("response", of(Margin.OTHER, EXP), SHAPLEY, {}, False) == EXP
    assert choose_link("response", MODEL, METHODS["owen"], OWEN, False) == Link("identity")


@pytest.mark.parametrize(
    ("space", "model", "method", "interactions", "error", "says"),
    [
        ("probability", MODEL, "shapley", False, UnsupportedModel, "is of classifiers, got objective ''; its predictions are space 'response'"),
        ("probability", of(Margin.OTHER, EXP), "shapley", False, UnsupportedModel, "is of classifiers, got objective 'some'"),
        ("response", of(Margin.OTHER, None), "shapley", False, UnsupportedModel, "predictions of objective 'some' are no known function"),
        ("response", MODEL, "banzhaf", False, UsageError, "what method 'banzhaf' finds need not add up; expected one of shapley"),
        ("response", MODEL, "r2", False, UsageError, "what method 'r2' finds need not add up"),
        ("response", MODEL, "ranker", False, UsageError, "what method 'ranker' finds need not add up"),
        ("response", MODEL, "shapley", True, UsageError, "has no interactions, which are of margins"),
        ("probability", of(Margin.CLASSES, SOFTMAX, only_output=1), "shapley", False, UsageError, "depends on the margins of all classes; leave out"),
        ("response", of(Margin.CLASSES, SOFTMAX), "shapley", False, UsageError, "depends on the margins of all classes; leave out"),
    ],
)
def test_what_has_no_meaning_is_refused(space, model, method, interactions, error, says):
    """In one line, with what there is instead."""
    chosen = METHODS[method]
    given = {parameter.name: parameter.default for parameter in chosen.parameters}
    with pytest.raises(error, match=f"^space '{space}'.*{says}"):
        choose_link(space, model, chosen, given, interactions)


def test_base_values_are_predictions():
    """With every feature absent."""
    prepared = type("Prepared", (), {"base": np.array([0.0, np.log(3)])})
    assert find_base(None, prepared) is prepared.base
    np.testing.assert_allclose(find_base(SIGMOID, prepared), [0.5, 0.75])
    np.testing.assert_allclose(find_base(SOFTMAX, prepared), [0.25, 0.75])
