"""The methods gap and gap_greedy: the ranks of the method that ranks, or of the greedy definition, and the gap of the ranking."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.jit.decorator import count_bytes
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prediction_gap.greedy import TIE
from leafledger.kernels.prediction_gap.leaf_regions import count_visits
from leafledger.kernels.prediction_gap.noise import NOISES
from leafledger.kernels.prepare import prepare
from tests import naive, perturbed
from tests.kernels.attributing import defaults, scores_by
from tests.kernels.prediction_gap.gaps import forest_and_rows, noisy, outcomes_of
from tests.kernels.prediction_gap.ranked import ATOL, RTOL, SCALE, against, defined, written
from tests.kernels.ranking.ranked import RANKINGS, expected_ranks, write_ranking
from tests.strategies import batches, forests, partitions
from tests.trees import stumps


@pytest.mark.again
@pytest.mark.parametrize("ranking", RANKINGS)
@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=3, max_features=3), noise=st.sampled_from(NOISES))
def test_rankings_are_those_of_the_method_that_ranks(data, ensemble, ranking, noise):
    """Features by size of its values, equal ones in their own order, with those in no split among them; PGI² by enumeration."""
    rows, ranking = data.draw(batches(ensemble, 2)), write_ranking(ranking, ensemble)
    phi = scores_by(ranking, ensemble, rows)
    ranks, gaps = written("gap", ensemble, rows, ranking=ranking, noise=noise.name, scale=(SCALE,))
    for i, row in enumerate(rows):
        outcomes, gap = defined(ensemble, row, noise)
        for k in range(ensemble.base.size):
            order = naive.ranking(np.abs(phi[i, k]))
            assert_array_equal(ranks[i, k], expected_ranks(ensemble, order))
            assert_allclose(gaps[i, k], float(perturbed.mean_gap(gap, outcomes, order)[k]), rtol=RTOL, atol=ATOL)


def test_a_rate_is_a_number():
    """There are no rows to choose it by before those that are ranked."""
    ensemble, rows = forest_and_rows()
    with pytest.raises(InvalidParameters, match="rate is 'auto', but there are no rows to choose it by; expected a number"):
        written("gap", ensemble, rows, ranking="ranker(rate=auto)")


@settings(max_examples=2 if config.DISABLE_JIT else 15)  # exact fractions over all subsets are slow
@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=3, max_features=3), noise=st.sampled_from(NOISES))
@pytest.mark.slow
def test_greedy_rankings_are_those_of_the_definition(data, ensemble, noise):
    """Every feature tried at every step, those that nothing perturbs among them. The first k of them are the same."""
    rows, top = data.draw(batches(ensemble, 2)), data.draw(st.integers(0, 4))
    ranks, gaps = written("gap_greedy", ensemble, rows, noise=noise.name, scale=(SCALE,), top=top)
    for i, row in enumerate(rows):
        outcomes, gap = defined(ensemble, row, noise)
        for k in range(ensemble.base.size):
            order, _ = perturbed.rank_greedily(gap, outcomes, ensemble.n_features, k, TIE)
            order = order[: top or None]
            assert_array_equal(ranks[i, k], expected_ranks(ensemble, order))
            assert_allclose(gaps[i, k], float(perturbed.mean_gap(gap, outcomes, order)[k]), rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize(("top", "passes"), [(0, 4), (3, 3), (1, 1), (9, 4)])
def test_a_greedy_ranking_takes_a_pass_for_every_feature_ranked(top, passes):
    """The budget is that of all passes together, exactly."""
    ensemble, rows = forest_and_rows()
    visits = count_visits(noisy(ensemble, rows, 1.0)[0].regions)
    asked = defaults("gap_greedy") | {"top": top}
    prepare(ensemble, METHODS["gap_greedy"], asked | {"budget": float(passes * visits)})
    with pytest.raises(InvalidParameters, match="pairs of leaves per row"):
        prepare(ensemble, METHODS["gap_greedy"], asked | {"budget": float(passes * visits - 1)})


@pytest.mark.again
@pytest.mark.parametrize("name", ["gap", "gap_greedy"])
@pytest.mark.parametrize("grouped", [False, True])
@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=2, max_features=3))
def test_values_are_drawn_from_a_background(data, ensemble, grouped, name):
    """Numbers, categories and groups by enumeration of all that they become, whatever parts the background comes in."""
    rows, parts = data.draw(batches(ensemble, 1)), [data.draw(batches(ensemble, 2)) for _ in range(2)]
    groups = data.draw(partitions(ensemble)) if grouped else None
    ranks, gaps, query, prepared = against(name, ensemble, rows, parts, groups, noise="empirical")
    of = np.arange(ensemble.n_features) if groups is None else groups
    units = np.unique(of[np.unique(ensemble.feature[ensemble.feature >= 0])])
    outcomes = outcomes_of(np.concatenate(parts), of, units.tolist())
    gap = perturbed.make_gap(ensemble, rows[0], outcomes)
    for k in range(ensemble.base.size):
        if name == "gap":
            order = np.argsort(ranks[0, k]).tolist()
        else:
            order, _ = perturbed.rank_greedily(gap, outcomes, of.max() + 1, k, TIE)
            assert_array_equal(np.argsort(ranks[0, k]), order)
        assert_allclose(gaps[0, k], float(perturbed.mean_gap(gap, outcomes, order)[k]), rtol=RTOL, atol=ATOL)
    assert count_bytes(prepared.method.gap) + count_bytes(prepared.method.of_ranker) <= query.n_bytes[0]


@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=3, max_features=3))
@pytest.mark.slow
def test_what_is_not_resampled_stays(data, ensemble):
    """Categories stay as they do without a background."""
    rows, seen = data.draw(batches(ensemble, 2)), np.tile([[-1.0], [1.0]], (1, ensemble.n_features))  # deviations of 1
    ranks, gaps, _, _ = against("gap", ensemble, rows, [seen], resample="no", scale=(SCALE,))
    expected = written("gap", ensemble, rows, scale=(SCALE,))
    assert_array_equal(ranks, expected[0])
    assert_allclose(gaps, expected[1], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("given_", ["inf", -1, 0.5, "many"])
def test_how_many_are_ranked_is_a_whole_number(given_):
    """0 stands for all."""
    top = next(parameter for parameter in METHODS["gap_greedy"].parameters if parameter.name == "top")
    assert (top.default, top.read("5")) == (0, 5)
    with pytest.raises(ValueError, match=r"expected a (whole )?number"):
        top.read(given_)


def test_partitions_of_single_features_are_no_groups():
    """Numbered the other way round, ranks are the same and equal ones come the other way round."""
    ensemble = stumps(((0, 0.0, 0.0, 1.0), (1, 0.0, 0.0, 1.0), (2, 0.0, 0.0, 2.0)), 3)
    for name in ("gap", "gap_greedy"):
        assert written(name, ensemble, np.zeros((1, 3)))[0].tolist() == [[[2, 3, 1]]]
        assert written(name, ensemble, np.zeros((1, 3)), [2, 1, 0])[0].tolist() == [[[1, 2, 3]]]
