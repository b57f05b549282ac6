"""Carried background row by background row: equal to the definition, additive, the same bits however a background is read."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.batch import find_set_residuals
from leafledger.kernels.methods import METHODS
from leafledger.kernels.quotients.quantities import KINDS, Quantity
from leafledger.kernels.set_indices import INDICES, Sets
from leafledger.kernels.slices.buffers import BASE, NOT_WEIGHTED, REACH, RISE, TOTAL
from leafledger.kernels.weighted.rows import find_carried_misses, find_mean, is_loss
from tests import naive, naive_sets
from tests.kernels.interacting import sets_of
from tests.kernels.marginal.against import KEPT
from tests.kernels.weighted.carrying import carry, defined, labels_for, prepare_carried, values_of
from tests.strategies import batches, forests, partitions
from tests.trees import assert_same_bits, grown, one_tree

RELATIVE = 1e-9  # of a row's own scale: the largest quotient times what margins can differ by; found are 1e-12


def shapley(ensemble):
    """Values of one row against one, by enumeration in exact fractions."""
    group = np.arange(ensemble.n_features)
    return lambda row, background: naive.quotient_semivalue(ensemble, row, group, group.size, naive.shapley_weight, background)


def check(ensemble, rows, background, quantity, found, values, players):
    """Attributions, base values and totals of all rows, against the definition."""
    n, labels = len(rows), labels_for(quantity.name, len(rows))
    expected = defined(ensemble, rows, background, quantity, labels, values)
    scale = np.maximum(found.ends[:, REACH, :n].T, np.finfo(float).tiny)
    phi = np.zeros_like(expected)
    phi[:, :, players] = found.phi[:, :, :n].transpose(2, 0, 1)
    assert (np.abs(phi - expected) <= RELATIVE * scale[:, :, None]).all()
    margins, others = naive.margins(ensemble, rows), naive.margins(ensemble, background)
    for i, label in enumerate(labels):
        total, base = values_of(quantity, margins[i], label), values_of(quantity, others, label).mean(axis=0)
        assert_allclose(found.ends[:, TOTAL, i], total, rtol=1e-9, atol=1e-12)
        assert_allclose(found.ends[:, BASE, i], base, rtol=1e-9, atol=1e-12)
    assert (find_carried_misses(found.phi, found, n) <= RELATIVE).all()


@pytest.mark.again
@pytest.mark.parametrize("name", KINDS)
@given(data=st.data(), ensemble=forests(max_trees=2, max_features=4))
@pytest.mark.slow
def test_values_are_those_of_the_definition(data, ensemble, name):
    """Every quantity, categories and several outputs among the models, by enumeration for each background row."""
    rows, background = data.draw(batches(ensemble, max_rows=2)), data.draw(batches(ensemble, max_rows=3))
    kept = data.draw(st.sampled_from(list(KEPT.values())))
    quantity = Quantity(name, data.draw(st.sampled_from([1.0, 0.5])) if name in ("sigmoid", "exp", "log") else 1.0)
    prepared = prepare_carried("shapley", ensemble, background, quantity, kept=kept, parts=data.draw(st.integers(1, 2)))
    found = carry("shapley", prepared, rows, labels_for(name, len(rows)))
    check(ensemble, rows, background, quantity, found, shapley(ensemble), prepared.players)


def carried_sets(data, ensemble, name, sets, define):
    """Interactions of a row or two carried to a quantity, beside ``define(v)`` of every background row's game alone, times its quotient."""
    rows, background = data.draw(batches(ensemble, max_rows=2)), data.draw(batches(ensemble, max_rows=2))
    kept, labels = data.draw(st.sampled_from(list(KEPT.values()))), labels_for(name, len(rows))
    prepared = prepare_carried("shapley", ensemble, background, Quantity(name), kept=kept, interactions=True, sets=sets)
    found = carry("shapley", prepared, rows, labels)
    listed = sets_of(prepared)

    def values(row, other):
        games = [define(naive_sets.play(ensemble, row, k, other)) for k in range(ensemble.base.size)]
        return np.array([[float(game[members]) for members in listed] for game in games]).reshape(len(games), len(listed))

    expected = defined(ensemble, rows, background, Quantity(name), labels, values)
    scale = np.maximum(found.ends[:, REACH, : len(rows)].T, np.finfo(float).tiny)
    assert (np.abs(found.pairs[:, :, : len(rows)].transpose(2, 0, 1) - expected) <= 10 * RELATIVE * scale[:, :, None]).all()
    return find_set_residuals(prepared, found, len(rows))


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data(), ensemble=forests(max_trees=2, max_features=4), index=st.sampled_from(sorted(INDICES)), order=st.integers(1, 3))
@settings(max_examples=15)
@pytest.mark.slow
def test_interactions_of_sets_are_carried_alike(data, ensemble, name, index, order):
    """Every index, by enumeration for each background row; those that add up to margins add up to the quantity."""
    residuals = carried_sets(data, ensemble, name, Sets(order, index), lambda v: naive_sets.by_index(v, ensemble.n_features, index, order))
    assert len(residuals) == (ensemble.base.size if INDICES[index].adds_up else 0)
    assert (residuals <= RELATIVE).all()


@given(data=st.data(), ensemble=forests(max_trees=2, max_features=4))
@settings(max_examples=15)
@pytest.mark.slow
def test_interactions_of_pairs_are_carried_alike(data, ensemble):
    """Without an order: the Shapley interaction index of two."""
    carried_sets(data, ensemble, "sigmoid", None, lambda v: naive_sets.by_index(v, ensemble.n_features, "SII", 2))


@pytest.mark.parametrize("name", ["owen", "two_step"])
@given(data=st.data(), ensemble=forests(max_trees=2, max_features=4))
def test_values_of_a_partition_are_carried_alike(data, ensemble, name):
    """Against each background row alone they add up too."""
    rows, background, group = data.draw(batches(ensemble, max_rows=1)), data.draw(batches(ensemble, max_rows=2)), data.draw(partitions(ensemble))
    quantity, define = Quantity("log"), {"owen": naive.owen, "two_step": naive.two_step}[name]
    prepared = prepare_carried(name, ensemble, background, quantity, group)
    found = carry(name, prepared, rows, labels_for("log", len(rows)))
    check(ensemble, rows, background, quantity, found, lambda row, other: define(ensemble, row, group, other), prepared.players)


@pytest.mark.again
@pytest.mark.parametrize("name", [name for name in KINDS if name != "squared"])
@pytest.mark.parametrize("shift", [-30.0, 30.0])
def test_saturated_rows_keep_the_digits_of_their_own(name, shift):
    """Margins around 30 on either side, rows and background alike: probabilities that differ from 0 or 1 by 1e-13."""
    rng = np.random.default_rng(8)
    ensemble = grown(rng, 4, 3, 4)._replace(base=np.array([shift]))
    rows, background, quantity = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), Quantity(name)
    prepared = prepare_carried("shapley", ensemble, background, quantity)
    found = carry("shapley", prepared, rows, labels_for(name, 3))
    check(ensemble, rows, background, quantity, found, shapley(ensemble), prepared.players)
    expected = defined(ensemble, rows, background, quantity, labels_for(name, 3), shapley(ensemble))
    if name in ("sigmoid", "exp"):
        assert_allclose(found.phi[0, :, :3].T, expected[:, 0, prepared.players], rtol=1e-8, atol=1e-11 * np.abs(expected).max())


def test_one_background_row_and_constant_models_are_carried():
    """One row has one margin; of a model without splits nothing differs."""
    rng = np.random.default_rng(2)
    ensemble, rows = grown(rng, 3, 3, 3), rng.normal(size=(3, 3))
    prepared = prepare_carried("shapley", ensemble, rows[:1], Quantity("sigmoid"))
    assert prepared.weighted.nodes[0].size.tolist() == [1]
    found = carry("shapley", prepared, rows)
    check(ensemble, rows, rows[:1], Quantity("sigmoid"), found, shapley(ensemble), prepared.players)
    assert (found.ends[0, RISE, 0], np.abs(found.phi[0, :, 0]).max()) == (0.0, 0.0)
    constant = one_tree([-1], [0.0], [-1], [-1], [0.5], [1.0], 2)
    prepared = prepare_carried("shapley", constant, rows[:2, :2], Quantity("squared"))
    assert carry("shapley", prepared, rows[:, :2], np.ones(3)).ends[0, BASE, :3].tolist() == [0.25] * 3


@pytest.mark.again
@pytest.mark.parametrize("name", ["sigmoid", "log"])
@pytest.mark.slow
def test_bits_do_not_depend_on_how_a_background_is_read(name):
    """In one part or in many, in any order of its rows."""
    rng = np.random.default_rng(5)
    n, depth = (30, 3) if config.DISABLE_JIT else (90, 4)
    ensemble, rows, background = grown(rng, 5, depth, 4), rng.normal(size=(7, 4)), rng.normal(size=(n, 4))
    first = prepare_carried("shapley", ensemble, background, Quantity(name))
    for again in (background, background[rng.permutation(n)]):
        assert_same_bits(first.weighted, prepare_carried("shapley", ensemble, again, Quantity(name), parts=7).weighted)
    phi = carry("shapley", first, rows, labels_for(name, 7)).phi
    assert_array_equal(carry("shapley", first, rows[::-1], labels_for(name, 7)[::-1]).phi[:, :, :7][:, :, ::-1], phi[:, :, :7])


@pytest.mark.again
def test_errors_are_those_without_each_lot():
    """With and without, by the nodes of all rows; a lot's values are those of the other rows as a background."""
    rng = np.random.default_rng(6)
    ensemble, rows, background = grown(rng, 3, 3, 4), rng.normal(size=(3, 4)), rng.normal(size=(60, 4))
    prepared = prepare_carried("shapley", ensemble, background, Quantity("sigmoid"), errors=True)
    found = carry("shapley", prepared, rows)
    assert_array_equal(found.phi, carry("shapley", prepare_carried("shapley", ensemble, background, Quantity("sigmoid")), rows).phi)
    assert len(found.without) == 20
    assert_allclose(found.without.mean(axis=0), found.phi, rtol=0, atol=1e-12)
    assert np.abs(found.without - found.phi).max() > 1e-4


def test_the_base_value_of_predictions_is_the_mean_prediction():
    """Of each output its own."""
    rng = np.random.default_rng(7)
    ensemble, background = grown(rng, 6, 3, 4), rng.normal(size=(40, 4))
    for name in ("sigmoid", "exp"):
        prepared = prepare_carried("shapley", ensemble, background, Quantity(name))
        assert find_mean(prepared.weighted) == pytest.approx(values_of(Quantity(name), naive.margins(ensemble, background), 0.0).mean(axis=0))


def test_a_loss_has_a_base_value_for_every_row():
    """And so none for all of them."""
    rng = np.random.default_rng(7)
    prepared = prepare_carried("shapley", grown(rng, 2, 2, 3), rng.normal(size=(9, 3)), Quantity("log"))
    assert np.isnan(find_mean(prepared.weighted)).all()
    assert is_loss(prepared.weighted)
    assert not is_loss(NOT_WEIGHTED)


def test_a_row_without_a_label_has_numbers_that_do_not_count():
    """They are those of the label 1; whoever counts rows leaves it out."""
    rng = np.random.default_rng(3)
    ensemble, rows, background = grown(rng, 3, 3, 3), rng.normal(size=(2, 3)), rng.normal(size=(9, 3))
    prepared = prepare_carried("shapley", ensemble, background, Quantity("gamma"))
    found = carry("shapley", prepared, rows, np.array([-5.0, 1.0]))
    assert np.isfinite(found.phi).all()
    assert_array_equal(found.phi, carry("shapley", prepared, rows, np.ones(2)).phi)
    assert METHODS["shapley"].check is not None
