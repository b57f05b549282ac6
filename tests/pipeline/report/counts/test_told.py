"""Reasons are counted as they stand in the rows, part by part."""

import pyarrow as pa
import pytest

from leafledger.pipeline.report.counts.told import Told, count_told

ROWS = [
    [{"rank": 1, "code": "R1", "feature": "a"}, {"rank": 2, "code": None, "feature": "b"}],
    [],
    [{"rank": 1, "code": "R2", "feature": "a"}],
    [{"rank": 1, "code": "R1", "feature": "a"}],
]
WITHHELD, CLEAR = [True, False, True, False], [True, None, False, True]


def count(rows, clear=True):
    kind = pa.list_(pa.struct([("rank", pa.int32()), ("code", pa.string()), ("feature", pa.string())]))
    columns = (pa.chunked_array([[each[k] for k in rows]], kind) for each, kind in ((ROWS, kind), (WITHHELD, pa.bool_()), (CLEAR, pa.bool_())))
    reasons, withheld, sure = columns
    return count_told(reasons, withheld, sure if clear else None)


def test_first_reasons_and_all_are_counted_by_code_and_feature():
    found = count(range(4))
    assert (found.rows, found.without, found.withheld, found.unclear) == (4, 1, 2, 1)
    assert found.first == {("R1", "a"): 2, ("R2", "a"): 1}
    assert found.any == {("R1", "a"): 2, ("R2", "a"): 1, ("", "b"): 1}
    assert count(range(4), clear=False).unclear == 0


@pytest.mark.parametrize("cut", range(5))
def test_parts_add_up(cut):
    assert count(range(cut)) + count(range(cut, 4)) + Told() == count(range(4))
