"""Sums of weights by code and by pattern, against sums row by row."""

import numpy as np
import pytest
from numba import config

from leafledger.kernels.marginal.background import count_background
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_again, ask_background, measure_background
from leafledger.kernels.quotients.nodes import weigh_rows
from leafledger.kernels.quotients.quantities import Quantity
from leafledger.kernels.trees.binning import bin_dtype, bin_rows, padded
from tests import naive
from tests.kernels.marginal.against import KEPT, query_for
from tests.kernels.weighted.carrying import PLENTY
from tests.trees import grown


@pytest.mark.again
@pytest.mark.parametrize("kept", KEPT)
def test_each_row_adds_its_weights_where_it_is_counted(kept, monkeypatch):
    """In tables and in patterns; rows alone are what the game without weights counts."""
    rng, quantity, n = np.random.default_rng(9), Quantity("sigmoid"), 8 if config.DISABLE_JIT else 30
    ensemble, background = grown(rng, 3, 4, 4), rng.normal(size=(n, 4))
    partitioning = query_for("shapley", ensemble, kept=KEPT[kept]).partitioning
    query = ask_background(ensemble, METHODS["shapley"], n_rows=n, budget=PLENTY, quantity=quantity)
    query = query._replace(
        query=query.query._replace(partitioning=partitioning),
        coded_output=np.zeros(partitioning.coded.size, np.int64),
        deep_output=np.zeros(partitioning.deep.size, np.int64),
    )
    values = background.T[query.bins.column]
    query = ask_again(query, measure_background(query, values.copy()))
    counted = measure_background(query, values.copy())
    weights, rises = weigh_rows(quantity, query.nodes[0], naive.margins(ensemble, background).T)
    assert (counted.rises == rises.sum(axis=2)).all()
    total, padding = 0, padded(1)
    for i in range(n):
        bins = np.zeros((len(values), padding), bin_dtype(query.bins))
        bin_rows(np.repeat(values[:, i : i + 1], padding, axis=1), query.bins, bins)
        alone = count_background(bins, partitioning, 1)
        held = measure_background(query, values[:, i : i + 1].copy())
        columns = np.append(1, weights[0, :, i])
        assert (np.abs(held.counted.counts - alone.counts[:, None] * columns) <= 1).all()  # last bits of a margin
        assert (np.abs(held.counted.times - alone.times[:, None] * columns) <= 1).all()
        total = total + held.counted.counts
    assert (total == counted.counted.counts).all()
    assert counted.share(0).total(np.zeros(3)) == 1.0
    assert np.ldexp(counted.share(0).counts * n, int(query.nodes[0].exponent[0])) == pytest.approx(counted.counted.counts[:, 1].astype(float))
