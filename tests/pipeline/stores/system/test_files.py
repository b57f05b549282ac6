"""Files are named once, replaced when their readers let go of them, and found by names with slashes."""

import ntpath
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from leafledger.pipeline.stores import open_store, table_arrays, uris
from leafledger.pipeline.stores.local import LocalStore
from leafledger.pipeline.stores.system import files


@pytest.mark.parametrize("nameless", [True, False])
def test_what_is_written_gets_its_name_once(nameless, tmp_path, monkeypatch):
    """And nothing is left of it beside, with and without files that have no names."""
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)

    def write(content):
        with files.open_partial(tmp_path) as (file, give_name):
            file.write(content)
            file.flush()
            give_name(tmp_path / "named")

    write(b"whole")
    with pytest.raises(FileExistsError):
        write(b"other")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"named": b"whole"}


def test_windows_waits_for_readers(tmp_path, monkeypatch):
    """A reader that keeps the file open for a while is waited for, one that never lets go is an error; elsewhere nobody waits."""
    source, target, opened = tmp_path / "new", tmp_path / "there", threading.Event()
    target.write_bytes(b"old")
    monkeypatch.setattr(files, "WINDOWS", True)
    replace = Path.replace

    def refuse(path, other):
        if not opened.is_set():
            raise PermissionError(13, "Access is denied", str(other))
        return replace(path, other)

    monkeypatch.setattr(Path, "replace", refuse)
    source.write_bytes(b"new")
    with pytest.raises(PermissionError):
        files.replace(source, target, 0.1)
    threading.Timer(0.1, opened.set).start()
    files.replace(source, target, 60)
    assert target.read_bytes() == b"new"
    opened.clear()
    monkeypatch.setattr(files, "WINDOWS", False)
    target.rename(source)
    with pytest.raises(PermissionError):
        files.replace(source, target, 60)


def test_tables_are_read_where_a_mapping_would_keep_their_file(tmp_path, monkeypatch):
    """They cannot be written to, as when they are mapped: else kernels would be compiled once more."""
    np.save(tmp_path / table_arrays.BYTES, np.arange(5, dtype=np.uint8))
    monkeypatch.setattr(table_arrays, "MAPPING", None)
    found = table_arrays._map_bytes(tmp_path)
    assert not isinstance(found.base, np.memmap)
    assert not found.flags.writeable
    assert found.tolist() == [0, 1, 2, 3, 4]


def test_paths_of_windows_have_slashes(monkeypatch):
    """By Windows's own rules for links and separators, which Python has on every system."""
    monkeypatch.setattr(os, "sep", "\\")
    monkeypatch.setattr(os.path, "realpath", ntpath.normpath)
    assert files.real_path("C:\\runs\\..\\data") == "C:/data"
    assert LocalStore(None).normalise("", "C:/runs//../data") == "C:/data"
    assert uris.with_scheme("C:/data") == "file:///C:/data"
    store, path = open_store.open_store("C:\\runs\\night")
    assert (type(store), path) == (LocalStore, "C:/runs/night")
    for key in ("C:evil", "..\\evil", "a\\..\\..\\evil", "/evil"):
        with pytest.raises(ValueError, match="leads out of the run's folder"):
            uris.check_below(key)
    uris.check_below("attributions/part-0.parquet")


def test_names_of_linux_are_left_alone():
    """A colon and a backslash are characters like any other there."""
    assert uris.with_scheme("/data") == "file:///data"
    uris.check_below("attributions/hour=12:00\\x/part-0.parquet")
