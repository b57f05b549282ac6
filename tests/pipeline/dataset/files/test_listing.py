"""Data sets as their footers have them: columns that paths carry, files that do not fit, and work items that take every row once."""

import json
from dataclasses import asdict, replace
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.pipeline.dataset.files import listing, row_groups
from leafledger.pipeline.dataset.files.listing import Listing, Rejected, list_data, make_items
from leafledger.pipeline.dataset.files.matching import ExtraColumns
from leafledger.pipeline.errors import InvalidData, NotThere, SchemaMismatch
from leafledger.pipeline.json_records import read_record
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.stores.store import Object
from tests.pipeline.conftest import FEATURES
from tests.pipeline.running import planned, write_copies


@pytest.mark.parametrize(
    ("counts", "groups"),
    [
        ([], []),
        ([5], [(0,)]),
        ([4, 4, 4], [(0, 1), (2,)]),
        ([20, 1, 1], [(0,), (1, 2)]),
        ([0, 0, 10], [(0, 1, 2)]),
        ([10, 10], [(0,), (1,)]),
    ],
)
def test_row_groups_are_grouped_in_order(counts, groups):
    """Consecutive row groups up to the aim; a larger one alone."""
    assert listing._group(counts, 10) == groups


@pytest.mark.parametrize(
    ("path", "columns"),
    [
        ("d/a=1/b=x%2Fy/f", {"a": "1", "b": "x/y"}),
        ("d/a=01/f", {"a": "01"}),
        ("d/a=__HIVE_DEFAULT_PARTITION__/b=z/f", {"a": None, "b": "z"}),
        ("a=1/f", {"a": "1"}),
        ("run=5/flights/a=1/f", {"a": "1"}),
        ("a=1/f=2.parquet", {"a": "1"}),
        ("a=1/a=2/f", {"a": "2"}),
        ("a/=1/f", {}),
        ("f", {}),
        ("http://h/d/t=10%253A00/f", {"t": "10:00"}),
        ("https://h/d/a%3D1/b=x%252Fy/c=a%20b/f?versionId=3", {"a": "1", "b": "x/y", "c": "a b"}),
        ("s3://h/d/t=10%253A00/f", {"t": "10%3A00"}),
        ("https://h/a=__HIVE_DEFAULT_PARTITION__/%62=z/f", {"a": None, "b": "z"}),
    ],
)
def test_columns_of_a_path_are_the_folders_around_the_file(path, columns):
    """As they are written, percent-decoded, with a name for null; what stands above other folders belongs to something else.

    The URI of a web server is decoded before that, since any name is encoded there.
    """
    assert dict(listing._partition(path)) == columns


def test_files_that_differ_are_named(example, tmp_path):
    """A file without a column, with another type, or that is no Parquet file is refused by its name."""
    good = pq.read_table(f"{example.data}/month=1/data.parquet", partitioning=None)
    good = good.append_column("month", pa.array([1] * good.num_rows))
    pq.write_table(good, tmp_path / "a.parquet")
    for table, says in (
        (good.drop_columns("delay"), "b.parquet: column 'delay' missing"),
        (good.set_column(3, "delay", good["delay"].cast(pa.string())), "b.parquet: column 'delay' is string, the model was trained on numbers"),
        (good.set_column(0, "flight", good["flight"].cast(pa.int32())), "b.parquet: id column 'flight' is int32, it is int64 in"),
    ):
        pq.write_table(table, tmp_path / "b.parquet")
        with pytest.raises(SchemaMismatch, match=says):
            planned(example, tmp_path, ids=["flight"])
    whole = (tmp_path / "a.parquet").read_bytes()
    for damage in (b"", b"PAR1", b"a,b\n1,2\n" * 100, whole[:-9], whole.replace(b"delay", b"d\xe5lay")):  # the last has a name that is no UTF-8
        (tmp_path / "b.parquet").write_bytes(damage)
        with pytest.raises(InvalidData, match=r"b\.parquet: not a Parquet file") as refusal:
            planned(example, tmp_path, max_rejected=0)
        assert "\n" not in str(refusal.value)


def test_a_partition_that_cannot_be_the_feature_is_refused(example, tmp_path):
    """A feature's value in the path must have the feature's type."""
    path = tmp_path / "month=January" / "f.parquet"
    path.parent.mkdir()
    pq.write_table(pq.read_table(f"{example.data}/month=1/data.parquet", partitioning=None), path)
    with pytest.raises(SchemaMismatch, match=r"f\.parquet \(its path\): column 'month' is 'January', the model was trained on numbers"):
        planned(example, tmp_path)


def test_an_empty_folder_is_refused(example, tmp_path):
    """No files: the data are yet to come; files without rows are data."""
    with pytest.raises(NotThere, match="no Parquet files there"):
        planned(example, tmp_path)


@st.composite
def listings(draw):
    """Files with the rows of their row groups, some without any."""
    rows = draw(st.lists(st.lists(st.integers(0, 40), max_size=6), max_size=4))
    return Listing(
        "data", tuple((Object(f"f{i}", 1, f"tag {i}"), (("month", i),), tuple(counts)) for i, counts in enumerate(rows)), 0, 0, (), None, {}
    )


@given(found=listings(), item_rows=st.integers(1, 30))
def test_items_take_every_row_once_and_in_order(found, item_rows):
    """Row by row: each item's are those of its row groups after the ones that it skips, and go on where the item before it ended."""
    items = make_items(found, item_rows)
    assert [item.part for item in items] == list(range(len(items)))
    taken = []
    for item in items:
        file, partition, counts = next(entry for entry in found.files if entry[0].uri == item.uri)
        assert (item.etag, item.partition) == (file.etag, partition)
        assert 0 < item.n_rows <= max(2 * item_rows, max(counts[group] for group in item.row_groups))
        in_groups = [row for group in item.row_groups for row in range(sum(counts[:group]), sum(counts[: group + 1]))]
        mine = in_groups[item.skip : item.skip + item.n_rows]
        assert len(mine) == item.n_rows
        assert mine[0] == item.first_row
        taken += [(item.uri, row) for row in mine]
    assert taken == [(file.uri, row) for file, _, counts in found.files for row in range(sum(counts))]
    assert found.n_rows == len(taken)


@given(found=listings(), item_rows=st.integers(1, 30))
def test_only_large_row_groups_are_cut(found, item_rows):
    """A row group of up to two items' rows is read by one item alone."""
    items = make_items(found, item_rows)
    for file, _, counts in found.files:
        for group, n_rows in enumerate(counts):
            readers = sum(item.uri == file.uri and group in item.row_groups for item in items)
            assert readers <= 1 or n_rows > item_rows
            assert readers == 1 or n_rows > 2 * item_rows or sum(counts) == 0 or n_rows == 0


def test_the_digest_is_that_of_the_files():
    """It does not depend on their order, and changes with a name, a tag and the number of rows; how rows are grouped is part of no result."""
    a, b = (Object("a", 1, "x"), (), (3, 4)), (Object("b", 1, "y"), (), (5,))

    def digest(*files):
        return Listing("data", files, 0, 0, (), None, {}).digest

    assert digest(a, b) == digest(b, a) == digest((a[0], (), (7,)), b)
    others = [digest(a), digest(a, (Object("c", 1, "y"), (), (5,))), digest(a, (Object("b", 1, "z"), (), (5,))), digest(a, (b[0], (), (6,)))]
    assert len({digest(a, b), *others}) == 5


def test_footers_say_rows_and_the_size_of_what_is_read(example, tmp_path):
    """Row groups as Parquet has them; bytes of the largest in columns that some split or the caller asks for, and of no other."""
    table = write_copies(example, tmp_path, "month=1/a.parquet", "month=1/b.parquet", row_group_size=100)
    model = load_ensemble(example.model)
    found, with_ids = list_data(str(tmp_path), model), list_data(str(tmp_path), model, ExtraColumns(ids=("name",)))
    counts = (*[100] * (table.num_rows // 100), *[table.num_rows % 100] * (table.num_rows % 100 > 0))
    assert [rows for _, _, rows in found.files] == [counts, counts]
    assert [partition for _, partition, _ in found.files] == [(("month", "1"),)] * 2
    metadata = pq.read_metadata(tmp_path / "month=1/a.parquet")
    assert found.n_chunks == metadata.num_row_groups * metadata.num_columns

    def largest(names):
        groups = [metadata.row_group(g) for g in range(metadata.num_row_groups)]
        return max(sum(group.column(c).total_uncompressed_size for c, name in enumerate(table.column_names) if name in names) for group in groups)

    asked = {FEATURES[column] for column in set(model.ensemble.feature.tolist()) if column >= 0} - {"month"}
    assert asked < set(FEATURES)
    assert found.row_group == largest(asked) + len(asked) * row_groups.COLUMN_BYTES
    assert with_ids.row_group == largest({*asked, "name"}) + (len(asked) + 1) * row_groups.COLUMN_BYTES > found.row_group


def test_columns_of_paths_are_read_as_hive_writes_them(example, tmp_path):
    """Percent-encoded names and values; texts, whatever they look like; null where Hive says so."""
    folders = [f"month=1/a={quote('x/y', safe='')}", "month=2/a=3", "month=-7/a=__HIVE_DEFAULT_PARTITION__"]
    write_copies(example, tmp_path, *(f"{folder}/f.parquet" for folder in folders))
    found = list_data(str(tmp_path), load_ensemble(example.model), ExtraColumns(ids=("a",)))
    carried = {dict(partition)["month"]: dict(partition)["a"] for _, partition, _ in found.files}
    assert carried == {"1": "x/y", "2": "3", "-7": None}


def test_files_that_cannot_be_read_are_left_out_while_others_can(example, tmp_path):
    """With the reason; where none can be read, that is the error."""
    write_copies(example, tmp_path, "month=1/a.parquet")
    (tmp_path / "month=1" / "b.parquet").write_bytes(b"PAR1 and no more")
    model = load_ensemble(example.model)
    found = list_data(str(tmp_path), model)
    (rejected,) = found.rejected
    assert [file.uri for file, _, _ in found.files] == [f"{tmp_path}/month=1/a.parquet"]
    assert (rejected.part, rejected.uri, rejected.row_groups, rejected.n_rows) == (None, f"{tmp_path}/month=1/b.parquet", (), None)
    assert rejected.reason.startswith(f"{tmp_path}/month=1/b.parquet: not a Parquet file: ")
    assert read_record(Rejected, json.dumps(asdict(rejected))) == rejected
    (tmp_path / "month=1" / "a.parquet").unlink()
    with pytest.raises(InvalidData, match=r"b\.parquet: not a Parquet file"):
        list_data(str(tmp_path), model)


def test_columns_of_labels_must_be_there_and_fit(example, tmp_path):
    """A label that is text is refused; groups may come from the path; a group of another type in another file is refused."""
    table = write_copies(example, tmp_path, "month=1/a.parquet", "month=1/b.parquet")
    model = load_ensemble(example.model)
    assert list_data(str(tmp_path), model, ExtraColumns(numbers=("delay", "flight"), by=("month", "name"))).n_rows == 2 * table.num_rows
    with pytest.raises(SchemaMismatch, match=r"column 'name' is large_string, expected numbers$"):
        list_data(str(tmp_path), model, ExtraColumns(numbers=("name",), by=()))
    with pytest.raises(SchemaMismatch, match="column 'weight' missing"):
        list_data(str(tmp_path), model, ExtraColumns(numbers=("delay", "weight"), by=()))
    pq.write_table(table.set_column(0, "flight", table["flight"].cast(pa.int32())), tmp_path / "month=1" / "b.parquet")
    with pytest.raises(SchemaMismatch, match=r"b\.parquet: column 'flight' is int32, it is int64 in .*a\.parquet$"):
        list_data(str(tmp_path), model, ExtraColumns(numbers=("delay",), by=("flight",)))


def test_categories_of_several_types_are_refused_where_splits_ask_for_them(example):
    """No column of a file holds texts beside numbers; a feature without splits is not read."""
    model = load_ensemble(example.model)
    read = {column for column in set(model.ensemble.feature.tolist()) if column >= 0}
    for column in range(len(FEATURES)):
        features = list(model.features)
        features[column] = replace(features[column], categorical=True, categories=(3, "3"))
        mixed = replace(model, features=tuple(features))
        if column not in read:
            assert list_data(example.data, mixed).n_rows == len(example.frame)
            continue
        with pytest.raises(SchemaMismatch, match=f"feature '{FEATURES[column]}' has categories of several types"):
            list_data(example.data, mixed)


def test_how_folders_are_nested_does_not_matter():
    """The same columns are the same partition, so that a plan does not depend on which folder is in which."""
    assert listing._partition("d/a=1/b=2/f") == listing._partition("d/b=2/a=1/f") == (("a", "1"), ("b", "2"))


def test_old_timestamps_are_of_the_type_in_which_they_are_read(example, tmp_path):
    """INT96, as Spark writes them: in microseconds, as a table takes them, beside files that say so; nanoseconds are another type."""
    table, times = pa.Table.from_pandas(example.frame[FEATURES][:9], preserve_index=False), pa.array(range(9), pa.timestamp("us"))
    pq.write_table(table.append_column("t", times), tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(table.append_column("t", times), tmp_path / "b.parquet")
    model, asked = load_ensemble(example.model), ExtraColumns(ids=("t",))
    assert list_data(str(tmp_path), model, asked).types == {"t": pa.timestamp("us")}
    pq.write_table(table.append_column("t", times.cast(pa.timestamp("ns"))), tmp_path / "b.parquet")
    with pytest.raises(SchemaMismatch, match=r"b\.parquet: id column 't' is timestamp\[ns\], it is timestamp\[us\] in "):
        list_data(str(tmp_path), model, asked)
