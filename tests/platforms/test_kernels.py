"""Kernels give the same bits on processors with AVX-512, with AVX2 alone and with vectors of 128 bits, by what LLVM is told to compile for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from leafledger.kernels.compiled import find_lacking

ROOT = Path(__file__).parents[2]


def _compute(folder, cpu, features):
    """What ``tests.platforms.kernels`` says for a processor, in a process and a cache of its own."""
    environment = os.environ | {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": str(folder), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-m", "tests.platforms.kernels"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found.pop("cpu") == cpu
    return found


@pytest.mark.slow
@pytest.mark.skipif(bool(find_lacking("x86-64-v3")), reason="a processor with AVX2 is needed")
def test_the_width_of_vectors_changes_no_bit(tmp_path):
    """AVX-512 as AVX2, both of which multiply and add in one step; AVX2 as SSE, where neither does; and the step itself does change bits."""
    one_step, two_steps = _compute(tmp_path, "x86-64-v3", ""), _compute(tmp_path, "x86-64-v3", "-fma")
    assert _compute(tmp_path, "x86-64-v2", "") == two_steps
    assert one_step != two_steps
    if not find_lacking("x86-64-v4"):
        assert _compute(tmp_path, "x86-64-v4", "") == one_step
