"""Labels and weights: numbers for every row, or a column; nothing else."""

import numpy as np
import pandas as pd
import pytest

from leafledger.kernels.methods import METHODS
from leafledger.pipeline.errors import InvalidLabel, SchemaMismatch, UsageError
from leafledger.pipeline.in_memory.rows.labels import read_targets

ROWS = pd.DataFrame({"a": [1.0, np.nan], "b": [2, 3]})


@pytest.mark.parametrize(
    ("column", "error", "says"),
    [
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), SchemaMismatch, r"rows: column 'y' is timestamp\[us\], expected numbers"),
        (["1.5", "2.5"], SchemaMismatch, "rows: column 'y' is (large_)?string, expected numbers"),
        (np.array([1 + 2j, 3]), UsageError, "label is 'y', a column that Arrow cannot read: "),
    ],
)
def test_columns_of_other_things_are_refused(column, error, says):
    """As a run refuses them."""
    with pytest.raises(error, match=f"^{says}"):
        read_targets(METHODS["r2"], None, "y", None, ROWS.assign(y=column), 2)


def test_they_are_numbers_or_columns():
    """A label may be missing; a row weighs 1 if nothing else is said."""
    for label in ("a", ROWS["a"], [1.0, np.nan]):
        labels, weights = read_targets(METHODS["r2"], None, label, None, ROWS, 2)
        np.testing.assert_array_equal(labels, [1.0, np.nan])
        np.testing.assert_array_equal(weights, [1.0, 1.0])
    np.testing.assert_array_equal(read_targets(METHODS["r2"], None, "a", "b", ROWS, 2)[1], [2.0, 3.0])
    assert read_targets(METHODS["shapley"], None, None, None, ROWS, 2) is None


@pytest.mark.parametrize(
    ("label", "weight", "error", "says"),
    [
        (None, None, UsageError, "method 'r2' needs labels; give them as label$"),
        (["low", "high"], None, UsageError, "label has 'low', expected numbers, or the name of a column; two classes are 0 and 1"),
        (np.array(["low", "high"]), None, UsageError, "label has 'low', expected numbers, or the name of a column; two classes are 0 and 1"),
        ("c", None, UsageError, "label is 'c', which is no column of the rows"),
        ([1.0], None, UsageError, r"label has shape \(1,\), expected one number for each of 2 rows"),
        ("a", [1.0, -1.0], InvalidLabel, "the weight is -1.0"),
    ],
)
def test_others_are_refused(label, weight, error, says):
    """In one line."""
    with pytest.raises(error, match=says):
        read_targets(METHODS["r2"], None, label, weight, ROWS, 2)


@pytest.mark.parametrize("name", ["label", "weight"])
def test_series_of_another_order_are_refused(name):
    """Numbers are taken as they stand, so that labels of rows which were shuffled would be those of others; other labels say nothing."""
    rows, numbers = ROWS.set_axis([7, 9]), {"label": [1.0, 2.0], "weight": [3.0, 4.0]}

    def read(given):
        asked = numbers | {name: given}
        return read_targets(METHODS["r2"], None, asked["label"], asked["weight"], rows, 2)

    for index in ([7, 9], [0, 1], [7, 7], [9, 8]):
        for given in (pd.Series(numbers[name], index), pd.Series(numbers[name], index).to_numpy()):
            np.testing.assert_array_equal(read(given), [numbers["label"], numbers["weight"]])
    with pytest.raises(UsageError, match=f"^{name} is a Series with the labels of the rows in another order, expected the same order, or an array$"):
        read(pd.Series(numbers[name], [9, 7]))
