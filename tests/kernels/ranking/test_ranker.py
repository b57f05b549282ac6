"""TreeGrad-Ranker: equal to its definition line by line, Banzhaf after one step, the axioms that Theorem 1 proves."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from tests import naive
from tests.hypercubes import full_tree, functions, hypercube
from tests.kernels.attributing import ATOL, NAMED, attributed, explain, scores_by
from tests.kernels.marginal.against import against
from tests.kernels.path_dependent.gradients import drawn_points, gradients
from tests.strategies import batches, forests
from tests.trees import join, symmetric, with_statistic

# Steps amplify rounding: ADAM divides gradients by their size, down to 1e-8.
PATH_ATOL = 1e-7
optimizers = st.sampled_from((("adam", 0.1), ("adam", 0.5), ("ascent", 0.1), ("ascent", 5.0)))


def paths(ensemble, rows, **parameters):
    """The objective at every step, ``(n, outputs, steps)``."""
    buffers = attributed("ranker", prepare(ensemble, METHODS["ranker"], parameters), rows)
    return buffers.path[:, :, : len(rows)].transpose(2, 0, 1)


@given(data=st.data(), ensemble=forests(max_features=4), steps=st.integers(1, 4), optimizer=optimizers)
def test_scores_are_those_of_the_definition(data, ensemble, steps, optimizer):
    """Scores and the objective's path follow Algorithms 2 and 10, whose gradients are enumerated."""
    rows = data.draw(batches(ensemble, max_rows=1))
    name, rate = optimizer
    parameters = {"steps": steps, "rate": rate, "optimizer": name}
    phi, path = explain("ranker", ensemble, rows, **parameters)[0], paths(ensemble, rows, **parameters)
    for k in range(ensemble.base.size):
        scores, objective = naive.ranker(ensemble, rows[0], k, steps, rate, name == "adam")
        assert_allclose(phi[0, k], scores, rtol=0, atol=PATH_ATOL)
        assert_allclose(path[0, k], objective, rtol=0, atol=PATH_ATOL)


@given(data=st.data(), ensemble=forests(max_trees=2, max_features=3), steps=st.integers(1, 3), optimizer=optimizers)
def test_scores_against_a_background_are_those_of_the_definition(data, ensemble, steps, optimizer):
    """The same lines in the marginal game."""
    rows, background = data.draw(batches(ensemble, max_rows=1)), data.draw(batches(ensemble, max_rows=3))
    name, rate = optimizer
    prepared = against("ranker", ensemble, background, {"steps": steps, "rate": rate, "optimizer": name})
    buffers = attributed("ranker", prepared, rows)
    for k in range(ensemble.base.size):
        scores, objective = naive.ranker(ensemble, rows[0], k, steps, rate, name == "adam", background)
        assert_allclose(buffers.phi[k, :, 0], scores[prepared.players], rtol=0, atol=PATH_ATOL)
        assert_allclose(buffers.path[k, :, 0], objective, rtol=0, atol=PATH_ATOL)


@given(data=st.data(), ensemble=forests(max_depth=6, max_features=9), optimizer=optimizers)
def test_one_step_gives_banzhaf_values(data, ensemble, optimizer):
    """T = 1, whatever the step would have been."""
    rows = data.draw(batches(ensemble))
    found, _, _ = explain("ranker", ensemble, rows, steps=1, rate=optimizer[1], optimizer=optimizer[0])
    assert_allclose(found, explain("banzhaf", ensemble, rows)[0], rtol=0, atol=ATOL)


@given(function=functions(), optimizer=optimizers, effect=st.integers(-8, 8))
def test_a_dummy_gets_its_effect(function, optimizer, effect):
    """Dummy: a feature that adds C to every coalition gets C; where it is part of no other tree, that is its effect alone."""
    values, order = function
    n = len(order)
    numbers = np.arange(2 * values.size)
    dummy = np.tile(values, 2) + effect * (numbers >> n)
    phi, _, _ = explain("ranker", full_tree(dummy, [n, *order]), hypercube(n + 1), steps=5, rate=optimizer[1], optimizer=optimizer[0])
    assert_allclose(phi[:, 0, n], np.where(hypercube(n + 1)[:, n] > 0, effect / 2, -effect / 2), rtol=0, atol=ATOL)


@given(function=functions(min_bits=2), optimizer=optimizers, data=st.data())
def test_equals_are_treated_equally(function, optimizer, data):
    """Equal treatment: two features that can be exchanged in f, and of which a row has the same, get the same.

    Two steps of ADAM, for where a gradient vanishes it divides rounding by 1e-8, and more steps do so again.
    """
    values, order = function
    i, j = data.draw(st.permutations(range(len(order))))[:2]
    rows, numbers = hypercube(len(order)), np.arange(values.size)
    exchanged = numbers ^ ((numbers >> i ^ numbers >> j) & 1) * (1 << i | 1 << j)
    tree = full_tree((values + values[exchanged]) / 2, order)
    phi, _, _ = explain("ranker", tree, rows, steps=2 if optimizer[0] == "adam" else 4, rate=optimizer[1], optimizer=optimizer[0])
    same = rows[:, i] == rows[:, j]
    assert_allclose(phi[same, 0, i], phi[same, 0, j], rtol=0, atol=PATH_ATOL)


@given(function=functions(monotone=True), optimizer=optimizers)
def test_scores_are_monotone(function, optimizer):
    """Monotonicity: a feature that raises every coalition has no score below 0, one that lowers every coalition none above."""
    values, order = function
    rows, numbers = hypercube(len(order)), np.arange(values.size)
    phi, _, _ = explain("ranker", full_tree(values, order), rows, steps=5, rate=optimizer[1], optimizer=optimizer[0])
    for j in range(len(order)):
        effect = values - values[numbers ^ 1 << j]  # of the row's own value against the other, alike in sign for all rows with that value
        for bit in (0, 1):
            mine = rows[:, j] == bit
            if (effect[mine] >= 0).all():
                assert (phi[mine, 0, j] >= -ATOL).all()
            if (effect[mine] <= 0).all():
                assert (phi[mine, 0, j] <= ATOL).all()


def evaluated(found, rows, looked_up):
    """Scores and path by a run's tables, where trees are walked or looked up."""
    tables = found.method
    polynomials = tables.game.polynomials
    none = polynomials.looked_up._replace(first=np.zeros(0, np.int64))
    chosen = tables if looked_up else tables._replace(game=tables.game._replace(polynomials=polynomials._replace(looked_up=none)))
    buffers = attributed("ranker", found._replace(method=chosen), rows)
    return buffers.phi[:, :, : len(rows)], buffers.path[:, :, : len(rows)]


# The features that the levels of each tree ask for: one to six of them, again and again; more than a byte of outcomes; in groups.
SYMMETRIC = {
    "one": [[3], [3, 3]],
    "two to six": [[0, 1], [2, 0, 1], [5, 4, 0, 2], [0, 1, 2, 3, 4], [5, 4, 3, 2, 1, 0], [0, 1, 6, 3, 4, 5]],
    "again": [[0, 1, 0, 2, 1, 0], [4, 4, 4, 3]],
    "nine deep": [[0, 1, 0, 1, 0, 1, 0, 1, 0]],
}

# Its table alone takes uncompiled as long as all others together; test_polynomials has one of as many outcomes.
NINE_DEEP = pytest.param("nine deep", 40, marks=pytest.mark.skipif(config.DISABLE_JIT, reason="half a million entries"))


@pytest.mark.again
@pytest.mark.parametrize("groups", [None, np.array([0, 0, 1, 1, 2, 3, 4, 5, 6, 7])], ids=["features", "groups"])
@pytest.mark.parametrize(("name", "n"), [("one", 600), ("two to six", 40), ("again", 40), NINE_DEEP], ids=str)
def test_trees_that_are_looked_up_are_climbed_as_those_that_are_walked(name, n, groups):
    """Scores and path of rows, also in more than one batch, some values missing."""
    features, rng = SYMMETRIC[name], np.random.default_rng(n)
    ensemble, rows = join([symmetric(rng, some, 10) for some in features]), rng.normal(size=(n, 10))
    rows[rng.random(rows.shape) < 0.1] = np.nan
    found = prepare(ensemble, METHODS["ranker"], {"steps": 4, "rate": 0.3, "optimizer": "adam"}, groups)
    assert found.method.game.polynomials.looked_up.first.size == len(features)
    for one, other in zip(evaluated(found, rows, True), evaluated(found, rows, False), strict=True):
        assert_allclose(one, other, rtol=0, atol=1e-12)


@given(data=st.data(), ensemble=forests(max_features=4))
def test_forests_that_are_looked_up_are_climbed_as_those_that_are_walked(data, ensemble):
    """Whatever is compared: numbers, categories, missing values; for every output."""
    rows = data.draw(batches(ensemble))
    found = prepare(ensemble, METHODS["ranker"], {"steps": 3, "rate": 0.5, "optimizer": "ascent"})
    for one, other in zip(evaluated(found, rows, True), evaluated(found, rows, False), strict=True):
        assert_allclose(one, other, rtol=0, atol=ATOL)


@pytest.mark.parametrize("looked_up", [True, False])
@given(data=st.data(), ensemble=forests().filter(lambda ensemble: (ensemble.category_set >= 0).any()))
def test_a_column_that_no_split_asks_for_changes_no_score(data, ensemble, looked_up):
    """A statistic that is there for other trees is a row of bins all the same; the Banzhaf values that one step finds know nothing of it."""
    rows = data.draw(batches(ensemble))
    found = prepare(with_statistic(ensemble), METHODS["ranker"], {"steps": 1, "rate": 0.1, "optimizer": "adam"})
    phi, _ = evaluated(found, np.pad(rows, ((0, 0), (0, 1))), looked_up)
    expected = np.pad(explain("banzhaf", ensemble, rows)[0], ((0, 0), (0, 0), (0, 1)))
    assert_allclose(phi.transpose(2, 0, 1), expected[:, :, found.players], rtol=0, atol=ATOL)


def test_trees_are_summed_in_every_step():
    """Scores are not linear: those of two trees together are not the sum of those of each (Theorem 1, and what Section 4 says of ensembles)."""
    draw = np.random.default_rng(0)
    rows, order = hypercube(3), [0, 1, 2]
    values = draw.normal(size=(2, 8))
    each = [explain("ranker", full_tree(some, order), rows)[0] for some in values]
    both, _, _ = explain("ranker", full_tree(values.sum(axis=0), order), rows)
    assert np.abs(sum(each) - both).max() > 1e-3


def test_the_objective_rises():
    """Ascent in small steps never goes down, and ends near the largest value of the set function where that is at a corner."""
    draw = np.random.default_rng(1)
    values, rows, order = draw.normal(size=8), hypercube(3), list(range(3))
    tree = full_tree(values, order)
    path = paths(tree, rows, steps=60, rate=0.5, optimizer="ascent")
    assert (path[:, 0, 0] == 0).all()
    assert (np.diff(path[:, 0]) >= -ATOL).all()
    games = [[float(naive.coalition_value(tree, row, [j for j in range(3) if s >> j & 1], 0)) for s in range(8)] for row in rows]
    largest = np.array([max((v[s] - v[7 ^ s]) / 2 for s in range(8)) for v in games])
    assert (path[:, 0, -1] <= largest + ATOL).all()
    assert (path[:, 0, -1] > 0.7 * largest).all()


@given(data=st.data(), ensemble=forests(max_features=4))
def test_groups_are_players(data, ensemble):
    """With a partition each group has one probability: one step gives the Banzhaf values of groups."""
    rows = data.draw(batches(ensemble, max_rows=1))
    group = np.arange(ensemble.n_features) // 2
    found = prepare(ensemble, METHODS["ranker"], {"steps": 1, "rate": 0.1, "optimizer": "adam"}, group)
    phi = attributed("ranker", found, rows).phi[:, :, 0]
    expected = naive.quotient_semivalue(ensemble, rows[0], group, int(group.max()) + 1, naive.banzhaf_weight)
    assert_allclose(phi, expected[:, found.players], rtol=0, atol=ATOL)


def differences(ensemble, row, k):
    """(f(S) - f(all others)) / 2 of every set of features, in fractions (Li, Yu and Low 2026, Eq. 6)."""
    n = ensemble.n_features
    sets = [s for size in range(n + 1) for s in itertools.combinations(range(n), size)]
    v = {s: naive.coalition_value(ensemble, row, s, k) for s in sets}
    return {s: (v[s] - v[tuple(j for j in range(n) if j not in s)]) / 2 for s in sets}, v


@pytest.mark.parametrize("value", NAMED)
@given(data=st.data(), ensemble=forests(max_features=4).filter(lambda ensemble: ensemble.n_features > 1))
def test_a_ranking_by_values_is_best_for_a_linear_surrogate(data, ensemble, value):
    """Its first k features solve the surrogate's problem among all sets of k (ibid., Proposition 2): such rankings may miss the model's own best."""
    row, n = data.draw(batches(ensemble, max_rows=1))[0], ensemble.n_features
    phi = scores_by(value, ensemble, row[None])[0]
    for k in range(ensemble.base.size):
        _, v = differences(ensemble, row, k)
        there = np.array([[1.0, *(j in s for j in range(n))] for s in v])
        weight = [float(NAMED[value](len(s), n) + NAMED[value](len(s) - 1, n)) if 0 < len(s) < n else 1.0 for s in v]
        scale = np.sqrt(weight)
        slopes = np.linalg.lstsq(there * scale[:, None], np.array(list(v.values()), float) * scale, rcond=None)[0][1:]
        signs = 2 * there[:, 1:] - 1
        for size in range(1, n + 1):
            top = np.isin(np.arange(n), naive.ranking(phi[k])[:size])
            best = max(float(slopes @ some) for some in signs if (some > 0).sum() == size)
            assert float(slopes @ (2.0 * top - 1)) >= best - 1e-9


@given(data=st.data(), ensemble=forests(max_features=4))
def test_no_point_is_better_than_the_best_set(data, ensemble):
    """The relaxed objective is a mean over sets drawn with z, so that only the best set itself is as good (ibid., Proposition 3)."""
    rows = data.draw(batches(ensemble, max_rows=1))
    z = drawn_points(data, ensemble, rows)
    (_, up), (_, down) = gradients(ensemble, rows, z), gradients(ensemble, rows, 1 - z)
    for k in range(ensemble.base.size):
        found, _ = differences(ensemble, rows[0], k)
        *_, second, first = sorted((float(found[s]), s) for s in found)
        chance = np.prod([z[0, k, j] if j in first[1] else 1 - z[0, k, j] for j in range(ensemble.n_features)])
        assert (up - down)[0, k] / 2 <= chance * first[0] + (1 - chance) * second[0] + ATOL
