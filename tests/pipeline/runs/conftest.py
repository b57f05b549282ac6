"""A background of rows, and a run against it."""

import pytest

from leafledger import explain
from tests.pipeline.conftest import write_data


@pytest.fixture(scope="module")
def background_rows(example):
    """Rows of a background."""
    return example.frame[::3]


@pytest.fixture(scope="module")
def background_uri(background_rows, tmp_path_factory):
    """Where they lie: a file per month, in row groups of 60."""
    return write_data(background_rows, tmp_path_factory.mktemp("background") / "rows", row_group_size=60)


@pytest.fixture(scope="module")
def against_rows(example, background_uri, tmp_path_factory):
    """A serial run against the background; its tables are beside it."""
    out = tmp_path_factory.mktemp("serial") / "run"
    return out, explain(example.model, example.data, out, background=background_uri, precision="float64", scheduler="serial")
