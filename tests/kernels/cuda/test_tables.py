"""What kernels read is laid out before anything is sent, and launched on a part of a slice's rows."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from leafledger.kernels.cuda.decorator import cuda
from leafledger.kernels.cuda.tables import launch, lay_out, send
from tests.kernels.cuda.card import tables
from tests.kernels.cuda.small_card import SmallCard
from tests.kernels.marginal.against import KEPT, counted, query_for
from tests.trees import grown

RNG = np.random.default_rng(3)
ENSEMBLE, BACKGROUND = grown(RNG, 2, 5, 6), RNG.normal(size=(20, 6))


def against(kept):
    asked = query_for("shapley", ENSEMBLE, kept=KEPT[kept])
    return tables("shapley", ENSEMBLE, background=(asked, counted(asked, BACKGROUND)))


@pytest.mark.parametrize(("kept", "n_jobs"), [(None, 1), ("tables", 1), ("tables and sums", 2), ("sums", 1), ("patterns", 1)])
def test_the_size_is_known_before_tables_are_sent(monkeypatch, kept, n_jobs):
    """To the byte; each kind of tables has a kernel."""
    prepared = tables("shapley", ENSEMBLE) if kept is None else against(kept)
    small = SmallCard(monkeypatch, 1 << 30)
    jobs = lay_out(prepared.method, 16, prepared.players.size)
    assert (len(jobs), small.free) == (n_jobs, 1 << 30)
    sent = send(jobs)
    assert (1 << 30) - small.free == sum(job.n_bytes for job in jobs) > 1000
    assert [[array.shape for array in job.arrays] for job in sent] == [[array.shape for array in job.arrays] for job in jobs]


def test_rows_beyond_those_that_count():
    """Are left as they are, whatever a room held before; of the others what it held is overwritten."""
    prepared = against("tables and sums")
    n, n_phi = 128, prepared.players.size
    bins, out = np.zeros(prepared.bins.column.size * n, np.uint16), np.full(n_phi * n, np.nan)
    there = cuda.to_device(out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        launch(send(lay_out(prepared.method, 16, n_phi)), cuda.to_device(bins), there, n_phi, n, 5, cuda.stream())
    found = there.copy_to_host().reshape(n_phi, n)
    assert np.isfinite(found[:, :5]).all()
    assert np.isnan(found[:, 5:]).all()
    assert_array_equal(found[:, :5], found[:, :1].repeat(5, axis=1))
