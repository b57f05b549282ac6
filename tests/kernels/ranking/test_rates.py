"""The rate that rows choose: the largest of the candidates with which the enumerated objective never falls."""

from itertools import pairwise

import numpy as np
import pytest

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.ranking.rates import candidate_rates, choose_rate, never_falls
from tests import naive
from tests.hypercubes import full_tree, hypercube
from tests.kernels.attributing import attributed

STEPS = 6
BY = {"ascent": False, "adam": True}


@pytest.mark.parametrize(
    ("bound", "adaptive", "largest", "smallest"),
    [(1.0, False, 5000.0, 0.001), (250.0, False, 5.0, 1e-5), (0.0, False, 5000.0, 0.001), (1e-6, False, 5e9, 1000.0), (250.0, True, 1.0, 0.001)],
)
def test_candidates_are_one_and_five_of_every_decade(bound, adaptive, largest, smallest):
    """In units of 1 / margin; those of ADAM, whose steps have their length, end at the width of the cube."""
    found = candidate_rates(bound, adaptive)
    assert (found[0], found[-1]) == (largest, smallest)
    assert list(found) == sorted(found, reverse=True)
    assert {f"{rate:e}"[0] for rate in found} == {"1", "5"}
    assert 5 * smallest in found


def test_the_paper_s_candidates_are_among_them():
    """Of a probability: 0.1, 0.5, 1, 5 and 10 (Li, Yu and Low 2026, Appendix H)."""
    assert {0.1, 0.5, 1.0, 5.0, 10.0} <= set(candidate_rates(1.0, False))


@pytest.mark.parametrize(
    ("means", "holds"),
    [([[0, 1, 1, 2]], True), ([[0, 1, 0.9, 2]], False), ([[0, 1, 2], [0, 1, 0.5]], False), ([[0, 0]], True), ([[0, 1, 1 - 1e-12]], True)],
)
def test_the_mean_of_every_output_decides(means, holds):
    """Rounding is no fall; a fall of one row is none where the others rise by more."""
    path = np.array(means, float)[:, :, None] + np.array([-1.0, 0.0, 1.0]) * np.arange(len(means[0]))[:, None]
    assert never_falls(path) is holds
    assert never_falls(path[:, :, :0])


def largest_that_rises(ensemble, rows, optimizer):
    """By enumeration: every step's objective of every row."""
    for rate in candidate_rates(float(prepared_by(ensemble, optimizer).bound.max()), BY[optimizer]):
        paths = [[naive.ranker(ensemble, row, k, STEPS, rate, BY[optimizer])[1] for row in rows] for k in range(ensemble.base.size)]
        means = np.mean(paths, axis=1)
        if all(after >= before - 1e-9 * max(abs(mean)) for mean in means for before, after in pairwise(mean)):
            return rate
    return None


def prepared_by(ensemble, optimizer):
    return prepare(ensemble, METHODS["ranker"], {"steps": STEPS, "rate": 1.0, "optimizer": optimizer})


def followed(rows):
    return lambda prepared: attributed("ranker", prepared, rows).path[:, :, : len(rows)]


@pytest.mark.parametrize(("optimizer", "seed", "scale", "place"), [("ascent", 12, 1.0, 3), ("ascent", 35, 3e5, 3), ("adam", 35, 1e-4, 0)])
@pytest.mark.slow
def test_the_largest_rate_that_rises_is_chosen(optimizer, seed, scale, place):
    """Against the definition, over two functions drawn at random, of margins of any unit; the objective falls by so many of the largest."""
    draw = np.random.default_rng(seed)
    one, other = (full_tree(scale * draw.normal(size=8), [0, 1, 2]) for _ in range(2))
    ensemble = one._replace(value=np.hstack((one.value, other.value)), base=np.zeros(2))
    rows = hypercube(3)[draw.permutation(8)[:4]]
    prepared = prepared_by(ensemble, optimizer)
    found = choose_rate(prepared, followed(rows))
    assert found == largest_that_rises(ensemble, rows, optimizer)
    assert candidate_rates(float(prepared.bound.max()), BY[optimizer]).index(found) == place


def test_none_is_chosen_where_all_fall():
    """An objective that falls whatever the rate."""
    prepared = prepared_by(full_tree([0.0, 1.0], [0]), "ascent")
    assert choose_rate(prepared, lambda _: np.array([[[0.0], [-1.0]]])) is None
