"""A part's footer comes back as it was written, and says whose it is: another plan's, another item's or a damaged one is refused in a line."""

import io
import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dataset.listing import WorkItem
from pipeline.errors import InvalidRun
from pipeline.runs.footer import KEY, Footer, read_footer, write_footer

DIGEST = "a" * 64
ITEM = WorkItem(3, "s3://data/é.parquet", "tag", (0, 2), 5, 7, 25, (("month", "4"), ("night", None)))
FOOTER = Footer(7, 1e-16, {"importance": "AAAA"}, "margin", {"yes": 0.1})


def written(footer=FOOTER, n_rows=7, n_stored=7, digest=DIGEST):
    """A part of so many rows, as bytes."""
    part = io.BytesIO()
    table = pa.table({"i": range(n_rows)})
    with pq.ParquetWriter(part, table.schema) as writer:
        writer.write_table(table)
        write_footer(writer, digest, ITEM, footer, n_stored)
    return part.getvalue()


def read(data, part=3, digest=DIGEST):
    return read_footer("run/part", part, pa.BufferReader(data), digest)


@given(
    residual=st.none() | st.floats(0, 1),
    n_rows=st.integers(0, 2**40),
    base=st.dictionaries(st.text(max_size=9), st.floats(allow_nan=False, allow_infinity=False), max_size=3),
    states=st.dictionaries(st.text(max_size=9), st.text(st.characters(codec="ascii"), max_size=99), max_size=3),
)
def test_a_footer_comes_back_as_it_was_written(residual, n_rows, base, states):
    """To the last bit of the residual and of the base values."""
    footer = Footer(n_rows, residual, states, "probability", base)
    assert read(written(footer)) == footer


def test_a_footer_says_which_item_it_is_of():
    """In JSON that other programs read."""
    found = json.loads(pq.read_metadata(io.BytesIO(written())).metadata[KEY])
    assert found["item"] == {
        "part": 3,
        "uri": "s3://data/é.parquet",
        "etag": "tag",
        "row_groups": [0, 2],
        "skip": 5,
        "n_rows": 7,
        "first_row": 25,
        "partition": [["month", "4"], ["night", None]],
    }
    assert (found["plan"], found["stored"]) == (DIGEST, 7)
    assert (found["space"], found["base"]) == ("margin", {"yes": 0.1})


def test_another_part_is_refused():
    """By its plan, its item, or other rows than it says that it holds."""
    with pytest.raises(InvalidRun, match=r"^run/part: holds 7 rows, its footer says 8$"):
        read(written(n_stored=8))
    for found in (lambda: read(written(), digest="b" * 64), lambda: read(written(), part=4)):
        with pytest.raises(InvalidRun, match=r"^run/part: a part of another plan \(aaaaaaaaaaaa\), expected [ab]{12}$"):
            found()
    assert read(written(n_rows=0, n_stored=0)).n_rows == 7  # of a run that publishes summaries alone


def test_another_item_is_refused():
    """Where the plan is at hand, by all of it."""
    assert read_footer("run/part", 3, pa.BufferReader(written()), DIGEST, ITEM) == FOOTER
    with pytest.raises(InvalidRun, match=r"^run/part: says that it is of other rows than the plan's part 3$"):
        read_footer("run/part", 3, pa.BufferReader(written()), DIGEST, replace(ITEM, skip=6))


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


@pytest.mark.parametrize("lacks", ["item", "stored", "n_rows", "residual", "states"])
def test_a_footer_that_lacks_something_is_refused(lacks):
    """As one of another version may."""
    found = json.loads(pq.read_metadata(io.BytesIO(written())).metadata[KEY])
    del found[lacks]
    with pytest.raises(InvalidRun, match=rf"^run/part: not a part of a run: it has no '{lacks}'$"):
        read(plain({KEY: json.dumps(found | {"stored": 1} if lacks != "stored" else found)}))


def test_a_parquet_file_of_somebody_else_is_refused():
    """It has no footer of ours, so it is of no plan."""
    with pytest.raises(InvalidRun, match=r"^run/part: not a part of a run: it has no 'plan'$"):
        read(plain(None))
