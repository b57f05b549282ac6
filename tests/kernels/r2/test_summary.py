"""The tables of R^2: every player's share with the group's totals beside it, groups in the order of their values."""

import numpy as np
import pytest

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.r2.shares import finalize, no_rows, update, whole
from leafledger.kernels.r2.summary import COLUMNS, TOTALS, tabulate
from leafledger.kernels.reductions.summary import Subject
from leafledger.kernels.slices import labels as labelling
from leafledger.kernels.slices.labels import Labels

GROUPS = ("[10]", "[9]", "[null]")  # as a state sorts them: as text


def grouped(n=60):
    """A state of three groups, the last one of a single row, and two players."""
    draw = np.random.default_rng(n)
    names, code = np.unique(np.append(draw.choice(GROUPS[:2], n - 1), GROUPS[2]), return_inverse=True)
    label, missing = draw.normal(size=n), draw.random(n) < 0.1
    rows = Labels(label, np.where(missing, 0.0, 1.0), missing, code.astype(np.int64), names, draw.normal(size=n) / 4, np.zeros(n))
    return update(no_rows(2), draw.random((2, n)), rows, n)


def subject_of(by=()):
    """Three players, of which the model asks for the last and the first."""
    return Subject(outputs=("y",), players=("p", "q", "r"), place=np.array([2, 0]), pairs=np.zeros((0, 2), np.int64), n_steps=0, by=by)


def test_a_table_has_a_row_for_every_player():
    """The shares of all rows, in the players' own order, and the totals once."""
    state = grouped()
    tables, shares = tabulate(state, subject_of()), finalize(whole(state), np.array([2, 0]), 3)
    assert list(tables) == ["r2"]
    table = tables["r2"]
    assert list(table.columns) + list(table.totals) == list(COLUMNS)
    assert table.columns["feature"] == ["p", "q", "r"]
    assert table.columns["r2"].tolist() == shares.share.value[0].tolist()
    assert table.columns["rank"].tolist() == shares.rank[0].tolist()
    assert table.totals["total_r2"] == shares.r2.value[0]
    assert table.totals["n"] == shares.rows[0]
    assert table.totals["n"] + table.totals["n_unlabelled"] == 60


def test_groups_stand_in_the_order_of_their_values():
    """Each with a row for every player and its totals behind; none comes last, and what is no number is NaN."""
    state = grouped()
    columns = tabulate(state, subject_of(by=("g",)))["r2_by"].columns
    assert list(columns) == ["g", "feature", "r2", "standard_error", "rank", *TOTALS]
    assert columns["g"] == [9] * 3 + [10] * 3 + [None] * 3
    assert columns["feature"] == ["p", "q", "r"] * 3
    shares = finalize(state, np.array([2, 0]), 3)
    order = [state.names.tolist().index(name) for name in ("[9]", "[10]", "[null]")]
    assert columns["n"].tolist() == [int(shares.rows[g]) for g in order for _ in range(3)]
    for name, values in (("r2", shares.share.value[order].ravel()), ("total_r2", np.repeat(shares.r2.value[order], 3))):
        np.testing.assert_array_equal(columns[name], values)
    assert np.isnan(columns["total_r2"][-1])


def test_more_groups_than_are_worth_a_table_are_refused(monkeypatch):
    """By the number of values in all."""
    monkeypatch.setattr(labelling, "MOST_VALUES", 8)
    with pytest.raises(InvalidParameters, match="'g' make 3 groups of 3 values each, expected at most 8 values in all"):
        tabulate(grouped(), subject_of(by=("g",)))
