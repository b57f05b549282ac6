"""A place for files: a folder, and a bucket."""

import pytest


@pytest.fixture(params=["bucket", "folder"])
def root(request, tmp_path):
    """The URI of a place that is empty."""
    return request.getfixturevalue("bucket") if request.param == "bucket" else str(tmp_path)
