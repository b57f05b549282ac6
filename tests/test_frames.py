"""Random data sets are explained as the libraries predict them, or refused; ``make frames`` tries thousands."""

import numpy as np
import pytest

from leafledger.pipeline.errors import SchemaMismatch
from tests import frames

RUNS = 45


@pytest.mark.slow
def test_random_data_sets_are_explained_as_predicted_or_refused():
    """Every fault names the number that it is drawn from; most are explained."""
    outcome = frames.compare(range(RUNS))
    assert outcome.faults == []
    assert outcome.counts["the same"] > RUNS / 2


@pytest.mark.parametrize(
    ("ours", "says"),
    [
        (lambda *_: np.full(frames.N_ROWS, 1e3), "predicted"),
        (lambda *_: np.full(frames.N_ROWS, np.nan), "predicted"),
        (lambda *_: np.zeros(frames.N_ROWS - 1), "39 rows of 40"),
        (lambda *_: [][0], "IndexError"),
        (lambda *_: frames.refuse("two\nlines"), "several lines"),
    ],
)
def test_what_is_wrong_is_found(monkeypatch, ours, says):
    """Another margin, a row too few, a traceback, a refusal of several lines."""

    def refuse(text):
        error = SchemaMismatch("")  # which would escape what it is given
        error.args = (text,)
        raise error

    monkeypatch.setattr(frames, "refuse", refuse, raising=False)
    monkeypatch.setattr(frames, "explained", ours)
    found = frames.compare(range(6)).faults
    assert found
    assert all(says in fault for fault in found)


def test_time_ends_it():
    """A minute of it is run before changes land."""
    assert not frames.compare(range(10**9), seconds=0.0).counts
