"""A method written as text: its name, and its parameters in their order."""

import pytest

from leafledger.kernels.method.method import read_method
from leafledger.kernels.methods import METHODS


def test_values_follow_the_name_in_the_order_of_parameters():
    """What is left out has its default."""
    assert read_method("beta:4", METHODS) == (METHODS["beta"], {"alpha": 4.0, "beta": 1.0})
    assert read_method("beta:4:2", METHODS)[1] == {"alpha": 4.0, "beta": 2.0}
    assert read_method("ranker:3:0.5:ascent", METHODS)[1] == {"steps": 3, "rate": 0.5, "optimizer": "ascent"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lime", "expected one of shapley, banzhaf"),
        ("shapley:1", "expected at most 0 parameters: shapley"),
        ("beta:1:2:3", "expected at most 2 parameters: beta:alpha:beta"),
        ("banzhaf:2", "expected a number between 0 and 1 for 'p'"),
        ("banzhaf:many", "expected a number for 'p'"),
    ],
)
def test_what_it_does_not_take_is_refused(text, expected):
    """With what was expected."""
    with pytest.raises(ValueError, match=expected):
        read_method(text, METHODS)
