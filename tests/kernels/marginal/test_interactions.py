"""Interactions in the marginal game: those of their definition, whatever is kept of a background, and what they add up to."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose

from leafledger.kernels.jit.decorator import count_bytes
from leafledger.kernels.marginal.interactions import list_pairs
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, prepare
from leafledger.kernels.trees.forest import make_forest
from tests import naive
from tests.kernels.attributing import ATOL, attributed
from tests.kernels.marginal.against import KEPT, PARAMETERS, PLENTY, WEIGHTS, counted, each_and_mixed, query_for
from tests.strategies import batches, forests, partitions
from tests.trees import chain, players_of_paths


def interact(name, ensemble, rows, background, group=None, kept=KEPT["tables"], **parameters):
    """Interactions ``(n, outputs, players, players)``, 0 where pairs are not listed; and what was prepared."""
    asked = query_for(name, ensemble, group, kept, interactions=True)
    known = asked, counted(asked, background)
    prepared = prepare(ensemble, METHODS[name], PARAMETERS[name] | parameters, group, interactions=True, background=known)
    assert (prepared.pairs.players == asked.pairs).all()
    assert count_bytes(prepared) <= asked.n_bytes[0]
    buffers = attributed(name, prepared, rows)
    n_players = ensemble.n_features if group is None else int(group.max()) + 1
    found = np.zeros((len(rows), ensemble.base.size, n_players, n_players))
    for p, (i, j) in enumerate(prepared.pairs.players):
        found[:, :, i, j] = found[:, :, j, i] = buffers.pairs[:, p, : len(rows)].T
    return found, buffers


@pytest.mark.again
@pytest.mark.parametrize(("name", "kept"), each_and_mixed("shapley", *WEIGHTS))
@given(data=st.data(), ensemble=forests(max_features=4))
def test_interactions_are_those_of_the_definition(data, ensemble, name, kept):
    """Every two features', over all sets of others and all background rows, in exact fractions."""
    rows, background = data.draw(batches(ensemble, max_rows=2)), data.draw(batches(ensemble, max_rows=5))
    found, _ = interact(name, ensemble, rows, background, kept=KEPT[kept])
    assert_allclose(found, [naive.interactions(ensemble, row, WEIGHTS[name], background) for row in rows], rtol=0, atol=ATOL)


@pytest.mark.again
@pytest.mark.parametrize("kept", KEPT)
@given(data=st.data(), ensemble=forests(max_trees=3, max_features=6))
def test_with_nobody_or_everybody_else_they_are_differences_of_four_values(data, ensemble, kept):
    """At p = 0 others are absent, at p = 1 present; of groups too."""
    rows, background, group = data.draw(batches(ensemble, max_rows=1)), data.draw(batches(ensemble, max_rows=4)), data.draw(partitions(ensemble))
    n_groups = int(group.max()) + 1
    for p in (0.0, 1.0):
        found, _ = interact("banzhaf", ensemble, rows, background, group, KEPT[kept], p=p)
        for i, j in itertools.combinations(range(n_groups), 2):
            others = set(range(n_groups)) - {i, j} if p else set()

            def value(present):
                mixed = np.where(np.isin(group, list(present)), rows[0], background)
                return naive.margins(ensemble, mixed).mean(axis=0)

            expected = value(others | {i, j}) - value(others | {i}) - value(others | {j}) + value(others)
            assert_allclose(found[0, :, i, j], expected, rtol=0, atol=ATOL)


@pytest.mark.again
@settings(max_examples=2 if config.DISABLE_JIT else 20)
@given(seed=st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.slow
def test_interactions_of_long_paths_are_the_same_whatever_is_kept(seed, kept):
    """Eleven players on a path, or eight, more than codes of a table have where that is asked for; against sums over sets in floats."""
    rng, n_players = np.random.default_rng(seed), 8 if config.DISABLE_JIT else 11
    ensemble = chain(rng.permutation(n_players), rng.standard_normal(n_players + 1), np.ones(n_players + 1), n_players)
    rows, background = ((rng.random((n, n_players)) < 0.6).astype(float) for n in (3, 7))
    found, _ = interact("shapley", ensemble, rows, background, kept=KEPT[kept])
    wanted, _ = interact("shapley", ensemble, rows, background, kept=KEPT["patterns"])
    assert_allclose(found, wanted, rtol=0, atol=1e-13)


@given(data=st.data(), ensemble=forests(max_features=5, max_depth=2))
def test_where_players_meet_in_pairs_alone_interactions_make_up_the_value(data, ensemble):
    """The Shapley value is what a player does alone and half of its interactions."""
    rows, background = data.draw(batches(ensemble, max_rows=1)), data.draw(batches(ensemble, max_rows=4))
    found, buffers = interact("shapley", ensemble, rows, background)
    for r, player in enumerate(query_for("shapley", ensemble).players):
        mixed = background.copy()
        mixed[:, player] = rows[0, player]
        alone = naive.margins(ensemble, mixed).mean(axis=0) - naive.margins(ensemble, background).mean(axis=0)
        assert_allclose(buffers.phi[:, r, 0], alone + found[0, :, player].sum(axis=1) / 2, rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests())
@pytest.mark.parametrize("kept", ["tables", "sums"])
def test_pairs_are_those_that_share_a_path(data, ensemble, kept):
    """However trees are cut; the same as in the path-dependent game."""
    group = data.draw(partitions(ensemble, max_groups=5))
    forest = make_forest(ensemble, group)[1]
    paths = [path for root in ensemble.root for path in players_of_paths(ensemble, forest.player_of_node, root, frozenset())]
    expected = {pair for path in paths for pair in itertools.combinations(sorted(path), 2)}
    asked = query_for("shapley", ensemble, group, KEPT[kept], interactions=True)
    assert list(map(tuple, list_pairs(asked.partitioning).tolist())) == sorted(expected)
    assert (asked.pairs == forest.players[list_pairs(asked.partitioning)]).all()
    assert query_for("shapley", ensemble, group, KEPT[kept]).pairs.shape == (0, 2)


def test_tables_of_pairs_are_part_of_the_budget():
    """Where they do not fit, patterns are kept instead."""
    rng = np.random.default_rng(0)
    ensemble = chain(rng.permutation(9), rng.standard_normal(10), np.ones(10), 9)
    rows, background = ((rng.random((n, 9)) < 0.7).astype(float) for n in (4, 6))
    budget, found = PLENTY, []
    for _ in range(4):
        asked = ask_background(ensemble, METHODS["shapley"], n_rows=len(background), budget=budget, interactions=True)
        assert asked.n_bytes[0] <= budget
        prepared = prepare(ensemble, METHODS["shapley"], {}, interactions=True, background=(asked, counted(asked, background)))
        assert count_bytes(prepared) <= asked.n_bytes[0]
        found.append(attributed("shapley", prepared, rows).pairs[0, :, : len(rows)])
        budget = int(asked.n_bytes[0]) - 1
    assert_allclose(found, [found[0]] * 4, rtol=0, atol=ATOL)
