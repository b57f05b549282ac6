"""What is known of a row: the sides and leaves that it is on, and the probabilities of sides, also given a leaf, by enumeration of bins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.jit.lanes import LANES
from leafledger.kernels.prediction_gap.leaf_regions import make_regions
from leafledger.kernels.prediction_gap.noise import NOISES, perturb_rows
from leafledger.kernels.prediction_gap.row_state import any_used, fill_block, leaves_of_block, list_asked, locate_row, make_row_state, take_row
from leafledger.kernels.trees.forest import make_forest
from tests.kernels.prediction_gap.gaps import ATOL, drawn, noisy
from tests.kernels.prediction_gap.regions import bins_on, holds, leaf_of, leaves_below, masses
from tests.strategies import batches, forests, partitions
from tests.trees import grown

SCALE = 0.7


def perturbing(data, ensemble, how, noise):
    """Tables, distributions and bins of rows under noise, or drawn from a few rows of data."""
    rows = data.draw(batches(ensemble, 2))
    if how == "noise":
        tables, values, bins = noisy(ensemble, rows, SCALE)
    else:
        tables, values, bins = drawn(ensemble, rows, data.draw(batches(ensemble, 3)), data.draw(partitions(ensemble)))
    return rows, tables.regions, *frozen((perturb_rows(values, tables.noise, noise), bins))


hows = pytest.mark.parametrize("how", ["noise", "drawn"])


@hows
@given(data=st.data(), ensemble=forests(max_features=4), noise=st.sampled_from(NOISES))
@pytest.mark.slow
def test_a_row_is_located(how, data, ensemble, noise):
    """On sides and in leaves by a plain walk; probabilities are sums over the bins of a side. What an earlier row left is gone."""
    rows, regions, distributions, bins = perturbing(data, ensemble, how, noise)
    row, units, top = make_row_state(regions), regions.units, np.iinfo(bins.dtype).max
    nodes = [leaf for root in ensemble.root for leaf in leaves_below(ensemble, root)]
    for i in range(len(rows)):
        distribution = take_row(distributions, i)
        locate_row(bins, i, distribution, regions, row)
        assert row.inside.tolist() == [holds(regions.sides, s, bins[:, i], top) for s in range(regions.sides.unit.size)]
        assert [nodes[leaf] for leaf in row.leaf] == [leaf_of(ensemble, root, rows[i]) for root in ensemble.root]
        for s, u in enumerate(regions.sides.unit):
            expected = regions.sides.resampled[s]
            if units.noised[u]:
                mass = masses(distribution, units, u)
                expected = mass[bins_on(regions.sides.interval, s, mass.size - 1)].sum()
            assert_allclose(row.probability[s], expected, rtol=0, atol=ATOL)


def joint(regions, distribution, u):
    """Probabilities that a unit is on two of its sides at once, ``(sides, sides)``."""
    units, mine = regions.units, range(regions.units.side[u], regions.units.side[u + 1])
    if units.noised[u]:
        mass = masses(distribution, units, u)
        on = np.array([bins_on(regions.sides.interval, s, mass.size - 1) for s in mine])
        return (on * mass) @ on.T
    given_ = units.given[units.given_start[u] :][: len(mine) ** 2].reshape(len(mine), -1)
    return given_ * regions.sides.resampled[mine][:, None]


@hows
@given(data=st.data(), ensemble=forests(max_features=4), noise=st.sampled_from(NOISES))
def test_sides_given_a_leaf(how, data, ensemble, noise):
    """By enumeration of bins: given the leaf's own side of the unit, or nothing where its path does not ask for it; what is not wanted stays."""
    _, regions, distributions, bins = perturbing(data, ensemble, how, noise)
    row, units, leaves, unit = make_row_state(regions), regions.units, regions.leaves, regions.sides.unit
    wanted = frozen(np.array([data.draw(st.integers(0, 1)) for _ in units.perturbed], np.int64) * units.perturbed)
    distribution = take_row(distributions, 0)
    locate_row(bins, 0, distribution, regions, row)
    both = [joint(regions, distribution, u) if wanted[u] else None for u in range(wanted.size)]
    for t in range(ensemble.root.size):
        for b in range(row.blocks.start[t], row.blocks.start[t + 1]):
            first, stop = leaves_of_block(regions, row, t, b)
            found = np.full(unit.size * LANES, np.nan)
            fill_block(regions, distribution, (first, stop), wanted, row, found)
            assert (row.blocks.at == -1).all()
            assert np.isnan(found.reshape(-1, LANES)[wanted[unit] == 0]).all()
            asked = list_asked(regions, (first, stop), row)
            of_path = [{int(unit[s]): int(s) for s in leaves.side[leaves.start[leaf] : leaves.fixed[leaf]]} for leaf in range(first, stop)]
            assert sorted(asked) == sorted(set().union(*of_path))
            assert (row.blocks.at == -1).all()
            for leaf, own in enumerate(of_path):
                for s, u in enumerate(unit):
                    if wanted[u] and u in own:
                        of_own = both[u][own[u] - units.side[u]]
                        p = row.probability[own[u]]
                        expected = of_own[s - units.side[u]] / p if p > 0 else 0.0
                        assert_allclose(found[s * LANES + leaf], expected, rtol=0, atol=ATOL / max(p, ATOL))
                    elif wanted[u]:
                        assert found[s * LANES + leaf] == row.probability[s]


def test_blocks_are_leaves_of_one_tree_in_their_order():
    """LANES at a time, the last as many as there are; sixteen leaves, and one, are two blocks and one."""
    forest = make_forest(grown(np.random.default_rng(0), 3, 4, 3))[1]
    regions = make_regions(forest, {})
    short = frozen(regions._replace(trees=regions.trees._replace(leaf=np.array([0, 16, 17, 26]))))
    row = make_row_state(short)
    assert row.blocks.start.tolist() == [0, 2, 3, 5]
    found = [leaves_of_block(short, row, t, b) for t in range(3) for b in range(row.blocks.start[t], row.blocks.start[t + 1])]
    assert found == [(0, 8), (8, 16), (16, 17), (17, 25), (25, 26)]


def test_a_tree_uses_some_of_the_units_or_none():
    """Of those that are listed, whatever else it uses."""
    uses = np.array([False, True, False, True])
    assert any_used(np.array([0, 3]), uses)
    assert not any_used(np.array([0, 2]), uses)
    assert not any_used(np.zeros(0, np.int64), uses)


def test_a_row_is_taken_as_views():
    """No copy for every row."""
    ensemble, rows = grown(np.random.default_rng(0), 2, 2, 3), np.zeros((2, 3))
    tables, values, _ = noisy(ensemble, rows, SCALE)
    distributions = perturb_rows(values, tables.noise, NOISES[0])
    for whole, of_row in zip(distributions, take_row(distributions, 1), strict=True):
        assert_array_equal(whole[1], of_row)
        assert np.shares_memory(whole, of_row)
