"""What is measured adds up, counts what it should and nothing else."""

import os
import subprocess
import sys

import numpy as np
import pytest

from leafledger.pipeline.cluster import resource_usage as spent
from leafledger.pipeline.cluster.resource_usage import PartTimings, Stopwatch, find_peak, measure_usage
from leafledger.pipeline.stores.traffic import count_moved

GROWN = 96 << 20  # bytes
PROCESS = f"""
import numpy
from leafledger.pipeline.cluster.resource_usage import find_peak
before = find_peak()
numpy.ones({GROWN}, numpy.uint8)
print(find_peak() - before)
"""


def test_laps_add_up(monkeypatch):
    """By name, and processors' time without reading's; clocks are set by hand."""
    monkeypatch.setattr(spent.time, "perf_counter", iter([0.0, 1.0, 3.0, 6.0, 10.0]).__next__)
    monkeypatch.setattr(spent.time, "process_time", iter([0.0, 0.5, 2.0, 2.5, 6.0]).__next__)
    watch = Stopwatch()
    for name in ("reading", "kernel", "reading", "writing"):
        watch.lap(name)
    found = watch.spent()
    assert found[:4] == (4.0, 2.0, 4.0, 0.0)
    assert found.cpu == 5.0
    published = found.publish(12.0, 0.25)
    assert (published.publishing, published.cpu) == (2.0, 5.25)
    assert sum(published[:4]) == 12.0


def test_processors_time_is_that_of_the_work_and_its_children(monkeypatch):
    """In programs and in the system; clocks are set by hand."""
    clocks = iter([os.times_result((1.0, 2.0, 4.0, 8.0, 0.0)), os.times_result((2.0, 4.0, 8.0, 16.0, 0.0))])
    monkeypatch.setattr(spent.os, "times", lambda: next(clocks))
    found = []
    with measure_usage(found):
        pass
    assert found[0].cpu == 1.0 + 2.0 + 4.0 + 8.0


def test_nothing_is_spent_on_what_was_not_done():
    """A watch without laps has no times."""
    assert Stopwatch().spent()[:5] == PartTimings()[:5] == (0.0,) * 5


def test_peak_is_that_of_the_past():
    """Memory that was given back counts: a new process says so of itself."""
    done = subprocess.run([sys.executable, "-c", PROCESS], stdout=subprocess.PIPE, text=True, check=True)
    assert int(done.stdout) > 0.9 * GROWN


def test_a_system_without_proc_tells_what_is_held_now(monkeypatch):
    """Which is no more than the peak."""
    peak = find_peak()
    monkeypatch.setattr(spent, "STATUS", "/nowhere")
    assert 0 < find_peak() <= peak


def test_what_is_moved_meanwhile_counts():
    """And what was moved before and after does not; a piece of work that fails has taken nothing."""
    found = []
    count_moved(read=1, written=2)
    with measure_usage(found):
        count_moved(read=30, written=40)
        np.ones(1000).sum()
    count_moved(read=5)
    assert [(taken.read, taken.written) for taken in found] == [(30, 40)]
    assert found[0].seconds > 0
    with pytest.raises(ValueError, match="mine"), measure_usage(found):
        raise ValueError("mine")
    assert len(found) == 1
