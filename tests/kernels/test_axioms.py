"""What makes attributions semivalues, on the kernels themselves: global impacts that no weighting changes, and the axioms."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.trees.ensemble import check
from tests.hypercubes import full_tree, functions, hypercube
from tests.kernels.attributing import explain
from tests.strategies import batches, forests

ATOL = 1e-13  # leaves are at most 4 in size, and what is compared are sums of some tens of them
IMPACT_RTOL = 1e-12  # impacts are sums of attributions over all rows
WEIGHTINGS = (
    ("shapley", {}),
    *(("banzhaf", {"p": p}) for p in (0.5, 0.125, 0.75, 0.0, 1.0)),
    *(("beta", {"alpha": alpha, "beta": beta}) for alpha, beta in ((16.0, 1.0), (1.0, 4.0), (2.5, 0.7), (0.3, 0.3))),
)
weightings = st.sampled_from(WEIGHTINGS)


def flips(values, n_bits):
    """Half the sum over all rows of |f(x) - f(x with feature i flipped)|, ``(n,)``."""
    numbers = np.arange(values.size)
    return np.array([np.abs(values - values[numbers ^ 1 << feature]).sum() / 2 for feature in range(n_bits)])


@given(function=functions(monotone=True), weighting=weightings)
def test_no_weighting_changes_the_impacts_of_monotone_functions(function, weighting):
    """The sum of |phi_i| over all rows is half of that of |f(x) - f(x with i flipped)| for every weighting (Karczmarz et al. 2022, Section 4)."""
    values, order = function
    for name, parameters in (("shapley", {}), weighting):
        phi, _, _ = explain(name, full_tree(values, order), hypercube(len(order)), **parameters)
        assert_allclose(np.abs(phi[:, 0]).sum(axis=0), flips(values, len(order)), rtol=IMPACT_RTOL, atol=values.size * ATOL)


@given(function=functions(), weighting=weightings)
def test_other_functions_have_no_larger_impacts(function, weighting):
    """Where f is not monotone effects of either sign cancel within phi: the same sum is an upper bound."""
    values, order = function
    phi, _, _ = explain(weighting[0], full_tree(values, order), hypercube(len(order)), **weighting[1])
    assert (np.abs(phi[:, 0]).sum(axis=0) <= flips(values, len(order)) * (1 + IMPACT_RTOL) + values.size * ATOL).all()


def test_impacts_of_a_function_that_is_not_monotone_depend_on_the_weighting():
    """Exclusive or: alone a feature does nothing, with the other present all. The theorem needs its premise."""
    xor = full_tree(np.array([0.0, 1.0, 1.0, 0.0]), [0, 1])
    impacts = [np.abs(explain("banzhaf", xor, hypercube(2), p=p)[0]).sum(axis=0)[0] for p in (0.0, 0.5, 1.0)]
    assert_allclose(impacts, [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], rtol=0, atol=ATOL)


@given(function=functions(min_bits=2), weighting=weightings, data=st.data())
def test_equals_are_treated_equally(function, weighting, data):
    """Where two features can be exchanged in f, and a row has the same of both, they get the same."""
    values, order = function
    i, j = data.draw(st.permutations(range(len(order))))[:2]
    rows, numbers = hypercube(len(order)), np.arange(values.size)
    exchanged = numbers ^ ((numbers >> i ^ numbers >> j) & 1) * (1 << i | 1 << j)
    phi, _, _ = explain(weighting[0], full_tree((values + values[exchanged]) / 2, order), rows, **weighting[1])
    same = rows[:, i] == rows[:, j]
    assert_allclose(phi[same, 0, i], phi[same, 0, j], rtol=0, atol=ATOL)


@given(function=functions(min_bits=2))
def test_banzhaf_values_of_two_features_are_that_of_the_two_as_one(function):
    """2-efficiency: features i and j made one with four values, present or absent together, get phi_i + phi_j; at p = 1/2, in general
    at no other p.

    The tree asks for them first, so that the one feature's code 2 x_i + x_j is told by thresholds.
    """
    values, order = function
    i, j = order[:2]
    tree, rows = full_tree(values, order), hypercube(len(order))
    phi, _, _ = explain("banzhaf", tree, rows, p=0.5)
    feature, threshold = tree.feature.copy(), tree.threshold.copy()
    feature[:3], threshold[:3] = i, (1.5, 0.5, 2.5)
    codes = rows.copy()
    codes[:, i] = 2 * rows[:, i] + rows[:, j]
    merged, _, _ = explain("banzhaf", tree._replace(feature=feature, threshold=threshold), codes, p=0.5)
    assert_allclose(merged[:, 0, i], phi[:, 0, i] + phi[:, 0, j], rtol=0, atol=ATOL)


NODES = ("feature", "threshold", "missing_left", "category_set", "left", "right", "value", "cover")


def joined(one, other):
    """The trees of both; what is known of columns and category sets is that of ``one``, and has to be the same in ``other``."""
    n = one.feature.size
    moved = {side: np.where(getattr(other, side) < 0, -1, getattr(other, side) + n).astype(np.int32) for side in ("left", "right")}
    other = other._replace(**moved, root=other.root + np.int32(n))
    both = {name: np.concatenate((getattr(one, name), getattr(other, name))) for name in (*NODES, "root", "output")}
    return one._replace(**both, base=one.base + other.base)


@given(data=st.data(), ensemble=forests(), weighting=weightings, seed=st.integers(0, 99))
def test_attributions_are_linear(data, ensemble, weighting, seed):
    """Trees side by side, and leaf values added up, both get the sum of what the two get."""
    rows = data.draw(batches(ensemble, max_rows=2))
    other = ensemble._replace(value=np.random.default_rng(seed).integers(-8, 9, ensemble.value.shape) / 4)
    (one, *_), (two, *_) = (explain(weighting[0], each, rows, **weighting[1]) for each in (ensemble, other))
    beside, _, _ = explain(weighting[0], joined(ensemble, other), rows, **weighting[1])
    added, _, _ = explain(weighting[0], ensemble._replace(value=ensemble.value + other.value), rows, **weighting[1])
    assert_allclose(beside, one + two, rtol=0, atol=ATOL)
    assert_allclose(added, one + two, rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_trees=2), weighting=weightings, share=st.sampled_from((0.5, 0.001)))
def test_features_that_decide_nothing_get_nothing(data, ensemble, weighting, share):
    """A feature in no split gets exactly 0; one that every tree asks first, only to go on the same way on either side, 0 up to rounding.

    Neither changes what the others get.
    """
    rows = data.draw(batches(ensemble, max_rows=2))
    n, n_nodes, n_trees = ensemble.n_features, ensemble.feature.size, ensemble.root.size
    before, _, _ = explain(weighting[0], ensemble, rows, **weighting[1])
    wider = ensemble._replace(n_categories=np.append(ensemble.n_categories, 0).astype(np.int32), zero_missing=np.append(ensemble.zero_missing, False))
    rows = np.column_stack((rows, data.draw(st.lists(st.sampled_from((0.0, 1.0, np.nan)), min_size=len(rows), max_size=len(rows)))))
    unused, _, _ = explain(weighting[0], wider, rows, **weighting[1])
    assert (unused[:, :, n] == 0).all()
    assert_allclose(unused[:, :, :n], before, rtol=0, atol=0)

    twice = joined(wider._replace(cover=wider.cover * share), wider._replace(cover=wider.cover * (1 - share)))
    first = {
        "feature": np.full(n_trees, n),
        "threshold": np.full(n_trees, 0.5),
        "missing_left": np.zeros(n_trees, bool),
        "category_set": np.full(n_trees, -1),
        "left": ensemble.root,
        "right": ensemble.root + n_nodes,
        "value": np.zeros((n_trees, ensemble.value.shape[1])),
        "cover": ensemble.cover[ensemble.root],
    }
    arrays = {name: np.concatenate((getattr(twice, name), first[name])).astype(getattr(twice, name).dtype) for name in NODES}
    root = np.arange(2 * n_nodes, 2 * n_nodes + n_trees, dtype=np.int32)
    asked = twice._replace(**arrays, root=root, output=ensemble.output, base=ensemble.base)
    check(asked)
    phi, _, _ = explain(weighting[0], asked, rows, **weighting[1])
    assert_allclose(phi[:, :, n], 0.0, rtol=0, atol=ATOL)
    assert_allclose(phi[:, :, :n], before, rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(), weighting=weightings)
def test_what_is_added_to_all_leaves_of_a_tree_is_nobody_s(data, ensemble, weighting):
    """However large it is: labels in seconds since 1970, of a variance of minutes, keep their digits."""
    rows = data.draw(batches(ensemble))
    (phi, _, margin), (shifted, _, far) = (
        explain(weighting[0], ensemble._replace(value=ensemble.value + constant), rows, **weighting[1]) for constant in (0.0, 2.0**40)
    )
    assert_allclose(shifted, phi, rtol=0, atol=ATOL)
    trees = np.array([((ensemble.output == k) if ensemble.value.shape[1] == 1 else (ensemble.output >= 0)).sum() for k in range(margin.shape[1])])
    assert_allclose(far, margin + trees * 2.0**40, rtol=1e-15)
