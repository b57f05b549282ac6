"""Two nights compared column by column: every output and column once, before tests are corrected."""

import math

from numpy.testing import assert_allclose

from leafledger.pipeline.drift.compare.compared import compare_columns
from leafledger.pipeline.drift.measure.measured_run import measure_run
from tests.pipeline.conftest import FEATURES


def test_every_column_is_compared_once(nights):
    """Margins, attributions and values of features; what the change is made of adds up to it."""
    a, b = map(measure_run, nights)
    splits, shifts = compare_columns(b, a)
    (split,) = splits
    assert_allclose(split.base + split.features + split.rounding, split.change, atol=1e-12)
    kinds = [(shift.kind, shift.feature) for shift in shifts]
    assert len(kinds) == len(set(kinds))
    assert kinds[0] == ("margin", "")
    assert {feature for kind, feature in kinds if kind == "phi"} == {feature for kind, feature in kinds if kind == "value"} == {*FEATURES}
    assert all(math.isnan(shift.corrected) and not shift.drifted and not shift.group for shift in shifts)
