"""A batch as workers do it: read-only tables, reused buffers, the residual that guards production."""

from hypothesis import given
from hypothesis import strategies as st

from kernels.batch import attribute_batch, find_breach, find_residuals
from kernels.buffers import make_buffers
from kernels.method import TOLERANCE
from kernels.methods import METHODS
from kernels.prepare import prepare
from tests.kernels.attributing import leaves
from tests.strategies import batches, forests

SHAPLEY = METHODS["shapley"]


@given(data=st.data(), ensemble=forests(max_depth=6))
def test_the_residual_is_rounding_until_a_table_is_wrong(data, ensemble):
    """On every forest |base + sum of phi - margin| is far below the tolerance; a base value that is off is above it on every row."""
    rows = data.draw(batches(ensemble))
    prepared = prepare(ensemble, SHAPLEY, {})
    buffers = make_buffers(prepared, len(rows))
    buffers.values[:, : len(rows)] = rows.T[prepared.bins.column]
    attribute_batch(SHAPLEY, prepared, buffers)
    found = find_residuals(SHAPLEY.check, prepared, buffers, len(rows))
    assert found.shape == (ensemble.base.size, len(rows))
    assert (found < TOLERANCE / 1e3).all()
    assert find_breach(found) is None
    wrong = prepared._replace(base=prepared.base + 1e-6 * (1 + prepared.bound))
    found = find_residuals(SHAPLEY.check, wrong, buffers, len(rows))
    assert (found > TOLERANCE).all()
    assert find_breach(found) == 0
    assert find_residuals(METHODS["banzhaf"].check, wrong, buffers, len(rows)).shape == (0, len(rows))


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


@given(forests())
def test_tables_are_read_only(ensemble):
    """Kernels and workers share them."""
    assert not any(array.flags.writeable for array in leaves(prepare(ensemble, SHAPLEY, {})))
