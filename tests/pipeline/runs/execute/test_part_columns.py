"""The columns of a part: their names, their Arrow types and whether they may be null, for every method; and how Parquet holds them."""

import io
from itertools import accumulate

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger import explain, read_run
from leafledger.kernels.slices.buffers import make_buffers
from leafledger.pipeline.runs.execute.part_columns import RowGroups, list_columns, make_batch, open_part
from leafledger.pipeline.runs.lookup import bloom_filter
from tests.pipeline.running import ready


def test_parts_are_readable_as_one_data_set(serial):
    """Other tools read the attributions' folder as a Parquet data set, ids and all; page checksums are written."""
    out, _ = serial
    assert ds.dataset(out / "attributions").count_rows() == 3000
    column = pq.read_metadata(out / "attributions" / "part-00000.parquet").row_group(0).column(3)
    assert (column.compression, column.encodings) == ("ZSTD", ("RLE", "BYTE_STREAM_SPLIT"))


BATCH = pa.schema([("flight", pa.int64()), ("night", pa.date32()), ("name", pa.dictionary(pa.int8(), pa.string())), ("delay", pa.float64())])
ENTRY = {"float32": pa.float32(), "float64": pa.float64()}


def listed(example, tmp_path, batch=BATCH, **arguments):
    """The columns of a run's parts, its plan and its tables."""
    run, tables = ready(example, tmp_path / "run", **arguments)
    return list_columns(run.plan, tables.prepared, batch), run.plan, tables.prepared


def described(columns):
    return [(field.name, field.type, field.nullable) for field in columns.schema]


@pytest.mark.parametrize("precision", ENTRY)
def test_margins_and_attributions_are_numbers_that_are_never_null(example, tmp_path, precision):
    """In the precision asked for; ids keep whatever type they have."""
    number, batch = ENTRY[precision], pa.schema([("flight", pa.int64()), ("name", pa.dictionary(pa.int8(), pa.string()))])
    columns, plan, _ = listed(example, tmp_path, batch, precision=precision, ids=["flight", "name"])
    assert described(columns) == [
        ("flight", pa.int64(), True),
        ("name", pa.dictionary(pa.int8(), pa.string()), True),
        ("margin", number, False),
        *((f"phi_{feature.name}", number, False) for feature in plan.features),
    ]


def test_rank_columns_are_whole_numbers_and_scores_are_not(example, tmp_path):
    """Where a method gives ranks, a rank takes four bytes whatever the precision of numbers."""
    columns, plan, _ = listed(example, tmp_path, method="curves", precision="float64")
    assert described(columns) == [
        ("margin", pa.float64(), False),
        *((f"rank_{feature.name}", pa.int32(), False) for feature in plan.features),
        *((score, pa.float64(), False) for score in ("insertion", "deletion")),
        *((f"{sign}_{score}", pa.float64(), False) for sign in ("positive", "negative") for score in ("features", "margin")),
    ]


def test_ranks_are_read_by_others(example, tmp_path):
    """DuckDB puts the split bytes of fractions together, and not those of whole numbers."""
    made = explain(example.model, example.data, tmp_path / "run", method="curves", scheduler="serial")
    found = duckdb.sql(f"SELECT * FROM '{tmp_path}/run/attributions/*.parquet'").to_arrow_table()
    ranks = [name for name in found.column_names if name.startswith("rank_")]
    assert ranks
    assert found.select(ranks).to_pydict() == read_run(tmp_path / "run").attributions().select(ranks).to_pydict()
    assert found.num_rows == made.n_rows


def test_interactions_are_lists_of_named_entries(example, tmp_path):
    """A list of the row's pairs, never null, each with both names and a number."""
    columns, *_ = listed(example, tmp_path, interactions="all")
    name, kind, nullable = described(columns)[-1]
    assert (name, nullable) == ("interactions", False)
    fields = {field.name: field.type for field in kind.value_type}
    assert set(map(str, fields.values())) <= {"string", "float"}
    assert [str(each) for each in fields.values()].count("string") == 2


def test_rows_without_a_label_have_no_losses(example, tmp_path):
    """Their attributions are null, and so may be; margins are there for every row."""
    columns, plan, prepared = listed(example, tmp_path, method="r2", label="delay")
    assert {nullable for name, _, nullable in described(columns) if name != "margin"} == {True}
    buffers = make_buffers(prepared, 3)
    buffers.labels.missing[:3] = [False, True, False]
    found = make_batch(columns, pa.record_batch({"delay": [1.0, None, 2.0]}), buffers)
    assert found["margin"].null_count == 0
    for name in found.schema.names[1:]:
        assert found[name].is_null().to_pylist() == [False, True, False]
    assert plan.labels.label == "delay"


@pytest.mark.parametrize("precision", ENTRY)
def test_values_are_rounded_once_and_stand_in_their_player_s_column(example, tmp_path, precision):
    """Features that no split asks for have zeros; the rows that pad a slice are left out."""
    columns, plan, prepared = listed(example, tmp_path, precision=precision, ids=["flight"])
    buffers, n = make_buffers(prepared, 5), 5
    draw = np.random.default_rng(1)
    buffers.phi[:] = draw.normal(size=buffers.phi.shape)
    buffers.margin[:] = draw.normal(size=buffers.margin.shape)
    found = make_batch(columns, pa.record_batch({"flight": range(n)}), buffers)
    assert found.schema.equals(columns.schema)
    assert found["flight"].to_pylist() == list(range(n))
    assert found["margin"].to_numpy().tobytes() == buffers.margin[0, :n].astype(precision).tobytes()
    row_of = {player: row for row, player in enumerate(prepared.players.tolist())}
    assert 0 < len(row_of) < len(plan.features)
    for j, feature in enumerate(plan.features):
        expected = buffers.phi[0, row_of[j], :n] if j in row_of else np.zeros(n)
        assert found[f"phi_{feature.name}"].to_numpy().tobytes() == expected.astype(precision).tobytes()


@pytest.mark.parametrize(("n", "codec"), [(255, "SNAPPY"), (256, "ZSTD")])
def test_numbers_are_split_into_bytes_and_ids_have_dictionaries(example, tmp_path, n, codec):
    """Zstandard, unless rows are few, with a checksum on every page: a flipped byte is noticed by whoever reads it."""
    columns, _, prepared = listed(example, tmp_path, ids=["flight"])
    with open_part(tmp_path / "part", columns, n) as writer:
        writer.write_batch(make_batch(columns, pa.record_batch({"flight": range(n)}), make_buffers(prepared, n)))
    group = pq.read_metadata(tmp_path / "part").row_group(0)
    for c in range(group.num_columns):
        column = group.column(c)
        assert column.compression == codec
        assert ("BYTE_STREAM_SPLIT" in column.encodings) == (column.path_in_schema != "flight")
        assert column.has_dictionary_page == (column.path_in_schema == "flight")
    assert pq.read_schema(tmp_path / "part").equals(columns.schema)
    data = bytearray((tmp_path / "part").read_bytes())
    data[group.column(1).data_page_offset + group.column(1).total_compressed_size - 1] ^= 1
    (tmp_path / "part").write_bytes(data)
    with (
        pq.ParquetFile(tmp_path / "part", page_checksum_verification=True) as damaged,
        pytest.raises(OSError, match="could not verify page integrity"),
    ):
        damaged.read_row_group(0, ["margin"])


@pytest.mark.skipif(not bloom_filter.KNOWN, reason="this PyArrow writes none")
def test_ids_have_bloom_filters(example, tmp_path):
    """Of kinds that somebody asks for; a byte for each row, and the same bytes every time."""
    n = 4096
    batch = pa.record_batch({"flight": range(n), "carrier": ["UA"] * n, "delay": [0.5] * n})
    columns, _, prepared = listed(example, tmp_path, batch.schema, ids=["flight", "carrier", "delay"])
    for name in ("part", "again"):
        with open_part(tmp_path / name, columns, n) as writer:
            writer.write_batch(make_batch(columns, batch, make_buffers(prepared, n)))
    group = pq.read_metadata(tmp_path / "part").row_group(0)
    filters = {group.column(c).path_in_schema: group.column(c).bloom_filter_length for c in range(group.num_columns)}
    assert {name for name, length in filters.items() if length} == {"flight", "carrier"}
    assert n <= filters["flight"] <= 1.1 * n
    assert (tmp_path / "part").read_bytes() == (tmp_path / "again").read_bytes()


def test_a_pyarrow_that_knows_no_bloom_filters_writes_the_same_rows(example, tmp_path, monkeypatch):
    """As those before 24: they refuse the option, and tell nothing of the filters of others' files."""
    monkeypatch.setattr(bloom_filter, "KNOWN", False)
    batch = pa.record_batch({"flight": [*range(64)]})
    columns, _, prepared = listed(example, tmp_path, batch.schema, ids=["flight"])
    with open_part(tmp_path / "part", columns, 64) as writer:
        writer.write_batch(make_batch(columns, batch, make_buffers(prepared, 64)))
    assert bloom_filter.writing(["flight"], 64) == {}
    assert bloom_filter.size(pq.read_metadata(tmp_path / "part").row_group(0).column(0)) == 0
    assert pq.read_table(tmp_path / "part")["flight"].to_pylist() == [*range(64)]


@given(sizes=st.lists(st.integers(1, 9), max_size=40), enough=st.integers(1, 30))
def test_slices_are_gathered_into_row_groups_of_enough_rows(sizes, enough):
    """A row group ends with the slice that fills it; the last one is what is left; no row is lost or moved."""
    rows, sink, expected = pa.table({"x": range(sum(sizes))}), io.BytesIO(), [0]
    with pq.ParquetWriter(sink, rows.schema) as writer:
        groups = RowGroups(writer, enough)
        for first, size in zip(accumulate(sizes, initial=0), sizes, strict=False):
            groups.add(rows.slice(first, size).to_batches()[0])
            expected = [*expected[:-1], expected[-1] + size, *([0] if expected[-1] + size >= enough else [])]
        groups.flush()
        groups.flush()
    written = pq.ParquetFile(sink)
    assert [written.metadata.row_group(g).num_rows for g in range(written.num_row_groups)] == [n for n in expected if n]
    assert written.read().equals(rows)


def test_no_slice_is_counted_twice():
    """Files of a row each make tens of thousands of slices in one row group, which took seconds to count again and again."""
    looked = []
    slices = [type("Slice", (), {"num_rows": property(lambda self: looked.append(self) or 1)})() for _ in range(100)]
    groups = RowGroups(None, 1000)
    for each in slices:
        groups.add(each)
    assert looked == slices
