"""The change of a mean split into mix and within: the published formula, parts that add up, and what each of them does alone."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.pipeline.drift.compare.mix import split_mix

NIGHTS = st.dictionaries(st.sampled_from(["[1]", "[2]", "[3]", "[null]"]), st.tuples(st.integers(1, 50), st.floats(-100, 100)), min_size=1)


@given(before=NIGHTS, now=NIGHTS)
def test_mix_and_within_add_up_to_the_change_of_the_mean(before, now):
    """Of all rows by NumPy, also where groups are new or gone; the groups' parts add up to both."""
    names = sorted({*before, *now})
    found = split_mix("y", names, before, now)
    means = [np.average([mean for _, mean in night.values()], weights=[n for n, _ in night.values()]) for night in (before, now)]
    assert_allclose(found.change, means[1] - means[0], atol=1e-10)
    assert_allclose(found.mix + found.within, found.change, atol=1e-10)
    for what in ("mix", "within"):
        assert_allclose(sum(getattr(group, what) for group in found.groups), getattr(found, what), atol=1e-10)
    assert [group.values for group in found.groups] == [(None,) if name == "[null]" else (int(name[1:-1]),) for name in names]
    for name, group in zip(names, found.groups, strict=True):
        if (name in before) != (name in now):
            assert group.within == 0.0
            assert math.isnan(group.mean if name in before else group.reference_mean)


def test_the_published_formula():
    """Kitagawa's: differences of shares by mean rates, and differences of rates by mean shares."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"n0": rng.integers(1, 99, 6), "n1": rng.integers(1, 99, 6), "m0": rng.normal(size=6), "m1": rng.normal(size=6)})
    names = [f"[{g}]" for g in range(6)]
    nights = [dict(zip(names, frame[[n, m]].itertuples(index=False, name=None), strict=True)) for n, m in (("n0", "m0"), ("n1", "m1"))]
    found = split_mix("y", names, *nights)
    w0, w1 = frame["n0"] / frame["n0"].sum(), frame["n1"] / frame["n1"].sum()
    assert_allclose(found.mix, ((w1 - w0) * (frame["m0"] + frame["m1"]) / 2).sum(), atol=1e-14)
    assert_allclose(found.within, ((w0 + w1) / 2 * (frame["m1"] - frame["m0"])).sum(), atol=1e-14)


def test_what_the_mix_alone_does_and_what_groups_alone_do():
    """Rows that move between groups that stay as they are, and groups that change with the rows they had."""
    moved = split_mix("y", ["[1]", "[2]"], {"[1]": (50, 0.0), "[2]": (50, 10.0)}, {"[1]": (10, 0.0), "[2]": (90, 10.0)})
    assert (moved.change, moved.mix, moved.within) == (4.0, 4.0, 0.0)
    assert [group.mix for group in moved.groups] == pytest.approx([0.4 * 7, 0.4 * 3])  # both add: one is below the mean and shrinks
    changed = split_mix("y", ["[1]", "[2]"], {"[1]": (50, 0.0), "[2]": (50, 10.0)}, {"[1]": (5, 2.0), "[2]": (5, 14.0)})
    assert (changed.change, changed.mix, changed.within) == (3.0, 0.0, 3.0)


def test_no_rows_have_no_mix():
    """Of either night."""
    for nights in (({}, {"[1]": (3, 1.0)}), ({"[1]": (3, 1.0)}, {}), ({}, {})):
        found = split_mix("y", ["[1]"], *nights)
        assert math.isnan(found.change)
        assert found.groups == ()
