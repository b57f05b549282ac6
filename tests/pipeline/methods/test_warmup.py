"""Compiling ahead: what runs call is there, and nothing is missing of any method."""

import os
import subprocess
import sys

import numpy as np
import pytest

from leafledger.kernels.methods import METHODS
from leafledger.kernels.trees.binning import bin_dtype
from leafledger.kernels.trees.forest import make_forest
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.methods import warmup as warming
from leafledger.pipeline.methods.warmup import list_names, list_pieces

WARM_AND_RUN = """
import sys
from leafledger.kernels.jit.code_files import CompiledFiles
from leafledger.pipeline.command.cli import main

model, data, out = sys.argv[1:]
asked, load = [], CompiledFiles.load
CompiledFiles.load = lambda files, key: asked.append(key) or load(files, key)
print(main(["warm", "--methods", "banzhaf", "--quiet"]), len(asked))
asked.clear()
told = [
    [],
    ["--top", "2", "--interactions", "2"],
    ["--background", data, "--background-errors"],
    ["--values", "--precision", "float64"],
]
for k, more in enumerate(told):
    code = main(["explain", model, data, "--out", f"{out}/{k}", "--method", "banzhaf", "--scheduler", "serial", "--quiet", *more])
    print(code, len(asked))
"""


def _run(code, *arguments):
    """What a process of its own prints, whose kernels are kept where all others are."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "COVERAGE"))}
    told = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(told, env=environment, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    return [tuple(map(int, line.split())) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_runs_compile_nothing_after_it(example, tmp_path):
    """Of a method: plain, the largest alone with interactions, against a background with errors, in double precision. Whatever signature of a kernel
    is new to the process is looked for among the files; where warming looks for dozens, runs look for none."""
    (warmed, asked), *runs = _run(WARM_AND_RUN, example.model, example.data, tmp_path / "runs")
    assert warmed == 0
    assert asked > 20
    assert runs == [(0, 0)] * 4


def test_every_method_is_among_the_pieces():
    """With parameters that it takes: each makes its tables of the model, of both games where it has both."""
    said = [what for what, _ in list_pieces()]
    assert said == ["what all methods share", *METHODS]
    assert list_names() == list(METHODS)
    assert [what for what, _ in list_pieces(["banzhaf", "banzhaf"])] == ["what all methods share", "banzhaf"]


def test_an_unknown_method_is_refused():
    with pytest.raises(UsageError, match="unknown method 'banzaf', expected one of shapley, banzhaf, "):
        list_pieces(["shapley", "banzaf"])


@pytest.mark.parametrize("name", METHODS)
def test_methods_take_what_they_are_given(name, monkeypatch):
    """Kernels are not called here: tables of all models are made."""
    called = []
    monkeypatch.setattr(warming, "call_kernels", lambda method, prepared: called.append(prepared))
    monkeypatch.setattr(warming, "_full", lambda levels: warming._chain([0, 1]))  # which has a thousand nodes
    warming._warm_all(METHODS[name])
    assert len(called) >= (2 if METHODS[name].labelled else 8)


def test_bins_are_of_the_type_that_is_said():
    assert bin_dtype(make_forest(warming._join([warming._chain([0, warming.N_NUMERIC])], 1), None)[0]) is np.uint16
