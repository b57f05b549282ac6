"""Rows as whoever calls has them at hand: a dict of values, several, one row, a label: taken, or refused in one line that says what to write."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from leafledger import SchemaMismatch, attribute, curves, gradient, prediction_gap, prepare, rank_by_gap
from leafledger.pipeline.in_memory.rows.records import as_columns
from tests.pipeline.conftest import FEATURES

SHAPE, NONE = "expected (n, 4), a column for each of the model's features", "expected None where a value is missing"
OTHERWISE = "expected a data frame, an Arrow table, an array of shape (n, features), a dict of values by feature, or a list of such dicts"


def _records(frame):
    """As an API of JSON has them, None where a value is missing."""
    return [{name: None if pd.isna(value) else value for name, value in record.items()} for record in frame.to_dict("records")]


@pytest.mark.parametrize("explain", [attribute, lambda model, rows: prepare(model)(rows)])
def test_a_dict_is_a_row_and_a_list_of_dicts_are_rows(example, explain):
    """With the bits of a data frame of them, missing values and categories among them, and values that can be asked for."""
    frame = example.frame[FEATURES][:40]
    assert frame.isna().any(axis=None)
    expected, records = attribute(example.model, frame), _records(frame)
    found = explain(example.model, records)
    assert_array_equal(found.phi, expected.phi)
    assert found.values("carrier").tolist() == [record["carrier"] for record in records]
    for i in (0, 7):
        one = explain(example.model, records[i])
        assert_array_equal(one.phi, expected.phi[i : i + 1])
        assert [step.value for step in one.waterfall(0).steps] == [step.value for step in explain(example.model, frame[i : i + 1]).waterfall(0).steps]
    assert_array_equal(explain(example.model, tuple(records)).phi, expected.phi)
    backwards = [dict(reversed(record.items())) for record in records]
    assert_array_equal(explain(example.model, [*records[:20], *backwards[20:]]).phi, expected.phi)


def test_records_are_taken_wherever_rows_are(example):
    """A background, and what ranks."""
    frame = example.frame[FEATURES][:12]
    records = _records(frame)
    asked = {
        "background": lambda rows: attribute(example.model, frame, background=rows).phi,
        "curves": lambda rows: curves(example.model, rows, 0.0).insertion,
        "gradient": lambda rows: gradient(example.model, rows).phi,
        "gap": lambda rows: prediction_gap(example.model, rows, scale=1.0),
        "ranks": lambda rows: rank_by_gap(example.model, rows, scale=1.0),
        "labels": lambda rows: attribute(example.model, rows, "r2", label=np.arange(12.0)).phi,
    }
    for call in asked.values():
        assert_array_equal(call(records), call(frame))


def test_numbers_of_any_kind_are_values():
    """And texts, and none; a dict of columns stays one."""
    row = {"a": 1, "b": 2.5, "c": None, "d": "x", "e": np.float32(3), "f": Decimal(4), "g": True, 5: pd.Timestamp("2026-11-27")}
    assert as_columns(row, "rows") == {str(name): [value] for name, value in row.items()}
    for columns in ({"a": [1, 2]}, {"a": [1], "b": 2}, {}, [], [[1.0]], np.zeros(3), 1.5):
        assert as_columns(columns, "rows") is columns


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda frame: frame.to_numpy()[0], f"have shape (4,), {SHAPE}; array[None] makes a matrix of one row"),
        (lambda frame: np.zeros(7), f"have shape (7,), {SHAPE}; is it the label?"),
        (
            lambda frame: pd.Series(np.zeros(1234), name="delay"),
            "are a Series of 1,234 values without any of the model's features, expected a data frame, or a row of one; is it the label?",
        ),
        (lambda frame: polars.Series("delay", [1.0]), f"are a Series, {OTHERWISE}"),
        (lambda frame: pa.array([1.0]), f"are a DoubleArray, {OTHERWISE}"),
        (lambda frame: frame.to_numpy().tolist(), f"are a list, {OTHERWISE}"),
        (lambda frame: 1.5, f"are a float, {OTHERWISE}"),
        (lambda frame: polars.from_pandas(frame).lazy(), "are a LazyFrame, which is not read yet, expected rows in memory: frame.collect()"),
        (
            lambda frame: Path("flights.parquet"),
            "are 'flights.parquet', a path, expected rows in memory: pandas.read_parquet('flights.parquet'); leafledger.explain reads files itself",
        ),
        (lambda frame: [{"delay": 1.0}, {"delay": 2.0, "month": 3}], f": record 1 has 'month' and record 0 has not, {NONE}"),
        (lambda frame: [{"delay": 1.0, "month": 3}, {"delay": 2.0}], f": record 0 has 'month' and record 1 has not, {NONE}"),
        (
            lambda frame: dict(zip(FEATURES, ([1.0], 2.0, ["UA"], [3]), strict=True)),
            ": column 'delay' is a float, expected a list or an array of values",
        ),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_is_no_rows_says_what_to_write(example, make, line):
    """In its whole line, of rows and of a background, without a library's warning."""
    frame = example.frame[FEATURES][:3].assign(carrier=0.0)
    for call, where in (
        (lambda rows: attribute(example.model, rows), "rows"),
        (lambda rows: prepare(example.model)(rows), "rows"),
        (lambda rows: attribute(example.model, example.frame[FEATURES][:3], background=rows), "rows of the background"),
    ):
        with pytest.raises(SchemaMismatch) as refusal:
            call(make(frame))
        assert str(refusal.value) == where + (line if line[0] == ":" else f" {line}")


def test_a_row_of_a_frame_is_no_label(example):
    """It knows the features by their names, however many other columns it has."""
    row = example.frame.iloc[0]
    assert len(row) > len(FEATURES)
    assert_array_equal(attribute(example.model, row).phi, attribute(example.model, example.frame[FEATURES][:1]).phi)
