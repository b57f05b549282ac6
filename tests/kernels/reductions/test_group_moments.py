"""Moments of groups are those of their rows, however rows were cut, and in the order in which they were merged the same bits."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.reductions.group_moments import GROUP_MOMENTS, moments_of, sort_groups
from leafledger.kernels.reductions.reduction import MOMENTS, merge_all
from leafledger.kernels.slices.labels import no_labels


def labels_of(groups):
    """Labels of rows that are in groups by name, and of three rows that pad them."""
    names, group = np.unique(groups, return_inverse=True)
    return no_labels(len(groups) + 3)._replace(group=np.append(group, [0, 0, 0]).astype(np.int64), names=names)


def state_of(values, groups):
    padded = np.concatenate([values, np.full((*values.shape[:2], 3), 1e9)], axis=2)
    return GROUP_MOMENTS.update(GROUP_MOMENTS.init(*values.shape[:2]), padded, values.shape[2], labels_of(groups))


@given(sizes=st.lists(st.integers(0, 30), min_size=1, max_size=12), n_groups=st.integers(1, 5), seed=st.integers(0, 99))
def test_every_group_has_the_moments_of_its_rows(sizes, n_groups, seed):
    """By NumPy; rows of a group may be in some of the slices alone."""
    draw = np.random.default_rng(seed)
    values, groups = draw.normal(size=(2, 3, sum(sizes))), draw.choice([f"[{g}]" for g in range(n_groups)], sum(sizes))
    cuts = np.cumsum(sizes)[:-1]
    states = [state_of(some, few) for some, few in zip(np.split(values, cuts, axis=2), np.split(groups, cuts), strict=True)]
    found = merge_all(GROUP_MOMENTS, states, 2, 3)
    assert found.names.tolist() == sorted(set(groups.tolist()))
    for g, name in enumerate(found.names.tolist()):
        mine, moments = values[:, :, groups == name], moments_of(found, g)
        assert moments.rows.tolist() == [mine.shape[2]]
        assert_allclose(moments.mean, mine.mean(axis=2), rtol=1e-9, atol=1e-12)
        assert_allclose(moments.mean_abs, np.abs(mine).mean(axis=2), rtol=1e-9, atol=1e-12)
        assert_allclose(moments.spread, mine.var(axis=2) * mine.shape[2], rtol=1e-9, atol=1e-12)
        assert_array_equal(moments.low, mine.min(axis=2))
        assert_array_equal(moments.high, mine.max(axis=2))


def test_one_group_is_all_rows_to_the_bit():
    """The moments of a slice without groups."""
    values = np.random.default_rng(1).normal(size=(2, 3, 50))
    alone, every = moments_of(state_of(values, ["[1]"] * 50), 0), MOMENTS.update(MOMENTS.init(2, 3), values, 50)
    for found, expected in zip(alone, every, strict=True):
        assert_array_equal(found, expected)


def test_no_rows_change_nothing():
    """Neither a slice without any, nor a state."""
    state = state_of(np.ones((1, 2, 4)), ["[1]", "[2]", "[1]", "[2]"])
    assert GROUP_MOMENTS.update(state, np.ones((1, 2, 3)), 0, no_labels(3)) is state
    empty = GROUP_MOMENTS.init(1, 2)
    for merged in (GROUP_MOMENTS.merge(empty, state), GROUP_MOMENTS.merge(state, empty)):
        assert merged.names.tolist() == state.names.tolist()
        for found, expected in zip(merged.moments, state.moments, strict=True):
            assert_array_equal(found, expected)
    assert GROUP_MOMENTS.merge(empty, empty).names.size == 0


def test_groups_are_in_the_order_of_their_values():
    """Numbers as numbers, none last, the first column outermost."""
    values = [[10, "b"], [9, None], [None, "a"], [9, "a"], [10, "a"]]
    names = np.unique([json.dumps(value) for value in values])
    order, found = sort_groups(names)
    assert found == [[9, "a"], [9, None], [10, "a"], [10, "b"], [None, "a"]]
    assert [json.loads(names[g]) for g in order] == found
