"""The method r2: what every row has to add up to, and what it does not take."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.batch import attribute_batch, find_breach, find_residuals
from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.method.method import TOLERANCE
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, prepare
from leafledger.kernels.slices.buffers import make_buffers
from tests import naive_r2
from tests.kernels.r2.computing import regressions
from tests.strategies import batches
from tests.trees import chain

R2 = METHODS["r2"]
TREE = chain([0, 1], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0], 2)


def lost(ensemble, rows, labels):
    """Tables and buffers after these rows and labels went through them."""
    prepared = prepare(ensemble, R2, {})
    buffers = make_buffers(prepared, len(rows))
    buffers.values[:, : len(rows)] = rows.T[prepared.bins.column]
    buffers.labels.label[: len(rows)] = labels
    attribute_batch(R2, prepared, buffers)
    return prepared, buffers


@given(data=st.data(), ensemble=regressions())
@pytest.mark.slow
def test_the_residual_is_rounding_until_a_loss_is_wrong(data, ensemble):
    """What trees take off the squared error is the sum of losses; half of it missing on one row is found there."""
    rows = data.draw(batches(ensemble))
    labels = np.array([data.draw(st.integers(-32, 32)) / 4 for _ in rows])
    prepared, buffers = lost(ensemble, rows, labels)
    found = find_residuals(R2.check, prepared, buffers, len(rows))
    assert found.shape == (1, len(rows))
    assert (found < TOLERANCE / 1e3).all()
    total = [sum(loss) for loss, *_ in (naive_r2.losses(ensemble, row, label) for row, label in zip(rows, labels, strict=True))]
    wrong = buffers._replace(phi=buffers.phi.copy(), labels=buffers.labels._replace(remainder=buffers.labels.remainder.copy()))
    wrong.labels.remainder[0] += 1.0
    found = find_residuals(R2.check, prepared, wrong, len(rows))
    largest = (abs(labels[0] - prepared.method.start[0]) + prepared.bound[0]) ** 2
    assert_allclose(found[0, 0], 1 / largest if largest else 1 / np.finfo(np.float64).tiny, rtol=1e-9)
    assert find_breach(found) == 0
    assert_allclose(buffers.phi[0].sum(axis=0)[: len(rows)], total, rtol=0, atol=1e-11)


def test_a_row_without_a_label_adds_up_to_anything():
    """Its losses are those of whatever stands in its place."""
    prepared, buffers = lost(TREE, np.zeros((2, 2)), np.array([np.nan, 1.0]))
    assert np.isnan(find_residuals(R2.check, prepared, buffers, 2)[0, 0])
    buffers.labels.missing[0] = True
    assert find_residuals(R2.check, prepared, buffers, 2)[0, 0] == 0.0
    assert find_breach(find_residuals(R2.check, prepared, buffers, 2)) is None


def test_losses_have_labels_and_one_game():
    """The trees' own: no background, and no interactions."""
    assert R2.labelled
    assert R2.check is not None
    assert not R2.check.of_margins
    with pytest.raises(InvalidParameters, match="'r2' has no interactions"):
        prepare(TREE, R2, {}, interactions=True)
    with pytest.raises(InvalidParameters, match="'r2' has no marginal game"):
        ask_background(TREE, R2, n_rows=1, budget=1 << 30)


def test_the_headline_says_what_shares_add_up_to():
    """A number that there is not is a dash."""
    (summary,) = R2.summaries
    totals = {"total_r2": 0.90171, "total_standard_error": None, "remainder": -4.2e-14, "sst": 6.521e8, "n": 327346, "n_unlabelled": 9430}
    assert summary.headline(totals) == "R² 0.9017 ± –, shares and a remainder of -4.2e-14; SST 6.521e+08; 327,346 rows, 9,430 without a label"
