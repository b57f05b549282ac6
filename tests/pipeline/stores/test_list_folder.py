"""What lies right below a folder: names of folders, and files with their sizes."""

import fsspec
import pytest

from leafledger.pipeline.errors import NotThere
from leafledger.pipeline.stores.storage import Folder, list_folder
from tests.pipeline.stores.placing import put


def test_what_lies_right_below_a_folder(tmp_path, bucket):
    """Names of folders, and files with their sizes, on this machine and in a bucket; a folder that is not there is said."""
    for root in (str(tmp_path), f"{bucket}/a"):
        for name in ("b/c.json", "d.json"):
            put(f"{root}/{name}", b"12345")
        found = list_folder(root)
        assert (found.folders, found.files) == (("b",), {"d.json": 5})
        with pytest.raises(NotThere):
            list_folder(f"{root}/nowhere")


def test_links_right_below_a_folder_have_the_size_of_what_they_lead_to(tmp_path):
    """As the local file system of fsspec says of them too; one to a folder is no folder, and one to nowhere is empty."""
    put(f"{tmp_path}/there/file", b"12345")
    for name, target in {"a": "there/file", "b": "nowhere"}.items():
        (tmp_path / name).symlink_to(tmp_path / target)
    (tmp_path / "folder").symlink_to(tmp_path / "there", target_is_directory=True)
    found = list_folder(str(tmp_path))
    named = {each["name"].rpartition("/")[2]: each for each in fsspec.filesystem("file").ls(tmp_path, detail=True)}
    assert found.folders == ("there",)
    assert found.files == {name: named[name]["size"] for name in ("a", "b", "folder")}
    assert found.files["a"] == 5
    assert list_folder(f"{tmp_path}/there/file") == Folder((), {})
