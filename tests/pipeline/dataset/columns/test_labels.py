"""Labels and weights as kernels take them, and what cannot be shared out refused with its row."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from leafledger.pipeline.dataset.columns.labels import COUNT, LARGEST_LABEL, LARGEST_WEIGHT, REFUSE, LabelColumns, read_labels
from leafledger.pipeline.dataset.columns.row_places import RowPlaces
from leafledger.pipeline.errors import InvalidLabel

NUMBERS = st.none() | st.floats(-1e6, 1e6)
WEIGHTS = st.floats(0, 1e6)


@given(rows=st.lists(st.tuples(NUMBERS, WEIGHTS), max_size=70))
def test_labels_and_weights_are_those_of_the_rows(rows):
    """A row without a label has no weight; rows that pad the slice count nothing."""
    batch = pa.record_batch({"y": pa.array([y for y, _ in rows], pa.float64()), "w": pa.array([w for _, w in rows], pa.float64())})
    found = read_labels(LabelColumns("y", "w", COUNT), batch, RowPlaces.one("f", 0))
    n = len(rows)
    assert_array_equal(found.missing[:n], [y is None for y, _ in rows])
    assert_array_equal(found.label[:n], [0.0 if y is None else y for y, _ in rows])
    assert_array_equal(found.weight[:n], [0.0 if y is None else w for y, w in rows])
    assert not found.weight[n:].any()
    assert_array_equal(found.group, 0)
    unweighted = read_labels(LabelColumns("y", None, COUNT), batch, RowPlaces.one("f", 0))
    assert_array_equal(unweighted.weight[:n], [float(y is not None) for y, _ in rows])


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
        read_labels(LabelColumns("y", "w", missing), batch, RowPlaces(("e.parquet", "f.parquet"), (0, 501), (0, 1)))
    assert str(raised.value).startswith(f"f.parquet: row 502: {says}")


def test_the_columns_that_are_read_are_named():
    """Label, and weight if there is one."""
    assert LabelColumns("y", "w", COUNT).numbers == ("y", "w")
    assert LabelColumns("y", None, COUNT).numbers == ("y",)
