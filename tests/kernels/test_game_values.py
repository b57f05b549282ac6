"""Quadratures integrate what the values need, exactly."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.game_values import (
    banzhaf,
    beta,
    density_atoms,
    measure,
    polyline_atoms,
    shapley,
    size_rule,
    thin_sizes,
    weigh_by_size,
    weigh_by_value,
)


@pytest.mark.parametrize("n_players", [0, 1, 2, 3, 6, 7, 30, 101])
def test_shapley_integrates_every_polynomial_it_meets(n_players):
    """Powers below the number of players have the integral 1 / (power + 1); the nodes lie inside (0, 1), as few as possible."""
    nodes, weights = shapley(n_players)
    assert nodes.size == max(1, -(-n_players // 2))
    assert ((nodes > 0) & (nodes < 1)).all()
    for power in range(max(1, n_players)):
        assert abs(float(np.sum(weights * nodes**power) - Fraction(1, power + 1))) < 1e-14


@pytest.mark.parametrize("n_players", [1, 2, 5, 12, 18])
def test_a_rule_of_sizes_has_their_probabilities(n_players):
    """Of as many players as there are, and of fewer, when those without effect are taken out."""
    sizes = np.random.default_rng(n_players).dirichlet(np.ones(18))
    nodes, weights = size_rule(sizes)(n_players)
    found = [math.comb(n_players - 1, k) * np.sum(weights * nodes**k * (1 - nodes) ** (n_players - 1 - k)) for k in range(n_players)]
    assert np.abs(found - thin_sizes(sizes, n_players)[-n_players:]).max() < 1e-11
    assert size_rule(sizes)(40).nodes.size == 18


def test_a_rule_of_too_many_sizes_is_refused():
    """Its weights would cancel: that a feature joins coalitions of ten or of none among 40 is far from any mixture of chances."""
    sizes = np.zeros(40)
    sizes[10] = 1.0
    with pytest.raises(InvalidParameters, match="of 40 players on a path, as a measure, have weights that cancel too much, expected fewer players"):
        size_rule(sizes)(40)
    assert size_rule(sizes)(8).nodes.size == 8


def test_banzhaf_is_one_point():
    """Every other feature is present with probability p."""
    assert [part.tolist() for part in banzhaf(9, 0.3)] == [[0.3], [1.0]]


@pytest.mark.parametrize("n_players", [1, 2, 9, 40])
def test_beta_with_even_parameters_is_shapley(n_players):
    """Beta(1, 1) has the nodes and weights of the Shapley value."""
    for mine, theirs in zip(beta(n_players, 1.0, 1.0), shapley(n_players), strict=True):
        assert np.abs(mine - theirs).max() < 1e-14


def moments(points, n):
    """Exact moments 0..n-1 of weighted points."""
    points = [(Fraction(float(t)), Fraction(float(weight))) for t, weight in points]
    total = sum(weight for _, weight in points)
    return np.array([float(sum(weight * t**power for t, weight in points) / total) for power in range(n)])


def assert_same_moments(rule, expected, atol=1e-14):
    nodes, weights = rule
    assert ((nodes >= 0) & (nodes <= 1) & (weights >= 0)).all()
    for power, moment in enumerate(expected):
        assert abs(np.sum(weights * nodes**power) - moment) < atol


@pytest.mark.parametrize("n_players", [0, 1, 2, 3, 8, 15, 16, 17, 40])
def test_a_measure_keeps_its_moments(n_players):
    """Sixteen points with weights of very different sizes, some of them twice, both ends among them: what a path integrates is unchanged."""
    rng = np.random.default_rng(n_players)
    atoms = np.stack((np.concatenate(([0.0, 1.0, 0.5, 0.5], rng.random(12))), 10.0 ** rng.uniform(-12, 1, 16)), axis=1)
    rule = measure(n_players, atoms)
    assert rule.nodes.size <= max(1, -(-n_players // 2))
    assert_same_moments(rule, moments(atoms, max(1, n_players)))


def test_few_atoms_stay_as_they_are():
    """At most as many as a Gauss rule would take: both ends, and one atom that is the Banzhaf value."""
    assert [part.tolist() for part in measure(3, [(1.0, 3.0), (0.0, 1.0)])] == [[0.0, 1.0], [0.25, 0.75]]
    for n_players in (1, 2, 9):
        assert [part.tolist() for part in measure(n_players, [(0.3, 2.0)])] == [part.tolist() for part in banzhaf(n_players, 0.3)]


def test_atoms_that_are_one_but_for_rounding():
    """Fewer nodes than asked for are enough where the atoms lie at two places, each a last digit wide."""
    t = np.concatenate([0.3 + np.spacing(0.3) * np.arange(6), 0.8 + np.spacing(0.8) * np.arange(6)])
    atoms = np.stack((t, np.ones(12)), axis=1)
    rule = measure(11, atoms)
    assert rule.nodes.size < 6
    assert_same_moments(rule, moments(atoms, 11))


def test_atoms_without_weight_do_not_count():
    """They are left out, however many."""
    atoms = np.stack((np.linspace(0, 1, 101), np.arange(101) == 25), axis=1)
    assert [part.tolist() for part in measure(9, atoms)] == [[0.25], [1.0]]


@pytest.mark.again
@pytest.mark.parametrize("n_players", [1, 6, 41, 200])
@pytest.mark.slow
def test_many_atoms_are_reduced(n_players):
    """Ten thousand atoms become half as many nodes as there are players; the moments are theirs."""
    rng = np.random.default_rng(0)
    atoms = rng.random((10_000, 2))
    rule = measure(n_players, atoms)
    assert rule.nodes.size == -(-n_players // 2)
    powers = atoms[:, 0] ** np.arange(n_players)[:, None]
    assert_same_moments(rule, [math.fsum(row * atoms[:, 1]) / math.fsum(atoms[:, 1]) for row in powers])


@pytest.mark.parametrize("n_players", [1, 2, 9, 40])
def test_a_signed_measure_keeps_its_moments(n_players):
    """Weights of both signs: a rule for each of them, which together integrate what a path needs."""
    rng = np.random.default_rng(n_players)
    atoms = np.stack((rng.random(60), rng.normal(0.5, 1, 60)), axis=1)
    nodes, weights = measure(n_players, atoms)
    assert nodes.size <= 2 * -(-n_players // 2)
    assert (weights < 0).any()
    for power, moment in enumerate(moments(atoms, n_players)):
        assert abs(np.sum(weights * nodes**power) - moment) < 1e-14


@pytest.mark.parametrize("n_players", [1, 2, 7, 40])
def test_coalitions_weigh_what_the_definition_says(n_players):
    """Integrals of t^b (1 - t)^a: of Shapley's and of Banzhaf's values in fractions; and sizes that are shared by coalitions of a size."""
    of_shapley, of_banzhaf = weigh_by_value(shapley)(n_players), weigh_by_value(lambda n: banzhaf(n, 0.25))(n_players)
    sizes = np.random.default_rng(0).normal(size=n_players + 3)
    of_sizes = weigh_by_size(sizes)(n_players)
    for b in range(n_players):
        for a in range(n_players - b):
            others = a + b
            assert abs(of_shapley[b, a] * math.comb(others, b) * (others + 1) - 1) < 1e-11
            assert abs(of_banzhaf[b, a] / (0.25**b * 0.75**a) - 1) < 1e-14
            dummies = n_players + 2 - others  # players that change nothing and join any way
            exact = sum(math.comb(dummies, k) * Fraction(sizes[b + k]) / math.comb(n_players + 2, b + k) for k in range(dummies + 1))
            assert abs(of_sizes[b, a] - float(exact)) < 1e-14


@pytest.mark.parametrize("n_players", [1, 2, 9, 60])
def test_among_any_number_of_players_sizes_have_a_distribution(n_players):
    """Whatever is counted out, the weights of all coalitions sum to one (Li, Yu and Low 2026, Remark 2)."""
    sizes = np.random.default_rng(0).random(n_players)
    values = weigh_by_size(sizes / sizes.sum()), weigh_by_value(shapley), weigh_by_value(lambda n: beta(n, 0.5, 3.0))
    for weights in (weigh(n_players) for weigh in values):
        for others in range(n_players):
            assert abs(math.fsum(math.comb(others, b) * weights[b, others - b] for b in range(others + 1)) - 1) < 1e-12


def test_players_that_there_are_not_weigh_nothing():
    """Tables may have room for more."""
    weights = weigh_by_size(np.array([0.25, 0.75]))(4)
    assert weights[:2, :2].tolist() == [[1.0, 0.25], [0.75, 0.0]]
    assert weights.sum() == 2.0


@pytest.mark.parametrize("n_players", [1, 2, 5, 30, 101, 200])
def test_a_flat_density_is_shapley(n_players):
    """In one piece, in several, and as a function: the nodes and weights of the Shapley value."""
    flat = polyline_atoms(n_players, [(0.0, 2.0), (1.0, 2.0)])
    pieces = polyline_atoms(n_players, [(0.0, 1.0), (0.25, 1.0), (0.25, 1.0), (0.9, 1.0), (1.0, 1.0)])
    function = density_atoms(n_players, lambda t, rest: np.ones_like(t))
    for atoms in (flat, pieces, function):
        for mine, theirs in zip(measure(n_players, atoms), shapley(n_players), strict=True):
            assert np.abs(mine - theirs).max() < 1e-12


@pytest.mark.parametrize("n_players", [1, 2, 3, 8, 17])
def test_polylines_are_integrated_exactly(n_players):
    """A slope, a jump and a flat piece that ends before 1, against the integrals in fractions; the atoms are exact before any reduction."""
    points = [(Fraction(1, 8), Fraction(0)), (Fraction(1, 2), Fraction(3)), (Fraction(1, 2), Fraction(1)), (Fraction(3, 4), Fraction(1))]

    def integral(power):
        total = Fraction(0)
        for (left, low), (right, high) in itertools.pairwise(points):
            slope = (high - low) / (right - left) if right > left else Fraction(0)
            for degree, factor in ((power, low - slope * left), (power + 1, slope)):
                total += factor * (right ** (degree + 1) - left ** (degree + 1)) / (degree + 1)
        return total

    exact = [float(integral(power) / integral(0)) for power in range(n_players)]
    atoms = polyline_atoms(n_players, [(float(t), float(height)) for t, height in points])
    assert_same_moments(atoms.T / [[1.0], [atoms[:, 1].sum()]], exact)
    assert_same_moments(measure(n_players, atoms), exact)


@pytest.mark.parametrize(("alpha", "weight"), [(1.0, 1.0), (0.5, 0.5), (0.1, 0.3), (2.5, 0.7), (16.0, 1.0), (1.0, 8.0)])
@pytest.mark.parametrize("n_players", [1, 2, 9, 30])
def test_a_density_may_be_infinite_at_the_ends(n_players, alpha, weight):
    """The density of Beta(alpha, beta) as a function gives the nodes and weights of its own rule."""
    atoms = density_atoms(n_players, lambda t, rest: t ** (weight - 1) * rest ** (alpha - 1))
    for mine, theirs in zip(measure(n_players, atoms), beta(n_players, alpha, weight), strict=True):
        assert np.abs(mine - theirs).max() < 1e-12


def assert_same_integrals(n_players, density, alpha, weight):
    """A function's moments are those of Beta(alpha, weight), whose rule is another."""
    (nodes, weights), (others, theirs) = measure(n_players, density_atoms(n_players, density)), beta(n_players, alpha, weight)
    for power in range(n_players):
        assert abs(np.sum(weights * nodes**power) - np.sum(theirs * others**power)) < 1e-12


@pytest.mark.parametrize("weight", [0.1, 0.05])
@pytest.mark.parametrize("n_players", [2, 6, 40])
def test_a_density_may_be_almost_all_at_an_end(n_players, weight):
    """A twentieth above the exponent at which it has no integral, at either end."""
    assert_same_integrals(n_players, lambda t, _: t ** (weight - 1), 1.0, weight)
    assert_same_integrals(n_players, lambda _, rest: rest ** (weight - 1), weight, 1.0)


@pytest.mark.parametrize("weight", [0.04, 0.02, 0.01, 0.001])
@pytest.mark.parametrize("n_players", [1, 6, 40])
def test_a_density_that_numbers_do_not_reach_is_refused(n_players, weight):
    """Up to all of it is nearer to an end than the smallest of a double's numbers, where nothing can be integrated."""
    for density in (lambda t, _: t ** (weight - 1), lambda _, rest: -(rest ** (weight - 1))):
        with pytest.raises(
            InvalidParameters, match=r"^parameter 'density' is too high next to 0 or 1 to be integrated there; give 'atoms' at 0 or 1$"
        ):
            density_atoms(n_players, density)


def peak(width, floor=0.0):
    """A normal distribution's density around 0.31, and something uniform below it."""
    return lambda t, _: floor + np.exp(-(((t - 0.31) / width) ** 2) / 2) / (width * math.sqrt(2 * math.pi))


@pytest.mark.parametrize("width", [1e-2, 1e-3, 5e-4])
@pytest.mark.parametrize("floor", [0.0, 1.0])
def test_peaks_are_integrated(width, floor):
    """Moments of a normal distribution, with a uniform one: mean, and mean of squares."""
    nodes, weights = measure(6, density_atoms(6, peak(width, floor)))
    assert abs(np.sum(weights * nodes) - (0.31 + floor / 2) / (1 + floor)) < 1e-12
    assert abs(np.sum(weights * nodes**2) - (0.31**2 + width**2 + floor / 3) / (1 + floor)) < 1e-12


@pytest.mark.parametrize(
    "density",
    [
        lambda t, _: (t > 0.5) * 1.0,
        lambda t, _: abs(t - 0.3),
        lambda t, _: (t > 0.2) - 2.0 * (t > 0.7),
        *(peak(width, floor) for width in (2e-4, 1e-4, 1e-5) for floor in (0.0, 1.0)),
    ],
)
@pytest.mark.parametrize("n_players", [1, 6])
def test_densities_that_are_not_smooth_are_refused(n_players, density):
    """Steps, kinks and peaks between nodes: what the rule finds of them still changes with every node."""
    with pytest.raises(
        InvalidParameters, match=r"^parameter 'density' is not smooth enough to be integrated as a function; give it as a polyline, or"
    ):
        density_atoms(n_players, density)


@pytest.mark.parametrize(
    ("density", "says"), [(lambda t, _: 1 / (t - 0.5), "inf at t = 0.5"), (lambda t, _: np.log(t - 0.5), r"nan at t = 7\.\d+e-299")]
)
def test_heights_are_numbers(density, says):
    """A pole inside is none, nor is a logarithm of what is below 0."""
    with np.errstate(all="ignore"), pytest.raises(InvalidParameters, match=f"^parameter 'density' is {says}, expected finite heights$"):
        density_atoms(6, density)


@pytest.mark.again
@pytest.mark.parametrize("n_players", [9, 200, 700])
def test_narrow_peaks_are_seen(n_players):
    """Where half of many players are present the integrand is a peak at 1/2: C(n - 1, k) t^k (1 - t)^(n - 1 - k) has the integral 1 / n."""
    size = n_players // 2
    for atoms in (polyline_atoms(n_players, [(0.0, 1.0), (1.0, 1.0)]), density_atoms(n_players, lambda t, rest: np.ones_like(t))):
        nodes, weights = measure(n_players, atoms)
        logarithm = math.log(math.comb(n_players - 1, size)) + size * np.log(nodes) + (n_players - 1 - size) * np.log1p(-nodes)
        assert abs(np.sum(weights * np.exp(logarithm)) * n_players - 1) < 1e-11


@pytest.mark.parametrize(("alpha", "beta_"), [(0.1, 0.1), (2.5, 0.7), (1.0, 1.0), (5.0, 0.5)])
@pytest.mark.parametrize("n_players", [2, 9, 40, 200])
def test_beta_integrates_every_coalition_size(n_players, alpha, beta_):
    """Integrals of t^k (1 - t)^(n - 1 - k), which are quotients of rising factorials, hold to 1e-12 of themselves at real parameters."""
    nodes, weights = beta(n_players, alpha, beta_)
    top = n_players - 1
    for k in {0, 1, top // 4, top // 2, top}:
        exact = Fraction(1)
        for i in range(top):
            exact *= (Fraction(beta_) + i if i < k else Fraction(alpha) + i - k) / (Fraction(alpha) + Fraction(beta_) + i)
        found = np.sum(weights * np.exp(k * np.log(nodes) + (top - k) * np.log1p(-nodes)))
        assert abs(found / float(exact) - 1) < 1e-12


@pytest.mark.parametrize(("alpha", "weight"), [(1e-6, 2e-6), (3e-6, 1e-6), (1e-6, 1e-6), (1e-6, 0.5), (0.3, 1e-6)])
@pytest.mark.parametrize("n_players", [2, 4, 9, 40, 100])
def test_small_exponents_keep_their_digits(n_players, alpha, weight):
    """Moments are products of (beta + j) / (alpha + beta + j) in fractions: one less than an exponent would have lost ten of its digits."""
    nodes, weights = beta(n_players, alpha, weight)
    moment = Fraction(1)
    for power in range(n_players):
        assert abs(np.sum(weights * nodes**power) - float(moment)) < 1e-13
        moment *= (Fraction(weight) + power) / (Fraction(alpha) + Fraction(weight) + power)


@pytest.mark.parametrize(
    ("density", "says"),
    [
        (
            lambda t: 3 * t**2,
            r"is a function that fails: .* takes 1 positional argument but 2 were given, expected one that takes arrays",
        ),
        (lambda t, rest: float(t), "is a function that fails: .*, expected one that takes arrays"),
        (lambda t, rest: t[:3], r"makes float64 of shape \(3,\), expected heights of shape"),
        (lambda t, rest: t[:, None], r"makes float64 of shape .*, expected heights of shape"),
        (lambda t, rest: t + 1j, r"makes complex128 of shape .*, expected heights of shape"),
    ],
)
def test_a_function_that_makes_no_heights_is_refused(density, says):
    """In one line; it was a traceback."""
    with pytest.raises(InvalidParameters, match=f"^parameter 'density' {says}"):
        density_atoms(3, density)
