"""Rows grouped by the values of columns: which are the same, what groups are called, and that values keep their types."""

import json
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.kernels.slices.labels import no_labels
from leafledger.pipeline.dataset.columns.grouping import (
    GroupColumn,
    check_described,
    check_group_columns,
    group_rows,
    make_group_columns,
    same_values,
    type_values,
    write_values,
)
from leafledger.pipeline.errors import InvalidColumn, SchemaMismatch

WORDS = st.sampled_from([None, "a", "b", 'quoted "c"', "é", ""])


def group(batch, *names):
    columns = make_group_columns(names, {name: batch.schema.field(name).type for name in names})
    return group_rows(no_labels(batch.num_rows + 3), batch, columns)


@pytest.mark.parametrize("encoded", [False, True], ids=["plain", "dictionary"])
@given(rows=st.lists(st.tuples(WORDS, st.none() | st.integers(-3, 3)), min_size=1, max_size=70))
def test_rows_with_the_same_values_are_a_group(encoded, rows):
    """Which is called by these values, as JSON; names stand in ascending order, each once. Rows that pad the slice are of the first."""
    word, number = pa.array([w for w, _ in rows], pa.string()), pa.array([k for _, k in rows], pa.int64())
    batch = pa.record_batch({"word": word.dictionary_encode() if encoded else word, "number": number})
    found = group(batch, "word", "number")
    assert found.names.tolist() == sorted({json.dumps(list(row)) for row in rows})
    assert [json.loads(found.names[group]) for group in found.group[: len(rows)]] == [list(row) for row in rows]
    assert found.group[len(rows) :].tolist() == [0, 0, 0]


def test_dates_are_groups_by_their_text():
    """Which JSON has no other form for."""
    found = group(pa.record_batch({"day": pa.array([date(2026, 11, 22), None, date(2026, 1, 2)])}), "day")
    assert found.names.tolist() == ['["2026-01-02"]', '["2026-11-22"]', "[null]"]
    assert found.group[:3].tolist() == [1, 2, 0]


def test_a_dictionary_may_be_as_large_as_its_codes():
    """Rows without a value have a code of their own, for which int8 has no room."""
    words = [f"w{i}" for i in range(128)]
    found = group(pa.record_batch({"word": pa.DictionaryArray.from_arrays(pa.array([127, None, 0, 127], pa.int8()), pa.array(words))}), "word")
    assert found.names[found.group[:4]].tolist() == ['["w127"]', "[null]", '["w0"]', '["w127"]']


@pytest.mark.parametrize("days", [-800_000, 3_000_000])
def test_groups_of_dates_that_no_calendar_has_are_refused(days):
    """Their texts are groups, of four digits for the year."""
    far = pa.array([0, days], pa.int32()).cast(pa.date32())
    with pytest.raises(InvalidColumn, match=r"^column 'day' has dates before the year 1 or beyond 9999, by which no rows are grouped$"):
        group(pa.record_batch({"day": far}), "day")


@pytest.mark.parametrize("encoded", [False, True], ids=["plain", "dictionary"])
def test_groups_that_are_no_text_are_refused(encoded):
    """Bytes that are not UTF-8 have no name; the column has."""
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")])
    if encoded:
        broken = pa.DictionaryArray.from_arrays(pa.array([0]), broken)
    with pytest.raises(InvalidColumn, match=r"^column 'word' has text that is not UTF-8$"):
        group(pa.record_batch({"word": broken}), "word")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([3, None, -3], pa.int8()),
        pa.array([2**64 - 1, 2**63, None], pa.uint64()),
        pa.array([True, None, False]),
        pa.array(["a", None, ""], pa.large_string()),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array([date(2026, 11, 22), None, date(1900, 1, 1)], pa.date32()),
        pa.array([date(2026, 11, 22), None], pa.date64()),
        pa.nulls(2),
    ],
    ids=lambda column: str(column.type),
)
def test_values_of_groups_keep_their_type(column):
    """From the data through names of groups and back: categories are those of their values."""
    batch = pa.record_batch({"k": column})
    (described,) = make_group_columns(["k"], {"k": column.type})
    check_described([described])
    names = group(batch, "k").names.tolist()
    found = type_values([json.loads(name)[0] for name in names], described)
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    assert found.type == plain.type
    assert set(found.to_pylist()) == set(column.to_pylist())
    assert type_values([], described).type == plain.type


def test_groups_of_two_columns_can_be_the_same():
    """Whatever the width of numbers and of texts; dates are no texts."""
    kinds = [("string", "large_string"), ("int8", "uint64"), ("bool",), ("date32[day]", "date64[ms]")]
    for mine in kinds:
        for other in kinds:
            for a, b in ((a, b) for a in mine for b in other):
                assert same_values(GroupColumn("x", a), GroupColumn("y", b)) == (mine is other)
        assert same_values(GroupColumn("x", mine[0]), GroupColumn("x", "null"))


def test_other_columns_group_no_rows():
    """Floats are hardly ever equal; what a plan says is refused alike. Columns of nulls have no type of their own, and pass."""
    check_group_columns(["x"], {"x": pa.null()}, "f")
    for kind in (pa.float64(), pa.timestamp("us"), pa.list_(pa.int8()), pa.dictionary(pa.int8(), pa.float32())):
        with pytest.raises(SchemaMismatch, match=r"^f: column 'x' is .*, expected texts, integers or dates to group rows by$"):
            check_group_columns(["x"], {"x": kind}, "f")
    for name in ("double", "timestamp[us]", "binary", "nonsense", ""):
        with pytest.raises(ValueError, match=r"by which rows are not grouped|No type alias"):
            check_described([GroupColumn("x", name)])


TEXTS = st.one_of(st.none(), st.text('–", a', max_size=4))


@given(n=st.integers(1, 2), data=st.data())
def test_no_two_groups_read_the_same(n, data):
    """Of texts that look like no value, like several, or like ones in quotes; all others are as they are."""
    a, b = (data.draw(st.tuples(*[TEXTS] * n)) for _ in range(2))
    assert (", ".join(write_values(a)) == ", ".join(write_values(b))) == (a == b)
    assert write_values([None, "–", "", "x, y", 'x "y"', 3, True]) == ["–", '"–"', '""', '"x, y"', 'x "y"', "3", "True"]
    assert write_values(["Portland, OR"]) == ["Portland, OR"]
