"""Tables of values: every tree is walked or looked up, with the same result."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.game_values import shapley
from leafledger.kernels.methods import METHODS
from leafledger.kernels.path_dependent.games import play
from leafledger.kernels.prepare import prepare
from leafledger.kernels.semivalues.tables import add_semivalues, no_semivalues, prepare_semivalue
from leafledger.kernels.trees import lookup
from leafledger.kernels.trees.binning import BATCH
from leafledger.kernels.trees.forest import make_forest
from tests import naive
from tests.kernels.attributing import ATOL, explain
from tests.strategies import batches, forests
from tests.trees import symmetric


@given(data=st.data(), ensemble=forests(max_trees=5, max_depth=4, max_features=8))
def test_looking_up_gives_what_walking_gives(data, ensemble):
    """A table's rows are the kernel's own, to rounding: trees are added in another order."""
    rows = data.draw(batches(ensemble))
    found = []
    for most in (lookup.MAX_COMPARISONS, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lookup, "MAX_COMPARISONS", most)
            patch.setattr(lookup, "ENTRIES_PER_NODE", 10**6)
            found.append(explain("banzhaf", ensemble, rows, p=0.3)[0])
    assert_allclose(found[0], found[1], rtol=0, atol=ATOL)


@pytest.mark.again
@pytest.mark.parametrize("features", [(0, 1, 2, 3, 4, 5), (2, 0, 2, 1, 2, 0), (0, 0, 0, 0, 0, 0, 0, 0)])
def test_symmetric_trees_are_looked_up(features):
    """A level is one comparison, so depth 6 has 64 codes and not 63 splits; values are those of the definition."""
    rng = np.random.default_rng(len(set(features)))
    ensemble = symmetric(rng, features, 6)
    rows = rng.standard_normal((3, 6))
    prepared = prepare(ensemble, METHODS["shapley"], {})
    assert prepared.method.looked_up.first.size == prepared.margin.looked_up.first.size == 1
    assert len(prepared.method.looked_up.marks) == len(features)
    phi, _, _ = explain("shapley", ensemble, rows)
    assert_allclose(phi, [naive.semivalue(ensemble, row, naive.shapley_weight) for row in rows], rtol=0, atol=ATOL)


@given(ensemble=forests(max_trees=5, max_depth=5))
def test_a_tree_is_walked_or_looked_up(ensemble):
    """Every tree with splits, and never both ways; a tree without splits gives nobody anything."""
    forest = make_forest(ensemble)[1]
    tables = prepare_semivalue(play(forest, shapley), forest)
    n_nodes = np.bincount(forest.trace.tree, minlength=ensemble.root.size)
    players = [len(set(ensemble.feature[(forest.trace.tree == t) & (ensemble.feature >= 0)].tolist())) for t in range(ensemble.root.size)]
    chosen = lookup.worth_looking_up(forest.comparisons, n_nodes, np.array(players, np.int64) * ensemble.value.shape[1])
    walked = np.concatenate([some.tree[some.stop > some.start] for some in tables.walked])
    assert tables.looked_up.first.size == chosen.sum()
    assert sorted(set(walked.tolist())) == np.flatnonzero(~chosen & (ensemble.feature[ensemble.root] >= 0)).tolist()


@given(ensemble=forests())
def test_tables_of_nothing_add_nothing(ensemble):
    """They are of the same types, and leave phi as it is."""
    forest = make_forest(ensemble)[1]
    tables = no_semivalues(forest)
    phi = np.ones((ensemble.base.size, forest.n_players, BATCH))
    add_semivalues(np.zeros((forest.n_used, BATCH), forest.bin_type), tables, phi, BATCH)
    assert (phi == 1).all()
    assert type(tables) is type(prepare_semivalue(play(forest, shapley), forest))
