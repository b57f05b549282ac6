"""Tables of how rows are perturbed, what exact values cost, and rankings of groups made of those of units."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.prediction_gap.exact import Prefixes, measure_rankings
from leafledger.kernels.prediction_gap.greedy import rank_greedily
from leafledger.kernels.prediction_gap.leaf_regions import count_visits
from leafledger.kernels.prediction_gap.quasi_monte_carlo import haltons, sample_rows
from leafledger.kernels.prediction_gap.tables import affordable, gap_rows, greedy_rows, movable_units, place_units
from tests import naive
from tests.kernels.prediction_gap.gaps import NORMAL, binned, drawn, forest_and_rows, noisy
from tests.strategies import batches, forests, partitions
from tests.trees import one_tree


def test_a_budget_refuses_with_the_number():
    """Twelve stumps on four features: pairs of leaves of stumps on the same one."""
    ensemble, rows = forest_and_rows()
    tables, _, _ = noisy(ensemble, rows, 1.0)
    same = sum(int(a == b) for i, a in enumerate(ensemble.feature[::3]) for b in ensemble.feature[::3][:i])
    assert count_visits(tables.regions) == 4 * same
    assert affordable(tables, 4.0 * same)
    assert not affordable(tables, 4.0 * same - 1, approximate=True)
    assert not affordable(tables, 4.0 * same, 2, approximate=True)
    with pytest.raises(InvalidParameters, match="pairs of leaves per row, the budget is 1"):
        affordable(tables, 1.0)


def test_a_model_without_splits_has_no_gap():
    """One leaf: nothing is perturbed, and every feature comes in its own order."""
    ensemble = one_tree([-1], [0.0], [-1], [-1], [2.0], [1.0], 3)
    tables, values, bins = noisy(ensemble, np.zeros((2, 3)), 1.0)
    order, gaps = greedy_rows(tables, NORMAL, values, bins, 3)
    assert_array_equal(order, np.broadcast_to(np.arange(3), (2, 1, 3)))
    assert (gaps == 0).all()
    assert_array_equal(gap_rows(tables, NORMAL, values, bins, place_units(tables, order)), np.zeros((2, 1)))
    assert (sample_rows(tables, NORMAL, values, bins, place_units(tables, order), haltons(0))[0] == 0).all()
    assert naive.margin(ensemble, np.zeros(3)) == 2.0


@given(data=st.data(), ensemble=forests(max_features=5))
def test_rankings_are_prefixes_of_units_that_move(data, ensemble):
    """A unit comes with the prefix that it ends among those that can be perturbed; a prefix counts as often as the ranking has such a one."""
    rows = data.draw(batches(ensemble, 2))
    tables = noisy(ensemble, rows, 1.0)[0]
    n, outputs = ensemble.n_features, ensemble.base.size
    n_ranked = data.draw(st.integers(1, n))
    order = np.array([[data.draw(st.permutations(range(n)))[:n_ranked] for _ in range(outputs)] for _ in rows])
    found, moved = place_units(tables, order), tables.units[tables.regions.units.perturbed].tolist()
    for i, k in np.ndindex(len(rows), outputs):
        ranked = [g for g in order[i, k].tolist() if g in moved]
        assert found.place[i, k].tolist() == [ranked.index(g) + 1 if g in ranked else 0 for g in tables.units.tolist()]
        lengths = [sum(g in moved for g in order[i, k, :end]) for end in range(1, n_ranked + 1)]
        assert_allclose(found.weight[i, k], [lengths.count(length) / n_ranked for length in range(1, tables.units.size + 1)], rtol=0, atol=1e-15)


@given(data=st.data(), ensemble=forests(max_features=5))
def test_groups_know_the_units_that_can_be_perturbed(data, ensemble):
    """Of those in some split: what is drawn, and numbers by themselves, which get noise; other categories and groups stay."""
    rows, groups = data.draw(batches(ensemble, 1)), data.draw(partitions(ensemble))
    only = data.draw(st.lists(st.integers(0, int(groups.max()))))
    tables = drawn(ensemble, rows, rows, groups, only)[0]
    asked = set(groups[ensemble.feature[ensemble.feature >= 0]].tolist())
    for group, unit in enumerate(movable_units(tables).tolist()):
        mine = np.flatnonzero(groups == group)
        assert (unit >= 0) == (group in asked and (group in only or (mine.size == 1 and ensemble.n_categories[mine[0]] == 0)))
        assert unit < 0 or tables.units[unit] == group


@given(data=st.data(), ensemble=forests(max_features=4))
def test_atoms_of_units_lie_end_to_end(data, ensemble):
    """Every combination of bins with its share of the rows, of units that are drawn but for numbers by themselves, which have a distribution."""
    rows, seen, groups = data.draw(batches(ensemble, 1)), data.draw(batches(ensemble)), data.draw(partitions(ensemble))
    tables, bins = drawn(ensemble, rows, seen, groups)[0], binned(ensemble, seen, groups)[1]
    atoms = tables.atoms
    for u in range(tables.units.size):
        mine, some = bins[tables.unit_of == u].T.tolist(), slice(atoms.start[u], atoms.start[u + 1])
        if tables.regions.units.noised[u]:
            assert some.start == some.stop
            continue
        weight = np.diff(atoms.cumulative[some], prepend=0.0)
        for found, share in zip(atoms.bins[some].tolist(), weight, strict=True):
            width = len(mine[0])
            assert found[width:] == [0] * (len(found) - width)
            assert_allclose(share, mine.count(found[:width]) / len(mine), rtol=0, atol=1e-15)
        assert_allclose(atoms.cumulative[some][-1], 1.0, rtol=1e-15)


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_kernels_are_compiled_once():
    """However bins and places lie in memory, and whether they may be written to: for each form it would take seconds."""
    ensemble, rows = forest_and_rows()
    tables, values, bins = noisy(ensemble, rows, 1.0)
    columns, read_only = np.asfortranarray(bins), frozen(bins)
    for some in (columns, read_only, bins):
        order, _ = greedy_rows(tables, NORMAL, values, some, 4)
    prefixes = place_units(tables, order)
    for some in (prefixes, frozen(prefixes), Prefixes(*map(np.asfortranarray, prefixes))):
        gap_rows(tables, NORMAL, values, columns, some)
    assert [len(kernel.compiled.signatures) for kernel in (measure_rankings, rank_greedily)] == [1, 1]
