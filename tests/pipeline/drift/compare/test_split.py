"""The change of the mean margin is shared out exactly, and means that do not add up are refused."""

import dataclasses
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from leafledger import explain
from leafledger.pipeline.drift.compare.split import split_change, take_night
from leafledger.pipeline.drift.measure.means import Means, find_means
from leafledger.pipeline.drift.measure.measured_run import measure_run
from leafledger.pipeline.errors import InvalidRun
from tests.pipeline.conftest import train, write_data


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


@pytest.mark.parametrize("output", ["predicted", "other:3"])
def test_base_values_of_the_rows_are_not_known_of_summaries(frames, tmp_path, output):
    """Those of the outputs that rows were explained for are none: a change of 0 would say that they stayed."""
    train(frames[0], objective="multiclass", num_class=3).save_model(tmp_path / "model.txt")
    data = write_data(frames[0], tmp_path / "data")
    explain(tmp_path / "model.txt", data, tmp_path / "run", global_only=True, output=output, scheduler="serial")
    found = measure_run(tmp_path / "run")
    (name,) = found.plan.written_outputs
    night = take_night(found, find_means(found, name), name)
    assert np.isnan([night.base, night.total.mean]).all()
    split = split_change(name, night, night, True, 1.0)
    assert (split.base, split.features, split.rounding) == (None, None, None)


def test_no_rows_have_no_split():
    """Nothing is known of their means."""
    from leafledger.pipeline.drift.compare.split import Night

    nothing = Night(Means(0, math.nan, math.nan, math.nan, math.nan), 1.0, {}, 0.0)
    assert split_change("0", nothing, nothing, True, 1.0).features is None
