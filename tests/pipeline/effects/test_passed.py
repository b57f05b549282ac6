"""The pass over rows: what it would take too long for, and how far curves reach."""

import numpy as np
import pytest

import leafledger
from leafledger.pipeline.effects import passed
from leafledger.pipeline.errors import UsageError
from tests.pipeline.effects.trained import make_rows, train, train_classes


def test_a_surface_of_too_many_states_is_refused(monkeypatch):
    """Of predictions, which every row has in every state; margins take none of them."""
    rows = make_rows(300)
    model = train_classes("binary", rows)
    monkeypatch.setattr(passed, "MOST_STATES", 3)
    with pytest.raises(UsageError, match=r"'x' and 'y' have [0-9]+ states together, of which every row has a prediction; expected at most 3"):
        leafledger.partial_dependence(model, rows, pairs=[("x", "y")], space="probability")
    assert leafledger.partial_dependence(model, rows, pairs=[("x", "y")]).pairs


@pytest.mark.parametrize("space", ["margin", "response"])
def test_curves_stay_within_their_reach(space):
    """The extreme quantiles of bands do; a flat feature reaches nowhere."""
    rows = make_rows(300).assign(w=0.0)
    model, _ = train("lightgbm", rows) if space == "margin" else (train_classes("poisson", rows), None)
    found = leafledger.feature_effects(model, rows, space=space)
    names = [axis.name for axis in found.partial_dependence.axes]
    for name in names:
        frame, reach = found.bands(name, [0.0, 1.0]), found.reach[names.index(name)][0]
        assert np.abs(frame[["value", "at_least", "at_most"]]).max(axis=None) <= reach * (1 + 1e-12)
    assert found.reach[names.index("w")][0] == 0.0
    assert found.reach[names.index("x")][0] > 0.0
