"""The change of the mean margin is shared out exactly, and means that do not add up are refused."""

import dataclasses
import math

import pytest
from numpy.testing import assert_allclose

from pipeline.drift.means import Means, find_means
from pipeline.drift.measured import measure_run
from pipeline.drift.split import split_change, take_night
from pipeline.errors import InvalidRun


def test_parts_add_up_to_the_change(nights):
    """Base value, features, and what rounding leaves, which is next to nothing."""
    pair = [take_night(found, find_means(found, "0"), "0") for found in map(measure_run, nights)]
    split = split_change("0", *pair, True, 1.0)
    assert_allclose(split.base + split.features + split.rounding, split.change, rtol=0, atol=1e-12)
    assert split.base == 0.0
    assert abs(split.rounding) < 1e-6 < abs(split.change)
    assert split_change("0", *pair, False, 1.0).features is None


def test_means_that_do_not_add_up_are_refused(nights):
    """In one line that says by how much; a margin moved by a thousandth is enough."""
    found = measure_run(nights[0])
    phi = find_means(found, "0")
    wrong = {**phi, "delay": dataclasses.replace(phi["delay"], mean=phi["delay"].mean + 1e-3)}
    with pytest.raises(InvalidRun, match=r"mean attributions miss mean margin - base value by -0\.001, expected at most"):
        take_night(found, wrong, "0")


def test_no_rows_have_no_split():
    """Nothing is known of their means."""
    from pipeline.drift.split import Night

    nothing = Night(Means(0, math.nan, math.nan, math.nan, math.nan), 1.0, {}, 0.0)
    assert split_change("0", nothing, nothing, True, 1.0).features is None
