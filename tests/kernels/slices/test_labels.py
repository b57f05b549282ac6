"""Labels before any is read, and how many groups of rows are worth a table."""

import pytest

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.slices.labels import check_groups, no_labels


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
