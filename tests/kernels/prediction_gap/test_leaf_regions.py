"""Regions of leaves: a row is on all sides of the leaf that it reaches and of no other, and sides are counted as data fall on them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.prediction_gap.leaf_regions import count_visits, make_regions, numeric_alone
from leafledger.kernels.trees.ensemble import bit_set, check
from leafledger.kernels.trees.forest import make_forest
from tests.kernels.prediction_gap.gaps import binned, drawn, noisy
from tests.kernels.prediction_gap.regions import holds, leaf_of, leaves_below
from tests.strategies import batches, forests, partitions
from tests.trees import one_tree


@given(data=st.data(), ensemble=forests(max_features=4))
def test_a_row_is_in_the_region_of_the_leaf_that_it_reaches(data, ensemble):
    """And in that of no other leaf of its tree: numbers, categories, missing values, groups of features together."""
    check_regions(ensemble, data.draw(batches(ensemble)), data.draw(partitions(ensemble)))


def check_regions(ensemble, rows, groups):
    """Every row is on all sides of its leaf in each tree, and of no other leaf there."""
    _, bins, forest = binned(ensemble, rows, groups)
    regions, top = make_regions(forest, {}), np.iinfo(bins.dtype).max
    leaves, sides = regions.leaves, regions.sides
    assert leaves.value.tolist() == [forest.ensemble.value[leaf].tolist() for root in ensemble.root for leaf in leaves_below(ensemble, root)]
    for t, root in enumerate(ensemble.root):
        nodes = leaves_below(ensemble, root)
        assert regions.trees.leaf[t + 1] - regions.trees.leaf[t] == len(nodes)
        for leaf, node in enumerate(nodes, int(regions.trees.leaf[t])):
            asked = leaves.side[leaves.start[leaf] : leaves.start[leaf + 1]]
            for i, row in enumerate(rows):
                assert all(holds(sides, s, bins[:, i], top) for s in asked) == (leaf_of(ensemble, root, row) == node)


def test_what_the_root_asks_can_be_asked_again():
    """Of a number, from 0 to 1 between two leaves; of a category, in both sets, in one, in none."""
    numeric = one_tree([0, 0, -1, -1, -1], [1.0, 0.0, 0, 0, 0], [1, 2, -1, -1, -1], [4, 3, -1, -1, -1], [0, 0, 1, 2, 3], [3, 2, 1, 1, 1], 1)
    check_regions(numeric, np.array([[-1.0], [0.5], [2.0], [np.nan]]), np.zeros(1, int))
    sets = {"category_set": np.array([0, 1, -1, -1, -1], np.int32), "n_categories": np.array([3], np.int32)}
    words = np.concatenate((bit_set([0, 1], 3), bit_set([0, 2], 3)))
    categorical = numeric._replace(threshold=np.zeros(5), set_start=np.array([0, 1, 2]), set_words=words, **sets)
    for ensemble in (categorical, renumbered(categorical, np.array([1, 0, 2, 3, 4], np.int32))):
        check_regions(ensemble, np.array([[0.0], [1.0], [2.0], [np.nan]]), np.zeros(1, int))


def renumbered(ensemble, number):
    """The same trees, whose node i is called ``number[i]``."""
    old = np.argsort(number)
    of_nodes = ("feature", "threshold", "missing_left", "category_set", "value", "cover")
    found = ensemble._replace(
        **{name: getattr(ensemble, name)[old] for name in of_nodes},
        **{side: np.where(getattr(ensemble, side) < 0, np.int32(-1), number[getattr(ensemble, side)])[old] for side in ("left", "right")},
        root=number[ensemble.root],
    )
    check(found)
    return found


def asked_on_paths(ensemble, node, of, above=frozenset()):
    """Of every leaf below a node, in the order of recursion, the units that its path asks for."""
    if ensemble.left[node] < 0:
        return [above]
    here = above | {of[ensemble.feature[node]]}
    return [asked for child in (ensemble.left[node], ensemble.right[node]) for asked in asked_on_paths(ensemble, child, of, here)]


@given(data=st.data(), ensemble=forests(max_features=4))
def test_leaves_have_a_side_for_every_unit_on_their_path(data, ensemble):
    """Those of units that are perturbed first; equal sides are one, and those of a unit stand together; trees know their units."""
    rows, groups = data.draw(batches(ensemble)), data.draw(partitions(ensemble))
    forest = binned(ensemble, rows, groups)[2]
    regions, unit_of = make_regions(forest, {}), np.searchsorted(forest.players, groups)
    leaves, sides, units, conditions = regions.leaves, regions.sides, regions.units, regions.sides.conditions
    asked = [asked_on_paths(ensemble, root, unit_of) for root in ensemble.root]
    for leaf, expected in enumerate(some for of_tree in asked for some in of_tree):
        found = sides.unit[leaves.side[leaves.start[leaf] : leaves.start[leaf + 1]]]
        assert sorted(found) == sorted(expected)
        n_perturbed = leaves.fixed[leaf] - leaves.start[leaf]
        assert units.perturbed[found].tolist() == [True] * n_perturbed + [False] * (found.size - n_perturbed)
    for t, of_tree in enumerate(asked):
        assert np.flatnonzero(regions.trees.uses[t]).tolist() == sorted(set().union(*of_tree))
        assert regions.trees.unit[regions.trees.start[t] : regions.trees.start[t + 1]].tolist() == sorted(set().union(*of_tree))
    found = set()
    for s, u in enumerate(sides.unit):
        assert units.side[u] <= s < units.side[u + 1]
        mine = range(conditions.start[s], conditions.start[s + 1])
        numbers = (conditions.feature, *conditions.interval, conditions.first_member)
        found.add((int(u), frozenset(tuple(int(array[c]) for array in numbers) for c in mine)))
        if units.noised[u]:
            (only,) = mine
            assert [array[s] for array in sides.interval] == [array[only] for array in conditions.interval]
        else:
            assert [array[s] for array in sides.interval] == [0, 0, 0]
    assert len(found) == sides.unit.size


@given(data=st.data(), ensemble=forests(max_features=4))
def test_drawn_values_fall_on_sides_as_the_data_do(data, ensemble):
    """How often one is drawn on a side, and on a side given another one, by counting rows of data."""
    rows, seen, groups = data.draw(batches(ensemble, 1)), data.draw(batches(ensemble)), data.draw(partitions(ensemble))
    regions, (_, bins, forest) = drawn(ensemble, rows, seen, groups)[0].regions, binned(ensemble, seen, groups)
    sides, units, top = regions.sides, regions.units, np.iinfo(bins.dtype).max
    assert (units.noised == numeric_alone(forest)).all()
    assert units.perturbed.all()
    for u in range(units.noised.size):
        mine = range(units.side[u], units.side[u + 1])
        on = np.array([[holds(sides, s, bins[:, i], top) for i in range(len(seen))] for s in mine])
        if units.noised[u]:
            assert units.given_start[u] == -1
            assert (sides.resampled[mine] == 0).all()
            continue
        assert_allclose(sides.resampled[mine], on.mean(axis=1), rtol=1e-14)
        table = units.given[units.given_start[u] :][: on.shape[0] ** 2].reshape(on.shape[0], on.shape[0])
        for one, other in np.ndindex(table.shape):
            assert_allclose(table[one, other], on[other][on[one]].mean() if on[one].any() else 0.0, rtol=1e-14)


@given(data=st.data(), ensemble=forests())
def test_noise_is_for_numbers_that_are_no_part_of_a_group(data, ensemble):
    """A group of one numeric feature, whether its other splits are there or not."""
    groups = data.draw(partitions(ensemble))
    forest = make_forest(ensemble, groups)[1]
    members = [np.flatnonzero(groups == g) for g in forest.players]
    assert numeric_alone(forest).tolist() == [mine.size == 1 and ensemble.n_categories[mine[0]] == 0 for mine in members]


@given(data=st.data(), ensemble=forests(max_trees=4, max_features=4))
def test_visits_are_pairs_of_leaves_that_share_what_is_perturbed(data, ensemble):
    """Of different trees of one output: the first leaf's path asks for a perturbed feature that the second's tree asks for anywhere."""
    tables = noisy(ensemble, data.draw(batches(ensemble, 1)), 1.0)[0]
    moved = set(tables.units[tables.regions.units.perturbed].tolist())
    asked = [asked_on_paths(ensemble, root, np.arange(ensemble.n_features)) for root in ensemble.root]
    n_trees, expected = len(asked), 0
    for k in range(ensemble.base.size):
        mine = [t for t in range(n_trees) if ensemble.value.shape[1] > 1 or ensemble.output[t] == k]
        for i, t in enumerate(mine):
            for later in mine[i + 1 :]:
                expected += sum(len(asked[later]) for some in asked[t] if some & moved & set().union(*asked[later]))
    assert count_visits(tables.regions) == expected
