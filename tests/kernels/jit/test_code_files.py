"""Code in Numba's cache is found again until a source changes, and never another kernel's."""

import errno

import pytest

from leafledger.kernels.jit import notices
from leafledger.kernels.jit.code_files import CompiledFiles


@pytest.fixture
def files(tmp_path):
    return [CompiledFiles(cache_path=str(tmp_path), filename_base="file.kernel-1.py311", source_stamp=stamp) for stamp in ("one", "one")]


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
    changed = CompiledFiles(cache_path=str(tmp_path), filename_base="file.kernel-2.py311", source_stamp="two")
    assert changed.load("for float32") is None
    changed.save("for float32", "changed code")
    assert (changed.load("for float32"), later.load("for float32")) == ("changed code", None)


def test_a_full_disk_costs_the_kept_code_alone(files, monkeypatch):
    """The kernel is there."""
    mine, later = files

    def refuse(*_):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(mine, "_save_data", refuse)
    mine.save("for float32", "code for float32")
    assert later.load("for float32") is None


def test_who_waits_is_told_once_before_a_kernel_is_compiled(files, monkeypatch):
    """Not where its code is found."""
    monkeypatch.setattr(notices, "_TO_TELL", {})
    told = []

    def tell():
        told.append("compiling")

    mine, later = files
    mine.save("for float32", "code")
    notices.when_compiling(tell)
    assert (later.load("for float32"), told) == ("code", [])
    assert later.load("for float64") is None
    notices.when_compiling(tell)
    assert later.load("for int64") is None
    assert told == ["compiling"]
