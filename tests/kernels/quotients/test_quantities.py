"""Quantities: their terms add up to them, and each says which labels it has."""

import numpy as np
import pytest

from leafledger.kernels.quotients.curves import CURVES
from leafledger.kernels.quotients.quantities import KINDS, Quantity, decode

LABELS = {"log": (0.0, 0.25, 1.0), "poisson": (0.0, 1.0, 7.0), "gamma": (0.1, 1.0, 7.0), "squared": (-3.0, 0.0, 5.0)}
MARGINS = np.array([-3.0, -0.5, 0.0, 1.25, 4.0])
WRITTEN_OUT = {  # as textbooks have them
    "sigmoid": lambda m, y: 1 / (1 + np.exp(-m)),
    "exp": lambda m, y: np.exp(m),
    "squared": lambda m, y: (y - m) ** 2,
    "log": lambda m, y: -y * np.log(1 / (1 + np.exp(-m))) - (1 - y) * np.log(1 / (1 + np.exp(m))),
    "poisson": lambda m, y: 2 * ((y * np.log(y / np.exp(m)) if y else 0.0) - y + np.exp(m)),
    "gamma": lambda m, y: 2 * (np.log(np.exp(m) / y) + y / np.exp(m) - 1),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_a_quantity_is_the_function_of_its_name(name, scale):
    """Losses are the unit deviances, or the log loss; a scale is the margin's."""
    for label in LABELS.get(name, (0.0,)):
        found = Quantity(name, scale).value(MARGINS, np.array(label))
        assert found == pytest.approx(WRITTEN_OUT[name](scale * MARGINS, label), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_terms_have_the_differences_of_the_quantity(name, scale):
    """What they leave out depends on the label alone."""
    quantity = Quantity(name, scale)
    for label in LABELS.get(name, (0.0,)):
        held = np.array([label])
        of_terms = sum(term.factor(held) * CURVES[term.curve].value(term.scale * MARGINS) for term in quantity.terms)
        whole = quantity.value(MARGINS, held)
        assert of_terms - of_terms[0] == pytest.approx(whole - whole[0], rel=1e-12, abs=1e-12)


def test_labels_are_taken_where_the_loss_is_defined():
    """The smallest label of a gamma loss is none, that of a Poisson loss is one; nothing infinite is."""
    asked = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, np.inf, np.nan])
    taken = {name: Quantity(name).takes(asked).tolist() for name in ("squared", "log", "poisson", "gamma")}
    assert taken["squared"] == [True, True, True, True, True, False, False]
    assert taken["log"] == [False, True, True, True, False, False, False]
    assert taken["poisson"] == [False, True, True, True, True, False, False]
    assert taken["gamma"] == [False, False, True, True, True, False, False]
    assert [Quantity(name).said for name in ("squared", "log", "poisson", "gamma")] == [
        "",
        "a number from 0 to 1",
        "a number of at least 0",
        "a number above 0",
    ]


@pytest.mark.parametrize("name", KINDS)
def test_a_quantity_is_read_back_from_its_numbers(name):
    """Tables of workers have arrays alone."""
    quantity = Quantity(name, 1.5)
    assert decode(quantity.encode()) == quantity
    assert quantity.labelled == (name in LABELS)
    assert quantity.centred == quantity.polynomial == (name == "squared")
