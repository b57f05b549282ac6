"""Means from columns are those from the summary, but for the rounding of what is stored."""

import dataclasses
import math

import pytest
from numpy.testing import assert_allclose

from leafledger.pipeline.drift.measure import means
from leafledger.pipeline.drift.measure.means import find_means, nothing, read_summary
from leafledger.pipeline.drift.measure.measured_run import measure_run
from leafledger.pipeline.errors import InvalidRun


def test_means_of_columns_and_of_the_summary_are_the_same(nights):
    """With their standard errors, of phi and of its magnitude."""
    found = measure_run(nights[0])
    one, other = find_means(found, "0"), find_means(dataclasses.replace(found, columns=(), found=()), "0")
    assert list(one) == list(other)
    for player in one:
        assert_allclose(dataclasses.astuple(one[player]), dataclasses.astuple(other[player]), rtol=1e-4, atol=1e-6)
    assert nothing(3).rows == 3


def test_one_row_has_no_errors():
    """Nor does a column that is constant have a negative one."""
    row = {"mean": 2.0, "mean_abs": 2.0, "std": 0.0}
    assert math.isnan(means._from_row(row, 1).error)
    assert means._from_row(row | {"mean_abs": 2.0000001}, 5).error_abs == 0.0


def test_a_summary_that_was_changed_is_refused(nights):
    """And one that is not there is none."""
    found = measure_run(nights[0])
    assert read_summary(found.uri, found.manifest, "nothing") is None
    entries = tuple({**entry, "sha256": "0" * 64} for entry in found.manifest.summaries)
    with pytest.raises(InvalidRun, match=r"importance\.parquet: its SHA-256"):
        read_summary(found.uri, dataclasses.replace(found.manifest, summaries=entries), "importance")
