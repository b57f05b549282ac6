"""Small tables: as they were written, or refused in one line that names them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.runs.records.small_table import read_small_table


def written(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="none", write_page_checksum=True)
    return sink.getvalue().to_pybytes()


def test_a_table_is_read_as_it_was_written():
    table = pa.table({"feature": pa.array(["a", None, "ü"]).dictionary_encode(), "mean": [1.0, None, -np.inf]}, metadata={"n": "3"})
    assert read_small_table(pa.BufferReader(written(table)), "there").equals(table, check_metadata=False)


def damaged_text():
    """A text of one byte that is no UTF-8: Parquet's reader does not decode it."""
    offsets, byte = pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")
    return written(pa.table({"feature": pa.Array.from_buffers(pa.string(), 1, [None, offsets, byte])}))


@pytest.mark.parametrize(
    "data",
    [
        damaged_text(),
        written(pa.table({"feature": ["a"]})).replace(b"feature", b"fe\xffture"),
        written(pa.table({"text": ["abcd"]}))[:-9],
        written(pa.table({"text": ["abcdefgh"]})).replace(b"abcdefgh", b"abcdefgi"),
        b"",
    ],
    ids=["text", "name", "cut", "page", "empty"],
)
def test_what_is_damaged_is_refused_in_one_line(data):
    with pytest.raises(InvalidRun) as caught:
        read_small_table(pa.BufferReader(data), "there/importance.parquet")
    assert str(caught.value).startswith("there/importance.parquet: is damaged: ")
    assert "\n" not in str(caught.value)
