"""Kernels give the same bits on processors with AVX-512, with AVX2 alone and with vectors of 128 bits, by what LLVM is told to compile for."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from leafledger.kernels.compiled import find_lacking

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.more, pytest.mark.skipif(bool(find_lacking("x86-64-v3")), reason="a processor with AVX2 is needed")]


@pytest.fixture(scope="module")
def compute(tmp_path_factory):
    """What ``tests.platforms.kernels`` says for a processor, in a process of its own; those that are told of compile into a cache of their own."""
    folder = tmp_path_factory.mktemp("compiled")

    @cache
    def run(cpu=None, features="", *cases):
        told = {} if cpu is None else {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": str(folder)}
        command = [sys.executable, "-m", "tests.platforms.kernels", *cases]
        environment = os.environ | told | {"NUMBA_DISABLE_JIT": "0"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        assert found.pop("cpu") == cpu or cpu is None
        return found

    return run


def test_the_width_of_vectors_changes_no_bit(compute):
    """AVX2 as what this processor has, which is AVX-512 where it has that; both multiply and add in one step, which SSE does not, and bits tell."""
    one_step = compute("x86-64-v3")
    assert compute() == one_step
    case = "grown, shapley"
    assert compute("x86-64-v2", "", case)[case] != one_step[case]


def test_the_width_of_vectors_changes_no_bit_where_a_step_is_two(compute):
    """AVX2 as SSE, where neither multiplies and adds in one step; and any processor with AVX-512 as AVX2."""
    assert compute("x86-64-v3", "-fma") == compute("x86-64-v2")
    if not find_lacking("x86-64-v4"):
        assert compute("x86-64-v4") == compute("x86-64-v3")
