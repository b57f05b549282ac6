"""What rankings are compared by: which labels a model's margin is a prediction of, and which measures mean nothing."""

from dataclasses import asdict, replace
from inspect import signature

import pytest

import leafledger
from leafledger.pipeline.command.commands import comparing
from leafledger.pipeline.comparisons.measures import Measures, check_label, check_measures
from leafledger.pipeline.errors import UnsupportedModel, UsageError
from leafledger.pipeline.models.objectives import Margin, Objective


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"top": ()}, "top is empty"),
        ({"top": (1, 1)}, "top is 1, 1, expected different numbers"),
        ({"top": (0,)}, "top is 0"),
        ({"top": (3, 0)}, "top is 3, 0"),
        ({"scales": (0.5, -1.0)}, "scales are 0.5, -1.0, expected different numbers above 0"),
        ({"scales": (-1.0,)}, "scales are -1.0, expected different numbers above 0"),
        ({"scales": (float("inf"),)}, "scales are inf"),
        ({"scales": (0.5, 0.5000000001)}, "scales are 0.5"),
        ({"noise": "pink"}, "noise is 'pink', expected one of normal, uniform, laplace"),
    ],
)
def test_measures_that_mean_nothing_are_refused(given, says):
    """In one line; those by default are taken."""
    check_measures(Measures())
    with pytest.raises(UsageError, match=says):
        check_measures(Measures(**given))


def test_the_command_and_python_measure_the_same_by_default():
    """Whoever asks for nothing in particular gets the same numbers from both."""
    told = {name: given.default for name, given in signature(comparing.compare).parameters.items()}
    told |= {"top": tuple(map(int, told["top"].split(","))), "scales": tuple(map(float, told["scales"].split(",")))}
    python = {name: given.default for name, given in signature(leafledger.compare).parameters.items()}
    for name, value in asdict(Measures()).items():
        assert value == python[name]
        assert value == told.get(name, 0)  # the command has no seed


def test_the_model_itself_comes_before_sizes():
    """Where there are labels; without none is measured."""
    assert Measures(top=(2, 5), label="y").removed == (0, 2, 5)
    assert Measures(top=(2, 5)).removed == ()


def test_labels_are_those_of_a_regression(example):
    """Whose margin is a prediction of them, of one output."""
    model = leafledger.load_ensemble(example.model)
    check_label(None, replace(model, objective=Objective("binary", Margin.CLASS)))
    check_label("y", model)
    for margin in (Margin.CLASS, Margin.OTHER):
        with pytest.raises(UnsupportedModel, match="label 'y' is compared with the margin, expected a regression of it, got objective 'x'"):
            check_label("y", replace(model, objective=Objective("x", margin)))
    with pytest.raises(UnsupportedModel, match="with one output, got 2 outputs"):
        check_label("y", replace(model, outputs=("a", "b")))
