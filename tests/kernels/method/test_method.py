"""The record of a method: which check applies, and refusals of statistics that no rows have."""

from typing import NamedTuple

import numpy as np
import pytest

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.method.method import refuse_arrays, refuse_other, refuse_unless
from leafledger.kernels.methods import METHODS


def test_a_check_applies_with_some_parameters():
    """Owen values add up with Shapley values at both levels alone; Banzhaf values never do, Shapley values always."""
    owen = METHODS["owen"]
    assert owen.check_of({"across": "shapley", "within": "shapley"}) is owen.check
    assert owen.check_of({"across": "shapley", "within": "banzhaf"}) is None
    assert METHODS["banzhaf"].check_of({"p": 0.5}) is None
    assert METHODS["shapley"].check_of({}) is not None


def test_methods_with_values_attribute():
    """Neither ranks nor shares of an error do."""
    assert {name for name, method in METHODS.items() if not method.attributes} == {"r2", "curves", "gap", "gap_greedy"}


class Statistics(NamedTuple):
    counts: np.ndarray


def test_statistics_of_no_rows_are_refused():
    """Of another kind, of other types or shapes, or against a condition; those that fit are let pass."""
    fits = Statistics(np.zeros((2, 3), np.int64))
    refuse_arrays(fits, {"counts": (np.int64, (2, -1))})
    refuse_unless(fits.counts == 0, "zeros")
    refuse_other(fits, fits, (Statistics, tuple))
    for kind, shape, says in ((np.float64, (2, 3), "counts of float64"), (np.int64, (3, -1), r"counts of shape \(3, -1\)")):
        with pytest.raises(InvalidParameters, match=says):
            refuse_arrays(fits, {"counts": (kind, shape)})
    with pytest.raises(InvalidParameters, match="those of no rows, expected ones"):
        refuse_unless(fits.counts == 1, "ones")
    with pytest.raises(InvalidParameters, match="is known as Statistics, the method expects int"):
        refuse_other(fits, fits, (Statistics, int))
