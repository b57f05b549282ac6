"""Thresholds of predictions as margins, with room for what libraries round."""

import math
from dataclasses import replace

import numpy as np
import pytest

from leafledger.kernels.slices.links import Link
from leafledger.kernels.trees.forest import make_forest
from leafledger.pipeline.changes.threshold import find_sides
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.models.model import Feature, Model
from leafledger.pipeline.models.objectives import Margin, Objective
from tests.trees import stumps


def model_of(objective, single_sums=False):
    """Margins of -3, -1, 1 and 3."""
    ensemble = stumps([(0, 0.5, -1.0, 1.0), (0, 1.5, -2.0, 2.0)], 1)
    return Model(ensemble, (Feature("x"),), ("0",), "some", "", objective, single_sums=single_sums)


def sides(model, threshold, space):
    return find_sides(model, make_forest(model.ensemble)[1], threshold, space)


@pytest.mark.parametrize(
    ("link", "space", "threshold", "margin"),
    [
        (Link("identity"), "margin", 0.7, 0.7),
        (Link("identity"), "response", 0.7, 0.7),
        (Link("sigmoid"), "probability", 0.7, math.log(0.7 / 0.3)),
        (Link("sigmoid", 2.0), "probability", 0.7, math.log(0.7 / 0.3) / 2),
        (Link("exp"), "response", 2.0, math.log(2.0)),
    ],
)
def test_a_prediction_is_turned_into_its_margin(link, space, threshold, margin):
    """The inverse of every link; in single precision there is room on both sides, in double precision ties are above."""
    objective = Objective("", Margin.CLASS if space == "probability" else Margin.LABEL, link)
    at, below = sides(model_of(objective), threshold, space)
    assert at == below
    assert 0 < margin - at < 1e-11
    at, below = sides(model_of(objective, single_sums=True), threshold, space)
    assert 1e-6 < at - margin < 2e-5
    assert 1e-6 < margin - below < 2e-5


@pytest.mark.parametrize(
    ("link", "space", "threshold", "message"),
    [
        (Link("exp"), "response", 0.0, "threshold is 0, expected one above 0 in space 'response'"),
        (Link("sigmoid"), "response", -0.5, "threshold is -0.5, expected one between 0 and 1 in space 'response'"),
        (Link("identity"), "margin", 3.5, "threshold is 3.5, but all that the model can say is below it: from -3 to 3"),
        (Link("identity"), "margin", -3.0, "threshold is -3, but all that the model can say is above it: from -3 to 3"),
        (Link("exp"), "response", 21.0, "threshold is 21, but all that the model can say is below it: from 0.0497871 to 20.0855"),
    ],
)
def test_what_no_row_crosses_is_refused(link, space, threshold, message):
    """With what the model can say, in the threshold's units."""
    with pytest.raises(UsageError) as refused:
        sides(model_of(Objective("", Margin.LABEL, link)), threshold, space)
    assert str(refused.value) == message


def test_the_largest_prediction_is_a_threshold():
    """Some row reaches it; in single precision nobody can say."""
    model = model_of(Objective())
    at, _ = sides(model, 3.0, "margin")
    assert np.isclose(at, 3.0)
    with pytest.raises(UsageError, match="is below it"):
        sides(replace(model, single_sums=True), 3.0, "margin")
