"""What Azure's store does otherwise than others, by a file system in memory that does the same."""

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from leafledger.pipeline.stores.dialects.azure import AZURE
from leafledger.pipeline.stores.object_store import ObjectStore


class Late(MemoryFileSystem):
    """Answers that it copies an object, and has not done it by then, as Azure may."""

    def cp_file(self, path1, path2, **given):  # noqa: ARG002 - what fsspec calls
        """Only the name is there yet."""
        self.pipe_file(path2, b"")


@pytest.fixture
def store(monkeypatch):
    """A store with an object."""
    monkeypatch.setattr(Late, "store", {})
    filesystem = Late(skip_instance_cache=True)
    filesystem.pipe_file("/place/one", b"one")
    return ObjectStore(filesystem, AZURE, lambda path: f"az://{path}")


def test_a_copy_is_whole_when_it_is_said_to_be(store):
    """So that what it is of may be removed; a second copy is none, and changes nothing."""
    store.filesystem.pipe_file("/place/other", b"other")
    assert store.copy("/place/one", "/place/copy")
    store.remove("/place/one")
    assert store.read("/place/copy") == b"one"
    assert not store.copy("/place/other", "/place/copy")
    assert store.read("/place/copy") == b"one"


def test_nothing_is_made_where_nothing_is(store):
    """The store's own word for it is raised."""
    with pytest.raises(FileNotFoundError):
        store.copy("/place/none", "/place/copy")
    assert not store.exists("/place/copy")
