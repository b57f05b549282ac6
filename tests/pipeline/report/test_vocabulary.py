"""Numbers are written as a person says them, with their unit."""

import pytest

from leafledger.pipeline.finished.names import Names
from leafledger.pipeline.report.vocabulary import Vocabulary


@pytest.mark.parametrize(("space", "unit", "written"), [("margin", "min", "min"), ("margin", "", "prediction"), ("loss", "min", "loss")])
def test_figures_have_the_unit_or_what_is_explained(space, unit, written):
    """Of losses always that, which figures know by it."""
    assert Vocabulary(Names(), space, "prediction", unit).figure_unit == written


def test_numbers_have_three_digits_and_the_unit():
    assert Vocabulary(Names(), "margin", "prediction", "min").write(25.6219, True) == "+25.6 min"
    assert Vocabulary(Names(), "margin", "prediction").write(-0.5) == "−0.5"
    assert Vocabulary(Names(), "margin", "prediction", "min").write(None) == "–"
