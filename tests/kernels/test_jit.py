"""What is compiled is found again, and never another kernel's code."""

import numba
import pytest

from kernels._jit import _CompiledFiles, jit


@pytest.fixture
def files(tmp_path):
    return [_CompiledFiles(cache_path=str(tmp_path), filename_base="kernel", source_stamp=stamp) for stamp in (1, 1)]


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
    assert _CompiledFiles(cache_path=str(tmp_path), filename_base="kernel", source_stamp=2).load("for float32") is None


def test_kernels_are_kept_so(monkeypatch):
    """Whether or not kernels are compiled where this runs."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    assert isinstance(jit(_same)._cache._cache_file, _CompiledFiles)
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert jit(_same) is _same


def _same(number):
    return number
