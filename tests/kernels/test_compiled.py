"""What is said of compiling: how much, where it is kept, and for which processor."""

import subprocess
import sys

import numba
import pytest
from llvmlite import binding

from leafledger.kernels import compiled as compiling
from leafledger.kernels.compiled import LEVELS, counted, find_folder, find_lacking, name_cpu
from leafledger.kernels.jit.decorator import Kernel, jit


@pytest.fixture
def compiled(monkeypatch):
    """Whether or not kernels are compiled where this runs."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)


def _double(number):
    return number + number


def test_what_is_compiled_is_counted(compiled):
    """Once for each type, and not where it is there."""
    kernel = numba.njit(_double)
    with counted() as found:
        kernel(1)
    assert found.n_kernels == 1
    with counted() as found:
        kernel(2)
        kernel(1.0)
        assert found.n_kernels == 1


def test_a_level_says_no_more_than_the_next():
    assert set(LEVELS["x86-64-v3"]) < set(LEVELS["x86-64-v4"])
    assert set(LEVELS["x86-64-v4"]) <= set(binding.get_host_cpu_features()), "LLVM calls them otherwise"


def test_what_a_processor_lacks_is_named(monkeypatch):
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: dict.fromkeys(LEVELS["x86-64-v3"], True) | {"avx512f": False})
    assert find_lacking("x86-64-v3") == ()
    assert find_lacking("x86-64-v4") == ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")


CPU = "from leafledger.kernels.compiled import name_cpu, find_folder; print(name_cpu(), find_folder())"


@pytest.mark.again
@pytest.mark.slow
def test_the_processor_and_the_folder_are_those_of_the_environment(tmp_path, monkeypatch):
    """In a process of its own, as Numba reads it."""
    for name, value in {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}.items():
        monkeypatch.setenv(name, value)
    said = subprocess.run([sys.executable, "-c", CPU], capture_output=True, text=True, check=True, timeout=300).stdout.split()
    assert said == ["x86-64-v3", str(tmp_path)]


def test_without_a_folder_there_is_none(monkeypatch, compiled):
    """As where every folder is read-only, or nothing is compiled."""
    assert name_cpu()
    monkeypatch.setattr(compiling, "is_member", Kernel(_double, lambda: numba.njit(_double)))
    assert find_folder() is None
    monkeypatch.setattr(compiling, "is_member", Kernel(_double, lambda: _double))
    assert find_folder() is None
    monkeypatch.setattr(compiling, "is_member", jit(_double))
    assert find_folder() is not None
