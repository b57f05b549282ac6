"""A batch as workers do it: read-only tables, reused buffers, the residual that guards production."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.batch import attribute_batch, find_breach, find_not_finite, find_residuals
from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.method.method import TOLERANCE
from leafledger.kernels.methods import METHODS
from leafledger.kernels.path_dependent.quadrature import FEW_ROWS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.slices.buffers import make_buffers
from tests.kernels.attributing import ATOL, defaults, leaves, run
from tests.naive import margins
from tests.strategies import batches, forests
from tests.trees import chain

SHAPLEY = METHODS["shapley"]


@given(data=st.data(), ensemble=forests(max_depth=6))
def test_the_residual_is_rounding_until_a_table_is_wrong(data, ensemble):
    """On every forest |base + sum of phi - margin| is far below the tolerance; a base value that is off is above it on every row."""
    rows = data.draw(batches(ensemble))
    prepared = prepare(ensemble, SHAPLEY, {})
    buffers = make_buffers(prepared, len(rows))
    buffers.values[:, : len(rows)] = rows.T[prepared.bins.column]
    attribute_batch(SHAPLEY, prepared, buffers)
    assert_allclose(buffers.margin[:, : len(rows)].T, margins(ensemble, rows), rtol=0, atol=ATOL)
    found = find_residuals(SHAPLEY.check, prepared, buffers, len(rows))
    assert found.shape == (ensemble.base.size, len(rows))
    assert (found < TOLERANCE / 1e3).all()
    assert find_breach(found) is None
    wrong = prepared._replace(base=prepared.base + 1e-6 * (1 + prepared.bound))
    found = find_residuals(SHAPLEY.check, wrong, buffers, len(rows))
    assert (found > TOLERANCE).all()
    assert find_breach(found) == 0
    assert find_residuals(METHODS["banzhaf"].check, wrong, buffers, len(rows)).shape == (0, len(rows))


def test_a_breach_is_the_first_row_above_the_tolerance():
    """Of any output; the tolerance itself is allowed, and no number at all is a breach."""
    fine = np.array([[TOLERANCE, 0.0, 0.0, 0.0], [0.0, TOLERANCE, 0.0, 0.0]])
    assert find_breach(fine) is None
    for wrong in (np.nextafter(TOLERANCE, 1), np.inf, np.nan):
        for k in range(2):
            found = fine.copy()
            found[k, 2:] = wrong
            assert find_breach(found) == 2


@pytest.mark.parametrize("name", ["phi", "pairs", "margin"])
def test_what_is_not_finite_is_found(name):
    """The first row with such a number, in any of what is published; rows behind those that count do not, nor does a sum that overflows."""
    ensemble = chain([0, 1, 2], [1.0, 2.0, 3.0, 4.0], [1.0] * 4, 3)
    prepared = prepare(ensemble, SHAPLEY, {}, interactions=True)
    buffers = make_buffers(prepared, 9)
    getattr(buffers, name)[:] = 1e308
    assert find_not_finite(buffers, 9) is None
    for wrong in (np.inf, -np.inf, np.nan):
        getattr(buffers, name)[..., [7, 4]] = wrong
        assert find_not_finite(buffers, 9) == 4
        assert find_not_finite(buffers, 4) is None
    assert find_not_finite(buffers, 0) is None


@given(data=st.data(), ensemble=forests())
def test_buffers_are_reused_without_a_trace(data, ensemble):
    """A second batch in the same buffers gives what it gives in fresh ones, bit for bit."""
    first, second = data.draw(batches(ensemble, max_rows=1)), data.draw(batches(ensemble, max_rows=1))
    prepared = prepare(ensemble, SHAPLEY, {})
    found = []
    for sequence in ([first, second], [second]):
        buffers = make_buffers(prepared, 1)
        for rows in sequence:
            buffers.values[:, :1] = rows.T[prepared.bins.column]
            attribute_batch(SHAPLEY, prepared, buffers)
        found.append((buffers.phi[:, :, 0].copy(), buffers.margin[:, 0].copy()))
    assert (found[0][0] == found[1][0]).all()
    assert (found[0][1] == found[1][1]).all()


@pytest.mark.again
@pytest.mark.usefixtures("trees")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), ensemble=forests(max_depth=6))
@pytest.mark.parametrize("n_rows", [1, 8, FEW_ROWS, FEW_ROWS + 1])
def test_few_rows_have_the_bits_that_they_have_among_many(data, ensemble, n_rows):
    """Values and interactions of rows that are walked eight at a time, as far as rows count, are those of the kernel for many."""
    rows = np.resize(data.draw(batches(ensemble)), (n_rows, ensemble.n_features))
    prepared = prepare(ensemble, SHAPLEY, {}, interactions=True)
    found = []
    for counting in (n_rows, None):
        buffers = make_buffers(prepared, n_rows)
        buffers.values[:, :n_rows] = rows.T[prepared.bins.column]
        attribute_batch(SHAPLEY, prepared, buffers, counting)
        found.append([values[..., :n_rows].tobytes() for values in (buffers.phi, buffers.pairs, buffers.margin)])
    assert found[0] == found[1]


@given(forests())
def test_tables_are_read_only(ensemble):
    """Kernels and workers share them."""
    assert not any(array.flags.writeable for array in leaves(prepare(ensemble, SHAPLEY, {})))


@given(ensemble=forests(max_features=4), data=st.data())
def test_what_several_have_together_is_shared(ensemble, data):
    """Players who stand for others: each of these gets an equal part, beside what is its own; sums stay."""
    n = ensemble.n_features
    rows, shared = data.draw(batches(ensemble)), {n - 1: tuple(range(n - 1))} if n > 1 else {}
    plain = prepare(ensemble, METHODS["shapley"], {}, np.arange(n))
    prepared = prepare(ensemble, METHODS["shapley"], {}, np.arange(n), shared=shared)
    whole = run("shapley", plain, rows, n)[0]
    found, base, margin = run("shapley", prepared, rows, n)
    expected = whole.copy()
    if n - 1 in plain.players and shared:
        expected[:, :, : n - 1] += whole[:, :, n - 1 :] / (n - 1)
        expected[:, :, n - 1] = 0.0
    assert_allclose(found, expected, rtol=0, atol=ATOL)
    assert_allclose(found.sum(axis=2) + base, margin, rtol=0, atol=ATOL)


@pytest.mark.parametrize(("name", "interactions"), [("ranker", False), ("curves", False), ("shapley", True)])
def test_what_cannot_be_shared_is_refused(name, interactions):
    """Ranks and pairs are of players."""
    ensemble = chain([0, 1, 2], [1.0, 2.0, 3.0, 4.0], [1.0] * 4, 3)
    with pytest.raises(InvalidParameters, match="cannot be shared"):
        prepare(ensemble, METHODS[name], defaults(name), np.arange(3), interactions=interactions, shared={2: (0, 1)})
