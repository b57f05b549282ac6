"""What is moved is counted once, whoever takes it: bytes of files as they are read and published."""

import threading

import pytest

from leafledger.pipeline.errors import StorageError
from leafledger.pipeline.stores import commit, storage
from leafledger.pipeline.stores.traffic import Moved, add, count_moved, find_moved, take_moved


def test_what_is_taken_adds_up_to_what_was_counted():
    """Also where many threads count and take at once."""
    take_moved()
    before, taken = find_moved(), []

    def work():
        for _ in range(1000):
            count_moved(read=1, written=2, retried=3)
        taken.append(take_moved())

    threads = [threading.Thread(target=work) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    total = take_moved()
    for each in taken:
        total = add(total, each)
    assert total == Moved(8000, 16000, 24000)
    assert add(before, total) == find_moved()
    assert take_moved() == Moved()


def test_bytes_of_every_store_are_counted(tmp_path, bucket):
    (tmp_path / "local").write_bytes(b"x" * 1000)
    for folder in (str(tmp_path), bucket, "memory://counted"):
        uri = f"{folder}/object"
        take_moved()
        assert commit.create(uri, tmp_path / "local")
        assert not commit.create(uri, tmp_path / "local")
        assert take_moved() == Moved(0, 1000, 0)
        assert storage.read(uri) == storage.read_if_exists(uri)
        storage.download(uri, tmp_path / "copy")
        with storage.opened(uri) as file:
            file.read(10)
            file.read()
        with pytest.raises(StorageError):
            storage.read(f"{uri}s")
        assert take_moved() == Moved(4000, 0, 0)
        commit.update(uri, lambda held: held[:10], single_writer=True)
        assert take_moved().written == 10
