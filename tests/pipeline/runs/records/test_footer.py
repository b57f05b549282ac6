"""A part's footer comes back as it was written, and says whose it is: another plan's, another item's or a damaged one is refused in a line."""

import io
import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.pipeline.dataset.files.listing import WorkItem
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.runs.records.footer import KEY, Footer, read_footer, write_footer

DIGEST = "a" * 64
ITEM = WorkItem(3, "s3://data/é.parquet", "tag", (0, 2), 5, 7, 25, (("month", "4"), ("night", None)))
FOOTER = Footer(7, 1e-16, {"importance": "AAAA"}, "margin", {"yes": 0.1}, 7)


def written(footer=FOOTER, n_rows=7, digest=DIGEST):
    """A part of so many rows, as bytes."""
    part = io.BytesIO()
    table = pa.table({"i": range(n_rows)})
    with pq.ParquetWriter(part, table.schema) as writer:
        writer.write_table(table)
        write_footer(writer, digest, ITEM, footer)
    return part.getvalue()


def read(data, digest=DIGEST, item=ITEM):
    return read_footer("run/part", pa.BufferReader(data), digest, item)


@given(
    residual=st.none() | st.floats(0, 1),
    base=st.dictionaries(st.text(max_size=9), st.floats(allow_nan=False, allow_infinity=False), max_size=3),
    states=st.dictionaries(st.text(max_size=9), st.text(st.characters(codec="ascii"), max_size=99), max_size=3),
)
def test_a_footer_comes_back_as_it_was_written(residual, base, states):
    """To the last bit of the residual and of the base values."""
    footer = Footer(ITEM.n_rows, residual, states, "probability", base, 7)
    assert read(written(footer)) == footer


def test_a_footer_says_which_rows_it_is_of():
    """In JSON that other programs read; not which part of which plan, since another plan may have the same."""
    found = json.loads(pq.read_metadata(io.BytesIO(written())).metadata[KEY])
    assert {name: found[name] for name in ("uri", "etag", "row_groups", "skip", "n_rows", "first_row", "partition")} == {
        "uri": "s3://data/é.parquet",
        "etag": "tag",
        "row_groups": [0, 2],
        "skip": 5,
        "n_rows": 7,
        "first_row": 25,
        "partition": [["month", "4"], ["night", None]],
    }
    assert (found["recipe"], found["stored"]) == (DIGEST, 7)
    assert (found["space"], found["base"]) == ("margin", {"yes": 0.1})


def test_another_part_is_refused():
    """By its recipe, or other rows than it says that it holds."""
    with pytest.raises(InvalidRun, match=r"^run/part: holds 7 rows, its footer says 8$"):
        read(written(replace(FOOTER, stored=8)))
    with pytest.raises(InvalidRun, match=r"^run/part: a part of another plan \(aaaaaaaaaaaa\), expected b{12}$"):
        read(written(), digest="b" * 64)
    assert read(written(replace(FOOTER, stored=0), n_rows=0)).n_rows == 7  # of a run that publishes summaries alone


def test_another_item_is_refused():
    """By all of it but its number."""
    assert read(written(), item=replace(ITEM, part=4)) == FOOTER
    for other in ({"skip": 6}, {"uri": "s3://data/f.parquet"}, {"etag": "gat"}, {"row_groups": (0,)}, {"first_row": 24}, {"partition": ()}):
        with pytest.raises(InvalidRun, match=r"^run/part: says that it is of other rows than the plan's part 3$"):
            read(written(), item=replace(ITEM, **other))


def plain(metadata):
    part = io.BytesIO()
    pq.write_table(pa.table({"i": [1]}).replace_schema_metadata(metadata), part)
    return part.getvalue()


@pytest.mark.parametrize(
    "data",
    [b"", b"PAR1", b"no part at all", written()[:-9], *(plain({KEY: text}) for text in (b"{", b"[]", b"3", b"null", b"\xff", b"[" * 100_000))],
    ids=lambda data: f"{data[-30:]!r}",
)
def test_what_is_no_part_is_refused(data):
    """In one line, whatever stands there."""
    with pytest.raises(InvalidRun, match=r"^run/part: not a part of a run: [^\n]+$"):
        read(data)


@pytest.mark.parametrize("lacks", ["recipe", "uri", "stored", "n_rows", "residual", "states"])
def test_a_footer_that_lacks_something_is_refused(lacks):
    """As one of another version may."""
    found = json.loads(pq.read_metadata(io.BytesIO(written())).metadata[KEY])
    del found[lacks]
    with pytest.raises(InvalidRun, match=rf"^run/part: not a part of a run: it has no '{lacks}'$"):
        read(plain({KEY: json.dumps(found | {"stored": 1} if lacks != "stored" else found)}))


def test_a_parquet_file_of_somebody_else_is_refused():
    """It has no footer of ours, so it is of no plan."""
    with pytest.raises(InvalidRun, match=r"^run/part: not a part of a run: it has no 'recipe'$"):
        read(plain(None))
