"""Backgrounds in memory: cut into slices they say what they say whole."""

from numpy.testing import assert_allclose

import leafledger
from leafledger.pipeline.effects import rows_in_memory
from tests.pipeline.effects.trained import ATOL, make_rows, train


def test_many_slices_say_what_one_says(monkeypatch):
    """More of them than are held at once."""
    rows = make_rows(300)
    model, _ = train("lightgbm", rows)
    whole = leafledger.feature_effects(model, rows, pairs=[("x", "y")])
    monkeypatch.setattr(rows_in_memory, "SLICE_ROWS", 11)
    monkeypatch.setattr(rows_in_memory, "slice_rows", lambda tables: 13)
    cut = leafledger.feature_effects(model, rows, pairs=[("x", "y")])
    for name in (*rows.columns, ("x", "y")):
        for column in ("value", "standard_error"):
            assert_allclose(cut.margins.to_frame(name)[column], whole.margins.to_frame(name)[column], rtol=0, atol=ATOL)
    assert cut.bands("x").equals(whole.bands("x"))
    assert_allclose(cut.local_effects("x")["value"], whole.local_effects("x")["value"], rtol=0, atol=ATOL)
    assert_allclose(cut.interactions()["h"], whole.interactions()["h"], rtol=0, atol=ATOL)
