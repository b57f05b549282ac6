"""What a run has for a table: columns of types that tables have, and parts that are its own."""

import pyarrow as pa
import pytest

from leafledger.pipeline.errors import SchemaMismatch
from leafledger.pipeline.runs.records.folder import PARTS, REPLACEMENTS
from leafledger.pipeline.tables import shared_parts as share
from leafledger.pipeline.tables.shared_parts import check_all_there, check_alone, new_columns, plain, plain_fields, refuse_alike, within


def test_columns_are_written_as_tables_have_them():
    """Dictionaries as their values, large types as plain ones, moments in UTC; every column may be null."""
    inner = pa.struct([pa.field("feature", pa.large_string(), nullable=False), pa.field("phi", pa.float32())])
    found = plain(
        {
            "id": pa.dictionary(pa.int32(), pa.large_string()),
            "top": pa.large_list(inner),
            "at": pa.timestamp("us", "Europe/Berlin"),
            "naive": pa.timestamp("us"),
            "margin": pa.float32(),
        },
        "run",
    )
    assert found == pa.schema(
        [
            ("id", pa.string()),
            ("top", pa.list_(pa.field("element", pa.struct([("feature", pa.string()), ("phi", pa.float32())])))),
            ("at", pa.timestamp("us", "UTC")),
            ("naive", pa.timestamp("us")),
            ("margin", pa.float32()),
        ]
    )
    assert all(field.nullable for field in found)


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.uint8(), pa.uint64(), pa.float16(), pa.timestamp("ns"), pa.timestamp("ms"), pa.time64("us"), pa.duration("us"), pa.date64(), pa.null()),
        *(pa.list_(pa.uint16()), pa.struct([("a", pa.uint16())]), pa.dictionary(pa.int8(), pa.uint32())),
    ],
    ids=str,
)
def test_types_that_tables_do_not_have(kind):
    """Delta's library would take an unsigned number for a signed one of as many bits."""
    with pytest.raises(SchemaMismatch, match=r"^run: column 'x' is .*, which tables of Delta Lake and Iceberg do not have; leave it out or cast it$"):
        plain({"x": kind}, "run")


@pytest.mark.parametrize("name", ["date", "Date"])
def test_the_partition_s_name_is_taken(name):
    """Columns of tables are told apart without their case."""
    with pytest.raises(SchemaMismatch, match=f"^run: has a column '{name}', which is what the table is partitioned by"):
        plain({name: pa.int64()}, "run")


def test_a_table_s_types_stay_where_a_run_cannot_have_them():
    """They are compared all the same."""
    schema = pa.schema([("a", pa.uint8()), ("b", pa.large_string())])
    assert [field.type for field in plain_fields(schema)] == [pa.uint8(), pa.string()]


def test_columns_that_a_table_has_not_yet():
    """It may have others that the run has not."""
    assert new_columns({"a": "long", "b": "float"}, {"c": "float", "a": "long"}, "table") == ["c"]
    with pytest.raises(SchemaMismatch, match=r"^table: column 'a' is long, the run's is string; commit it to another table$"):
        new_columns({"a": "long"}, {"a": "string"}, "table")


def test_names_that_differ_in_case_alone():
    """DuckDB gave the values of one for the other's, and nulls for all that follow; Delta's library refuses them after the work."""
    refuse_alike(["flight", "Flights", "margin"], "run")
    with pytest.raises(SchemaMismatch, match=r"^run: columns 'flight' and 'Flight' differ in case alone, by which tables do not tell them apart"):
        refuse_alike(["flight", "margin", "Flight"], "run")
    with pytest.raises(SchemaMismatch, match=r"^table: columns 'phi_a' and 'phi_A' differ in case alone"):
        new_columns({"phi_a": "float"}, {"phi_A": "float"}, "table")


def test_parts_are_those_of_the_run():
    """Not another's whose name begins so, nor that of a run in its folder, nor what somebody else wrote there."""
    mine = {"/runs/a/attributions/part-00000.parquet", "/runs/a/replacements/0/attributions/part-00000.parquet"}
    within_it = {"/runs/a/b/attributions/part-00000.parquet", "/runs/a/b/replacements/0/attributions/part-00000.parquet"}
    others = {"/runs/ab/attributions/part-00000.parquet", "/runs/a/part-c000.parquet", "/runs/a/attributions/x/part-c000.parquet"}
    assert within("/runs/a", mine | within_it | others) == mine
    assert (share.PARTS, share.REPLACEMENTS) == (PARTS, REPLACEMENTS)


def test_what_others_rewrote_is_told():
    """As many as there were, or refused: no fewer, and no more."""
    check_all_there(4, 4, "run", "table")
    for live in (3, 5):
        with pytest.raises(SchemaMismatch, match=rf"^table: 4 files of a run in run were committed, {live} count now: others have rewritten"):
            check_all_there(4, live, "run", "table")


def test_files_of_others_in_a_run_s_folder_are_told():
    """Whoever removes the folder would remove them too."""
    mine, beside = "/runs/a/attributions/part-00000.parquet", "/runs/ab/part-c000.parquet"
    check_alone("/runs/a", [mine, beside], "table")
    with pytest.raises(SchemaMismatch, match=r"^table: 1 of its files, as part-c000\.parquet, lie in /runs/a and are no parts of the run"):
        check_alone("/runs/a", [mine, beside, "/runs/a/part-c000.parquet"], "table")
