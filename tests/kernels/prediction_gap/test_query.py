"""What perturbations ask of a background, how much room that takes, and what is no answer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.jit.decorator import count_bytes
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prediction_gap.noise import measure
from leafledger.kernels.prepare import ask_background, measure_background, prepare, weigh_leaves
from tests import naive
from tests.kernels.attributing import defaults
from tests.kernels.prediction_gap.gaps import binned
from tests.strategies import batches, forests, partitions
from tests.trees import stumps

GAP = METHODS["gap"]
PLENTY = 1 << 30  # bytes


@given(data=st.data(), ensemble=forests(max_features=4))
def test_a_background_is_measured_by_its_own_rows(data, ensemble):
    """Not by those that a batch is padded with; moments of every feature, and the combinations of every group."""
    rows, groups = data.draw(batches(ensemble)), data.draw(partitions(ensemble))
    query = ask_background(ensemble, GAP, groups, n_rows=len(rows), budget=PLENTY)
    with np.errstate(over="ignore", invalid="ignore"):  # a value may be as large as there is
        found = measure_background(query, rows.T[query.bins.column])
        values, bins, forest = binned(ensemble, rows, groups)
        expected = measure(values, bins, forest.player, np.ones(forest.n_players, bool))
    for name in ("n", "start", "seen", "times"):
        assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.n.tolist() == [sum(bool(np.isfinite(x)) for x in column) for column in values]
    assert (np.add.reduceat(np.append(found.times, 0.0), found.start[:-1]) == len(rows)).all()
    assert query.players.tolist() == list(range(groups.max() + 3))


@given(data=st.data(), ensemble=forests(max_features=4), noise=st.sampled_from(("normal", "empirical")))
def test_tables_take_no_more_room_than_was_projected(data, ensemble, noise):
    """Whatever is drawn; absent features, of the method that ranks, are averaged by cover as without a background."""
    rows, groups = data.draw(batches(ensemble)), data.draw(partitions(ensemble))
    rows = np.where(np.isfinite(rows) & (np.abs(rows) < 100), rows, np.nan)
    query = ask_background(ensemble, GAP, groups, n_rows=len(rows), budget=PLENTY)
    counted = measure_background(query, rows.T[query.bins.column])
    prepared = prepare(ensemble, GAP, defaults("gap") | {"noise": noise}, groups, background=(query, counted))
    assert count_bytes(prepared.method.gap) + count_bytes(prepared.method.of_ranker) <= query.n_bytes[0]
    nobody = [float(naive.coalition_value(ensemble, rows[0], (), k)) for k in range(ensemble.base.size)]
    assert_allclose(prepared.base, nobody, rtol=0, atol=1e-13)


def test_rankings_have_no_interactions():
    """Neither asked for, nor among what is asked of a background."""
    ensemble = stumps(((0, 0.0, 0.0, 1.0),), 1)
    assert ask_background(ensemble, GAP, n_rows=1, budget=PLENTY).pairs.shape == (0, 2)
    with pytest.raises(InvalidParameters, match="method 'gap' has no interactions"):
        ask_background(ensemble, GAP, n_rows=1, budget=PLENTY, interactions=True)


def test_the_model_is_no_background():
    """There is nothing to be measured of it."""
    ensemble = stumps(((0, 0.0, 0.0, 1.0),), 1)
    query = ask_background(ensemble, GAP, n_rows=None, budget=PLENTY)
    with pytest.raises(InvalidParameters, match="rows are perturbed by what is measured of a background, expected rows, got the model"):
        weigh_leaves(ensemble, GAP, None, query)


def test_another_methods_background_is_refused():
    """What the marginal game asks of rows, and what it counts, says nothing of how they are spread."""
    ensemble, rows = stumps(((0, 0.0, 0.0, 1.0),), 1), np.zeros((1, 1))
    query, other = (ask_background(ensemble, METHODS[name], n_rows=1, budget=PLENTY) for name in ("gap", "shapley"))
    counted = measure_background(other, rows)
    with pytest.raises(InvalidParameters, match="known as MarginalQuery, the method expects PerturbationQuery"):
        prepare(ensemble, GAP, defaults("gap"), background=(other, counted))
    with pytest.raises(InvalidParameters, match="known as Background, the method expects Measured"):
        prepare(ensemble, GAP, defaults("gap"), background=(query, counted))
