"""What comes of a part is that of its rows, and merges in any order."""

from functools import reduce

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from leafledger import read_run
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.report.counts.count_part import CountTask, PartCounts, Spot, count_part, find_spots, merge_parts, nothing, warm
from leafledger.pipeline.report.counts.counts import CountedColumn, lay_edges
from leafledger.pipeline.runs.records.current_run import list_parts

COLUMNS = (CountedColumn("phi_delay", (-20.0, 20.0), lay_edges((-30.0, 30.0), (-90.0, 90.0)), None),)


def test_parts_are_counted_and_merged_in_any_order(reported):
    run = read_run(reported)
    table = run.attributions()
    margin = table["margin"].to_numpy().astype(float)
    asked = CountTask(str(reported), run.manifest.plan, COLUMNS, "margin", float(np.median(margin)), "")
    parts = [count_part(asked, part) for part in list_parts(run.uri, run.manifest, run.plan)]
    total, other = (reduce(merge_parts, order, nothing(COLUMNS)) for order in (parts, parts[::-1]))
    assert_array_equal(total.counts[0].own, other.counts[0].own)
    assert_array_equal(total.counts[0].sums, other.counts[0].sums)
    assert float(total.counts[0].sums[0]) == pytest.approx(table["phi_delay"].to_numpy().sum(dtype=float))
    assert total.spots == other.spots
    assert total.counts[0].own.sum() == table.num_rows
    starts = np.cumsum([0, *(item.n_rows for item in run.plan.items)])
    assert total.spots[3] is None
    rows = [int(starts[spot.part] + spot.row) for spot in total.spots[:3]]
    assert margin[rows[0]] == margin.max()
    assert margin[rows[1]] == margin.min()
    assert abs(margin[rows[2]] - np.median(margin)) == np.abs(margin - np.median(margin)).min()


def test_rows_without_a_finite_margin_are_not_found():
    none = np.full(4, np.nan)
    assert find_spots(np.array([np.nan, np.inf, -np.inf]), none[:3], 0.0, 0, 0) == (None,) * 4
    assert find_spots(np.zeros(0), none[:0], 0.0, 0, 0) == (None,) * 4
    *rows, missed = find_spots(np.array([np.nan, 3.0, 1.0, 2.0]), none, 2.1, 0, 10)
    assert [spot.row for spot in rows] == [11, 12, 13]
    assert missed is None


def test_the_largest_residual_is_that_of_the_label_farthest_off_on_either_side():
    totals = np.array([0.0, 1.0, 2.0, 3.0])
    assert find_spots(totals, np.array([1.0, -4.0, np.nan, 9.0]), 0.0, 3, 10)[3] == Spot(-6.0, 3, 13)
    assert find_spots(totals, np.array([1.0, -5.0, np.nan, 9.0]), 0.0, 3, 10)[3] == Spot(-6.0, 3, 11)


def test_rows_of_several_parts_are_found_as_of_one():
    """Whichever part comes first: the highest, the lowest, the middle one and the one farthest from its label."""
    rng = np.random.default_rng(3)
    totals, labels = rng.normal(size=40), rng.normal(size=40)
    whole = find_spots(totals, labels, 0.1, 0, 0)
    for cut in range(41):
        halves = find_spots(totals[:cut], labels[:cut], 0.1, 0, 0), find_spots(totals[cut:], labels[cut:], 0.1, 0, cut)
        pair = [PartCounts((), spots) for spots in halves]
        assert merge_parts(*pair).spots == merge_parts(*pair[::-1]).spots == whole
    highest, lowest, middle, missed = (totals[spot.row] for spot in whole)
    assert (highest, lowest) == (totals.max(), totals.min())
    assert abs(middle - 0.1) == np.abs(totals - 0.1).min()
    assert missed == totals[np.abs(totals - labels).argmax()]


def test_a_part_without_a_column_is_refused(reported):
    run = read_run(reported)
    asked = CountTask(str(reported), run.manifest.plan, COLUMNS, "no margin", 0.0, "")
    warm(asked)
    with pytest.raises(InvalidRun, match="has no column 'no margin'"):
        count_part(asked, list_parts(run.uri, run.manifest, run.plan)[0])
