"""Tables that were broadcast are the tables that were prepared."""

import ast
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import s3fs
from hypothesis import HealthCheck, given, settings

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.slices.buffers import Pairs
from leafledger.pipeline.errors import InvalidRun, NotThere, StorageError
from leafledger.pipeline.stores import storage
from leafledger.pipeline.stores import table_arrays as tables
from leafledger.pipeline.stores.table_arrays import ALIGNMENT, broadcast_tables, load_numpy, open_tables, pack_tables, table_bytes, unpack_tables
from tests.kernels.attributing import leaves
from tests.strategies import forests


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ensemble=forests())
@pytest.mark.slow
def test_tables_come_back_as_they_were(tmp_path, ensemble):
    """Same records, types, shapes and bytes, read-only and aligned; the place is named by the content, so writing again changes nothing."""
    prepared = prepare(ensemble, METHODS["shapley"], {})
    uri = broadcast_tables(prepared, str(tmp_path))
    assert broadcast_tables(prepared, str(tmp_path)) == uri
    mapped = open_tables(uri)
    assert type(mapped) is type(prepared)
    for was, found in zip(leaves(prepared), leaves(mapped), strict=True):
        assert type(found) is np.ndarray
        assert (found.dtype, found.shape, found.tobytes()) == (was.dtype, was.shape, was.tobytes())
        assert not found.flags.writeable
        assert found.ctypes.data % ALIGNMENT == 0
    assert table_bytes(prepared) >= sum(array.nbytes for array in leaves(prepared))


def test_stored_tables_are_those_of_the_first(tmp_path, example):
    """Where two runs store the same at once, both go on with what is there; nothing is there before."""
    from leafledger import load_ensemble

    uri = str(tmp_path / "key")
    prepared = prepare(load_ensemble(example.model).ensemble, METHODS["shapley"], {})
    assert tables.open_stored_tables(uri) is None
    first = tables.store_tables(prepared, uri)
    stat = (tmp_path / "key" / tables.BYTES).stat()
    second = tables.store_tables(prepared, uri)
    assert (tmp_path / "key" / tables.BYTES).stat() == stat
    for found in (first, second, tables.open_stored_tables(uri)):
        assert all((was == now).all() for was, now in zip(leaves(prepared), leaves(found), strict=True))


@pytest.mark.parametrize("where", ["folder", "bucket"])
@pytest.mark.parametrize("name", [tables.BYTES, tables.INDEX])
def test_tables_of_an_earlier_attempt_are_verified(where, name, request, example, tmp_path):
    """A bit that was flipped in what an interrupted run left is found before the run goes on."""
    from leafledger import load_ensemble

    folder = str(tmp_path) if where == "folder" else request.getfixturevalue("bucket")
    prepared = prepare(load_ensemble(example.model).ensemble, METHODS["shapley"], {})
    uri = broadcast_tables(prepared, folder)
    assert broadcast_tables(prepared, folder) == uri
    damaged = bytearray(storage.read(f"{uri}/{name}"))
    damaged[-20] ^= 1
    if where == "folder":
        Path(f"{uri}/{name}").write_bytes(damaged)
    else:
        s3fs.S3FileSystem().pipe_file(f"{uri}/{name}", bytes(damaged))
    with pytest.raises(InvalidRun, match=rf"^{uri}: the tables of an earlier attempt are damaged there; remove this folder$"):
        broadcast_tables(prepared, folder)


def test_tables_that_were_refused_are_looked_at_anew(tmp_path):
    """A process that found them damaged opens them once they are as they were, and keeps nothing of the damaged ones."""
    uri = broadcast_tables(Pairs(np.zeros((4, 2), np.int32), np.arange(3.0)), str(tmp_path))
    place = Path(uri, tables.BYTES)
    sound = place.read_bytes()
    place.write_bytes(sound[:-1] + b"x")
    with pytest.raises(InvalidRun, match=rf"^{uri}: the tables of an earlier run are damaged there"):
        tables.open_stored_tables(uri)
    place.write_bytes(sound)
    assert open_tables(uri).tables.tolist() == [0, 1, 2]


def test_tables_whose_larger_file_is_gone_are_said_to_be_missing(tmp_path, example):
    """Another run of the plan removes them when it is done, the larger file first."""
    from leafledger import load_ensemble

    uri = broadcast_tables(prepare(load_ensemble(example.model).ensemble, METHODS["shapley"], {}), str(tmp_path))
    bytes_of_tables = Path(uri) / tables.BYTES
    bytes_of_tables.unlink()
    tables._forget()
    with pytest.raises(NotThere, match=rf"{tables.BYTES}: cannot read: no such file or object"):
        open_tables(uri)
    bytes_of_tables.mkdir()
    with pytest.raises(StorageError, match=rf"{tables.BYTES}: cannot read: .*Is a directory"):
        open_tables(uri)


def test_tables_in_a_bucket_leave_nothing_behind(bucket, example, tmp_path, monkeypatch):
    """Fetched tables live on after their temporary files are gone."""
    from leafledger import load_ensemble

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    prepared = prepare(load_ensemble(example.model).ensemble, METHODS["banzhaf"], {"p": 0.5})
    mapped = open_tables(broadcast_tables(prepared, f"{bucket}/run"))
    assert list(tmp_path.iterdir()) == []
    assert all((was == found).all() for was, found in zip(leaves(prepared), leaves(mapped), strict=True))


NO_TABLES = {
    "a function of kernels": ["leafledger.kernels.prepare.prepare", {}],
    "a function that tables are made with": ["leafledger.kernels.jit.decorator.frozen", {"tables": {"dtype": "<i8", "shape": [1], "offset": 0}}],
    "a type from elsewhere": ["leafledger.kernels.prepare.Any", {}],
    "a class that is no record": ["leafledger.kernels.method.method.Method", {}],
    "a module outside": ["os.system", {}],
    "a module that is not there": ["leafledger.kernels.nowhere.Tables", {}],
    "a way out": ["kernels.../os.system", {}],
    "a record of other fields": ["leafledger.kernels.slices.buffers.Pairs", {"first": {"dtype": "<i8", "shape": [1], "offset": 0}}],
    "objects": {"dtype": "|O8", "shape": [1], "offset": 0},
    "bytes before the start": {"dtype": "<i8", "shape": [1], "offset": -8},
    "bytes beyond the end": {"dtype": "<i8", "shape": [1 << 40], "offset": 0},
    "an axis of less than nothing": {"dtype": "<i8", "shape": [-1, -8], "offset": 0},
    "no numbers": {"dtype": "<i8", "shape": "many", "offset": None},
}


@pytest.mark.parametrize("layout", NO_TABLES)
def test_an_index_names_records_of_numbers_and_nothing_else(layout, tmp_path):
    """Whoever wrote it can make a digest that agrees: nothing is called but the records of kernels, and no byte is read but those of the file."""
    uri = str(tmp_path / "key")
    tables.store_tables(Pairs(np.zeros((4, 2), np.int32), np.zeros(3)), uri)
    mapped = tables._open(uri)[1]
    (tmp_path / "key" / tables.INDEX).write_text(
        json.dumps({tables.NUMBER: tables.FORMAT, "sha256": tables._digest(NO_TABLES[layout], mapped), "layout": NO_TABLES[layout]})
    )
    with pytest.raises(InvalidRun, match="the tables of an earlier run are damaged there; remove this folder"):
        tables.open_stored_tables(uri)


def test_broadcast_tables_are_those_that_the_name_says(tmp_path):
    """Sound tables of somebody else in the place of those that were broadcast are not opened."""
    uri = broadcast_tables(Pairs(np.zeros((4, 2), np.int32), np.zeros(3)), str(tmp_path))
    other = broadcast_tables(Pairs(np.ones((4, 2), np.int32), np.zeros(3)), str(tmp_path))
    open_tables(uri)
    _forget_all()
    for name in (tables.BYTES, tables.INDEX):
        Path(uri, name).write_bytes(Path(other, name).read_bytes())
    with pytest.raises(InvalidRun, match=rf"^{uri}: the tables there are damaged, or others than were broadcast$"):
        open_tables(uri)
    _forget_all()
    Path(uri, tables.BYTES).write_bytes(Path(uri, tables.BYTES).read_bytes()[:-1])
    with pytest.raises(InvalidRun, match="damaged"):
        open_tables(uri)


def _forget_all():
    tables._open.cache_clear()
    tables._is_sound.cache_clear()


@pytest.fixture(autouse=True)
def _forget():
    """Tests do not share mappings."""
    _forget_all()
    yield
    _forget_all()


@settings(max_examples=20)
@given(ensemble=forests())
def test_tables_come_back_from_bytes(ensemble):
    """As they were, read-only and in step with their types, wherever the bytes lie."""
    prepared = prepare(ensemble, METHODS["shapley"], {})
    layout, data = pack_tables(prepared)
    assert len(data) == table_bytes(prepared)
    for was, found in zip(leaves(prepared), leaves(unpack_tables(layout, data)), strict=True):
        assert (found.dtype, found.shape, found.tobytes()) == (was.dtype, was.shape, was.tobytes())
        assert found.flags.aligned
        assert not found.flags.writeable


def test_threads_load_one_after_the_other(monkeypatch):
    """Also arrays of one file, each with a header of its own: CPython fails where two threads build syntax trees at once, now and then."""
    data, at_once, most, read = io.BytesIO(), [], [], ast.literal_eval
    np.savez(data, a=np.arange(3), b=np.ones((2, 2)))

    def slowly(header):
        at_once.append(1)
        most.append(len(at_once))
        time.sleep(1e-3)
        at_once.pop()
        return read(header)

    monkeypatch.setattr(ast, "literal_eval", slowly)  # which NumPy reads headers with
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: load_numpy(io.BytesIO(data.getvalue())), range(12)))
    assert [{name: array.tolist() for name, array in each.items()} for each in found] == [{"a": [0, 1, 2], "b": [[1.0, 1.0], [1.0, 1.0]]}] * 12
    assert most == [1] * 24
