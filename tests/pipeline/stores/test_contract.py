"""What every store does, be it this machine's folders, memory, a bucket or, of what is only read, a web server: one set of claims for all."""

import os
import threading
from contextlib import contextmanager

import fsspec
import pytest

from leafledger.pipeline.errors import NotThere, StorageError
from leafledger.pipeline.stores import commit, storage
from leafledger.pipeline.stores.open_store import open_store
from leafledger.pipeline.stores.store import Entry
from tests.moto_store import kept_clients
from tests.pipeline.stores.emulators import CLOUDS
from tests.pipeline.stores.serving import served

BELOW = {"data/a.parquet": b"PAR1a", "data/month=1/b.parquet": b"PAR1bb", "data/month=1/deep/c.csv": b"c,d", "other/d": b""}
ODD = ("with space", "ä é", "a+b", "100%25", "a[1]", "a*b", "a&b=c", "x'y", "a:b", "a,b;c", "ends.")
WITHOUT_CONDITIONS = ("memory",)
KINDS = ("folder", "memory", "bucket", *CLOUDS)


@contextmanager
def placed(request, kind, monkeypatch):
    """The URI of a place that is empty."""
    if kind in ("folder", "bucket"):
        yield str(request.getfixturevalue("tmp_path") / "place") if kind == "folder" else request.getfixturevalue("bucket")
        return
    uri = "memory://contract" if kind == "memory" else CLOUDS[kind](request, monkeypatch)
    with kept_clients(os.environ.get("AWS_ENDPOINT_URL")):
        filesystem, path = fsspec.core.url_to_fs(uri)
        if filesystem.exists(path):
            filesystem.rm(path, recursive=True)
        filesystem.mkdir(path)
        yield uri
        filesystem.invalidate_cache()
        if filesystem.exists(path):
            filesystem.rm(path, recursive=True)
    type(filesystem).clear_instance_cache()


@pytest.fixture(params=KINDS)
def place(request, monkeypatch):
    """The URI of a place that is empty, and may be written."""
    with placed(request, request.param, monkeypatch) as uri:
        yield uri


@pytest.fixture
def put(tmp_path):
    """What creates an object of some bytes, and says whether it was created."""
    written = iter(range(10_000))

    def put(uri, data=b"x"):
        local = tmp_path / f"local-{next(written)}"
        local.write_bytes(data)
        return commit.create(uri, local)

    return put


@pytest.fixture(params=[*KINDS, "web"])
def filled(request, tmp_path, put, monkeypatch):
    """The URI of a place where BELOW lies."""
    if request.param != "web":
        with placed(request, request.param, monkeypatch) as uri:
            for name, data in BELOW.items():
                put(f"{uri}/{name}", data)
            yield uri
        return
    for name, data in BELOW.items():
        (tmp_path / "web" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "web" / name).write_bytes(data)
    with served(tmp_path / "web") as url:
        yield url


def test_an_object_is_created_once(place, put):
    """The second changes nothing, and is told so; what is there is whole."""
    assert put(f"{place}/deep/object", b"first" * 1000)
    assert not put(f"{place}/deep/object", b"second")
    assert storage.read(f"{place}/deep/object") == b"first" * 1000
    assert commit.creates_once(place) == (not place.startswith(WITHOUT_CONDITIONS))
    assert [*storage.list_folder(place).folders] == ["deep"]


def test_an_object_is_copied_once(place, put):
    """Whole, to a folder that is not there yet; the second changes nothing, and is told so. Where there is nothing to copy nothing is made."""
    put(f"{place}/made/object", b"first" * 1000)
    put(f"{place}/made/other", b"second")
    assert commit.copy(f"{place}/made/object", f"{place}/deep/below/copy x")
    assert not commit.copy(f"{place}/made/other", f"{place}/deep/below/copy x")
    commit.remove(f"{place}/made")
    assert storage.read(f"{place}/deep/below/copy x") == b"first" * 1000
    with pytest.raises(NotThere, match=r"made/object: cannot copy: no such file or object$"):
        commit.copy(f"{place}/made/object", f"{place}/deep/below/none")
    assert storage.list_folder(f"{place}/deep/below").files == {"copy x": 5000}


def test_of_many_that_create_one_wins(place, put):
    """Where the store knows conditions."""
    if place.startswith(WITHOUT_CONDITIONS):
        pytest.skip("knows no conditions")
    won, together = [], threading.Barrier(6)

    def create(k):
        together.wait()
        if put(f"{place}/object", bytes([k]) * 50_000):
            won.append(k)

    threads = [threading.Thread(target=create, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert storage.read(f"{place}/object") == bytes(won) * 50_000


def test_no_change_is_lost_to_another_one(place):
    """Who is overtaken looks again; who is so again and again says it; a store without conditions is found out and refuses."""
    if place.startswith(WITHOUT_CONDITIONS):
        assert not commit.swaps(f"{place}/counter")
        with pytest.raises(StorageError, match=r"counter: cannot write: the store replaces no object on the condition"):
            commit.update(f"{place}/counter", lambda _: b"1")
        commit.update(f"{place}/counter", lambda _: b"1", single_writer=True)
        assert storage.read(f"{place}/counter") == b"1"
        return
    assert commit.swaps(f"{place}/counter")
    raised = []

    def raise_it():
        for _ in range(4):
            try:
                commit.update(f"{place}/counter", lambda held: str(int(held or b"0") + 1).encode())
            except StorageError as error:
                assert str(error) == f"{place}/counter: cannot write: it was changed by others 5 times in a row"  # noqa: PT017 - else it was changed
            else:
                raised.append(1)

    threads = [threading.Thread(target=raise_it) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert raised
    assert storage.read(f"{place}/counter") == str(len(raised)).encode()
    commit.update(f"{place}/counter", lambda _: None)
    assert storage.read(f"{place}/counter") == str(len(raised)).encode()


def test_all_below_is_removed_and_nothing_beside(place, put):
    """A folder, an object; a name that would be a pattern is none; where nothing is, nothing is done."""
    for name in ("run*/a", "run*/deep/b", "run1/a", "run12/a", "run"):
        put(f"{place}/{name}")
    for removed, left in (("run*", {"run1", "run12", "run"}), ("run1", {"run12", "run"}), ("run", {"run12"})):
        for _ in range(2):
            commit.remove(f"{place}/{removed}")
            found = storage.list_folder(place)
            assert {*found.files, *(name for name in found.folders if storage.exists(f"{place}/{name}/a"))} == left
    assert storage.read(f"{place}/run12/a") == b"x"


def test_what_lies_there_is_found(filled):
    """Right below a folder, and all below it; of each whether it is a folder."""
    store, path = open_store(f"{filled}/data")
    right_below = {entry.path.rstrip("/")[len(path) + 1 :]: store.is_folder(entry) for entry in store.children(path) if "?" not in entry.path}
    assert right_below == {"a.parquet": False, "month=1": True}
    below = {entry.path[len(path) + 1 :]: store.size(Entry(entry.path)) for entry in store.walk(path)}
    sizes = {name.removeprefix("data/"): len(data) for name, data in BELOW.items() if name.startswith("data/")}
    assert below == sizes
    assert {entry.path[len(path) + 1 :] for entry in store.glob(f"{path}/*/*.parquet")} == {"month=1/b.parquet"}
    assert {entry.path[len(path) + 1 :] for entry in store.glob(f"{path}/**/*.parquet")} == {"a.parquet", "month=1/b.parquet"}
    assert [store.is_folder(Entry(f"{path}/{name}")) for name in ("a.parquet", "month=1")] == [False, True]
    assert [store.is_there(f"{path}/{name}") for name in ("a.parquet", "month=1", "nothing")] == [True, True, False]
    assert storage.exists(f"{filled}/data/a.parquet")
    assert not storage.exists(f"{filled}/data/nothing")


def test_objects_are_read_from_anywhere(filled, tmp_path):
    """Whole, their beginning, a piece of an open one, and as a copy; each has the mark that it had."""
    uri, data = f"{filled}/data/month=1/b.parquet", BELOW["data/month=1/b.parquet"]
    store, path = open_store(uri)
    assert (storage.read(uri), store.read(path, 4), storage.read(f"{filled}/other/d")) == (data, data[:4], b"")
    for ahead in (True, False):
        with storage.opened(uri, ahead) as file:
            file.seek(-3, 2)
            assert file.read() == data[-3:]
            file.seek(1)
            assert file.read(2) == data[1:3]
    with storage.opened_for_arrow(uri) as (file, pre_buffer):
        assert (file.read(4), pre_buffer) == (data[:4], not store.near)
    storage.download(uri, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == data
    found = storage.stat(uri)
    assert (found.uri, found.size, found.near) == (store.uri(path), len(data), store.near)
    assert found.etag
    assert storage.stat(uri) == found


def test_what_is_missing_is_said(filled):
    """In one line, or by None, as was asked."""
    uri = f"{filled}/data/nothing"
    assert (storage.stat_if_exists(uri), storage.read_if_exists(uri)) == (None, None)
    for ask in (storage.stat, storage.read):
        with pytest.raises(NotThere, match=r"nothing: cannot read: no such file or object$"):
            ask(uri)


@pytest.mark.parametrize("name", ODD)
def test_a_name_may_have_any_characters(place, put, name):
    """It is created, found, read and removed by just that name."""
    uri = f"{place}/data/{name}"
    assert put(uri, name.encode())
    assert not put(uri, b"other")
    put(f"{place}/data/a")
    assert storage.read(uri) == name.encode()
    assert storage.stat(uri).size == len(name.encode())
    assert storage.list_folder(f"{place}/data").files == {name: len(name.encode()), "a": 1}
    store, path = open_store(f"{place}/data")
    assert {entry.path.rpartition("/")[2] for entry in store.walk(path)} == {name, "a"}
    commit.remove(uri)
    assert storage.list_folder(f"{place}/data").files == {"a": 1}


def test_what_can_be_written_is_tried_without_a_trace(place):
    """And what is only read is refused."""
    commit.check_writable(f"{place}/deep/down")
    store, path = open_store(place)
    assert [*store.filesystem.find(path)] == []
    commit.abort_uploads(place)
    with pytest.raises(StorageError, match=r"^http://127\.0\.0\.1:1/a: cannot write: what is on a web server is only read$"):
        commit.check_writable("http://127.0.0.1:1/a")


@pytest.mark.parametrize("ending", ["\0", "::memory://b"])
def test_endings_that_no_name_has_are_refused(place, ending):
    """Before the store is asked."""
    for ask in (storage.read, storage.exists, commit.remove):
        with pytest.raises(StorageError, match="cannot open: "):
            ask(f"{place}/a{ending}")
