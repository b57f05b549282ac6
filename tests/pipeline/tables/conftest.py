"""A catalog in SQLite for tests of Iceberg tables."""

import pyiceberg.catalog
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config


@pytest.fixture
def catalog(tmp_path, monkeypatch):
    """A catalog in SQLite that the environment names."""
    for name, value in {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/catalog.db", "WAREHOUSE": f"file://{tmp_path}/warehouse"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__NIGHTS__{name}", value)
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    catalog = load_catalog("nights")
    catalog.create_namespace("prod")
    return catalog
