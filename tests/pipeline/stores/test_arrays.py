"""Tables that were broadcast are the tables that were prepared."""

from pathlib import Path

import numpy as np
import pytest
import s3fs
from hypothesis import HealthCheck, given, settings

from kernels.methods import METHODS
from kernels.prepare import prepare
from pipeline.errors import InvalidRun
from pipeline.stores import arrays as tables
from pipeline.stores import storage
from pipeline.stores.arrays import ALIGNMENT, broadcast_tables, open_tables, table_bytes
from tests.kernels.attributing import leaves
from tests.strategies import forests


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ensemble=forests())
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
    for found in (first, second, open_tables(uri)):
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


def test_tables_in_a_bucket_leave_nothing_behind(bucket, example, tmp_path, monkeypatch):
    """Fetched tables live on after their temporary files are gone."""
    from leafledger import load_ensemble

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    prepared = prepare(load_ensemble(example.model).ensemble, METHODS["banzhaf"], {"p": 0.5})
    mapped = open_tables(broadcast_tables(prepared, f"{bucket}/run"))
    assert list(tmp_path.iterdir()) == []
    assert all((was == found).all() for was, found in zip(leaves(prepared), leaves(mapped), strict=True))


@pytest.fixture(autouse=True)
def _forget():
    """Tests do not share mappings."""
    tables._open.cache_clear()
    yield
    tables._open.cache_clear()
