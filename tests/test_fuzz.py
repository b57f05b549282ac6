"""Damaged model files end in a refusal or in the library's own predictions; ``make fuzz`` tries thousands."""

import os
import signal

import numpy as np
import pytest

from tests import formats as formats_
from tests import fuzz
from tests.more import more

MUTATIONS = 60  # of every format


@pytest.fixture(scope="module")
def ours():
    """A process that reads what the loaders take."""
    server = fuzz.Server(True)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def theirs():
    """A process whose copies read what the libraries take."""
    server = fuzz.Server(False)
    yield server
    server.stop()


@pytest.mark.parametrize("name", [*formats_.FORMATS][::2] + more(*[*formats_.FORMATS][1::2]))
@pytest.mark.slow
def test_damaged_files_are_refused_or_read_right(name, ours, theirs):
    """Seeded, in processes of their own."""
    outcome = fuzz.fuzz(name, MUTATIONS, ours, theirs)
    assert outcome.faults == []
    assert outcome.counts["refused"] > MUTATIONS // 4
    assert outcome.counts["the same"] > 0


def test_differences_are_found():
    """The comparison can fail: by the bound of what is compared, and not where shapes differ, which no library's own file has."""
    margin = np.array([[1.0], [2.0]])
    assert not fuzz._differ((margin, 2.0), np.array([1.0, 2.0]))
    assert fuzz._differ((margin, 2.0), np.array([1.0, 2.001]))
    assert not fuzz._differ((margin, 1000.0), np.array([1.0, 2.001]))


@pytest.mark.slow
def test_a_server_survives_what_it_is_asked(ours):
    """A file that takes too long costs the process, and the next one is answered."""
    sound = formats_.FORMATS["lightgbm text"].train()
    os.kill(ours._process.pid, signal.SIGSTOP)
    assert ours.ask("lightgbm text", sound, 0.1)[0] == "hung"
    assert ours.ask("lightgbm text", sound, 60.0)[0] == "predicted"
    assert ours.ask("lightgbm text", b"tree", 60.0)[0] == "refused"
