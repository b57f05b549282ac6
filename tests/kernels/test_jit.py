"""What is compiled is found again until a source changes, and never another kernel's code."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import kernels
from kernels._jit import _CompiledFiles, jit

PACKAGE = Path(kernels.__file__).parent
RUN = """
import numpy as np
from numba.core.event import install_listener, Listener
from kernels.jit_probe import count_left

class Compiled(Listener):
    n = 0
    def on_start(self, event): self.n += 1
    def on_end(self, event): pass

compiled = Compiled()
with install_listener("numba:compile", compiled):
    print(count_left(np.array([1, 2, 3], np.uint8)), compiled.n)
"""
PROBE = """
from ._jit import jit
from .jit_probed import is_left

@jit
def count_left(bins):
    n = 0
    for i in range(bins.size):
        n += is_left(bins[i])
    return n
"""
PROBED = """
from ._jit import jit

@jit
def is_left(number):
    return number <= HIGHEST
"""


def _run(folder: Path) -> tuple[int, int]:
    """What the kernel counts in a process of its own, and how many functions were compiled for it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "COVERAGE"))}
    said = subprocess.run([sys.executable, "-c", RUN], cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=300)
    count, compiled = said.stdout.split()
    return int(count), int(compiled)


def test_an_edited_file_reaches_the_kernels_of_others(tmp_path):
    """A kernel follows a constant in a file that it imports from; what nobody edited is not compiled again, even if its files are newer."""
    copy = tmp_path / "kernels"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "jit_probe.py").write_text(PROBE)
    (copy / "jit_probed.py").write_text(PROBED.replace("HIGHEST", "1"))
    assert _run(tmp_path) == (1, 2)
    for path in copy.rglob("*.py"):
        path.touch()
    assert _run(tmp_path) == (1, 0)
    (copy / "jit_probed.py").write_text(PROBED.replace("HIGHEST", "2"))
    assert _run(tmp_path) == (2, 2)
    assert _run(tmp_path) == (2, 0)
    stems = [path.name.split("-")[0] for path in copy.rglob("*.nbc")]
    assert sorted(stems) == sorted(set(stems)), "code of sources that are there no more was left behind"


@pytest.fixture
def files(tmp_path):
    return [_CompiledFiles(cache_path=str(tmp_path), filename_base="file.kernel-1.py311", source_stamp=stamp) for stamp in ("one", "one")]


def test_two_writers_at_once_never_share_a_file(tmp_path, files, monkeypatch):
    """The second has read the index before the first wrote it: an entry is lost and compiled again, and no file holds the code of the other."""
    mine, other = files
    with monkeypatch.context() as patch:
        patch.setattr(other, "_load_index", dict)
        mine.save("for float32", "code for float32")
        listed = mine._load_index()
        other.save("for float64", "code for float64")
    assert (mine.load("for float32"), mine.load("for float64")) == (None, "code for float64")
    assert [mine._load_data(name) for name in listed.values()] == ["code for float32"]
    assert len(list(tmp_path.glob("*.nbc"))) == 2


def test_code_is_found_again_until_its_source_changes(tmp_path, files):
    """By a process that starts later."""
    mine, later = files
    mine.save("for float32", "code for float32")
    mine.save("for float64", "code for float64")
    assert [later.load(key) for key in ("for float32", "for float64", "for int64")] == ["code for float32", "code for float64", None]
    changed = _CompiledFiles(cache_path=str(tmp_path), filename_base="file.kernel-2.py311", source_stamp="two")
    assert changed.load("for float32") is None
    changed.save("for float32", "changed code")
    assert (changed.load("for float32"), later.load("for float32")) == ("changed code", None)


def test_kernels_are_kept_so(monkeypatch):
    """Whether or not kernels are compiled where this runs."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    assert isinstance(jit(_same)._cache._cache_file, _CompiledFiles)
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert jit(_same) is _same


def _same(number):
    return number
