"""Row groups fetched together: the rows of the file in their order, and no more kept of them than fits."""

import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.pipeline.dataset.files import row_groups
from leafledger.pipeline.dataset.files.row_groups import choose_pieces, columns_of, largest_held, read_batches
from leafledger.pipeline.stores import storage

N_ROWS, GROUP = 1000, 100


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Ten row groups of a number, a pair of numbers, and a wide text."""
    path = tmp_path_factory.mktemp("row_groups") / "data.parquet"
    rng = np.random.default_rng(0)
    pairs = [{"a": int(i), "b": float(i)} for i in range(N_ROWS)]
    table = pa.table({"i": np.arange(N_ROWS), "x": rng.normal(size=N_ROWS), "pair": pairs, "text": [rng.bytes(500).hex() for _ in range(N_ROWS)]})
    pq.write_table(table, path, row_group_size=GROUP)
    return path


def test_nested_fields_have_several_columns(path, tmp_path):
    """By position, whatever order they are asked in; a name that the file lacks has none. Also in a file without row groups."""
    assert columns_of(pq.read_metadata(path), ["pair", "i", "absent"]) == [0, 2, 3]
    empty = tmp_path / "empty.parquet"
    pq.ParquetWriter(empty, pq.read_schema(path)).close()
    assert pq.read_metadata(empty).num_row_groups == 0
    assert columns_of(pq.read_metadata(empty), ["pair", "i", "absent"]) == [0, 2, 3]


@given(limit=st.integers(1, 1 << 20), groups=st.sets(st.integers(0, 9), min_size=1), n_rows=st.integers(1, 300))
def test_rows_are_those_of_the_row_groups(path, limit, groups, n_rows):
    """Whatever is fetched together."""
    with pytest.MonkeyPatch.context() as patch, pq.ParquetFile(path) as parquet:
        patch.setattr(row_groups, "READ_BYTES", limit)
        found = list(read_batches(parquet, sorted(groups), ["pair", "i"], n_rows))
    assert max(batch.num_rows for batch in found) <= n_rows
    rows = pa.Table.from_batches(found)
    assert rows.column_names == ["pair", "i"]
    assert rows["i"].to_pylist() == [i for group in sorted(groups) for i in range(group * GROUP, (group + 1) * GROUP)]


class Asked:
    """A Parquet file that knows which row groups were fetched together."""

    def __init__(self, path, fetched):
        self.metadata, self.schema_arrow, self.fetched = pq.read_metadata(path), pq.read_schema(path), fetched

    def iter_batches(self, n_rows, **given):
        assert n_rows == GROUP
        self.fetched.append(given["row_groups"])
        return iter(())


def test_as_many_are_fetched_together_as_fit(path, monkeypatch):
    """Of stored bytes of the fields that are read, to the byte; one at least. Ten small ones are fetched at once."""
    fetched, names = [], ["i", "x"]
    assert not list(read_batches(Asked(path, fetched), range(10), names, GROUP))
    assert fetched == [[*range(10)]]
    metadata = pq.read_metadata(path)
    sizes = [sum(metadata.row_group(group).column(c).total_compressed_size for c in (0, 1)) for group in range(10)]
    for first in range(10):
        for last in range(first + 1, 11):
            limit = sum(sizes[first:last])
            monkeypatch.setattr(row_groups, "READ_BYTES", limit)
            fetched.clear()
            assert not list(read_batches(Asked(path, fetched), range(first, 10), names, GROUP))
            assert fetched[0] == [*range(first, last)]
            assert [group for groups in fetched for group in groups] == [*range(first, 10)]
            assert all(len(groups) == 1 or sum(sizes[group] for group in groups) <= limit for groups in fetched)
            assert all(sum(sizes[group] for group in [*groups, then[0]]) > limit for groups, then in pairwise(fetched))


def test_names_may_have_dots(path, tmp_path, monkeypatch):
    """What is fetched and held does not hang on how columns are called, though dots also stand between a field and the field that it is of."""
    plain, named = ["i", "x", "pair", "text"], ["Sepal.i", "x.", "a.b.pair", ".text"]
    pq.write_table(pq.read_table(path).rename_columns(named), tmp_path / "dots.parquet", row_group_size=GROUP)
    expected, found = pq.read_metadata(path), pq.read_metadata(tmp_path / "dots.parquet")
    assert columns_of(found, ["a.b.pair", "Sepal.i"]) == [0, 2, 3]
    for limit in (row_groups.READ_BYTES, 1 << 12):
        monkeypatch.setattr(row_groups, "READ_BYTES", limit)
        monkeypatch.setattr(row_groups, "PAGES_BYTES", limit >> 4)
        for n in range(1, 5):
            assert largest_held(found, columns_of(found, named[:n])) == largest_held(expected, columns_of(expected, plain[:n]))
            assert choose_pieces(found, range(10), named[:n], 1 << 40) == choose_pieces(expected, range(10), plain[:n], 1 << 40)
            fetched = [], []
            for asked, names, into in ((path, plain, fetched[0]), (tmp_path / "dots.parquet", named, fetched[1])):
                assert not list(read_batches(Asked(asked, into), range(10), names[:n], GROUP))
            assert fetched[0] == fetched[1]


class Counted:
    """A file that knows how much of what it has read is still held by others."""

    def __init__(self, file):
        self.file, self.read_bytes = file, []

    def read(self, n_bytes=-1):
        self.read_bytes.append(self.file.read(n_bytes))
        return self.read_bytes[-1]

    def held(self):
        return sum(len(found) for found in self.read_bytes if sys.getrefcount(found) > 3)

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_what_was_fetched_is_let_go(path, monkeypatch):
    """At the last row no more than two row groups are held where one is fetched at a time, of a file of ten."""
    size = path.stat().st_size
    monkeypatch.setattr(row_groups, "READ_BYTES", size // 10)
    with storage.opened(str(path)) as opened:
        file = Counted(opened)
        most = 0
        for _ in read_batches(pq.ParquetFile(file), range(10), ["i", "x", "pair", "text"], GROUP):
            most = max(most, file.held())
    assert sum(map(len, file.read_bytes)) >= 0.9 * size
    assert 0 < most < 0.3 * size


@pytest.fixture
def large(tmp_path):
    """One row group of numbers and texts that does not fit, where 4 MB and 256 kB of a column do."""
    path, rng, n = tmp_path / "large.parquet", np.random.default_rng(1), 1_500_000
    texts = pa.array([f"of {k} kinds" for k in range(1000)]).take(pa.array(rng.integers(0, 1000, n)))
    pq.write_table(pa.table({"i": np.arange(n), "x": rng.normal(size=n), "text": texts}), path, row_group_size=n, compression="none")
    return path


@pytest.mark.slow
def test_a_large_row_group_is_fetched_by_pages(large, monkeypatch):
    """What is held of it at any time is a part of what is stored and within what is projected; the rows are all there, in their order."""
    names, stored = ["i", "x", "text"], large.stat().st_size
    metadata = pq.read_metadata(large)
    whole = largest_held(metadata, [0, 1, 2])
    assert whole >= 0.9 * stored
    assert choose_pieces(metadata, [0], names, stored) == {}
    monkeypatch.setattr(row_groups, "READ_BYTES", 1 << 21)
    projected = largest_held(metadata, [0, 1, 2])
    assert projected < whole
    with storage.opened(str(large), ahead=False) as opened:
        file, most, before = Counted(opened), 0, pa.total_allocated_bytes()
        parquet, first = pq.ParquetFile(file, **choose_pieces(metadata, [0], names, stored)), 0
        for batch in read_batches(parquet, [0], names, 10_000):
            assert batch.column("i").to_pylist() == [*range(first, first + batch.num_rows)]
            first += batch.num_rows
            most = max(most, file.held() + pa.total_allocated_bytes() - before)
            file.read_bytes = [found for found in file.read_bytes if sys.getrefcount(found) > 3]
    assert first == metadata.num_rows
    assert 0 < most <= projected + row_groups.READ_BYTES < 0.7 * stored


def test_narrow_pieces_are_not_worth_it(large, monkeypatch):
    """A row group of which the pages alone would be as much is fetched whole."""
    metadata = pq.read_metadata(large)
    monkeypatch.setattr(row_groups, "READ_BYTES", 1 << 20)
    monkeypatch.setattr(row_groups, "PAGES_BYTES", large.stat().st_size // 3)
    assert choose_pieces(metadata, [0], ["i", "x", "text"], large.stat().st_size) == {}
    assert largest_held(metadata, [1]) <= metadata.row_group(0).column(1).total_uncompressed_size
