"""What is measured adds up, counts what it should and nothing else."""

import os
import subprocess
import sys
import threading
import time

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


def test_times_add_up(monkeypatch):
    """By name, and processors' time without reading's; clocks are set by hand."""
    monkeypatch.setattr(spent.time, "perf_counter", iter([0.0, 1.0, 1.0, 3.0, 3.0, 6.0, 6.0, 10.0, 10.0, 12.0]).__next__)
    monkeypatch.setattr(spent.time, "thread_time", iter([0.0, 0.5, 0.5, 2.0, 2.0, 2.5, 2.5, 6.0, 6.0, 6.25]).__next__)
    watch, later = Stopwatch(), Stopwatch()
    for name in ("reading", "kernel", "reading", "writing"):
        with watch.timed(name):
            pass
    found = watch.spent()
    assert found[:4] == (4.0, 2.0, 4.0, 0.0)
    assert found.cpu == 5.0
    with later.timed("publishing"):
        pass
    whole = found.add(later.spent())
    assert (whole.publishing, whole.cpu) == (2.0, 5.25)
    assert sum(whole[:4]) == 12.0
    assert whole.peak == max(found.peak, later.spent().peak)


def test_what_comes_is_timed_while_it_is_waited_for():
    """Not while it is used; nothing is read ahead, and the end takes time as well."""
    watch, asked = Stopwatch(), []

    def values():
        for k in range(3):
            asked.append(k)
            time.sleep(0.01)
            yield k
        time.sleep(0.01)

    for k in watch.iterate("reading", values()):
        assert asked == list(range(k + 1))
        time.sleep(0.05)
    assert 0.04 <= watch.spent().reading < 0.15


def test_threads_times_add_up():
    """Each with the processor's time of its own thread alone."""
    watch, done = Stopwatch(), threading.Event()

    def work(name):
        with watch.timed(name):
            done.wait()

    threads = [threading.Thread(target=work, args=("kernel",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    began = time.thread_time()
    while time.thread_time() < began + 0.1:
        pass
    done.set()
    for thread in threads:
        thread.join()
    assert watch.spent().kernel >= 0.3
    assert watch.spent().cpu < 0.1


def test_processors_time_is_that_of_the_work_and_its_children(monkeypatch):
    """In programs and in the system; clocks are set by hand."""
    clocks = iter([os.times_result((1.0, 2.0, 4.0, 8.0, 0.0)), os.times_result((2.0, 4.0, 8.0, 16.0, 0.0))])
    monkeypatch.setattr(spent.os, "times", lambda: next(clocks))
    found = []
    with measure_usage(found):
        pass
    assert found[0].cpu == 1.0 + 2.0 + 4.0 + 8.0


def test_nothing_is_spent_on_what_was_not_done():
    """A watch that was not used has no times."""
    assert Stopwatch().spent()[:5] == PartTimings()[:5] == (0.0,) * 5


@pytest.mark.slow
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
