"""Iterations are a number of the first, or from one to another."""

import numpy as np
import pytest

from leafledger.pipeline.arguments.iterations import read_iterations
from leafledger.pipeline.errors import UsageError


@pytest.mark.parametrize(("given", "read"), [(3, (0, 3)), (np.int64(3), (0, 3)), ("3", (0, 3)), ("2:5", (2, 5)), ((2, 5), (2, 5)), ([2, 5], (2, 5))])
def test_numbers_and_ranges_are_read(given, read):
    """As texts and as numbers."""
    assert read_iterations("trees", given) == read


@pytest.mark.parametrize("given", [0, -1, "x", "", ":5", "1:2:3", "5:5", "-1:3", 2.5, True, [1, "a"], (4,), (), {"a": 1}, np.zeros(3), None])
def test_anything_else_is_refused(given):
    """In one line."""
    with pytest.raises(UsageError, match=r"^trees is .*, expected a number of iterations, at least one, or start:stop$"):
        read_iterations("trees", given)
