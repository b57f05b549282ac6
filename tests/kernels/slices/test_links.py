"""Links against their definition: derivatives by complex steps, averaged over the line by Simpson's rule; and what attributions add up to."""

import cmath
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.method.method import TOLERANCE
from leafledger.kernels.slices.buffers import Buffers
from leafledger.kernels.slices.links import IDENTITY, KINDS, Link, carry, carry_outputs, find_misses, find_reach, predict

RNG = np.random.default_rng(3)
STEP = 1e-30
FUNCTIONS = {  # from the margins of all outputs to the predictions of all, of complex numbers too
    "identity": list,
    "sigmoid": lambda margins: [1 / (1 + cmath.exp(-margin)) for margin in margins],
    "softmax": lambda margins: [cmath.exp(margin) / sum(map(cmath.exp, margins)) for margin in margins],
    "exp": lambda margins: [cmath.exp(margin) for margin in margins],
}
SIZES = pytest.mark.parametrize("name", list(KINDS))


def game(n_outputs, n_players=4, n=5, size=2.0):
    """Base values, margins, and attributions that sum to the difference."""
    base, phi = RNG.normal(size=n_outputs) * size, RNG.normal(size=(n_outputs, n_players, n)) * size
    return base, base[:, None] + phi.sum(axis=1), phi


def slopes(name, scale, base, margin, n_steps=400):
    """Means of the derivatives of every prediction by every margin over the line, one row."""
    n = len(base)
    found = np.zeros((n, n))
    for step in range(n_steps + 1):
        weight = (1 if step in (0, n_steps) else 4 if step % 2 else 2) / (3 * n_steps)
        here = [b + (m - b) * step / n_steps for b, m in zip(base, margin, strict=True)]
        for k in range(n):
            moved = [scale * (value + (1j * STEP if j == k else 0)) for j, value in enumerate(here)]
            found[:, k] += weight * np.array([complex(value).imag / STEP for value in FUNCTIONS[name](moved)])
    return found


@SIZES
@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_attributions_are_those_of_the_definition(name, scale):
    base, margin, phi = game(3)
    wanted = np.stack([slopes(name, scale, base, margin[:, i]) @ phi[:, :, i] for i in range(phi.shape[2])], axis=2)
    carry(Link(name, scale), base, margin, phi)
    assert_allclose(phi, wanted, rtol=1e-7, atol=1e-9)  # Simpson's error


@SIZES
def test_predictions_are_those_of_the_definition(name):
    margin = RNG.normal(size=(3, 7)) * 3
    wanted = [[complex(value).real for value in FUNCTIONS[name](list(1.5 * row))] for row in margin.T]
    assert_allclose(predict(Link(name, 1.5), margin), np.transpose(wanted), rtol=1e-14)


@pytest.mark.again
@SIZES
@pytest.mark.parametrize("size", [1e-12, 1e-3, 1.0, 20.0, 300.0])
def test_attributions_add_up_to_the_difference_of_predictions(name, size):
    """From margins that hardly differ to those whose exponentials would overflow where they are added up carelessly."""
    base, margin, phi = game(4, n=200, size=size / 4)
    link, terms = Link(name), np.abs(phi).sum(axis=1)
    carry(link, base, margin, phi)
    predicted, start = predict(link, margin), predict(link, base)[:, None]
    allowed = 1e-13 * (1 + np.abs(predicted) + np.abs(start)) * (1 + terms)
    assert (np.abs(phi.sum(axis=1) - (predicted - start)) <= allowed).all()


def test_margins_that_stay_have_the_slope_at_the_base_value():
    for name, slope in (("sigmoid", 0.25 / math.cosh(0.4) ** 2), ("exp", math.exp(0.8))):
        phi = np.array([[[1.0], [-1.0]]])
        carry(Link(name), np.array([0.8]), np.array([[0.8]]), phi)
        assert_allclose(phi[0, :, 0], [slope, -slope], rtol=1e-14)


@pytest.mark.again
def test_large_margins_make_no_numbers_that_are_none():
    margin = np.array([[-1e4, 1e4, -800.0, 800.0]])
    assert predict(Link("sigmoid"), margin).tolist() == [[0.0, 1.0, 0.0, 1.0]]
    assert predict(Link("softmax"), np.vstack((margin, -margin)))[0].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert predict(Link("exp"), margin).tolist() == [[0.0, math.inf, 0.0, math.inf]]
    for name in ("sigmoid", "softmax"):
        base, both = np.array([900.0, -900.0]), np.vstack((margin, -margin))
        phi = (both - base[:, None])[:, None]
        carry(Link(name), base, both, phi)
        assert_allclose(phi[:, 0], predict(Link(name), both) - predict(Link(name), base)[:, None], rtol=0, atol=1e-11)


@pytest.mark.again
def test_a_line_of_more_panels_than_are_worth_it_is_found_out():
    """It ends, and what does not add up is seen by the residual."""
    base, margin = np.zeros(2), np.array([[1e300], [-1e300]])
    phi = margin[:, None].copy()
    carry(Link("softmax"), base, margin, phi)
    assert not abs(phi[0, 0, 0] - 0.5) <= TOLERANCE


def test_what_all_outputs_share_changes_no_class_s_probability():
    base, margin, phi = game(3)
    more = RNG.normal(size=(1, *phi.shape[1:]))
    shifted, found = phi + more, phi.copy()
    carry(Link("softmax"), base, margin, found)
    carry(Link("softmax"), base, margin + more.sum(axis=1), shifted)
    assert_allclose(shifted, found, rtol=1e-12, atol=1e-13)


def test_two_classes_by_softmax_are_one_by_sigmoid():
    base, margin, phi = game(1, n=50)
    both = np.concatenate((np.zeros_like(phi), phi))
    carry(Link("softmax"), np.array([0.0, base[0]]), np.vstack((0 * margin, margin)), both)
    carry(Link("sigmoid"), base, margin, phi)
    assert_allclose(both, np.concatenate((-phi, phi)), rtol=1e-12, atol=1e-15)


def test_a_joint_link_says_so():
    assert [name for name in KINDS if Link(name).joint] == ["softmax"]


class _Prepared:
    """What is read of Prepared."""

    def __init__(self, base, bound, without=()):
        self.base, self.bound = base, bound
        self.without = type("Without", (), {"base": np.array(without)})


def buffers_of(margin, phi, without):
    """Buffers of which the rest does not matter."""
    return Buffers(**(dict.fromkeys(Buffers._fields) | {"margin": margin, "phi": phi, "without": without}))


def test_everything_that_was_computed_of_rows_is_carried():
    """Attributions without a lot of the background start from that background's base value; margins are left as they were."""
    base, margin, phi = game(2)
    lots = RNG.normal(size=(3, 2))
    without = phi + (base - lots)[:, :, None, None] / phi.shape[1]
    link, held = Link("softmax"), margin.copy()
    wanted = [phi.copy(), *without.copy()]
    for start, values in zip((base, *lots), wanted, strict=True):
        carry(link, start, margin, values)
    prepared = _Prepared(base, np.full(2, 50.0), lots)
    found = carry_outputs(link, prepared, buffers_of(margin, phi, without))
    assert_array_equal(found.phi, wanted[0])
    assert_array_equal(found.without, wanted[1:])
    assert_array_equal(found.margin, predict(link, margin))
    assert_array_equal(margin, held)
    assert find_misses(link, prepared, found, 4).shape == (2, 4)
    assert (find_misses(link, prepared, found, 4) < 1e-14).all()
    found.phi[1, 2, 3] += 1e-6
    assert np.argwhere(find_misses(link, prepared, found, 5) > TOLERANCE).tolist() == [[1, 3]]


def test_what_predictions_may_miss_grows_with_what_they_can_be():
    """Margins with their bound, probabilities not at all, exponentials with the larger end of the line too."""
    base, bound, prediction = np.array([[2.0]]), np.array([[5.0]]), np.array([[1.0, 2.0, 30.0]])
    assert find_reach(IDENTITY, base, bound, prediction).tolist() == [[5, 5, 5]]
    assert find_reach(Link("sigmoid"), base, bound, prediction).tolist() == [[1, 1, 1]]
    assert find_reach(Link("softmax"), base, bound, prediction).tolist() == [[1, 1, 1]]
    assert find_reach(Link("exp", 0.5), base, bound, prediction).tolist() == [[5, 5, 75]]
