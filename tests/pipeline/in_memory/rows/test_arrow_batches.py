"""Frames of plain numbers are read without Arrow only where it makes no difference."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost

from leafledger import load_ensemble
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.in_memory.rows import arrow_batches as batches
from leafledger.pipeline.in_memory.rows.arrow_batches import read_rows
from leafledger.pipeline.methods.tables import prepare_model

FRAME = pd.DataFrame(np.arange(40.0).reshape(10, 4) % 7, columns=list("abcd"))


@pytest.fixture(scope="module")
def numeric():
    """A model that compares float32, and how it bins."""
    model = load_ensemble(xgboost.train({"max_depth": 3, "nthread": 1}, xgboost.DMatrix(FRAME, FRAME["a"] * FRAME["b"]), 4))
    return model, prepare_model(model, METHODS["shapley"], {}, ()).bins


def values(model, bins, rows):
    n, fill = read_rows(model, rows, bins)
    out = np.full((bins.column.size, n + 3), 5.0)
    fill(0, n, out)
    return out


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8", "uint8", "bool", "Int32", "Float64"])
def test_values_are_those_of_arrow(numeric, dtype):
    """Whatever the types of a frame's columns, beside further columns, and zeros behind the last row."""
    frame = FRAME[list("dcba")].astype({"a": dtype}).assign(more=1.5)
    np.testing.assert_array_equal(values(*numeric, frame), values(*numeric, pa.table(frame)))
    np.testing.assert_array_equal(values(*numeric, frame)[:, -3:], 0.0)


def test_numbers_go_without_arrow(numeric, monkeypatch):
    """But not those that a float64 would round before a float32 does."""
    expected = values(*numeric, pa.table(FRAME))
    large = FRAME.astype("int64").assign(a=2**60 + 2**36 + 1)
    rounded = values(*numeric, pa.table(large))
    np.testing.assert_array_equal(values(*numeric, large), rounded)
    monkeypatch.setattr(batches, "as_batch", None)
    np.testing.assert_array_equal(values(*numeric, FRAME), expected)
    with pytest.raises(TypeError):
        values(*numeric, large)


@pytest.mark.parametrize("index", [[1, "a"] * 5, [(1, "a"), ("b", 2)] * 5, [1 + 2j] * 10])
def test_an_index_is_no_matter(numeric, monkeypatch, index):
    """Of as many rows as go through Arrow, which cannot read every one."""
    monkeypatch.setattr(batches, "FEW", 1)
    odd = FRAME.set_axis(pd.Index(index, dtype=object, tupleize_cols=False))
    np.testing.assert_array_equal(values(*numeric, odd), values(*numeric, pa.table(FRAME)))
