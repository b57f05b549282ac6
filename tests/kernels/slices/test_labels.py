"""Labels before any is read, and how many groups of rows are worth a table."""

import numpy as np
import pytest

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.slices.labels import Labels, check_groups, no_labels, take_labels


def test_rows_without_labels_do_not_count():
    """Their weight is 0, and nothing of them is shared between buffers."""
    labels = no_labels(3)
    assert labels.weight.tolist() == [0.0] * 3
    labels.label[:] = 1.0
    assert labels.weight.tolist() == labels.residual.tolist() == no_labels(3).label.tolist()


def test_more_groups_than_a_table_is_worth_are_refused():
    """As many values as there may be pass, one group more does not; the message names the columns."""
    check_groups(("month", "carrier"), 32_768, 4)
    with pytest.raises(InvalidParameters, match="'month', 'carrier' make 32769 groups of 4 values each, expected at most 131072 values in all"):
        check_groups(("month", "carrier"), 32_769, 4)


def test_labels_of_some_rows_are_as_if_these_had_been_read_alone():
    """Groups that they are not of are left out, and the others numbered anew."""
    numbers, names = np.arange(5.0), np.array(["a", "b", "c"])
    labels = Labels(numbers, numbers + 1, numbers > 2, np.array([0, 2, 1, 2, 1]), names, numbers + 2, numbers + 3)
    found = take_labels(labels, 1, 4)
    assert names[labels.group[1:4]].tolist() == found.names[found.group].tolist() == ["c", "b", "c"]
    assert found.names.tolist() == ["b", "c"]
    assert take_labels(labels, 3, 4).names.tolist() == ["c"]
    for name in ("label", "weight", "missing", "residual", "remainder"):
        assert getattr(found, name).tolist() == getattr(labels, name)[1:4].tolist()
    assert take_labels(no_labels(5), 1, 4).names.tolist() == [""]
