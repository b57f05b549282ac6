"""Rows with the game that is played on them: its players, and the output that is kept of each row."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import leafledger
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.in_memory.rankings.played_rows import keep_output, play_rows, read_numbers
from tests.pipeline.conftest import FEATURES


@pytest.fixture(scope="module")
def rows(example):
    return example.frame[FEATURES].assign(month=example.frame["month"].astype(int))[:40]


def test_players_are_features_or_groups(several, rows):
    """In the model's order; so many rows, outputs and players."""
    assert play_rows(several, rows, None, None, None, False).players == tuple(FEATURES)
    grouped = play_rows(several, rows, {"flight": ["distance", "delay"]}, None, None, False)
    assert grouped.players == leafledger.attribute(several, rows[:1], partition={"flight": ["distance", "delay"]}).players
    assert grouped.shape == (40, 3, 3)
    assert play_rows(several, rows, None, None, 1, False).shape == (40, 1, 4)


def test_outputs_are_chosen_by_margins(several, rows):
    """The largest one's where the predicted is asked for; with none to choose all are kept."""
    margin = leafledger.attribute(several, rows).margin
    found = play_rows(several, rows, None, None, "predicted", False)
    chosen = found.choose_outputs()
    assert_array_equal(chosen, margin.argmax(axis=1))
    assert_array_equal(keep_output(margin, chosen)[:, 0], margin.max(axis=1))
    assert keep_output(margin, None) is margin
    assert play_rows(several, rows, None, None, None, False).choose_outputs() is None


def test_numbers_spread_to_every_row():
    """What NumPy can broadcast; another shape is refused."""
    assert_array_equal(read_numbers([1.0, 2.0], "scores", (3, 1, 2), ("a", "b")), np.broadcast_to([1.0, 2.0], (3, 1, 2)))
    with pytest.raises(UsageError, match=r"scores have shape \(3,\), expected \(3, 1, 2\) or what NumPy spreads to it$"):
        read_numbers(np.zeros(3), "scores", (3, 1, 2), ("a", "b"))
    with pytest.raises(UsageError, match=r"scores have shape \(3, 2\), .*; numpy\.asarray\(scores\)\[:, None\] has an axis of one output$"):
        read_numbers(np.zeros((3, 2)), "scores", (3, 1, 2), ("a", "b"))
