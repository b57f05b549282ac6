"""Rows in memory mean one thing, or are refused in one line: matrices, frames, and a single row."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from leafledger import attribute
from pipeline.errors import SchemaMismatch
from pipeline.in_memory.rows import as_rows
from tests.pipeline.conftest import FEATURES

NUMBERS = np.array([[1.0, 2.0, 0.0, 3.0], [4.0, 5.0, 1.0, 2.0]])  # in the model's order, the third a code


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (NUMBERS.astype(str), "rows are an array of <U32, expected numbers"),
        (NUMBERS.astype("S"), "rows are an array of |S32, expected numbers"),
        (NUMBERS.astype(complex), "rows are an array of complex128, expected numbers"),
        (NUMBERS.astype("M8[s]"), "rows are an array of datetime64[s], expected numbers"),
        (NUMBERS.astype(str).astype(object), "rows are an array of other things than numbers"),
        (NUMBERS.astype(np.complex64).astype(object), "rows are an array of other things than numbers"),
        (np.ma.masked_array(NUMBERS, NUMBERS > 3), "rows are a masked array, expected NaN where a value is missing"),
        (NUMBERS[0], "rows have shape (4,), the model was trained on 4 features"),
        (
            pd.DataFrame(NUMBERS, columns=pd.MultiIndex.from_product([["a", "b"], ["c", "d"]])),
            "rows have columns of 2 levels, expected one name for each",
        ),
        (pd.Series(NUMBERS[0]), "rows: columns 'distance', 'delay', 'carrier', 'month' missing"),
    ],
)
def test_what_could_mean_something_else_is_refused(example, rows, says):
    """In one line."""
    with pytest.raises(SchemaMismatch) as refusal:
        attribute(example.model, rows)
    assert str(refusal.value).startswith(says)
    assert "\n" not in str(refusal.value)


def test_numbers_of_any_kind_are_taken(example):
    """By their values; None is missing."""
    expected = attribute(example.model, NUMBERS)
    for same in (
        NUMBERS.astype(np.float16),
        NUMBERS.astype(np.int8),
        NUMBERS.astype(object),
        NUMBERS.view(np.matrix),
        np.vectorize(Decimal)(NUMBERS),
    ):
        np.testing.assert_array_equal(attribute(example.model, same).phi, expected.phi)
    missing = NUMBERS.astype(object)
    missing[0, 1] = None
    np.testing.assert_array_equal(attribute(example.model, missing).phi, attribute(example.model, missing.astype(float)).phi)


@pytest.mark.parametrize("i", [0, 1, 17, 2999])
def test_one_row_is_a_series(example, i):
    """As pandas takes it out of a frame, with texts and missing values: its values are those of the row in the frame, and LightGBM's own."""
    row = example.frame.iloc[i]
    found = attribute(example.model, row)
    np.testing.assert_array_equal(found.phi, attribute(example.model, example.frame.iloc[[i]]).phi)
    one = example.frame.iloc[[i]][FEATURES]
    one = one.assign(carrier=pd.Categorical(one["carrier"], ["AA", "B6", "DL", "UA"]))
    np.testing.assert_allclose(found.margin[:, 0], example.booster.predict(one), rtol=1e-12)


def test_other_rows_are_left_as_they_are(example):
    """Whoever reads them refuses them, or not."""
    for rows in (example.frame, "x", None, [1, 2]):
        assert as_rows(rows) is rows
