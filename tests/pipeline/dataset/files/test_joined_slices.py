"""Slices of several files: all rows in their order, none too large, and a file whose columns cannot be converted is named."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.pipeline.dataset.files import joined_slices
from leafledger.pipeline.dataset.files.joined_slices import join_slices
from leafledger.pipeline.dataset.files.listing import WorkItem
from leafledger.pipeline.errors import InvalidColumn, InvalidData

KINDS = {"float": pa.float32(), "double": pa.float64(), "text": pa.string(), "dictionary": pa.dictionary(pa.int32(), pa.string())}


def read(files):
    """What is read of files, of so many rows and one column of a kind each, whose values count all rows."""
    first = 0
    for k, (kind, n_rows) in enumerate(files):
        values = [*range(first, first + n_rows)]
        column = pa.array([*map(str, values)] if kind in ("text", "dictionary") else values, KINDS[kind])
        yield WorkItem(0, f"{k}.parquet", "e", (k,), 0, n_rows, 5, ()), 5, pa.record_batch([column], ["x"])
        first += n_rows


@given(files=st.lists(st.tuples(st.sampled_from([*KINDS]), st.integers(1, 9)), max_size=12), slice_rows=st.integers(9, 20))
def test_all_rows_are_there_in_their_order(files, slice_rows):
    """As many files at a time as fit: one more is too many, or of another type, or has dictionaries."""
    found, batches = list(join_slices(read(files), slice_rows)), [batch for _, _, batch in read(files)]
    assert [float(x) for each in found for x in each.batch["x"].to_pylist()] == [*map(float, range(sum(n for _, n in files)))]
    assert [piece.uri for each in found for piece in each.pieces] == [f"{k}.parquet" for k in range(len(files))]
    named = [each.places.name(row) for each in found for row in range(each.batch.num_rows)]
    assert named == [f"{k}.parquet: row {5 + i}" for k, (_, n) in enumerate(files) for i in range(n)]
    last = 0
    for each in found:
        last += len(each.pieces)
        kinds = {str(batch.schema) for batch in batches[last - len(each.pieces) : last]}
        assert len(kinds) == 1
        assert each.batch.num_rows <= slice_rows
        alone = pa.types.is_dictionary(each.batch["x"].type)
        assert len(each.pieces) == 1 or not alone
        if last < len(files) and not alone and batches[last].schema.equals(each.batch.schema):
            assert each.batch.num_rows + batches[last].num_rows > slice_rows


def test_large_batches_stay_apart(monkeypatch):
    """By their bytes, here 4 for each of 10 rows."""
    files = [("float", 10)] * 5
    monkeypatch.setattr(joined_slices, "JOINED_BYTES", 80)
    assert [len(each.pieces) for each in join_slices(read(files), 1000)] == [2, 2, 1]


def test_a_full_slice_does_not_wait_for_the_next_batch():
    """Which may take long to read, or fail."""

    def failing():
        yield next(read([("float", 10)]))
        raise AssertionError

    assert next(join_slices(failing(), 10)).batch.num_rows == 10


def test_the_file_is_named_that_cannot_be_converted():
    """All are converted at once, unless one cannot be."""
    (joined,), calls = join_slices(read([("float", 3), ("float", 4), ("float", 2)]), 100), []

    def convert(batch):
        calls.append(batch["x"].to_pylist())
        if 4.0 in calls[-1]:
            raise InvalidColumn("column 'x': 4")
        return len(calls[-1])

    with pytest.raises(InvalidData, match=r"^1\.parquet: row groups \[1\]: column 'x': 4$"):
        joined.convert(convert)
    assert calls == [[*map(float, range(9))], [0.0, 1.0, 2.0], [3.0, 4.0, 5.0, 6.0]]
    assert joined.convert(lambda batch: batch.num_rows) == 9
