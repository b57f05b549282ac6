"""A machine is called as it calls itself, and its processor as the kernel, or else Python, calls it."""

import os
import socket

from leafledger.pipeline.cluster import worker_identity as machine
from leafledger.pipeline.cluster.worker_identity import this_machine, this_worker


def test_a_process_is_named():
    worker = this_worker()
    assert (worker.machine.host, worker.process) == (socket.gethostname(), os.getpid())
    assert worker.machine is this_machine()
    assert worker.machine.cpu


def test_a_machine_that_says_little_has_a_cpu_all_the_same(monkeypatch, tmp_path):
    """Of other systems, and of containers without the file."""
    for text, expected in (("model name\t: A  CPU\nmodel name\t: B\n", "A CPU"), ("flags: x\n", None), (None, None)):
        if text is not None:
            (tmp_path / "cpuinfo").write_text(text)
        monkeypatch.setattr(machine, "CPUINFO", str(tmp_path / ("cpuinfo" if text is not None else "missing")))
        found = machine._find_cpu()
        assert found == expected or (expected is None and found)
