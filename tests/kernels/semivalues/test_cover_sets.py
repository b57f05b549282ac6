"""Tables of sets from covers: as by definition, as walks have them, and only where they are small and worth it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from leafledger.kernels.marginal.subtrees import Partitioner
from leafledger.kernels.path_dependent.set_games import play_sets
from leafledger.kernels.semivalues import cover_sets
from leafledger.kernels.semivalues.cover_sets import choose_covered, look_up_covered
from leafledger.kernels.set_indices import INDICES, Sets, of_index
from leafledger.kernels.trees import lookup
from leafledger.kernels.trees.forest import make_forest
from tests.kernels.attributing import ATOL, WEIGHTS, attributed, defaults
from tests.kernels.interacting import asked, by_index, by_measure, check_sets, find
from tests.strategies import batches, forests, partitions
from tests.trees import chain, grown, join

SIGNED = 10 * ATOL  # signed weights of five players add up to 10 in size
ROUNDED = 1e-12  # of the largest interaction of a row


@pytest.fixture
def covered(monkeypatch):
    """Make every table that codes are short enough for."""
    monkeypatch.setattr(lookup, "MAX_COMPARISONS", 0)
    monkeypatch.setattr(cover_sets, "POINT_COST", 1e9)
    monkeypatch.setattr(cover_sets, "ENTRIES_PER_NODE", 1e9)


@pytest.mark.again
@pytest.mark.parametrize("index", INDICES)
@given(data=st.data(), ensemble=forests(max_trees=2))
@settings(max_examples=10)
@pytest.mark.usefixtures("covered")
def test_interactions_are_those_of_the_definition(data, ensemble, index):
    """Of features, in orders 1 to 4: categories, missing values, repeated features, several outputs, vector leaves, no cover."""
    rows, order = data.draw(batches(ensemble, max_rows=1)), data.draw(st.integers(1, 4))
    found, prepared = find(ensemble, rows, asked(index, order))
    check_sets(found, ensemble, rows, by_index(index, order), ensemble.n_features, SIGNED)
    assert (prepared.pairs.tables.subtrees.first.size > 0) == bool(found)


@given(data=st.data(), ensemble=forests(max_trees=2, max_features=6))
@settings(max_examples=10)
@pytest.mark.usefixtures("covered")
def test_of_groups_too(data, ensemble):
    """Players are groups of features."""
    rows, group = data.draw(batches(ensemble, max_rows=1)), data.draw(partitions(ensemble, max_groups=4))
    found, _ = find(ensemble, rows, asked("k-SII", 3), group=group)
    check_sets(found, ensemble, rows, by_index("k-SII", 3), int(group.max()) + 1, SIGNED, group)


@pytest.mark.parametrize("name", ["banzhaf", "beta"])
@given(data=st.data(), ensemble=forests(max_trees=2))
@settings(max_examples=8)
@pytest.mark.usefixtures("covered")
def test_methods_with_a_measure_of_their_own_keep_it(data, ensemble, name):
    """For sets of every size."""
    rows = data.draw(batches(ensemble, max_rows=1))
    found, _ = find(ensemble, rows, Sets(3, ""), name, defaults(name))
    check_sets(found, ensemble, rows, by_measure(3, WEIGHTS[name]), ensemble.n_features, ATOL)


def model():
    """Trees that are cut, and two paths that are too long."""
    rng = np.random.default_rng(11)
    values, covers = rng.standard_normal(15), rng.uniform(1, 9, 15)
    return join([*(grown(rng, 1, 5, 15) for _ in range(6)), *(chain(rng.permutation(15)[:14], values, covers, 15) for _ in range(2))])


@pytest.mark.again
@pytest.mark.parametrize("index", INDICES)
def test_tables_are_as_walks(index, monkeypatch):
    """In all that a row has, by the choice that is made by itself; pairs alone where every step is Python's."""
    ensemble, rows, order = model(), np.random.default_rng(12).random((5, 15)), 2 if config.DISABLE_JIT else 3
    found, prepared = find(ensemble, rows, asked(index, order))
    tables = prepared.pairs.tables
    assert tables.subtrees.first.size > 6
    assert {tree for some in tables.walked.walks for tree in some.tree.tolist()} == {6, 7}
    monkeypatch.setattr(cover_sets, "ENTRIES_PER_NODE", 0)
    walked, prepared = find(ensemble, rows, asked(index, order))
    assert prepared.pairs.tables.subtrees.first.size == 0
    assert list(found) == list(walked)
    one, other = np.stack([*found.values()]), np.stack([*walked.values()])
    assert np.abs(one - other).max() <= ROUNDED * np.abs(other).max()


@pytest.mark.again
def test_every_row_adds_up_over_both():
    """Tables and walks add to the same sets."""
    ensemble, rows = model(), np.random.default_rng(13).random((9, 15))
    found, prepared = find(ensemble, rows, asked("STII", 2))
    margin = attributed("shapley", prepared, rows).margin[:, :9]
    assert np.abs(sum(found.values()) + prepared.base[:, None] - margin).max() < 100 * ATOL  # sums of sixteen trees


def choose(ensemble, index, order):
    """A forest, the game, and which trees get tables."""
    forest = make_forest(ensemble)[1]
    value = of_index(index, order)
    played, partitioner = play_sets(forest, value), Partitioner(forest, forest.player_of_node, order)
    chosen = choose_covered(partitioner, played, np.arange(ensemble.root.size))
    return chosen, look_up_covered(partitioner, played, forest, value, np.flatnonzero(chosen))


@pytest.mark.again
def test_trees_are_chosen_by_size_and_cost(monkeypatch):
    """Codes that are too long have none; tables that are too large for their tree; what is quicker walked; and what all together have no room for."""
    ensemble = model()
    chosen, tables = choose(ensemble, "k-SII", 3)
    assert chosen.tolist() == [True] * 6 + [False] * 2
    forest = make_forest(ensemble)[1]
    cells = Partitioner(forest, forest.player_of_node, 3).cut(12).cells[ensemble.root]
    assert tables.values.size <= cells[:6].sum() <= cover_sets.ENTRIES_PER_NODE * (ensemble.feature.size - 2 * 29)
    monkeypatch.setattr(cover_sets, "MOST_ENTRIES", cells[:4].sum())
    assert choose(ensemble, "k-SII", 3)[0].tolist() == [True] * 4 + [False] * 4
    monkeypatch.setattr(cover_sets, "MOST_ENTRIES", cells[:4].sum() - 1)
    chosen, tables = choose(ensemble, "k-SII", 3)
    assert chosen.tolist() == [True] * 3 + [False] * 5
    assert tables.first.size > 3
    monkeypatch.setattr(cover_sets, "POINT_COST", 1e-9)
    chosen, tables = choose(ensemble, "k-SII", 3)
    assert not chosen.any()
    assert tables.values.size == 0
