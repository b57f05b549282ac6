"""What is compiled is found again until a source changes, and never another kernel's code."""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import pytest

import leafledger.kernels
from leafledger.kernels.jit import decorator
from leafledger.kernels.jit.code_files import CompiledFiles
from leafledger.kernels.jit.decorator import jit

PACKAGE = Path(leafledger.kernels.__file__).parent
RUN = """
import numpy as np
from numba.core.event import install_listener, Listener
from leafledger.kernels.jit_probe import count_left

class Compiled(Listener):
    n = 0
    def on_start(self, event): self.n += 1
    def on_end(self, event): pass

compiled = Compiled()
with install_listener("numba:compile", compiled):
    print(count_left(np.array([1, 2, 3], np.uint8)), compiled.n)
"""
PROBE = """
from .jit.decorator import jit
from .jit_probed import is_left

@jit
def count_left(bins):
    n = 0
    for i in range(bins.size):
        n += is_left(bins[i])
    return n
"""
PROBED = """
from .jit.decorator import jit

@jit
def is_left(number):
    return number <= HIGHEST
"""


def _copied(folder: Path) -> Path:
    """The kernels below a folder, as they are imported from there, with a probe beside them that follows a constant."""
    copy = folder / "leafledger" / "kernels"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy.parent / "__init__.py").touch()
    (copy / "jit_probe.py").write_text(PROBE)
    (copy / "jit_probed.py").write_text(PROBED.replace("HIGHEST", "1"))
    return copy


def _run(folder: Path) -> tuple[int, int]:
    """What the kernel counts in a process of its own, and how many functions were compiled for it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "COVERAGE"))}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # Python takes a file of the same size, edited within a second, for the one it has compiled
    said = subprocess.run([sys.executable, "-c", RUN], cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=300)
    count, compiled = said.stdout.split()
    return int(count), int(compiled)


@pytest.mark.again
@pytest.mark.slow
def test_an_edited_file_reaches_the_kernels_of_others(tmp_path):
    """A kernel follows a constant in a file that it imports from; what nobody edited is not compiled again, even if its files are newer."""
    copy = _copied(tmp_path)
    assert _run(tmp_path) == (1, 2)
    for path in copy.rglob("*.py"):
        path.touch()
    assert _run(tmp_path) == (1, 0)
    (copy / "jit_probed.py").write_text(PROBED.replace("HIGHEST", "2"))
    assert _run(tmp_path) == (2, 2)
    assert _run(tmp_path) == (2, 0)
    stems = [path.name.split("-")[0] for path in copy.rglob("*.nbc")]
    assert sorted(stems) == sorted(set(stems)), "code of sources that are there no more was left behind"


def test_kernels_are_kept_so(monkeypatch):
    """Whether or not kernels are compiled where this runs."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    assert isinstance(jit(_same).compiled._cache._cache_file, CompiledFiles)
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert jit(_same).compiled is _same


def test_numba_takes_a_kernel_for_what_it_is_compiled_to(monkeypatch):
    """Where another one calls it."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    kernel = jit(_same)
    assert numba.typeof(kernel) == numba.typeof(kernel.compiled)


@pytest.fixture
def homeless(tmp_path, monkeypatch):
    """Numba finds no folder but in the temporary one; a function says where kernels may be kept."""
    allowed = []

    def ensure(self):
        if not any(self.get_cache_path().startswith(str(folder)) for folder in allowed):
            raise OSError(errno.EROFS, "read-only")
        Path(self.get_cache_path()).mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")  # which Numba reads again when the environment has changed
    monkeypatch.setattr(numba.core.caching._CacheLocator, "ensure_cache_path", ensure)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    decorator._keep_elsewhere.cache_clear()
    yield allowed
    decorator._keep_elsewhere.cache_clear()


def test_without_a_folder_kernels_are_kept_in_a_temporary_one(homeless, tmp_path):
    """Of its owner alone, the same for later processes, and said once for all kernels."""
    homeless.append(tmp_path)
    folder = tmp_path / f"leafledger-{os.getuid()}"
    with pytest.warns(UserWarning, match=rf"they are kept in {folder}; set NUMBA_CACHE_DIR$") as said:
        kernels = [jit(_same).compiled, jit(_same).compiled]
    assert len(said) == 1
    assert all(kernel._cache._cache_path.startswith(str(folder)) for kernel in kernels)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert os.environ["NUMBA_CACHE_DIR"] == str(folder)
    assert kernels[0](3) == 3


def test_windows_keeps_kernels_of_a_process_alone(homeless, tmp_path, monkeypatch):
    """Where nothing says whose a folder is, no other process's code is read from it."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.delattr(os, "getuid")
    folders = {Path(decorator._make_private_folder()) for _ in range(2)}
    assert len(folders) == 2
    assert {folder.parent for folder in folders} == {tmp_path}


@pytest.mark.parametrize("taken", ["open to all", "a link", "a file"])
def test_code_is_not_read_from_where_others_may_write(homeless, tmp_path, taken):
    """What lies under the folder's name may be somebody else's: then the folder has another name."""
    homeless.append(tmp_path)
    folder = tmp_path / f"leafledger-{os.getuid()}"
    if taken == "a link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "theirs")
    elif taken == "a file":
        folder.touch()
    else:
        folder.mkdir()
        folder.chmod(0o777)
    with pytest.warns(UserWarning, match="they are kept in"):
        kernel = jit(_same).compiled
    assert not kernel._cache._cache_path.startswith(f"{folder}/")
    assert kernel._cache._cache_path.startswith(f"{folder.parent}/leafledger-")


def test_without_any_folder_kernels_are_compiled_anew(homeless, tmp_path, monkeypatch):
    """They serve the process that compiles them, whether there is no temporary folder or it cannot be written."""
    with pytest.warns(UserWarning, match="they are kept in"):
        assert jit(_same)(3) == 3
    decorator._keep_elsewhere.cache_clear()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.warns(UserWarning, match="no folder for compiled kernels can be written, every process compiles them anew"):
        assert jit(_same)(3) == 3


@pytest.mark.again
@pytest.mark.slow
def test_an_image_that_cannot_be_written_runs(tmp_path):
    """In a process of its own: no folder in the package, none in the home; the next process finds what this one compiled."""
    (_copied(tmp_path) / "__pycache__").touch()
    (tmp_path / "temporary").mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "COVERAGE", "HOME"))}
    environment |= {"XDG_CACHE_HOME": "/proc/nowhere", "TMPDIR": str(tmp_path / "temporary"), "PYTHONDONTWRITEBYTECODE": "1"}
    for compiled in (2, 0):
        made = subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=300)
        assert made.stdout.split() == ["1", str(compiled)]
        assert made.stderr.count("UserWarning") == 1


def _same(number):
    return number
