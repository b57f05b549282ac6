"""Some rows of work items are those that a reader of the whole item finds there, and lie where it was asked for."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger.pipeline.dataset.files.identity import identify
from leafledger.pipeline.dataset.files.listing import WorkItem
from leafledger.pipeline.dataset.files.rows import read_slices
from leafledger.pipeline.dataset.files.sample import cut, spread
from leafledger.pipeline.stores import storage
from leafledger.pipeline.stores.storage import stat


def make_item(tmp_path, sizes, n_rows=None, skip=0):
    """An item of a file with row groups of such sizes, whose only column numbers the rows."""
    path, first = str(tmp_path / "rows.parquet"), 0
    with pq.ParquetWriter(path, pa.schema([("row", pa.int64())])) as writer:
        for size in sizes:
            writer.write_table(pa.table({"row": pa.array(range(first, first + size), pa.int64())}), size)
            first += size
    with storage.opened(path) as opened:
        identity = identify(stat(path), opened, pq.read_metadata(opened), [0])
    return WorkItem(0, path, identity, tuple(range(len(sizes))), skip, sum(sizes) if n_rows is None else n_rows, skip, ())


def read(item):
    return [row for batch in read_slices(item, ["row"], 100) for row in batch.column("row").to_pylist()]


@pytest.mark.parametrize("where", [0.0, 0.3, 0.5, 0.99, 1.0])
@pytest.mark.parametrize(("sizes", "n_rows"), [((10, 20, 5, 30, 7), 25), ((10, 20, 5, 30, 7), 3), ((200,), 25), ((1,) * 40, 25), ((72, 1), 30)])
def test_a_cut_has_the_rows_that_it_says(tmp_path, sizes, n_rows, where):
    """As many as were asked for, one after the other, and numbered as in the file."""
    item = cut(make_item(tmp_path, sizes), n_rows, where)
    assert read(item) == list(range(item.first_row, item.first_row + n_rows))


def test_a_cut_lies_where_it_was_asked_for(tmp_path):
    """Of several row groups the first of one is its first row, from the first group to the last that leaves enough rows."""
    item = make_item(tmp_path, (10, 20, 5, 30, 7))
    assert [cut(item, 12, where).first_row for where in (0.0, 0.5, 1.0)] == [0, 10, 35]
    assert cut(item, 12, 0.0).row_groups == (0, 1)
    assert cut(item, 12, 1.0).row_groups == (3,)


def test_a_cut_of_some_rows_of_a_group_stays_within_them(tmp_path):
    """An item of a large row group is rows 50 to 150 of 200."""
    item = make_item(tmp_path, (200,), 100, 50)
    assert [read(cut(item, 10, where))[0] for where in (0.0, 1.0)] == [50, 140]


def test_an_item_of_few_rows_is_taken_as_it_is(tmp_path):
    """Without a look at its file; and so is one whose footer cannot be read, or counts otherwise, which is said where its rows are read."""
    item = make_item(tmp_path, (3, 4))
    assert cut(item, 7, 0.5) is item
    pq.write_table(pa.table({"row": range(9)}), item.uri, row_group_size=5)
    assert cut(item, 2, 0.5) is item
    for damage in (b"no Parquet", storage.read(item.uri).replace(b"row", b"r\xf6w")):  # the latter has a name that is no UTF-8
        storage.local_path(item.uri).write_bytes(damage)
        assert cut(item, 2, 0.5) is item


def test_items_are_chosen_by_their_rows():
    """In their order and each once: one of half of all rows is among any two or more, and no more are chosen than there are."""
    items = [WorkItem(part, "", "", (0,), 0, rows, 0, ()) for part, rows in enumerate((10, 0, 100, 10, 80))]
    assert [item.part for item in spread(items, 1)] == [2]
    assert [item.part for item in spread(items, 2)] == [2, 4]
    assert [item.part for item in spread(items, 1000)] == [0, 2, 3, 4]
    assert spread([], 3) == spread(items[1:2], 3) == []
