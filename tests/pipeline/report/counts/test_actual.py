"""Labels and predictions are summed up by cells of predictions, the same in any order of parts."""

import numpy as np
import pandas as pd
import pytest

from leafledger.pipeline.report.counts.actual import Actual, count_actual

RNG = np.random.default_rng(5)
TOTALS, LABELS = RNG.normal(size=(2, 500))
TOTALS[:3], LABELS[3:5] = np.nan, np.nan
EDGES = (-1.0, 0.0, 0.5)


def test_sums_are_those_of_the_rows():
    found = count_actual(EDGES, TOTALS, LABELS)
    rows = pd.DataFrame({"total": TOTALS, "label": LABELS}).dropna()
    groups = rows.groupby(pd.cut(rows["total"], [-np.inf, *EDGES, np.inf], right=False), observed=False)
    assert found.n == tuple(groups.size())
    assert [float(each) for each in found.predicted] == pytest.approx(groups["total"].sum().to_list())
    assert [float(each) for each in found.labels] == pytest.approx(groups["label"].sum().to_list())


def test_parts_add_up_in_any_order():
    parts = [count_actual(EDGES, TOTALS[at::3], LABELS[at::3]) for at in range(3)]
    assert parts[0] + parts[1] + parts[2] == parts[2] + (parts[1] + (parts[0] + Actual()))
    assert sum((parts[0] + parts[1] + parts[2]).n) == 495
