"""Attributions of a few rows by name of the method, as the tests of kernels need them."""

from fractions import Fraction

import numpy as np

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.method.notation import read_method
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.slices.buffers import make_buffers
from tests import naive

# Leaves are at most 2 in size and trees at most 3: what is left is rounding of sums of some thirty terms.
ATOL = 1e-13
# What a coalition counts, of methods with their default parameters.
WEIGHTS = {
    "shapley": naive.shapley_weight,
    "banzhaf": naive.banzhaf_weight,
    "beta": lambda size, n: naive.beta_weight(size, n, 1, 1),
}
# Game values by the texts that name them.
NAMED = {
    "shapley": naive.shapley_weight,
    "banzhaf": naive.banzhaf_weight,
    "banzhaf:0.25": lambda size, n: naive.banzhaf_weight(size, n, Fraction(1, 4)),
    "beta:4:1": lambda size, n: naive.beta_weight(size, n, 4, 1),
    "semivalue(atoms=0.25:1,0.5:2)": lambda size, n: (naive.banzhaf_weight(size, n, Fraction(1, 4)) + 2 * naive.banzhaf_weight(size, n)) / 3,
}
LEVELS = (*NAMED, "probabilistic")  # the last one stands for what write_value makes of it


def write_value(name, n):
    """The text of a value among n players, and its weights by size; of probabilities of sizes among fewer, of whom the others have no effect."""
    if name in NAMED:
        return name, NAMED[name]
    sizes = [Fraction(2 * (k + 1), n * (n + 1)) for k in range(n)]
    text = f"probabilistic(sizes={','.join(repr(float(size)) for size in sizes)})"
    return text, lambda size, m: naive.thinned_weight(sizes, size, m)


def defaults(name):
    """The parameters of a method where none is given."""
    return {parameter.name: parameter.default for parameter in METHODS[name].parameters}


def explain(name, ensemble, rows, **parameters):
    """phi ``(n, outputs, features)``, base and margin of a few rows."""
    return run(name, prepare(ensemble, METHODS[name], defaults(name) | parameters), rows, ensemble.n_features)


def scores_by(text, ensemble, rows, group=None):
    """phi of a method written with its parameters, of features or of groups."""
    method, given = read_method(text, METHODS)
    n_players = ensemble.n_features if group is None else int(max(group)) + 1
    return run(method.name, prepare(ensemble, method, given, group), rows, n_players)[0]


def run(name, prepared, rows, n_players):
    """phi ``(n, outputs, n_players)``, base and margin."""
    buffers = attributed(name, prepared, rows)
    phi = np.zeros((len(rows), prepared.base.size, n_players))
    phi[:, :, prepared.players] = buffers.phi[:, :, : len(rows)].transpose(2, 0, 1)
    return phi, prepared.base, buffers.margin[:, : len(rows)].T


def attributed(name, prepared, rows):
    """Buffers after a few rows went through them."""
    buffers = make_buffers(prepared, len(rows))
    buffers.values[:, : len(rows)] = rows.T[prepared.bins.column]
    attribute_batch(METHODS[name], prepared, buffers)
    return buffers


def leaves(tables):
    """All arrays of nested records."""
    return [tables] if isinstance(tables, np.ndarray) else [array for field in tables for array in leaves(field)]
