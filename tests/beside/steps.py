"""What a step of a tool takes: seconds, processor time and memory, of this process and of all below it. Imported in the environment of every tool."""

import contextlib
import json
import threading
import time
from importlib.metadata import version
from pathlib import Path

import psutil

POLL_SECONDS = 0.02


def _tree():
    """This process and all below it that have not ended."""
    mine = psutil.Process()
    return [mine, *mine.children(recursive=True)]


def _used():
    """Processor time of the tree so far; that of processes that ended is with those who waited for them."""
    total = 0.0
    for process in _tree():
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])  # user, system, and the same of children that ended
    return total


def _held():
    """Bytes that the tree holds, pages that several processes share counted once for each."""
    total = 0
    for process in _tree():
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total


class Steps:
    """Steps of a tool, in the order in which it took them."""

    def __init__(self):
        self.taken = []

    @contextlib.contextmanager
    def step(self, name):
        """Measure what is done within."""
        over, peak = threading.Event(), [_held()]

        def watch():
            while not over.wait(POLL_SECONDS):
                peak[0] = max(peak[0], _held())

        watcher = threading.Thread(target=watch)
        started, used = time.perf_counter(), _used()
        watcher.start()
        try:
            yield
        finally:
            found = {"name": name, "seconds": round(time.perf_counter() - started, 2), "processor_seconds": round(_used() - used, 2)}
            over.set()
            watcher.join()
        self.taken.append(found | {"peak_bytes": peak[0]})

    def save(self, out, packages):
        """Write what was measured, and the versions of packages, into a folder."""
        said = {"versions": {name: version(name) for name in packages}, "steps": self.taken}
        (Path(out) / "steps.json").write_text(json.dumps(said))
