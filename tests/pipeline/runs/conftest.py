"""A background of rows, and a run against it; a format of tables, and nights that go into one."""

import shutil

import pyarrow.parquet as pq
import pytest

from leafledger import explain
from tests.pipeline.conftest import write_data

LATE = 2  # the file of this month comes late


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


@pytest.fixture(params=["delta", "iceberg"])
def kind(request, tmp_path, monkeypatch):
    """A format of tables; what names Iceberg's catalog is in the environment."""
    import pyiceberg.catalog
    from pyiceberg.utils.config import Config

    from tests.pipeline.runs.tabling import KINDS  # which imports every reader of tables

    for name, value in {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/catalog.db", "WAREHOUSE": f"file://{tmp_path}/warehouse"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__NIGHTS__{name}", value)
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    return KINDS[request.param]


@pytest.fixture
def night(example, tmp_path, kind):
    """``(run, late, there)``: what explains a copy of the data for a day, what makes a file of it another, and the table."""
    data = tmp_path / "data"
    shutil.copytree(example.data, data)
    root = tmp_path / "explained"

    def run(day, place=root, **arguments):
        given = {"scheduler": "serial", "ids": ["flight", "name"], "table": kind.table, "date": day} | arguments
        return explain(example.model, given.pop("data", data), f"{place}/date={{date}}", **given)

    def late():
        path = data / f"month={LATE}" / "data.parquet"
        pq.write_table(pq.read_table(path, partitioning=None).slice(10), path)

    return run, late, kind(root)
