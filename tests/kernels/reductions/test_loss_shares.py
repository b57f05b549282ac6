"""The summary of a loss: its mean, the base, and parts that lie between them."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from leafledger.kernels.reductions.loss_shares import LOSS_SHARES
from leafledger.kernels.reductions.summary import Subject
from leafledger.kernels.slices.buffers import BASE, N_ENDS, TOTAL, Buffers
from leafledger.kernels.slices.labels import no_labels

RNG = np.random.default_rng(4)
N = 30
PHI = RNG.normal(size=(1, 2, N))
BASES = RNG.uniform(1, 2, N)
WEIGHT = RNG.integers(0, 3, N).astype(float)
PLACES = np.array([2, 0])
SUBJECT = Subject(("y",), ("p", "q", "r"), PLACES, np.zeros((0, 2), np.int64), 0)


def tables(by=(), weight=WEIGHT):
    """The summary's tables of all rows, those of weight 0 without a label."""
    ends = np.zeros((1, N_ENDS, N))
    ends[0, BASE], ends[0, TOTAL] = BASES, BASES + PHI[0].sum(axis=0)
    ends[:, :, weight == 0] = np.nan
    group = np.arange(N) % 2
    labels = no_labels(N)._replace(
        weight=weight, missing=weight == 0, group=group if by else 0 * group, names=np.array(['["a"]', '["b"]'][: 1 + bool(by)])
    )
    buffers = Buffers(**(dict.fromkeys(Buffers._fields) | {"phi": PHI, "ends": ends, "labels": labels}))
    state = LOSS_SHARES.update(LOSS_SHARES.init(buffers), buffers, N)
    return LOSS_SHARES.tabulate(state, replace(SUBJECT, by=by))


def test_parts_lie_between_the_base_and_the_loss():
    """Weighted means, with their errors; a player without a row of phi has none."""
    found = tables()
    loss = found["loss"]
    mean = np.average(PHI[0], axis=1, weights=WEIGHT)
    assert loss.columns["feature"] == ["p", "q", "r"]
    assert_allclose(loss.columns["mean"], [mean[1], 0.0, mean[0]], rtol=1e-12)
    assert loss.columns["rank"].tolist()[1] == 3
    assert loss.totals["mean_loss"] == pytest.approx(loss.totals["mean_base"] + mean.sum())
    assert loss.totals["mean_base"] == pytest.approx(np.average(BASES, weights=WEIGHT))
    assert (loss.totals["n"], loss.totals["n_unlabelled"]) == ((WEIGHT > 0).sum(), (WEIGHT == 0).sum())
    sizes = np.average(np.abs(PHI[0]), axis=1, weights=WEIGHT)
    assert_allclose(found["importance"].columns["mean_abs"], [sizes[1], 0.0, sizes[0]])
    assert LOSS_SHARES.headline(loss.totals).startswith(f"mean loss {loss.totals['mean_loss']:.4g} ± ")
    assert list(found) == ["loss", "importance"]


def test_groups_have_tables_of_their_own():
    """Rows, totals and importances of each; the columns are those that are told."""
    found = tables(("region",))
    by, importance = found["loss_by"], found["importance_by"]
    for number, name in enumerate("ab"):
        some = (np.arange(N) % 2 == number) & (WEIGHT > 0)
        rows = np.array(by.columns["region"]) == name
        mean = np.average(PHI[0][:, some], axis=1, weights=WEIGHT[some])
        assert_allclose(by.columns["mean"][rows], [mean[1], 0.0, mean[0]], rtol=1e-12)
        assert set(by.columns["n"][rows].tolist()) == {int(some.sum())}
        assert importance.columns["rows"][rows].tolist() == [int(some.sum())] * 3
    columns = {column for table in found.values() for column in table.columns} - {"region"}
    assert columns | set(found["loss"].totals) == set(LOSS_SHARES.columns)


def test_without_a_label_there_is_no_loss():
    """Null, and not NaN or zero."""
    totals = tables(weight=np.zeros(N))["loss"].totals
    assert totals == {
        "mean_loss": None,
        "mean_loss_error": None,
        "mean_base": None,
        "mean_base_error": None,
        "n": 0,
        "n_unlabelled": N,
        "weight": 0.0,
    }
    assert LOSS_SHARES.headline(totals).startswith("mean loss – ± –, – for")
