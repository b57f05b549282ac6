"""What the methods that rank and measure their rankings write of a few rows, and the gap that they measure by definition."""

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, measure_background, merge_statistics, prepare
from tests import perturbed
from tests.kernels.attributing import defaults, run
from tests.kernels.prediction_gap.gaps import noisy_outcomes

SCALE = 0.7
RTOL, ATOL = 1e-9, 1e-12  # probabilities of cells between thresholds are differences


def written(name, ensemble, rows, groups=None, **parameters):
    """Ranks ``(n, outputs, features)``, and the gap of each ranking ``(n, outputs)``."""
    return taken_apart(run(name, prepare(ensemble, METHODS[name], defaults(name) | parameters, groups), rows, ensemble.n_features + 2)[0])


def taken_apart(phi):
    """Ranks and gaps, which are exact."""
    assert (phi[:, :, -1] == 0).all()
    return phi[:, :, :-2], phi[:, :, -2]


def against(name, ensemble, rows, parts, groups=None, **parameters):
    """The same where rows are perturbed by what is measured of a background that comes in parts, and a bound on the bytes of tables."""
    method, n_rows = METHODS[name], sum(map(len, parts))
    query = ask_background(ensemble, method, groups, n_rows=n_rows, budget=1 << 30)
    counted = merge_statistics([measure_background(query, part.T[query.bins.column]) for part in parts])
    prepared = prepare(ensemble, method, defaults(name) | parameters, groups, background=(query, counted))
    phi, _, _ = run(name, prepared, rows, ensemble.n_features + 2 if groups is None else int(max(groups)) + 3)
    return *taken_apart(phi), query, prepared


def defined(ensemble, row, noise):
    """What numeric features become, and PG² of a set of them."""
    asked = [j for j in range(ensemble.n_features) if ensemble.n_categories[j] == 0 and (ensemble.feature == j).any()]
    outcomes = {j: noisy_outcomes(ensemble, j, float(row[j]), SCALE, noise) for j in asked}
    return outcomes, perturbed.make_gap(ensemble, row, outcomes)
