"""Margins are those of a descent over floats, whichever way they are found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.jit.decorator import count_bytes
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.trees import lookup, margin
from leafledger.kernels.trees.forest import make_forest
from leafledger.kernels.trees.margin import margin_bytes, prepare_margin
from tests import naive
from tests.kernels.attributing import ATOL, attributed
from tests.strategies import batches, forests
from tests.trees import join, symmetric

WAYS = {
    "looked up": {"lookup.ENTRIES_PER_NODE": 10**6},
    "selected": {"lookup.MAX_COMPARISONS": 0, "margin.SPLITS_PER_LEVEL": 10**6},
    "descended": {"lookup.MAX_COMPARISONS": 0, "margin.SPLITS_PER_LEVEL": 0},
}


@pytest.mark.parametrize("way", WAYS)
@given(data=st.data(), ensemble=forests(max_trees=5, max_depth=3))
def test_margins_are_those_of_a_descent(data, ensemble, way):
    """Every way adds the same leaves, in an order of its own."""
    rows = data.draw(batches(ensemble))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WAYS[way].items():
            patch.setattr({"lookup": lookup, "margin": margin}[name.split(".")[0]], name.split(".")[1], value)
        prepared = prepare(ensemble, METHODS["shapley"], {})
    splits = sum(ensemble.feature[ensemble.root] >= 0)
    found = {
        "looked up": prepared.margin.looked_up.first.size,
        "selected": prepared.margin.selected.first.size,
        "descended": prepared.margin.descended.root.size - (ensemble.root.size - splits),
    }
    assert found == {name: splits if name == way else 0 for name in WAYS}
    assert_allclose(attributed("shapley", prepared, rows).margin[:, : len(rows)].T, naive.margins(ensemble, rows), rtol=0, atol=ATOL)


@pytest.mark.parametrize("way", WAYS)
def test_tables_take_no_more_room_than_was_projected(way, monkeypatch):
    """Whichever way margins are found; the projection is not more than some times as large."""
    for name, value in WAYS[way].items():
        monkeypatch.setattr({"lookup": lookup, "margin": margin}[name.split(".")[0]], name.split(".")[1], value)
    rng = np.random.default_rng(0)
    ensemble = join([symmetric(rng, rng.integers(0, 6, 7), 6) for _ in range(20)])
    forest = make_forest(ensemble)[1]
    found = count_bytes(prepare_margin(ensemble, forest.splits, forest.trace, forest.comparisons))
    assert found <= margin_bytes(ensemble, forest.trace, forest.comparisons) <= 8 * found
