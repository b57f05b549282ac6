"""Counts that come from a file are those of some rows, or refused: whatever passes, kernels can follow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.marginal.counts import check_counts
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from tests.kernels.attributing import ATOL, run
from tests.kernels.marginal.against import KEPT, counted, query_for
from tests.strategies import batches, forests
from tests.trees import chain

PLAYERS = 70  # of a leaf: its patterns have two words
ENSEMBLE = chain(np.arange(PLAYERS), np.ones(PLAYERS + 1), np.ones(PLAYERS + 1), PLAYERS)
ROWS = (np.random.default_rng(5).random((6, PLAYERS)) < 0.5).astype(float)


@given(data=st.data(), ensemble=forests(), kept=st.sampled_from(sorted(KEPT)))
def test_what_is_counted_is_accepted(data, ensemble, kept):
    """Of any rows of any model, however it is cut."""
    rows = data.draw(batches(ensemble))
    asked = query_for("shapley", ensemble, kept=KEPT[kept])
    asked.check(counted(asked, rows), len(rows))
    if asked.partitioning.coded.size + asked.partitioning.deep.size:
        with pytest.raises(InvalidParameters, match="expected"):
            asked.check(counted(asked, rows), len(rows) + 1)


def put(array, at, value):
    """The same with another number somewhere."""
    changed = array.copy()
    changed[at] = value
    return changed


FORGED = {
    "another type": lambda it: it._replace(counts=it.counts.astype(float)),
    "no array": lambda it: it._replace(times=it.times.tolist()),
    "a code more": lambda it: it._replace(counts=np.append(it.counts, 0)),
    "more axes": lambda it: it._replace(times=it.times[:, None]),
    "fewer than nobody": lambda it: it._replace(counts=put(put(it.counts, 0, it.counts[0] - 99), 1, it.counts[1] + 99)),
    "patterns of other leaves": lambda it: it._replace(start=put(it.start, 0, -1)),
    "patterns beyond the end": lambda it: it._replace(start=put(it.start, -1, it.start[-1] + 1)),
    "a leaf without patterns": lambda it: it._replace(start=put(it.start, 1, it.start[2])),
    "a time too few": lambda it: it._replace(times=it.times[:-1]),
    "never": lambda it: it._replace(times=put(it.times, 0, 0)),
    "more often than there are rows": lambda it: it._replace(times=put(it.times, 0, it.times[0] + 1)),
    "a pattern of more players": lambda it: it._replace(patterns=put(it.patterns, (0, 0), 1 << 40)),
    "a player in a word beyond": lambda it: it._replace(patterns=put(it.patterns, (it.start[1] - 1, 1), 1)),
    "a negative pattern": lambda it: it._replace(patterns=put(it.patterns, (0, 0), -1)),
    "another order": lambda it: it._replace(patterns=it.patterns[::-1].copy()),
    "a pattern twice": lambda it: it._replace(patterns=put(it.patterns, -1, it.patterns[-2])),
}


@pytest.mark.parametrize("forged", FORGED)
def test_what_no_rows_give_is_refused(forged):
    """One number is enough that would lead a kernel elsewhere, or that rows cannot have."""
    asked = query_for("shapley", ENSEMBLE, kept=(3, 20))
    honest = counted(asked, ROWS)
    assert asked.partitioning.coded.size
    assert asked.partitioning.deep.size > 2
    asked.check(honest, len(ROWS))
    with pytest.raises(InvalidParameters, match="the background's statistics are those of no rows, expected"):
        asked.check(FORGED[forged](honest), len(ROWS))


def test_another_record_is_refused():
    """Records are told apart by their types, not by their names."""
    asked = query_for("shapley", ENSEMBLE, kept=(3, 20))
    with pytest.raises(InvalidParameters, match="known as LeafPaths, the method expects Background"):
        check_counts(asked.partitioning, asked.partitioning.deep.leaves, 1)


@given(data=st.data(), ensemble=forests(), kept=st.sampled_from(sorted(KEPT)))
@pytest.mark.slow
def test_what_is_accepted_can_be_played(data, ensemble, kept):
    """Numbers changed anywhere are refused, or counts of some other rows: tables made of them lead nowhere, and attributions add up."""
    rows = data.draw(batches(ensemble))
    asked = query_for("shapley", ensemble, kept=KEPT[kept])
    forged = counted(asked, rows)
    for name in data.draw(st.lists(st.sampled_from(forged._fields), min_size=1, max_size=3)):
        array = getattr(forged, name)
        if array.size:
            at = np.unravel_index(data.draw(st.integers(0, array.size - 1)), array.shape)
            other = np.unravel_index(data.draw(st.integers(0, array.size - 1)), array.shape)
            change = data.draw(st.one_of(st.integers(-2, 2), st.integers(-(1 << 62), (1 << 62) - 1)))
            with np.errstate(over="ignore"):
                forged = forged._replace(**{name: put(put(array, at, array[at] + change), other, array[other] - change)})
    try:
        asked.check(forged, len(rows))
    except InvalidParameters:
        return
    prepared = prepare(ensemble, METHODS["shapley"], {}, background=(asked, forged))
    phi, base, margin = run("shapley", prepared, rows, ensemble.n_features)
    assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)
