"""Settings of the tests of a card's kernels."""

import pytest

from leafledger.kernels.cuda import memory, tables


@pytest.fixture(autouse=True)
def few_threads(monkeypatch):
    """Blocks of a few threads, which are threads of Python in the simulator; nothing is on the card."""
    monkeypatch.setattr(tables, "THREADS", (4, 2))
    monkeypatch.setattr(memory, "MEMORY", memory.Memory())
