"""Attributions of a few rows against a background of few rows, by name of the method, with all that may be kept of a background."""

from fractions import Fraction

import pytest

from leafledger.kernels.jit.decorator import count_bytes
from leafledger.kernels.marginal import query
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, measure_background, prepare
from tests import naive
from tests.kernels.attributing import run

PARAMETERS = {
    "shapley": {},
    "banzhaf": {"p": 0.5},
    "beta": {"alpha": 2.0, "beta": 3.0},
    "semivalue": {"atoms": ((0.25, 1.0), (0.5, 3.0)), "density": ()},
    "owen": {"across": "shapley", "within": "shapley"},
    "two_step": {},
    "asymmetric": {"sequence": ()},
    "probabilistic": {"sizes": (), "weights": ()},
}
PLENTY = 1 << 40  # bytes
# Of a background: most bits of a code with a table, and most players of a deep leaf with sums; beyond them patterns.
KEPT = {"tables": (12, 20), "tables and sums": (2, 20), "sums": (0, 20), "sums and patterns": (0, 1), "patterns": (0, 0)}


WEIGHTS = {
    "shapley": naive.shapley_weight,
    "banzhaf": naive.banzhaf_weight,
    "beta": lambda size, n: naive.beta_weight(size, n, 2, 3),
    "semivalue": lambda size, n: (naive.banzhaf_weight(size, n, Fraction(1, 4)) + 3 * naive.banzhaf_weight(size, n)) / 4,
}


def each_and_mixed(first, *others):
    """The first method with all that can be kept of a background, others with a mixture."""
    return [
        *((first, kept) for kept in KEPT),
        *((name, kept) for name in others if name != first for kept in ("tables and sums", "sums and patterns")),
    ]


def query_for(name, ensemble, group=None, kept=KEPT["tables"], interactions=False):
    """A query whose subtrees are cut as finely as is asked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query, "COARSE_TO_FINE", [kept])
        return ask_background(ensemble, METHODS[name], group, n_rows=100, budget=PLENTY, interactions=interactions)


def counted(asked, background):
    """A background of few rows, counted."""
    return measure_background(asked, background.T[asked.bins.column].copy())


def against(name, ensemble, background, parameters, group=None):
    """A method prepared against a background, its subtrees cut as it asks for by itself."""
    asked = ask_background(ensemble, METHODS[name], group, n_rows=len(background), budget=PLENTY)
    prepared = prepare(ensemble, METHODS[name], parameters, group, background=(asked, counted(asked, background)))
    assert count_bytes(prepared) <= asked.n_bytes[0]
    return prepared


def explain(name, ensemble, rows, background, group=None, kept=KEPT["tables"], **parameters):
    """phi ``(n, outputs, players)``, base and margin."""
    asked = query_for(name, ensemble, group, kept)
    prepared = prepare(ensemble, METHODS[name], PARAMETERS[name] | parameters, group, background=(asked, counted(asked, background)))
    n_players = ensemble.n_features if group is None or not METHODS[name].phi.of_groups else int(group.max()) + 1
    assert (prepared.players == asked.players).all()
    return run(name, prepared, rows, n_players)
