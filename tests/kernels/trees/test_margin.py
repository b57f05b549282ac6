"""Margins are those of a descent over floats, whichever way they are found; and so is everything that is looked up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernels.methods import METHODS
from kernels.prepare import prepare
from kernels.trees import lookup, margin
from tests import naive
from tests.kernels.attributing import ATOL, attributed, explain
from tests.strategies import batches, forests
from tests.trees import symmetric

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


@given(data=st.data(), ensemble=forests(max_trees=5, max_depth=4, max_features=8))
def test_looking_up_gives_what_walking_gives(data, ensemble):
    """A table's rows are the kernel's own, to rounding: trees are added in another order."""
    rows = data.draw(batches(ensemble))
    found = []
    for most in (lookup.MAX_COMPARISONS, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lookup, "MAX_COMPARISONS", most)
            patch.setattr(lookup, "ENTRIES_PER_NODE", 10**6)
            found.append(explain("banzhaf", ensemble, rows, p=0.3)[0])
    assert_allclose(found[0], found[1], rtol=0, atol=ATOL)


@pytest.mark.parametrize("features", [(0, 1, 2, 3, 4, 5), (2, 0, 2, 1, 2, 0), (0, 0, 0, 0, 0, 0, 0, 0)])
def test_symmetric_trees_are_looked_up(features):
    """A level is one comparison, so depth 6 has 64 codes and not 63 splits; values are those of the definition."""
    rng = np.random.default_rng(len(set(features)))
    ensemble = symmetric(rng, features, 6)
    rows = rng.standard_normal((3, 6))
    prepared = prepare(ensemble, METHODS["shapley"], {})
    assert prepared.method.looked_up.first.size == prepared.margin.looked_up.first.size == 1
    assert len(prepared.method.looked_up.marks) == len(features)
    phi, _, _ = explain("shapley", ensemble, rows)
    assert_allclose(phi, [naive.semivalue(ensemble, row, naive.shapley_weight) for row in rows], rtol=0, atol=ATOL)
