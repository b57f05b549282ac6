"""What comes of a part is that of its rows, and merges in any order."""

from functools import reduce

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from leafledger import read_run
from pipeline.errors import InvalidRun
from pipeline.report.counting import Counted
from pipeline.report.part import Asked, count_part, find_spots, merge_parts, nothing, warm

COLUMNS = (Counted("phi_delay", (-20.0, 20.0), (-30.0, 30.0), None),)


def test_parts_are_counted_and_merged_in_any_order(reported):
    run = read_run(reported)
    table = run.attributions()
    margin = table["margin"].to_numpy().astype(float)
    asked = Asked(str(reported), run.manifest.plan, COLUMNS, "margin", float(np.median(margin)))
    parts = [count_part(asked, item) for item in run.plan.items]
    total, other = (reduce(merge_parts, order, nothing(COLUMNS)) for order in (parts, parts[::-1]))
    assert_array_equal(total.counts[0].own, other.counts[0].own)
    assert total.spots == other.spots
    assert total.counts[0].own.sum() == table.num_rows
    starts = np.cumsum([0, *(item.n_rows for item in run.plan.items)])
    rows = [int(starts[spot.part] + spot.row) for spot in total.spots]
    assert margin[rows[0]] == margin.max()
    assert margin[rows[1]] == margin.min()
    assert abs(margin[rows[2]] - np.median(margin)) == np.abs(margin - np.median(margin)).min()


def test_rows_without_a_finite_margin_are_not_found():
    assert find_spots(np.array([np.nan, np.inf, -np.inf]), 0.0, 0, 0) == (None, None, None)
    assert find_spots(np.zeros(0), 0.0, 0, 0) == (None, None, None)
    assert [spot.row for spot in find_spots(np.array([np.nan, 3.0, 1.0, 2.0]), 2.1, 0, 10)] == [11, 12, 13]


def test_a_part_without_a_column_is_refused(reported):
    run = read_run(reported)
    asked = Asked(str(reported), run.manifest.plan, COLUMNS, "no margin", 0.0)
    warm(asked)
    with pytest.raises(InvalidRun, match="has no column 'no margin'"):
        count_part(asked, run.plan.items[0])
