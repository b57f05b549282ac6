"""Labels and weights as kernels take them, rows grouped by the values of columns, and what cannot be shared out refused with its row."""

import json
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from pipeline.dataset.labels import COUNT, LARGEST_LABEL, LARGEST_WEIGHT, REFUSE, LabelColumns, read_labels
from pipeline.errors import InvalidColumn, InvalidLabel

NUMBERS = st.none() | st.floats(-1e6, 1e6)
WEIGHTS = st.floats(0, 1e6)
WORDS = st.sampled_from([None, "a", "b", 'quoted "c"', "é", ""])


@given(rows=st.lists(st.tuples(NUMBERS, WEIGHTS), max_size=70))
def test_labels_and_weights_are_those_of_the_rows(rows):
    """A row without a label has no weight; rows that pad the slice count nothing."""
    batch = pa.record_batch({"y": pa.array([y for y, _ in rows], pa.float64()), "w": pa.array([w for _, w in rows], pa.float64())})
    found = read_labels(LabelColumns("y", "w", (), COUNT), batch, "f", 0)
    n = len(rows)
    assert_array_equal(found.missing[:n], [y is None for y, _ in rows])
    assert_array_equal(found.label[:n], [0.0 if y is None else y for y, _ in rows])
    assert_array_equal(found.weight[:n], [0.0 if y is None else w for y, w in rows])
    assert not found.weight[n:].any()
    assert_array_equal(found.group, 0)
    unweighted = read_labels(LabelColumns("y", None, (), COUNT), batch, "f", 0)
    assert_array_equal(unweighted.weight[:n], [float(y is not None) for y, _ in rows])


@pytest.mark.parametrize("encoded", [False, True], ids=["plain", "dictionary"])
@given(rows=st.lists(st.tuples(WORDS, st.none() | st.integers(-3, 3)), min_size=1, max_size=70))
def test_rows_with_the_same_values_are_a_group(encoded, rows):
    """Which is called by these values, as JSON; names stand in ascending order, each once."""
    word, number = pa.array([w for w, _ in rows], pa.string()), pa.array([k for _, k in rows], pa.int64())
    batch = pa.record_batch({"y": np.ones(len(rows)), "word": word.dictionary_encode() if encoded else word, "number": number})
    found = read_labels(LabelColumns("y", None, ("word", "number"), COUNT), batch, "f", 0)
    assert found.names.tolist() == sorted({json.dumps(list(row)) for row in rows})
    assert [json.loads(found.names[group]) for group in found.group[: len(rows)]] == [list(row) for row in rows]


def test_dates_are_groups_by_their_text():
    """Which JSON has no other form for."""
    batch = pa.record_batch({"y": np.ones(3), "day": pa.array([date(2026, 11, 22), None, date(2026, 1, 2)])})
    found = read_labels(LabelColumns("y", None, ("day",), COUNT), batch, "f", 0)
    assert found.names.tolist() == ['["2026-01-02"]', '["2026-11-22"]', "[null]"]
    assert found.group[:3].tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("label", "weight", "missing", "says"),
    [
        (2 * LARGEST_LABEL, 1.0, COUNT, "label 'y' is 2e+60, expected a number between -1e+60 and 1e+60"),
        (-np.inf, 1.0, COUNT, "label 'y' is -inf, expected a number between"),
        (None, 1.0, REFUSE, "label 'y' is missing, expected a number, or --missing-labels count"),
        (1.0, -1.0, COUNT, "weight 'w' is -1.0, expected a number between 0 and 1e+30"),
        (1.0, 2 * LARGEST_WEIGHT, COUNT, "weight 'w' is 2e+30, expected a number between 0"),
        (1.0, None, COUNT, "weight 'w' is nan, expected a number between 0"),
    ],
)
def test_what_cannot_be_shared_out_is_refused_with_its_row(label, weight, missing, says):
    """The first such row of the file, though the slice begins in its middle; the rows before it are fine, the largest among them."""
    labels = [LARGEST_LABEL, -LARGEST_LABEL, label, label]
    batch = pa.record_batch({"y": pa.array(labels, pa.float64()), "w": pa.array([LARGEST_WEIGHT, 0.0, weight, weight], pa.float64())})
    with pytest.raises(InvalidLabel) as raised:
        read_labels(LabelColumns("y", "w", (), missing), batch, "f.parquet", 500)
    assert str(raised.value).startswith(f"f.parquet: row 502: {says}")


def test_the_columns_that_are_read_are_named():
    """Label, weight if there is one, groups."""
    assert LabelColumns("y", "w", ("a", "b"), COUNT).names == ("y", "w", "a", "b")
    assert LabelColumns("y", None, (), COUNT).names == ("y",)


@pytest.mark.parametrize("encoded", [False, True], ids=["plain", "dictionary"])
def test_groups_that_are_no_text_are_refused(encoded):
    """Bytes that are not UTF-8 have no name; the column has."""
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")])
    if encoded:
        broken = pa.DictionaryArray.from_arrays(pa.array([0]), broken)
    with pytest.raises(InvalidColumn, match=r"^column 'word' has text that is not UTF-8$"):
        read_labels(LabelColumns("y", None, ("word",), COUNT), pa.record_batch({"y": np.ones(1), "word": broken}), "f", 0)
