"""Groups, Owen values and interactions are those of their definitions, walked and looked up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernels.methods import METHODS
from kernels.parameters import InvalidParameters
from kernels.prepare import prepare
from kernels.trees import lookup
from tests import naive
from tests.kernels.attributing import ATOL, attributed, run
from tests.strategies import batches, forests

FEW_ROWS = 2


@pytest.fixture(params=["looked up", "walked"])
def trees(request, monkeypatch):
    """Trees so small are looked up; walk them as well."""
    if request.param == "walked":
        monkeypatch.setattr(lookup, "MAX_COMPARISONS", 0)
    else:
        monkeypatch.setattr(lookup, "ENTRIES_PER_NODE", 10**6)


def groups_of(data, ensemble):
    """A partition, its groups numbered from 0 without a gap."""
    drawn = [data.draw(st.integers(0, 2)) for _ in range(ensemble.n_features)]
    return np.unique(drawn, return_inverse=True)[1]


def defaults(name):
    return {parameter.name: parameter.default for parameter in METHODS[name].parameters}


WEIGHTS = {
    "shapley": naive.shapley_weight,
    "banzhaf": naive.banzhaf_weight,
    "beta": lambda size, n: naive.beta_weight(size, n, 1, 1),
}


@pytest.mark.parametrize("name", WEIGHTS)
@given(data=st.data(), ensemble=forests())
@pytest.mark.usefixtures("trees")
def test_groups_play_the_quotient_game(data, ensemble, name):
    """A group's value is that of a player who brings all its features, by enumeration in exact fractions."""
    rows, group = data.draw(batches(ensemble, FEW_ROWS)), groups_of(data, ensemble)
    n_groups = int(group.max()) + 1
    prepared = prepare(ensemble, METHODS[name], defaults(name), group)
    phi, base, margin = run(name, prepared, rows, n_groups)
    expected = [naive.quotient_semivalue(ensemble, row, group, n_groups, WEIGHTS[name]) for row in rows]
    assert_allclose(phi, expected, rtol=0, atol=ATOL)
    if METHODS[name].additive:
        assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)


@pytest.mark.parametrize("name", ["owen", "two_step"])
@given(data=st.data(), ensemble=forests())
@pytest.mark.usefixtures("trees")
def test_values_of_a_partition_are_those_of_the_definition(data, ensemble, name):
    """In exact fractions, over whole groups and members of one's own; they add up, and within a group to the group's value."""
    rows, group = data.draw(batches(ensemble, FEW_ROWS)), groups_of(data, ensemble)
    phi, base, margin = run(name, prepare(ensemble, METHODS[name], {}, group), rows, ensemble.n_features)
    defined = {"owen": naive.owen, "two_step": naive.two_step}[name]
    assert_allclose(phi, [defined(ensemble, row, group) for row in rows], rtol=0, atol=ATOL)
    assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)
    of_groups, _, _ = run("shapley", prepare(ensemble, METHODS["shapley"], {}, group), rows, int(group.max()) + 1)
    for g in range(group.max() + 1):
        assert_allclose(phi[:, :, group == g].sum(axis=2), of_groups[:, :, g], rtol=0, atol=ATOL)


@pytest.mark.parametrize("partition", ["one group", "groups of one"])
@given(data=st.data(), ensemble=forests(max_trees=6, max_depth=7, max_features=9))
def test_owen_values_of_trivial_partitions_are_shapley_values(data, ensemble, partition):
    """One group of all features, or each feature a group: the levels fall together (Owen 1977, Section 4)."""
    rows = data.draw(batches(ensemble, FEW_ROWS))
    group = np.zeros(ensemble.n_features, int) if partition == "one group" else np.arange(ensemble.n_features)
    owen, _, _ = run("owen", prepare(ensemble, METHODS["owen"], {}, group), rows, ensemble.n_features)
    shapley, _, _ = run("shapley", prepare(ensemble, METHODS["shapley"], {}), rows, ensemble.n_features)
    assert_allclose(owen, shapley, rtol=0, atol=ATOL)


@pytest.mark.parametrize("name", WEIGHTS)
@given(data=st.data(), ensemble=forests())
@pytest.mark.usefixtures("trees")
def test_interactions_are_those_of_the_definition(data, ensemble, name):
    """Every two features', by enumeration in exact fractions; those that are not listed are 0."""
    rows = data.draw(batches(ensemble, FEW_ROWS))
    prepared = prepare(ensemble, METHODS[name], defaults(name), interactions=True)
    buffers = attributed(name, prepared, rows)
    found = np.zeros((len(rows), ensemble.base.size, ensemble.n_features, ensemble.n_features))
    for p, (i, j) in enumerate(prepared.pairs.players):
        found[:, :, i, j] = found[:, :, j, i] = buffers.pairs[:, p, : len(rows)].T
    assert_allclose(found, [naive.interactions(ensemble, row, WEIGHTS[name]) for row in rows], rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_trees=4, max_depth=6, max_features=8))
def test_banzhaf_interactions_among_all_others(data, ensemble):
    """Where all others are present, at p = 1, an interaction is v(N) - v(N - i) - v(N - j) + v(N - i - j)."""
    rows = data.draw(batches(ensemble, 1))
    prepared = prepare(ensemble, METHODS["banzhaf"], {"p": 1.0}, interactions=True)
    buffers = attributed("banzhaf", prepared, rows)
    everyone = set(range(ensemble.n_features))
    for p, (i, j) in enumerate(prepared.pairs.players):
        for k in range(ensemble.base.size):
            without = [float(naive.coalition_value(ensemble, rows[0], everyone - out, k)) for out in (set(), {i}, {j}, {i, j})]
            assert abs(buffers.pairs[k, p, 0] - (without[0] - without[1] - without[2] + without[3])) < ATOL


@given(ensemble=forests(max_trees=1))
def test_what_a_method_cannot_do_is_refused(ensemble):
    """One line says so."""
    with pytest.raises(InvalidParameters, match="'owen' needs a partition"):
        prepare(ensemble, METHODS["owen"], {})
    with pytest.raises(InvalidParameters, match="'owen' has no interactions"):
        prepare(ensemble, METHODS["owen"], {}, np.zeros(ensemble.n_features, int), interactions=True)
