"""What of this machine a run gets, and tables of rows in memory."""

from types import SimpleNamespace

import psutil

from leafledger.pipeline.cluster import cgroups, resources


def test_a_run_gets_what_this_process_may_use(monkeypatch):
    """The cores that it may run on, or all where the system does not say; and the memory, half of it for tables."""
    monkeypatch.setattr(cgroups, "OWN", "nowhere")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=1 << 40))
    monkeypatch.setattr(resources.os, "sched_getaffinity", lambda _: {0, 3, 5, 7})
    assert (resources.count_cores(), resources.find_memory()) == (4, 1 << 40)
    assert resources.table_budget() == 1 << 39
    monkeypatch.delattr(resources.os, "sched_getaffinity")
    monkeypatch.setattr(resources.os, "cpu_count", lambda: None)
    assert resources.count_cores() == 1
