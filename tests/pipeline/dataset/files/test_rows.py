"""The rows of a work item are those that were planned, from the file and from its path, however they are cut; anything else names what is wrong."""

import os
from datetime import date, datetime
from pathlib import Path

import flask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.pipeline.dataset.files import row_groups
from leafledger.pipeline.dataset.files.identity import identify
from leafledger.pipeline.dataset.files.listing import WorkItem
from leafledger.pipeline.dataset.files.rows import located, miscounted, read_slices, window
from leafledger.pipeline.errors import InvalidColumn, InvalidData, NotThere, StorageError
from leafledger.pipeline.stores import storage
from tests.pipeline.stores.placing import put
from tests.pipeline.stores.serving import served

N_ROWS, GROUP = 1000, 100


@pytest.fixture(scope="module")
def table():
    """Rows that know their number."""
    return pa.table({"i": np.arange(N_ROWS), "x": np.arange(N_ROWS) / 8, "word": [f"w{i}" for i in range(N_ROWS)]})


@pytest.fixture
def uri(table, tmp_path):
    """A file of them in ten row groups."""
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=GROUP, write_page_checksum=True, compression="none", use_dictionary=False)
    return str(tmp_path / "f.parquet")


def item_of(uri, row_groups=(2, 3), skip=0, n_rows=2 * GROUP, partition=()):
    with storage.opened(uri) as file:
        metadata = pq.read_metadata(file)
        etag = identify(storage.stat(uri), file, metadata, range(metadata.num_columns))
    return WorkItem(0, uri, etag, row_groups, skip, n_rows, row_groups[0] * GROUP + skip, partition)


@pytest.mark.parametrize(("skip", "n_rows"), [(0, 200), (0, 1), (30, 100), (100, 100), (150, 50)])
@pytest.mark.parametrize("slice_rows", [7, 64, 1000])
def test_rows_are_those_of_the_item(uri, table, skip, n_rows, slice_rows):
    """The columns in the order asked for, at most so many rows at a time, none doubled, none lost."""
    batches = list(read_slices(item_of(uri, skip=skip, n_rows=n_rows), ["word", "i"], slice_rows))
    assert all(0 < batch.num_rows <= slice_rows for batch in batches)
    found = pa.Table.from_batches(batches).select(["word", "i"])
    assert found.equals(table.select(["word", "i"]).slice(2 * GROUP + skip, n_rows))


def test_rows_that_are_read_by_pages_are_the_same(uri, table, monkeypatch):
    """Where row groups do not fit, and the damage of one is said as of others."""
    monkeypatch.setattr(row_groups, "READ_BYTES", 1)
    monkeypatch.setattr(row_groups, "PAGES_BYTES", 1)
    opened, asked = storage.opened, []
    monkeypatch.setattr(storage, "opened", lambda uri, **given: asked.append(given) or opened(uri, **given))
    found = pa.Table.from_batches(read_slices(item_of(uri, skip=30, n_rows=100), ["word", "i"], 7)).select(["word", "i"])
    assert found.equals(table.select(["word", "i"]).slice(2 * GROUP + 30, 100))
    assert asked == [{}, {}, {"ahead": False}]  # what the test opens, the footer, and the rows
    item, chunk = item_of(uri), pq.read_metadata(uri).row_group(3).column(1)
    data = bytearray(Path(uri).read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size - 5] ^= 0x10
    Path(uri).write_bytes(data)
    with pytest.raises(InvalidData, match=r"row group 3: column 'x': cannot read: .*CRC"):
        list(read_slices(WorkItem(0, uri, item_of(uri).etag, item.row_groups, 0, item.n_rows, 0, ()), ["i", "x"], 64))


def test_row_groups_need_not_be_neighbours(uri, table):
    """They are read in the order of the item."""
    found = pa.Table.from_batches(read_slices(item_of(uri, (7, 1)), ["i"], 64))
    assert found["i"].to_pylist() == [*range(700, 800), *range(100, 200)]


def test_columns_of_the_path_stand_on_every_row(uri):
    """As texts, or null."""
    partition = (("month", "04"), ("night", None), ("place", "a/b"))
    found = pa.Table.from_batches(read_slices(item_of(uri, partition=partition), ["month", "i", "night", "place"], 64))
    assert {found.schema.field(name).type for name, _ in partition} == {pa.string()}
    for name, values in {"month": {"04"}, "night": {None}, "place": {"a/b"}, "i": set(range(200, 400))}.items():
        assert set(found[name].to_pylist()) == values


@pytest.mark.parametrize(
    ("column", "value", "same"),
    [
        (pa.array([4, 4], pa.int8()), "04", True),
        (pa.array([4, 4], pa.int8()), "5", False),
        (pa.array([4, 5]), "4", False),
        (pa.array([4, None]), "4", False),
        (pa.array([4, 4]), None, False),
        (pa.array([None, None], pa.int64()), None, True),
        (pa.array([None, None]), "4", False),
        (pa.array(["04", "04"]), "04", True),
        (pa.array(["4", "4"]), "04", False),
        (pa.array(["x", "x"]).dictionary_encode(), "x", True),
        (pa.array([4, 4]), "x", False),
        (pa.array([date(2026, 11, 22)] * 2), "2026-11-22", True),
        (pa.array([[1], [1]]), "1", False),
        (pa.array(np.array([0.1, 0.1], np.float16)), "0.1", True),
        (pa.array(np.array([0.1, 0.2], np.float16)), "0.1", False),
        (pa.array(np.array([0.1, 0.1], np.float16)), "x", False),
    ],
)
def test_a_column_that_is_in_the_path_too_says_the_same(tmp_path, column, value, same):
    """On every row, in the column's own type; else it cannot be told which of the two is meant."""
    pq.write_table(pa.table({"a": column, "b": [1, 2]}), tmp_path / "f.parquet")
    item = item_of(str(tmp_path / "f.parquet"), (0,), n_rows=2, partition=(("a", value),))
    if same:
        assert pa.Table.from_batches(read_slices(item, ["a"], 64))["a"].combine_chunks().equals(column)
    else:
        with pytest.raises(InvalidData, match=rf"f\.parquet: row groups \[0\]: column 'a' is {value!r} in the path, and something else in the file$"):
            list(read_slices(item, ["a"], 64))
    assert len(list(read_slices(item, ["b"], 64))) == 1


@given(sizes=st.lists(st.integers(0, 9), max_size=6), skip=st.integers(0, 30), n_rows=st.integers(1, 30))
def test_a_window_is_a_slice_of_the_whole(sizes, skip, n_rows):
    """However its rows are cut; no batch is empty, and none is read beyond the last that is needed."""
    starts, read = np.cumsum([0, *sizes]), []

    def batches():
        for start, size in zip(starts, sizes, strict=False):
            read.append(start)
            yield pa.record_batch({"i": np.arange(start, start + size)})

    found = list(window(batches(), skip, n_rows))
    assert all(batch.num_rows for batch in found)
    assert [i for batch in found for i in batch["i"].to_pylist()] == list(range(starts[-1]))[skip : skip + n_rows]
    assert all(start < skip + n_rows for start in read)


def consume(item, wanted=("i", "x")):
    return sum(batch.num_rows for batch in read_slices(item, wanted, 64))


def test_another_file_than_was_planned_is_refused(uri, table):
    """Before any of its rows is read."""
    item = item_of(uri)
    assert consume(item) == 200
    pq.write_table(table.slice(1), uri, row_group_size=GROUP)
    with pytest.raises(InvalidData, match=r"f\.parquet: changed since the run was planned$"):
        consume(item)
    os.unlink(uri)
    with pytest.raises(InvalidData, match=r"f\.parquet: removed since the run was planned$"):
        consume(item)


def test_damage_is_named_with_its_row_group_and_column(uri):
    """A page whose checksum is not that of its bytes; columns that nobody asks for and row groups of other items do not matter."""
    chunk = pq.read_metadata(uri).row_group(3).column(1)
    with open(uri, "r+b") as file:
        at = chunk.data_page_offset + chunk.total_compressed_size - 1
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(InvalidData, match=r"f\.parquet: row group 3: column 'x': cannot read: [^\n]+$"):
        consume(item_of(uri))
    assert consume(item_of(uri), ["i", "word"]) == 200
    assert consume(item_of(uri, (4, 5))) == 200


def test_a_column_that_cannot_be_converted_is_located():
    """With the file and the item's row groups; what else goes wrong goes on."""
    item = WorkItem(0, "f.parquet", "", (2, 3), 0, 9, 200, ())
    with pytest.raises(InvalidData, match=r"^f\.parquet: row groups \[2, 3\]: column 'x': no text$"), located(item):
        raise InvalidColumn("column 'x': no text")
    with pytest.raises(KeyError), located(item):
        raise KeyError("x")
    assert str(miscounted(item, 7)) == "f.parquet: row groups (2, 3): got 7 rows, the footer says 9"


def test_old_timestamps_keep_their_century(tmp_path):
    """INT96, as Hive and Impala wrote them, of any year, not only of those that nanoseconds reach."""
    times = [datetime(1500, 3, 1), datetime(2013, 1, 1, 12), datetime(2500, 1, 1), datetime(9999, 12, 31)]
    pq.write_table(pa.table({"t": pa.array(times, pa.timestamp("us"))}), tmp_path / "f.parquet", use_deprecated_int96_timestamps=True)
    found = pa.Table.from_batches(read_slices(item_of(str(tmp_path / "f.parquet"), (0,), n_rows=4), ["t"], 64))
    assert found["t"].to_pylist() == times


def test_each_of_mark_and_footer_tells_another_file(uri, table):
    """A copy may keep the time, or the footer."""
    item, was = item_of(uri), os.stat(uri)
    os.utime(uri, ns=(1, 1))
    with pytest.raises(InvalidData, match=r"f\.parquet: changed since the run was planned$"):
        consume(item)
    other = table.set_column(0, "i", pa.array(np.arange(N_ROWS) + 1))
    pq.write_table(other, uri, row_group_size=GROUP, write_page_checksum=True, compression="none", use_dictionary=False)
    os.utime(uri, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert os.stat(uri).st_size == was.st_size
    with pytest.raises(InvalidData, match=r"f\.parquet: changed since the run was planned$"):
        consume(item)


@pytest.mark.parametrize("changed", [True, False])
def test_a_store_that_answers_no_more_is_told_from_a_file_that_changed(uri, monkeypatch, changed):
    """A store refuses to go on with other bytes, which is nothing to try again."""
    item = item_of(uri)

    def lose(uri):
        if changed:
            os.utime(uri, ns=(1, 1))
        raise StorageError(f"{uri}: cannot read: no answer")

    monkeypatch.setattr(storage, "opened", lose)
    with pytest.raises(InvalidData if changed else StorageError, match="changed since the run was planned$" if changed else "no answer$"):
        consume(item)


def write_rows(table, uri, checksums=False):
    """In the same layout, whatever the numbers are, but for checksums, whose length depends on them."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=GROUP, write_page_checksum=checksums, compression="none", use_dictionary=False)
    put(uri, sink.getvalue().to_pybytes())


@pytest.fixture(params=["bucket", "tmp_path"])
def place(request):
    """Where files are: in a bucket, and on this machine."""
    return str(request.getfixturevalue(request.param))


def test_a_file_that_changes_while_it_is_read_is_refused(table, place, monkeypatch):
    """By one of the same layout: the first rows are of the old file, and before anybody has the last they are told so."""
    monkeypatch.setattr(row_groups, "READ_BYTES", 1)
    monkeypatch.setattr(row_groups, "PAGES_BYTES", 1)
    uri = f"{place}/f.parquet"
    write_rows(table, uri)
    if os.path.exists(uri):
        os.utime(uri, ns=(1, 1))
    slices = read_slices(item_of(uri), ["i"], 64)
    assert next(slices)["i"].to_pylist() == [*range(200, 264)]
    write_rows(table.set_column(0, "i", pa.array(np.arange(N_ROWS) + 10_000)), uri)
    with pytest.raises(InvalidData, match=r"f\.parquet: changed since the run was planned$"):
        list(slices)


def test_a_file_that_changes_after_its_last_row_was_read_is_refused(uri):
    """Whoever has all rows has not been told that they are all."""
    slices, left = read_slices(item_of(uri), ["i"], 64), 200
    while left:
        left -= next(slices).num_rows
    os.utime(uri, ns=(1, 1))
    with pytest.raises(InvalidData, match=r"f\.parquet: changed since the run was planned$"):
        next(slices)


@pytest.mark.parametrize("checksums", [True, False])
def test_rows_are_of_the_file_that_their_footer_is_of(table, bucket, monkeypatch, checksums):
    """Where it is opened twice, as for pages of an object, and another one is there the second time, which can be read by that footer or not."""
    monkeypatch.setattr(row_groups, "READ_BYTES", 1)
    monkeypatch.setattr(row_groups, "PAGES_BYTES", 1)
    uri = f"{bucket}/f.parquet"
    write_rows(table, uri, checksums)
    item, opened = item_of(uri), storage.opened

    def change(uri, ahead=True):
        if not ahead:
            write_rows(table.set_column(0, "i", pa.array(np.arange(N_ROWS) + 10_000)), uri, checksums)
        return opened(uri, ahead=ahead)

    monkeypatch.setattr(storage, "opened", change)
    with pytest.raises(InvalidData, match=r"f\.parquet: changed since the run was planned$"):
        consume(item)


@pytest.mark.parametrize("damaged", [slice(-1, None), slice(-6, -4), slice(-60, -50)], ids=["magic", "length", "footer"])
def test_a_footer_that_is_damaged_is_said(uri, damaged):
    """Though size and time of the file are what they were, as of bytes that a disk has lost; and no column is blamed for it."""
    item, was, data = item_of(uri), os.stat(uri), bytearray(Path(uri).read_bytes())
    data[damaged] = bytes(each ^ 0xFF for each in data[damaged])
    Path(uri).write_bytes(data)
    os.utime(uri, ns=(was.st_atime_ns, was.st_mtime_ns))
    with pytest.raises(InvalidData, match=r"f\.parquet: cannot read: [^\n]+$"):
        consume(item)


def test_a_web_server_that_is_away_is_told_from_a_file_that_was_removed(uri, tmp_path):
    """Whatever it answers but that nothing is there, and where it answers nothing."""
    status = []

    def send(path):
        return flask.abort(status[-1]) if status else flask.send_file(path)

    with served(tmp_path, send) as root:
        item = item_of(f"{root}/f.parquet")
        assert consume(item) == 200
        for status[:] in ([503], [500], [429], [403], [401]):
            with pytest.raises(StorageError, match=rf"^{root}/f\.parquet: cannot read: {status[0]}, ") as raised:
                consume(item)
            assert not isinstance(raised.value, NotThere)
        for status[:] in ([404], [410]):
            with pytest.raises(InvalidData, match=r"f\.parquet: removed since the run was planned$"):
                consume(item)
    with pytest.raises(StorageError, match=rf"^{root}/f\.parquet: cannot read: Cannot connect to host ") as raised:
        consume(item)
    assert not isinstance(raised.value, NotThere)


@pytest.mark.parametrize("slice_rows", [64, 100, 1000])
def test_categories_inside_of_structs_and_lists_are_read_across_row_groups(tmp_path, slice_rows):
    """Which Arrow does not join by itself: every row once, in order, with its values."""
    kinds = pa.array(["x", "y", None, "z"] * 75).dictionary_encode()
    table = pa.table({"i": np.arange(300), "s": pa.StructArray.from_arrays([kinds, pa.array(range(300))], ["kind", "n"])})
    table = table.append_column("l", pa.array([[f"{i % 7}"] * (i % 3) for i in range(300)], pa.list_(pa.dictionary(pa.int32(), pa.string()))))
    path = tmp_path / "nested.parquet"
    pq.write_table(table, path, row_group_size=100)
    with pytest.raises(pa.ArrowNotImplementedError):
        [*pq.ParquetFile(path).iter_batches(1000, columns=["s"])]
    file = storage.stat(str(path))
    with storage.opened(str(path)) as opened:
        item = WorkItem(0, str(path), identify(file, opened, pq.read_metadata(path), [0, 1, 2, 3]), (0, 1, 2), 0, 300, 0, ())
    found = [*read_slices(item, ["i", "s", "l"], slice_rows)]
    assert all(batch.num_rows <= slice_rows for batch in found)
    for name in ("i", "s", "l"):
        assert [value for batch in found for value in batch.column(name).to_pylist()] == table[name].to_pylist()
