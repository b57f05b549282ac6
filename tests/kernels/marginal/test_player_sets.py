"""Interactions of sets in the marginal game: those of their definitions, whatever is kept of a background."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.jit.decorator import count_bytes
from leafledger.kernels.marginal import query
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, prepare
from leafledger.kernels.set_indices import INDICES, Sets
from tests.kernels.attributing import ATOL, attributed
from tests.kernels.interacting import asked, by_index, by_measure, check_sets, find
from tests.kernels.marginal.against import PARAMETERS, PLENTY, WEIGHTS, counted
from tests.strategies import batches, forests, partitions
from tests.trees import chain

SIGNED = 10 * ATOL  # signed weights of five players add up to 10 in size
KEPT = {"tables": (12, 20), "tables and patterns": (2, 20), "patterns": (0, 20)}  # most bits of a code with a table


def ask(ensemble, background, order, kept, group=None, name="shapley"):
    """A query whose subtrees are cut as finely as is asked, and what it counts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query, "COARSE_TO_FINE", [KEPT[kept]])
        found = ask_background(ensemble, METHODS[name], group, n_rows=100, budget=PLENTY, interactions=True, order=order)
    return found, counted(found, background)


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("index", INDICES)
@given(data=st.data(), ensemble=forests(max_trees=2, max_features=4))
@settings(max_examples=6)
def test_interactions_are_those_of_the_definition(data, ensemble, index, kept):
    """In orders 1 to 4, over all background rows: categories, missing values, repeated features, several outputs, vector leaves."""
    rows, background, order = data.draw(batches(ensemble, max_rows=1)), data.draw(batches(ensemble, max_rows=3)), data.draw(st.integers(1, 4))
    known = ask(ensemble, background, order, kept)
    found, prepared = find(ensemble, rows, asked(index, order), background=known)
    check_sets(found, ensemble, rows, by_index(index, order), ensemble.n_features, SIGNED, background=background)
    assert (prepared.pairs.players == known[0].pairs).all()
    assert count_bytes(prepared) <= known[0].n_bytes[0]


@pytest.mark.parametrize("kept", KEPT)
@given(data=st.data(), ensemble=forests(max_trees=2, max_features=6))
@settings(max_examples=6)
def test_of_groups_too(data, ensemble, kept):
    """Players are groups of features."""
    rows, background, group = data.draw(batches(ensemble, max_rows=1)), data.draw(batches(ensemble, max_rows=3)), data.draw(partitions(ensemble))
    found, _ = find(ensemble, rows, asked("k-SII", 3), group=group, background=ask(ensemble, background, 3, kept, group))
    check_sets(found, ensemble, rows, by_index("k-SII", 3), int(group.max()) + 1, SIGNED, group, background)


@pytest.mark.parametrize("name", ["banzhaf", "beta", "semivalue"])
@given(data=st.data(), ensemble=forests(max_trees=2, max_features=4))
@settings(max_examples=6)
def test_methods_with_a_measure_of_their_own_keep_it(data, ensemble, name):
    """For sets of every size."""
    rows, background = data.draw(batches(ensemble, max_rows=1)), data.draw(batches(ensemble, max_rows=3))
    known = ask(ensemble, background, 3, "tables and patterns", name=name)
    found, _ = find(ensemble, rows, Sets(3, ""), name, PARAMETERS[name], background=known)
    check_sets(found, ensemble, rows, by_measure(3, WEIGHTS[name]), ensemble.n_features, ATOL, background=background)


@pytest.mark.again
@pytest.mark.parametrize("index", [index for index, said in INDICES.items() if said.adds_up])
def test_long_paths_are_the_same_whatever_is_kept(index):
    """Eleven players on a path, fewer where every step of them is Python's; every row's sets add up to its margin less the base value."""
    rng, n_players = np.random.default_rng(3), 7 if config.DISABLE_JIT else 11
    ensemble = chain(rng.permutation(n_players), rng.standard_normal(n_players + 1), np.ones(n_players + 1), n_players)
    rows, background = ((rng.random((n, n_players)) < 0.6).astype(float) for n in (2, 7))
    found = {kept: find(ensemble, rows, asked(index, 3), background=ask(ensemble, background, 3, kept)) for kept in ("tables", "patterns")}
    for members, values in found["tables"][0].items():
        assert np.abs(values - found["patterns"][0][members]).max() < SIGNED
    sets, prepared = found["patterns"]
    margin = attributed("shapley", prepared, rows).margin[:, :2]
    assert np.abs(sum(sets.values()) + prepared.base[:, None] - margin).max() < SIGNED


def test_tables_of_sets_are_part_of_the_budget():
    """Where they do not fit, patterns are kept instead."""
    rng = np.random.default_rng(0)
    ensemble = chain(rng.permutation(7), rng.standard_normal(8), np.ones(8), 7)
    rows, background = ((rng.random((n, 7)) < 0.7).astype(float) for n in (4, 6))
    budget, found = PLENTY, []
    for _ in range(3):
        known = ask_background(ensemble, METHODS["shapley"], n_rows=len(background), budget=budget, interactions=True, order=3)
        sets, prepared = find(ensemble, rows, asked("k-SII", 3), background=(known, counted(known, background)))
        assert count_bytes(prepared) <= known.n_bytes[0] <= budget
        found.append(np.stack([*sets.values()]))
        budget = int(known.n_bytes[0]) - 1
    assert np.abs(found[0] - np.stack(found)).max() < SIGNED
    with pytest.raises(InvalidParameters, match=r"tables of the marginal game would have .* MiB are allowed"):
        ask_background(ensemble, METHODS["shapley"], n_rows=len(background), budget=1000, interactions=True, order=3)


def test_a_background_that_was_asked_for_pairs_is_not_taken_for_sets():
    """Nor one of another order."""
    ensemble = chain(np.arange(4), np.arange(5.0), np.ones(5), 4)
    background = np.ones((3, 4))
    for order in (0, 2):
        known = ask_background(ensemble, METHODS["shapley"], n_rows=3, budget=PLENTY, interactions=True, order=order)
        with pytest.raises(InvalidParameters, match="the background was asked for without interactions of order 3"):
            prepare(ensemble, METHODS["shapley"], {}, interactions=True, background=(known, counted(known, background)), sets=asked("SII", 3))
