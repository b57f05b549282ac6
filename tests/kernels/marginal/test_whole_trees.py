"""Tables of symmetric trees of many comparisons: equal to enumeration, and to those that look at every leaf for every code."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.marginal import query, subtrees, whole_trees
from leafledger.kernels.marginal.subtrees import Partitioner
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare, weigh_leaves
from leafledger.kernels.trees.forest import make_forest
from tests import naive
from tests.kernels.attributing import ATOL, defaults, run
from tests.kernels.marginal.against import PARAMETERS, WEIGHTS, explain, query_for
from tests.strategies import partitions
from tests.trees import join, one_tree, symmetric


@contextmanager
def most(bits):
    """Trees of more comparisons than so many are not cut."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (query, subtrees, whole_trees):
            patch.setattr(module, "MOST_BITS", bits)
        yield


def _drawn(seed, features):
    """Two trees that ask for features in turn, rows and a background, some values missing."""
    rng, n_features = np.random.default_rng(seed), max(features) + 1
    ensemble = join([symmetric(rng, features, n_features), symmetric(rng, features[::-1], n_features)])
    rows, background = rng.normal(size=(2, n_features)), rng.normal(size=(5, n_features))
    background[0, 0] = np.nan
    return ensemble, rows, background


MORE = {"probabilistic": {"sizes": (0.2, 0.3, 0.5)}, "asymmetric": {"sequence": (1, 0, 2)}}
FEATURES = st.sampled_from(((0, 1), (0, 1, 2), (0, 1, 0, 2), (2, 2, 1, 0), (0, 0, 0), (3, 1, 0, 2)))


@pytest.mark.again
@pytest.mark.parametrize("name", WEIGHTS)
@settings(max_examples=8)
@given(seed=st.integers(0, 99), features=FEATURES)
def test_values_are_those_of_the_definition(name, seed, features):
    """Over all subsets and all background rows, in exact fractions; a feature may be asked for on several levels."""
    ensemble, rows, background = _drawn(seed, features)
    with most(1):
        phi, base, _ = explain(name, ensemble, rows, background, kept=(1, 20))
    group = np.arange(ensemble.n_features)
    expected = [naive.quotient_semivalue(ensemble, row, group, group.size, WEIGHTS[name], background) for row in rows]
    assert_allclose(phi, expected, rtol=0, atol=ATOL)
    assert_allclose(base, naive.margins(ensemble, background).mean(axis=0), rtol=0, atol=ATOL)


@settings(max_examples=10)
@given(data=st.data(), seed=st.integers(0, 99), features=FEATURES)
def test_values_of_groups_are_those_of_the_definition(data, seed, features):
    """Groups as players, and members of groups that come whole."""
    ensemble, rows, background = _drawn(seed, features)
    group = data.draw(partitions(ensemble))
    for name, defined in (("owen", naive.owen), ("two_step", naive.two_step)):
        with most(1):
            phi, _, _ = explain(name, ensemble, rows, background, group, (1, 20))
        assert_allclose(phi, [defined(ensemble, row, group, background) for row in rows], rtol=0, atol=ATOL)


@pytest.mark.parametrize("name", PARAMETERS)
def test_leaf_weights_give_the_same_as_leaf_by_leaf(name):
    """Of the model's own leaf weights, whatever the method, with several numbers in a leaf."""
    rng, group = np.random.default_rng(1), np.array([0, 0, 1, 2])
    ensemble = symmetric(rng, (0, 1, 2, 3, 1), 4)
    ensemble = ensemble._replace(value=np.concatenate((ensemble.value, rng.normal(size=ensemble.value.shape)), axis=1), base=np.array([0.5, 1.0]))
    rows, found = rng.normal(size=(3, 4)), []
    for bits in (12, 1):
        with most(bits):
            asked = query_for(name, ensemble, group, (bits, 20))
            counted = weigh_leaves(ensemble, METHODS[name], group, asked)
            given_ = defaults(name) | PARAMETERS[name] | MORE.get(name, {})
            prepared = prepare(ensemble, METHODS[name], given_, group, background=(asked, counted))
        assert asked.partitioning.coded.bits.tolist() == [5]
        found.append((run(name, prepared, rows, prepared.players.size)[0], prepared.base))
    assert_allclose(found[1][0], found[0][0], rtol=0, atol=ATOL)
    assert_allclose(found[1][1], found[0][1], rtol=0, atol=ATOL)


def test_trees_that_are_none_are_cut():
    """One that asks the same twice on a way, one that asks differently on a level, and one whose leaves are not all there."""
    whole = symmetric(np.random.default_rng(0), (0, 1), 2)
    full = [1, 3, 5, -1, -1, -1, -1], [2, 4, 6, -1, -1, -1, -1], [0, 0, 0, 1, 2, 3, 4], [4, 2, 2, 1, 1, 1, 1], 2
    twice = one_tree([0, 0, 1, -1, -1, -1, -1], [0.0, 0.0, 0.5, 0, 0, 0, 0], *full)
    uneven = one_tree([0, 1, 1, -1, -1, -1, -1], [0.0, 0.2, 0.5, 0, 0, 0, 0], *full)
    short = one_tree([0, 1, -1, -1, -1], [0.0, 0.5, 0, 0, 0], [1, 3, -1, -1, -1], [2, 4, -1, -1, -1], [0, 0, 1, 2, 3], [3, 2, 1, 1, 1], 2)
    for ensemble, is_kept in ((whole, True), (twice, False), (uneven, False), (short, False)):
        _, forest = make_forest(ensemble)
        with most(1):
            found = Partitioner(forest, forest.player_of_node).partition(1, whole_trees=True).coded.bits
        assert (found > 1).any() == is_kept


def test_a_tree_of_many_comparisons_adds_up():
    """Of 13, one more than is looked at leaf by leaf: values of a row add up to its margin less the background's mean."""
    rng = np.random.default_rng(3)
    ensemble, rows, background = symmetric(rng, tuple(range(6)) * 2 + (6,), 7), rng.normal(size=(3, 7)), rng.normal(size=(20, 7))
    phi, base, margin = explain("shapley", ensemble, rows, background, kept=(12, 20))
    assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=1e-12)
    assert_array_equal(margin[:, 0], naive.margins(ensemble, rows)[:, 0])
