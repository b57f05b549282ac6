"""Ranks of rows, and what they come to over all rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.ranking.ranks import reduce_ranks, summarize_ranks
from leafledger.kernels.reductions.reduction import merge_all
from leafledger.kernels.reductions.summary import Subject
from leafledger.kernels.slices.buffers import Buffers
from leafledger.kernels.slices.labels import no_labels


@given(st.integers(0, 2**32), st.integers(1, 4), st.lists(st.integers(0, 60), max_size=5))
def test_rankings_are_summarised_by_mean_rank(seed, top, cuts):
    """Of four players: whom a row does not rank comes after the others there, so that being ranked seldom is not being first; the scores after them
    keep their moments, and take no rank."""
    rng = np.random.default_rng(seed)
    ranks = rng.permuted(np.tile(np.arange(1.0, 5.0), (1, 60, 1)), axis=2).transpose(0, 2, 1)
    ranks[ranks > top] = 0.0
    phi = np.concatenate((ranks, rng.choice([0.0, 0.5, 7.0], (1, 2, 60))), axis=1)
    reduction = reduce_ranks(2)
    states = [reduction.update(reduction.init(1, 6), np.ascontiguousarray(part), part.shape[2]) for part in np.split(phi, sorted(cuts), axis=2)]
    found = reduction.finalize(merge_all(reduction, states, 1, 6), np.arange(6), 6)
    mean = np.where(ranks[0] > 0, ranks[0], 5.0).mean(axis=1)
    assert_allclose(found["mean"][0], [*mean, *phi[0, 4:].mean(axis=1)], rtol=1e-12)
    order = np.argsort(found["rank"][0], kind="stable")
    assert order[:2].tolist() == [4, 5]
    assert sorted(found["rank"][0]) == [0, 0, 1, 2, 3, 4]
    assert (np.diff(found["mean"][0, order[2:]]) >= -1e-12).all()


def test_a_table_of_ranks_has_a_row_for_every_player_and_score():
    """In the players' own order, with what a person sees of it; moments of a rank are over the rows."""
    summary = summarize_ranks("gaps", 2, "pgi2", "ranks")
    phi = np.array([[[1.0, 2.0, 1.0], [3.0, 3.0, 3.0], [2.0, 1.0, 2.0], [0.5, 1.5, 1.0], [0.0, 0.0, 0.0]]])
    state = summary.reduction.update(summary.reduction.init(1, 5), phi, 3)
    subject = Subject(("y",), ("p", "q", "r", "pgi2", "error"), np.arange(5), np.zeros((0, 2), np.int64), 0)
    ((name, table),) = summary.tabulate(state, subject).items()
    assert name == summary.name == "gaps"
    assert tuple(table.columns) == summary.columns
    assert table.columns["feature"] == ["p", "q", "r", "pgi2", "error"]
    assert table.columns["rank"].tolist() == [1, 3, 2, 0, 0]
    assert_allclose(table.columns["mean"], [4 / 3, 3.0, 5 / 3, 1.0, 0.0], rtol=1e-14)
    assert_array_equal(table.columns["max"], [2.0, 3.0, 2.0, 1.5, 0.0])
    assert [(shown.column, shown.title) for shown in summary.display][2] == ("mean", "mean rank, pgi2")
    nothing = np.zeros(0)
    assert summary.reads(Buffers(nothing, nothing, nothing, phi, *[nothing] * 4, no_labels(0), *[nothing] * 4, 0)) is phi
