"""Values of columns of every type, and steps that are multiples of what a column holds."""

import decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.tree import DecisionTreeRegressor

import leafledger
from leafledger.pipeline.changes.values import Column, describe_column


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.int8(), Column(Fraction(1), np.float64, -128.0, 127.0, int)),
        (pa.dictionary(pa.int8(), pa.uint8()), Column(Fraction(1), np.float64, 0.0, 255.0, int)),
        (pa.bool_(), Column(Fraction(1), np.float64, 0.0, 1.0, bool)),
        (pa.decimal128(5, 2), Column(Fraction(1, 100), np.float64, -1000.0, 1000.0)),
        (pa.decimal128(5, -2), Column(Fraction(100), np.float64, -1e7, 1e7)),
        (pa.float16(), Column(dtype=np.float16)),
        (pa.float64(), Column()),
        (pa.null(), Column()),
    ],
)
def test_columns(kind, expected):
    """What fits in, and how Python has it."""
    assert describe_column(kind) == expected


@pytest.mark.parametrize(
    ("kind", "step", "expected"),
    [
        (pa.int64(), None, 11),
        (pa.int64(), 0.5, 11),
        (pa.int64(), 2.5, 15),
        (pa.int64(), 4, 12),
        (pa.decimal128(6, 1), None, 10.6),
        (pa.decimal128(6, 1), 0.25, 11.0),
        (pa.float64(), 0.1, 10.6),
        (pa.float64(), None, 10.500000953674316),
        (pa.float32(), None, 10.500001),
        (pa.float16(), None, 10.5078125),
        (pa.float16(), 0.1, 10.6),
    ],
)
def test_the_first_number_beyond_the_threshold_that_the_column_holds(kind, step, expected):
    """One threshold at 10.5, which scikit-learn compares in single precision: told as short as single precision tells it."""
    tree = DecisionTreeRegressor().fit(pd.DataFrame({"x": [10.0, 11.0]}), [0.0, 1.0])
    values = [decimal.Decimal(3)] if pa.types.is_decimal(kind) else np.array([3.0]) if kind != pa.int64() else [3]
    rows = pa.table({"x": pa.array(values).cast(kind) if not pa.types.is_decimal(kind) else pa.array(values, kind)})
    found = leafledger.nearest_changes(tree, rows, threshold=0.5, features={0: {"step": step}})
    assert found.at(0, 0) == pytest.approx(expected, rel=1e-7 if kind == pa.float64() else 0)
    assert found.prediction[0] == 0
    assert found.changed[0, 0] == 1


def test_numbers_that_stand_for_missing_values_are_never_told():
    """A threshold at -999.5 with -999 for missing: the next one is."""
    import xgboost

    rows = pd.DataFrame({"x": [-1000.0, -1000.0, -998.0, -998.0] * 20})
    model = xgboost.XGBRegressor(n_estimators=1, missing=-999.0, max_depth=1, learning_rate=1.0, min_child_weight=0).fit(rows, rows["x"])
    ensemble = leafledger.load_ensemble(model)
    (threshold,) = ensemble.ensemble.threshold[ensemble.ensemble.feature == 0]
    assert -1000 < threshold < -998
    found = leafledger.nearest_changes(model, rows[:1], threshold=-999.0, features={"x": {"step": 1}})
    assert found.at(0, "x") == -998
    assert found.at(0, 0) == -998


def test_codes_of_categories_are_whole_numbers():
    """A matrix has codes in the place of categories; others than the model has are refused."""
    import lightgbm

    rows = np.repeat(np.arange(4.0), 50)[:, None]
    label = np.isin(rows[:, 0], (1, 3)).astype(float)
    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, cat_smooth=1, min_data_per_group=1).fit(rows, label, categorical_feature=[0])
    found = leafledger.nearest_changes(model, rows[::50], threshold=0.5)
    assert [found.at(i, 0) for i in range(4)] == [1, 0, 1, 0]
    found = leafledger.nearest_changes(model, rows[::50], threshold=0.5, features={0: {"to": [3, 2]}})
    assert [found.at(i, 0) for i in range(4)] == [3, 2, 3, 2]
    for to, message in (
        ({"to": [9]}, "to has code 9, expected one below 4"),
        ({"to": [0.5]}, "to has 0.5, expected a code"),
        ({"to": "a"}, "to has 'a'"),
    ):
        with pytest.raises(leafledger.UsageError, match=message):
            leafledger.nearest_changes(model, rows[::50], threshold=0.5, features={0: to})
