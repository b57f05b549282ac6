"""Gradients in memory: of both games, of any point and any output."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import leafledger
from tests import naive
from tests.pipeline.conftest import FEATURES
from tests.pipeline.in_memory.rankings.coded import coded

ATOL = 1e-9  # margins reach some hundreds


@pytest.fixture(scope="module")
def rows(example):
    return example.frame[FEATURES].assign(month=example.frame["month"].astype(int))


def test_a_gradient_against_a_background_is_that_of_the_definition(example, rows):
    """Expected margins and derivatives in exact fractions, of rows beyond a block of the kernel; at 1/2 they are Banzhaf values."""
    model, background = leafledger.load_ensemble(example.model), rows.iloc[::500]
    z = np.linspace(0.0, 1.0, len(FEATURES))
    found = leafledger.gradient(model, rows[:100], z, background=background)
    some, others = coded(model, rows[:100]), coded(model, background)
    for i in (0, 70, 99):
        assert_allclose(found.margin[i, 0], float(naive.extension(model.ensemble, some[i], z, 0, others)), rtol=0, atol=ATOL)
        assert_allclose(found.phi[i, 0], np.array(naive.gradient(model.ensemble, some[i], z, 0, others), float), rtol=0, atol=ATOL)
    values = leafledger.attribute(model, rows[:40], "banzhaf", background=background)
    assert_allclose(leafledger.gradient(model, rows[:40], background=background).phi, values.phi, rtol=0, atol=ATOL)


@pytest.mark.parametrize("background", [None, slice(0, 50)])
@pytest.mark.slow
def test_a_gradient_of_one_output(several, rows, background):
    """By name it is that output's; of the predicted class it is each row's own, which is named."""
    given = {"background": None if background is None else rows[background]}
    every = leafledger.gradient(several, rows[:30], 0.3, **given)
    assert every.output is None
    one = leafledger.gradient(several, rows[:30], 0.3, output=2, **given)
    assert_allclose(one.phi, every.phi[:, 2:], rtol=0, atol=ATOL)
    found, predicted = (call(several, rows[:30], **given, output="predicted") for call in (leafledger.gradient, leafledger.attribute))
    at = leafledger.gradient(several, rows[:30], 0.5, **given)
    assert_array_equal(found.output, predicted.output)
    chosen = [leafledger.load_ensemble(several).outputs.index(name) for name in found.output]
    assert len(set(chosen)) > 1
    assert_array_equal(found.phi, at.phi[np.arange(30), chosen][:, None])
    assert_array_equal(found.margin, at.margin[np.arange(30), chosen][:, None])
