"""What of this machine a local cluster gets, and tables of rows in memory."""

from types import SimpleNamespace

import psutil

from leafledger.pipeline.cluster import cgroups, resources


def test_workers_share_the_machine(monkeypatch):
    """One per core that this process may use, each with its part of the memory; or as many as are asked for."""
    monkeypatch.setattr(cgroups, "OWN", "nowhere")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=1 << 40))
    monkeypatch.setattr(resources.os, "sched_getaffinity", lambda _: {0, 3, 5, 7})
    assert resources.share_out(None) == (4, 1 << 38)
    assert resources.share_out(3) == (3, (1 << 40) // 3)
    assert resources.table_budget() == 1 << 39
    monkeypatch.delattr(resources.os, "sched_getaffinity")
    monkeypatch.setattr(resources.os, "cpu_count", lambda: None)
    assert resources.share_out(None)[0] == 1
