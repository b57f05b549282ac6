"""A run whose input changes after it was made."""

import shutil

import pyarrow.parquet as pq
import pytest

from leafledger import explain

LATE = 2  # the file of this month comes late


@pytest.fixture
def changing(example, tmp_path):
    """``(data, run, late)``: a copy of the data, what explains it, and what makes a file of it another."""
    data = tmp_path / "data"
    shutil.copytree(example.data, data)

    def run(out, **arguments):
        return explain(example.model, data, out, **({"scheduler": "serial", "ids": ["flight"]} | arguments))

    def late():
        path = data / f"month={LATE}" / "data.parquet"
        pq.write_table(pq.read_table(path).slice(10), path)

    return data, run, late
