"""Counts of attributions in memory are those of their rows, by the bins of a report."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from leafledger import attribute
from leafledger.pipeline.plots.material import count_player, find_ends, is_number, read_values, share_axis
from leafledger.pipeline.report.counts.counts import BELOW, MISSING
from tests.pipeline.plots.models import FRAME, MODEL, N


@cache
def explained():
    """Made by the first test: every process of pytest's imports this."""
    return attribute(MODEL, FRAME)


def test_numbers_categories_and_missing_values_are_read():
    """Numbers as float64, texts with None; of a group nothing."""
    assert_array_equal(read_values(explained(), "age"), FRAME["age"])
    sites = read_values(explained(), "site")
    assert [None if value is None else str(value) for value in sites] == [None if pd.isna(value) else value for value in FRAME["site"]]
    assert is_number(read_values(explained(), "rooms"))
    assert not is_number(sites)
    assert read_values(attribute(MODEL, FRAME, partition={"both": ["age", "site"]}), "both") is None


def test_dates_are_texts():
    found = attribute(MODEL, FRAME.assign(when=pd.Timestamp("2026-11-28")))
    object.__setattr__(found, "features", (*found.features, "when"))
    assert read_values(found, "when")[0].startswith("2026-11-28")


@pytest.mark.parametrize("name", FRAME.columns)
def test_every_row_is_counted_once(name):
    """With the sum of its attributions; rows without a value in the first bin."""
    asked, counts = count_player(explained(), name, 0, share_axis(explained(), 0))
    phi = explained()[name]
    assert counts.swarm.sum() == counts.own.sum() == N
    assert float(sum(counts.sums)) == pytest.approx(phi.sum())
    assert counts.own[MISSING].sum() == (pd.isna(FRAME[name]).sum() if asked.values is not None else N)


def test_categories_come_by_frequency_and_few_numbers_one_by_one():
    site = count_player(explained(), "site", 0, (-1, 1))[0].values
    assert site.categories == ("Oslo", "Rome", "Bern")
    rooms, counts = count_player(explained(), "rooms", 0, (-1, 1))
    assert rooms.values.points == (1.0, 2.0, 3.0, 4.0)
    assert counts.own[BELOW + 1 : BELOW + 5].sum(axis=1).tolist() == FRAME["rooms"].value_counts().sort_index().tolist()
    assert not count_player(explained(), "age", 0, (-1, 1))[0].values.points


def test_what_has_no_values_says_why():
    grouped = attribute(MODEL, FRAME, partition={"both": ["age", "site"]})
    assert count_player(grouped, "both", 0, (-1, 1))[0].lacking == "a group of several features has no value of its own"
    nothing = attribute(MODEL, FRAME.assign(age=np.nan))
    assert count_player(nothing, "age", 0, (-1, 1))[0].lacking == "all values are missing"
    object.__setattr__(grouped, "rows", None)
    assert count_player(grouped, "both", 0, (-1, 1))[0].lacking == "values are not kept beside these attributions"


def test_an_axis_leaves_out_few():
    numbers = np.arange(1001.0)
    assert find_ends(numbers, 0.01) == (10.0, 990.0)
    assert find_ends(np.r_[np.zeros(99), 5.0], 0.02) == (0.0, 5.0)
    assert find_ends(np.array([np.nan]), 0.01) == (0.0, 1.0)
