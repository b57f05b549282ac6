"""Interactions of sets of a few rows, beside their definition in exact fractions."""

from fractions import Fraction

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.set_indices import Sets
from tests import naive_sets
from tests.kernels.attributing import attributed


def sets_of(prepared):
    """Players of every set."""
    return [frozenset(player for player in row if player >= 0) for row in prepared.pairs.players.tolist()]


def find(ensemble, rows, sets, name="shapley", parameters=None, group=None, background=None):
    """``{set: (outputs, n)}``, and what was prepared; ``background`` is a query and what it counted."""
    prepared = prepare(ensemble, METHODS[name], parameters or {}, group, interactions=True, background=background, sets=sets)
    found = attributed(name, prepared, rows).pairs
    return {members: found[:, s, : len(rows)] for s, members in enumerate(sets_of(prepared))}, prepared


def check_sets(found, ensemble, rows, define, n_players, tolerance, group=None, background=None):
    """Every set as ``define(v, n_players)`` says of the row's game; those that are not listed are 0."""
    for i, row in enumerate(rows):
        for k in range(ensemble.base.size):
            expected = define(naive_sets.play(ensemble, row, k, background, group), n_players)
            for members, value in expected.items():
                assert abs(float(value) - (found[members][k, i] if members in found else 0.0)) <= tolerance, (members, k, i)
            assert set(found) <= set(expected)


def by_index(index, order):
    """What ``check_sets`` takes, of an index."""
    return lambda v, n_players: naive_sets.by_index(v, n_players, index, order)


def by_measure(order, weight):
    """What ``check_sets`` takes, of a game value."""
    return lambda v, n_players: naive_sets.by_measure(v, n_players, order, weight)


def asked(index, order):
    """What kernels are asked for."""
    return Sets(order, index)


def point(p):
    """Weights of a coalition where all others are present with probability p, in exact fractions."""
    exact = Fraction(p)
    return lambda size, n: exact**size * (1 - exact) ** (n - 1 - size)
