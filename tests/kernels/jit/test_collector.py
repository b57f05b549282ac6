"""No garbage is collected while modules are loaded; the command alone keeps what is loaded from the collector for good."""

import gc
import subprocess
import sys

import pytest

from leafledger.kernels.jit import collector
from leafledger.kernels.jit.collector import loading, own_process


def fail():
    with loading():
        assert not gc.isenabled()
        raise ImportError


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.slow
def test_the_collector_is_left_as_it_was_found(enabled):
    """Also where what is loaded fails; nothing of a program that calls this package is kept from it."""
    before, frozen = gc.isenabled(), gc.get_freeze_count()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(ImportError):
            fail()
        assert gc.isenabled() is enabled
        assert gc.get_freeze_count() == frozen
    finally:
        (gc.enable if before else gc.disable)()


def test_the_command_keeps_what_it_has_loaded_from_the_collector():
    """Its modules' objects are frozen, and the collector works on."""
    code = "import gc, leafledger.__main__; print(gc.get_freeze_count() > 10_000, gc.isenabled())"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "True True\n"


@pytest.mark.slow
def test_a_process_that_is_the_command_s_freezes_what_is_loaded(monkeypatch):
    """Whatever there is once loading is over."""
    monkeypatch.setattr(collector, "_process_is_ours", False)
    own_process()
    before = gc.get_freeze_count()
    with loading():
        kept = [[] for _ in range(100)]
    assert gc.get_freeze_count() >= before + len(kept)
