"""Noise of each feature: how it is written, and gaps by enumeration where families, scales and values differ by feature."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prediction_gap import quasi_monte_carlo as sampling
from leafledger.kernels.prediction_gap.feature_noise import NOISE, lay_out_noises, of_features, read_entry, take_up_noises
from leafledger.kernels.prediction_gap.noise import NOISES
from leafledger.kernels.prepare import prepare
from leafledger.kernels.trees.binning import BATCH
from tests import naive, perturbed
from tests.kernels.attributing import defaults, run
from tests.kernels.prediction_gap.gaps import noisy_outcomes
from tests.kernels.prediction_gap.ranked import ATOL, RTOL, SCALE, against, written
from tests.strategies import batches, forests
from tests.trees import one_tree, stumps

ATOMS = "-1.0:0.25,0.5:0.75"
THREE = stumps(((0, 0.0, 0.0, 1.0), (1, 0.5, 0.0, -1.0), (2, -0.5, 1.0, 0.0), (0, 1.0, 0.0, 2.0)), 3)


@pytest.mark.parametrize(
    ("given_", "read"),
    [
        ("normal", "normal"),
        ("laplace:0.50", "laplace:0.5"),
        ("uniform:0", "uniform:0.0"),
        ("1:3,-1:1,2:0", "-1.0:1.0,1.0:3.0"),
        ([(1, 3), (-1, 1)], "-1.0:1.0,1.0:3.0"),
        ([[-0.0, 1]], "0.0:1.0"),
        (ndtr, ndtr),
        ('{"age": "laplace:0.5", "*": [[-1, 1], [1, 1]]}', {"age": "laplace:0.5", "*": "-1.0:1.0,1.0:1.0"}),
        ({0: "empirical", "b": ndtr}, {0: "empirical", "b": ndtr}),
        ('["normal", "-1:1,1:1"]', ("normal", "-1.0:1.0,1.0:1.0")),
        (("normal", [(0, 1)]), ("normal", "0.0:1.0")),
    ],
)
def test_noise_has_one_spelling(given_, read):
    """A family, with a scale or without, values with probabilities, a function; of all features, of each, or by name. Read again it is the same."""
    assert NOISE.read(given_) == read
    assert NOISE.read(read) == read


@pytest.mark.parametrize(
    "wrong",
    [
        *("pink", "", "laplace:-1", "laplace:1:2", "laplace:nan", "empirical:1", "1:0", "1:-1,2:3", "1:1,1:2", "nan:1", "1e301:1", "1", b"normal"),
        *("{", '{"a": "normal", "a": "normal"}', '{"a": 3}', "[" * 9999, {"a": "pink"}, ["normal", "pink"]),
        *([], [(1,)], [1, 2], [(1, 2, 3)], 3, None),
    ],
    ids=lambda wrong: str(wrong)[:20],
)
def test_what_is_no_noise_is_refused(wrong):
    """With what was expected."""
    with pytest.raises(ValueError, match=r"^expected one of normal, uniform, laplace, empirical, one with a scale as laplace:0\.5, values with prob"):
        NOISE.read(wrong)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda z: 1.0 - ndtr(z), "which is 1 at minus infinity and 0 at infinity, expected a distribution function: 0 and 1"),
        (lambda z: ndtr(z) + np.exp(-z * z), "which is .* and .*, expected a distribution function, which does not fall"),
        (lambda z: ndtr(z)[0], r"which makes float64 of shape \(89,\) of an array of shape \(3, 89\), expected probabilities of its shape"),
        (lambda z: z.missing, "which fails: .* expected one that takes an array of z"),
    ],
)
def test_functions_that_are_no_distributions_are_refused(wrong, says):
    """By what they make of test points."""
    with pytest.raises(ValueError, match=says):
        read_entry(wrong)


def test_noises_come_back_from_tables():
    """Families, values and functions, in their order; without functions there are numbers alone, as tables on disk have them."""
    entries = ("uniform", ATOMS, "normal", "0.0:1.0")
    found = of_features((*entries, ndtr), np.arange(5.0))
    arrays = lay_out_noises(found.noises)
    again = take_up_noises(arrays)
    assert [noise.name for noise in again] == ["uniform", "atoms", "normal", "atoms", "given"]
    assert [noise.atoms for noise in again] == [(), ((-1.0, 0.25), (0.5, 0.75)), (), ((0.0, 1.0),), ()]
    z = np.array([-2.0, -1.0, 0.0, 0.5, 0.6])
    for noise, twin in zip(found.noises, again, strict=True):
        assert_array_equal(noise.lower(z), twin.lower(z))
        assert_allclose(twin.lower(z) + twin.upper(z), 1.0, rtol=1e-15)
    assert_array_equal(again[1].lower(z), [0.0, 0.25, 0.25, 1.0, 1.0])
    assert {array.dtype.kind for array in lay_out_noises(of_features(entries, np.ones(4)).noises)} == {"i", "f"}


def becomes(ensemble, feature, x, entry):
    """What a numeric feature becomes: cells of a family, in units of its scale, or the values of noise that takes few."""
    family, *scale = entry.split(":")
    if scale == ["0.0"]:
        return [({feature: x}, Fraction(1))]
    known = {noise.name: noise for noise in NOISES}
    if family in known:
        return noisy_outcomes(ensemble, feature, x, float(scale[0]) if scale else SCALE, known[family])
    read = float(np.float32(x)) if ensemble.single_precision else x
    if not math.isfinite(read) or (ensemble.zero_missing[feature] and abs(read) <= float(np.float32(1e-35))):
        return [({feature: x}, Fraction(1))]
    pairs = [tuple(map(float, atom.split(":"))) for atom in entry.split(",")]
    total = sum(Fraction(weight) for _, weight in pairs)
    return [({feature: read + SCALE * z}, Fraction(weight) / total) for z, weight in pairs]


ENTRIES = ("normal", "uniform:1.5", "laplace:0.0", "laplace", ATOMS, "-2:1,-1:1,0:1,1:1,2:1", "0:1")


@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=3, max_features=3))
@pytest.mark.slow
def test_every_feature_has_noise_of_its_own(data, ensemble):
    """PGI² by enumeration of what features become: cells of their families at their scales, and single values, which may land on a threshold, or on
    a zero that is read as missing."""
    rows = data.draw(batches(ensemble, 2))
    entries = tuple(data.draw(st.sampled_from(ENTRIES)) for _ in range(ensemble.n_features))
    ranks, gaps = written("gap", ensemble, rows, noise=entries, scale=(SCALE,))
    for i, row in enumerate(rows):
        asked = [j for j in range(ensemble.n_features) if ensemble.n_categories[j] == 0 and (ensemble.feature == j).any()]
        outcomes = {j: becomes(ensemble, j, float(row[j]), entries[j]) for j in asked}
        gap = perturbed.make_gap(ensemble, row, outcomes)
        for k in range(ensemble.base.size):
            order = np.argsort(ranks[i, k]).tolist()
            assert_allclose(gaps[i, k], float(perturbed.mean_gap(gap, outcomes, order)[k]), rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("z", [-3.0, -1.0, 0.0, 1.0])
@pytest.mark.parametrize("missing_left", [False, True])
def test_a_value_that_becomes_zero_is_missing_where_zeros_are(z, missing_left):
    """A row of 3: with noise of -3 it is missing half of the time, or always, and goes where missing values go; infinite ones stay."""
    ensemble = one_tree([0, -1, -1], [-1.0, 0, 0], [1, -1, -1], [2, -1, -1], [0, 1, 4], [2, 1, 1], 1)
    ensemble = ensemble._replace(zero_missing=np.array([True]), missing_left=np.array([missing_left, False, False]))
    rows = np.array([[3.0], [np.inf], [0.0]])
    for entry, probability in ((f"{z}:1", 1.0), (f"{z}:1,5:1", 0.5)):
        gaps = written("gap_greedy", ensemble, rows, noise=(entry,), scale=(1.0,))[1]
        moved = probability * (naive.margin(ensemble, np.array([3.0 + z]))[0] - 4.0) ** 2
        start = naive.margin(ensemble, np.array([0.0]))[0]
        assert_allclose(gaps[:, 0], [moved, 0.0, 0.0], rtol=1e-12)
        assert start == (1.0 if missing_left else 4.0)


@pytest.mark.again
def test_a_function_is_the_noise_that_it_says():
    """The same gaps as of the family that it is, of one feature and of all."""
    rows = np.random.default_rng(0).normal(size=(4, 3))
    for own, family in ((ndtr, "normal"), (("laplace", ndtr, ATOMS), ("laplace", "normal", ATOMS))):
        for name in ("gap", "gap_greedy"):
            found, expected = (written(name, THREE, rows, noise=noise, scale=(SCALE,)) for noise in (own, family))
            assert_array_equal(found[0], expected[0])
            assert_allclose(found[1], expected[1], rtol=1e-12)


def test_features_are_drawn_one_by_one():
    """From a background where theirs is "empirical", with noise in its deviations where it is not."""
    rows, seen = np.random.default_rng(0).normal(size=(2, 6, 3)) * [1.0, 2.0, 0.5]
    ranks, gaps, _, _ = against("gap", THREE, rows, [seen[:2], seen[2:]], noise=("empirical", ATOMS, "laplace:0.5"), scale=(SCALE,))
    deviation = seen.std(axis=0)
    for i, row in enumerate(rows):
        outcomes = {
            0: [({0: float(x)}, Fraction(1, 6)) for x in seen[:, 0]],
            1: [({1: float(row[1] + SCALE * deviation[1] * z)}, p) for z, p in ((-1.0, Fraction(1, 4)), (0.5, Fraction(3, 4)))],
            2: noisy_outcomes(THREE, 2, float(row[2]), 0.5 * deviation[2], NOISES[2]),
        }
        gap = perturbed.make_gap(THREE, row, outcomes)
        assert_allclose(gaps[i, 0], float(perturbed.mean_gap(gap, outcomes, np.argsort(ranks[i, 0]).tolist())[0]), rtol=1e-9)


@pytest.mark.again
@pytest.mark.slow
def test_estimates_are_of_each_features_noise(monkeypatch):
    """Within their standard errors of exact gaps."""
    monkeypatch.setattr(sampling, "POINTS", BATCH if config.DISABLE_JIT else sampling.POINTS)
    rows, noise = np.random.default_rng(0).normal(size=(2, 3)), (ATOMS, "uniform", "-1:1,0:1,1:1")
    exact = written("gap", THREE, rows, noise=noise, scale=(SCALE,))[1]
    tables = prepare(THREE, METHODS["gap"], defaults("gap") | {"noise": noise, "scale": (SCALE,), "budget": 1.0, "approximate": "yes"})
    found = run("gap", tables, rows, 5)[0][:, 0]
    assert (np.abs(found[:, -2] - exact[:, 0]) <= 5 * found[:, -1]).all()
    assert (found[:, -1] > 0).all()


def test_as_many_as_features_are_expected():
    """And a background, where one of them is drawn from it."""
    for noise, says in (
        (("normal",) * 2, "parameter 'noise' has 2 entries, expected one, or as many for 3 features"),
        (("normal", "empirical", "normal"), "parameter 'noise' is 'empirical', which draws values from a background, but none was given"),
    ):
        with pytest.raises(InvalidParameters, match=says):
            written("gap", THREE, np.zeros((1, 3)), noise=noise)


def test_scales_are_read_by_feature():
    """As numbers by name, or as an object in a text."""
    scale = next(parameter for parameter in METHODS["gap"].parameters if parameter.name == "scale")
    assert scale.read('{"a": 1, "*": "0.5"}') == scale.read({"a": 1, "*": 0.5}) == {"a": 1.0, "*": 0.5}
    assert scale.read("[1, 2]") == scale.read("1,2") == (1.0, 2.0)
    assert scale.read(0.3) == scale.read("0.3") == (0.3,)
    for wrong in ('{"a": "wide"}', {"a": None}, True, float("nan"), '{"a": 1, "a": 2}', "{", {"a": [1, 2]}):
        with pytest.raises(ValueError, match=r"^expected finite numbers, as text with commas between them, or as \{"):
            scale.read(wrong)
