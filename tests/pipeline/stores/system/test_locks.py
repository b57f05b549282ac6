"""A lock is one descriptor's until it is closed, here and by what Windows calls it."""

import os
import sys
from importlib import reload

import pytest

from leafledger.pipeline.stores.system import locks
from tests.platforms.elsewhere import make_msvcrt


@pytest.fixture(params=["linux", "win32"])
def try_lock(request, monkeypatch):
    """The function of a system."""
    monkeypatch.setitem(sys.modules, "msvcrt", make_msvcrt())
    monkeypatch.setattr(sys, "platform", request.param)
    yield reload(locks).try_lock
    monkeypatch.undo()
    reload(locks)


def test_who_comes_second_waits(try_lock, tmp_path):
    """For whoever has the file locked by another descriptor, and no longer than that is open."""
    first, second = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert try_lock(first)
    assert not try_lock(second)
    os.close(first)
    assert try_lock(second)
    os.close(second)
