"""Asymmetric Shapley values are those of their definition in both games, and between Shapley values and a chain of predictions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.jit.decorator import count_bytes
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, prepare
from tests import naive
from tests.kernels.attributing import ATOL, run
from tests.kernels.attributing import explain as explain_by_path
from tests.kernels.marginal.against import KEPT, PLENTY, counted, explain, query_for
from tests.strategies import batches, forests, partitions
from tests.trees import chain, grown

FEW_ROWS = 2
NAME = "asymmetric"


def by_path(ensemble, rows, group, sequence):
    """phi ``(n, outputs, features)``, base and margin in the path-dependent game."""
    return run(NAME, prepare(ensemble, METHODS[NAME], {"sequence": sequence}, group), rows, ensemble.n_features)


def sequences(group):
    """All groups in any order."""
    return st.permutations(range(int(group.max()) + 1)).map(tuple)


@given(data=st.data(), ensemble=forests())
@pytest.mark.usefixtures("trees")
def test_values_are_those_of_the_definition(data, ensemble):
    """The mean over all orders that respect the sequence, in exact fractions; they add up."""
    rows, group = data.draw(batches(ensemble, FEW_ROWS)), data.draw(partitions(ensemble))
    sequence = data.draw(sequences(group))
    phi, base, margin = by_path(ensemble, rows, group, sequence)
    assert_allclose(phi, [naive.asymmetric(ensemble, row, group, sequence) for row in rows], rtol=0, atol=ATOL)
    assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)


@pytest.mark.parametrize("kept", KEPT)
@given(data=st.data(), ensemble=forests(max_trees=2, max_features=4))
def test_values_against_a_background_are_those_of_the_definition(data, ensemble, kept):
    """In exact fractions, with all that can be kept of a background."""
    rows, background = data.draw(batches(ensemble, max_rows=FEW_ROWS)), data.draw(batches(ensemble, max_rows=5))
    group = data.draw(partitions(ensemble))
    sequence = data.draw(sequences(group))
    phi, base, margin = explain(NAME, ensemble, rows, background, group, KEPT[kept], sequence=sequence)
    assert_allclose(phi, [naive.asymmetric(ensemble, row, group, sequence, background) for row in rows], rtol=0, atol=ATOL)
    assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests())
def test_one_group_of_all_is_the_shapley_value(data, ensemble):
    """Nothing comes before or after it."""
    rows, background = data.draw(batches(ensemble, FEW_ROWS)), data.draw(batches(ensemble, max_rows=4))
    group = np.zeros(ensemble.n_features, np.int32)
    assert_allclose(by_path(ensemble, rows, group, (0,))[0], explain_by_path("shapley", ensemble, rows)[0], rtol=0, atol=ATOL)
    expected = explain("shapley", ensemble, rows, background)[0]
    assert_allclose(explain(NAME, ensemble, rows, background, group, sequence=(0,))[0], expected, rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests())
def test_groups_of_one_are_steps_of_a_chain(data, ensemble):
    """Each feature has what it changes when those before it are known."""
    rows, n = data.draw(batches(ensemble, 1)), ensemble.n_features
    sequence = data.draw(sequences(np.arange(n)))
    phi, _, _ = by_path(ensemble, rows, np.arange(n), sequence)
    for k in range(ensemble.base.size):
        known = [float(naive.coalition_value(ensemble, rows[0], sequence[:m], k)) for m in range(n + 1)]
        assert_allclose(phi[0, k, list(sequence)], np.diff(known), rtol=0, atol=ATOL)


@pytest.mark.again
def test_deep_trees_keep_their_digits():
    """A chain of 300 splits of 6 features in three groups: groups have what they change when the groups before them are known."""
    depth, n = 300, 6
    rng = np.random.default_rng(0)
    features, group, sequence = rng.integers(0, n, depth), np.array([0, 1, 2, 0, 1, 2]), (2, 0, 1)
    ensemble = chain(features, rng.normal(size=depth + 1), rng.uniform(0.5, 2.0, depth + 1), n)
    rows = np.concatenate((np.ones((1, n)), rng.integers(0, 2, (5, n)))).astype(float)
    phi, base, margin = by_path(ensemble, rows, group, sequence)
    assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=1e-12)
    for row, found in zip(rows, phi, strict=True):
        known = [np.flatnonzero(np.isin(group, sequence[:m])).tolist() for m in range(4)]
        steps = np.diff([float(naive.coalition_value(ensemble, row, some, 0, number=float)) for some in known])
        assert_allclose([found[0, group == g].sum() for g in sequence], steps, rtol=0, atol=1e-12)


@pytest.mark.again
@pytest.mark.parametrize("kept", [*KEPT.values(), (0, 12), (0, 13)])
def test_tables_are_no_larger_than_said(kept):
    """In every sequence, which is not known when memory is planned: also of a leaf whose twelve players of a group fit into sums by themselves."""
    depth = 13
    ensemble = chain(np.arange(depth), np.arange(depth + 1.0), np.ones(depth + 1), depth)
    group, background = np.minimum(np.arange(depth) // 12, 1), np.random.default_rng(0).integers(0, 2, (3, depth)).astype(float)
    asked = query_for(NAME, ensemble, group, kept)
    for sequence in ((0, 1), (1, 0)):
        made = prepare(ensemble, METHODS[NAME], {"sequence": sequence}, group, background=(asked, counted(asked, background)))
        assert count_bytes(made) <= asked.n_bytes[0]


def test_a_cause_takes_what_its_effects_repeat():
    """The margin is 4 where a feature is 0, and 0 where both are 1, as in a quarter of the data: with nothing known it is 3, and one 0 makes it 4.

    Shapley values halve the step between two that are 0; in a sequence the first one takes it all.
    """
    ensemble = chain(np.array([0, 1]), np.array([4.0, 4.0, 0.0]), np.array([2.0, 1.0, 1.0]), 2)
    row, singles = np.zeros((1, 2)), np.arange(2)
    assert_allclose(explain_by_path("shapley", ensemble, row)[0][0, 0], [0.5, 0.5], rtol=0, atol=ATOL)
    assert_allclose(by_path(ensemble, row, singles, (0, 1))[0][0, 0], [1.0, 0.0], rtol=0, atol=ATOL)
    assert_allclose(by_path(ensemble, row, singles, (1, 0))[0][0, 0], [0.0, 1.0], rtol=0, atol=ATOL)


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        ((), r"parameter 'sequence' is \[\], expected each of \[0, 1, 2\] once"),
        ((0, 1), r"parameter 'sequence' is \[0, 1\], expected each of \[0, 1, 2\] once"),
        ((0, 1, 1), r"is \[0, 1, 1\], expected each of \[0, 1, 2\] once"),
        ((0, 1, 3), r"is \[0, 1, 3\], expected each of \[0, 1, 2\] once"),
    ],
)
def test_other_sequences_are_refused(sequence, message):
    """In both games."""
    ensemble, group = grown(np.random.default_rng(0), 2, 3, 3), np.arange(3)
    asked = ask_background(ensemble, METHODS[NAME], group, n_rows=2, budget=PLENTY)
    for background in (None, (asked, counted(asked, np.zeros((2, 3))))):
        with pytest.raises(InvalidParameters, match=message):
            prepare(ensemble, METHODS[NAME], {"sequence": sequence}, group, background=background)


def test_groups_are_needed_and_pairs_are_not_there():
    """A line says so."""
    ensemble = grown(np.random.default_rng(0), 2, 3, 3)
    with pytest.raises(InvalidParameters, match="'asymmetric' needs a partition"):
        prepare(ensemble, METHODS[NAME], {"sequence": (0,)})
    with pytest.raises(InvalidParameters, match="'asymmetric' has no interactions"):
        prepare(ensemble, METHODS[NAME], {"sequence": (0,)}, np.zeros(3, int), interactions=True)
