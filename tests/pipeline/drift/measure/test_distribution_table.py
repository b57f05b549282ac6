"""Distributions as an object: read back as they were, the same bytes every time, and not read at all where they are of something else."""

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from leafledger.pipeline.drift.measure.columns import Column
from leafledger.pipeline.drift.measure.distribution import Categories
from leafledger.pipeline.drift.measure.distribution_table import KEY, pack, unpack
from tests.pipeline.drift.making import distribution

COLUMNS = tuple(Column(name, "value", "", name) for name in "abcdef")


@cache
def found():
    """Made by the first test: every process of pytest's imports this."""
    return (
        distribution(np.append(np.random.default_rng(0).normal(size=9000), [-np.inf, np.nan])),
        replace(distribution([1.0, -0.0, -2.5, np.nan, np.inf]), bits=32),
        distribution([]),
        Categories(7, 1, 2, (("", 1), ("<script>", 3))),
        Categories(7, 7, None, ()),
        Categories(9, 0, None, None),
    )


def test_what_is_written_is_read_back():
    """Numbers, points, cells, categories, and what there is none of; the same bytes once more."""
    data = pack(COLUMNS, found())
    assert pack(COLUMNS, found()) == data
    assert [repr(each) for each in unpack(data, COLUMNS)] == [repr(each) for each in found()]
    assert pack(COLUMNS, unpack(data, COLUMNS)) == data
    assert unpack(pack((), ()), ()) == ()


def test_another_object_is_not_read():
    """Of other columns, of another version, of another program, or damaged: it is made again."""
    data = pack(COLUMNS, found())
    assert unpack(data, COLUMNS[::-1]) is None
    assert unpack(data[:100], COLUMNS) is None
    table = pq.read_table(pa.BufferReader(data))
    for other in (table.replace_schema_metadata({KEY: "0"}), table.drop_columns("rows")):
        sink = pa.BufferOutputStream()
        pq.write_table(other, sink)
        assert unpack(sink.getvalue().to_pybytes(), COLUMNS) is None
