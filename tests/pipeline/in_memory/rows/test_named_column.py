"""A column by its name, out of whatever holds rows."""

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

from leafledger import UsageError
from leafledger.pipeline.in_memory.rows.named_column import take_column

FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]})


@pytest.mark.parametrize(
    "rows",
    [FRAME, polars.from_pandas(FRAME), pa.table(FRAME), pa.table(FRAME).to_batches()[0], {"a": [1.0, 2.0], "b": ["x", None]}],
    ids=lambda rows: type(rows).__name__,
)
def test_whatever_holds_rows_has_columns(rows):
    """The same values; a name that is none asks for the nearest."""
    assert take_column(rows, "a", "label is").to_pylist() == [1.0, 2.0]
    assert take_column(rows, "b", "label is").to_pylist() == ["x", None]
    with pytest.raises(UsageError) as refusal:
        take_column(rows, "A", "label is")
    assert str(refusal.value) == "label is 'A', which is no column of the rows; did you mean 'a'?"


def test_a_level_of_a_frame_s_index_is_a_column():
    """Unless a column is called so; a name that is neither asks for the nearest of both."""
    rows = FRAME.set_index(pd.MultiIndex.from_tuples([("p1", 5), ("p2", 6)], names=["patient", "a"]))
    assert take_column(rows, "patient", "ids have").to_pylist() == ["p1", "p2"]
    assert take_column(rows, "a", "ids have").to_pylist() == [1.0, 2.0]
    with pytest.raises(UsageError, match=r"which is no column of the rows; did you mean 'patient'\?$"):
        take_column(rows, "pateint", "ids have")
    twice = FRAME.set_index(pd.MultiIndex.from_tuples([("p1", 5), ("p2", 6)], names=["patient", "patient"]))
    with pytest.raises(UsageError, match=r"^label is 'patient', which is the name of 2 levels of the index of the rows, expected one$"):
        take_column(twice, "patient", "label is")


def test_a_matrix_has_no_columns():
    """Nor has what Arrow cannot read any values."""
    with pytest.raises(UsageError) as refusal:
        take_column(np.zeros((2, 2)), "a", "ids have")
    assert str(refusal.value) == "ids have 'a', which is no column of the rows"
    with pytest.raises(UsageError, match=r"^label is 'a', a column that Arrow cannot read: [^\n]+$"):
        take_column({"a": [1.0, "x"]}, "a", "label is")
