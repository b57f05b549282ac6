"""Statistics are counted as CatBoost's own file lists them."""

import json
from collections import Counter

import catboost

from leafledger.kernels.trees.statistics import NO_STATISTICS
from leafledger.pipeline.in_memory.inspect.inspected_statistics import StatisticsOfKind, inspect_statistics
from leafledger.pipeline.models import load_ensemble
from tests.pipeline.models.catboost.training import SHAPE, counted


def test_statistics_are_counted_by_kind_and_features(tmp_path):
    """Of one feature and of several; bits of numbers count for no feature. Tables have an entry for every key."""
    frame, target = counted()
    given = SHAPE | {"iterations": 30, "depth": 6, "max_ctr_complexity": 3, "model_size_reg": 0}
    model = catboost.CatBoostRegressor(**given, simple_ctr=["Borders", "Counter"], combinations_ctr=["BinarizedTargetMeanValue", "Counter"])
    model.fit(frame, target, cat_features=["c0", "c1", "c2", "c3"]).save_model(str(tmp_path / "m.json"), format="json")
    written = json.loads((tmp_path / "m.json").read_text())["features_info"]["ctrs"]
    expected = Counter()
    for each in written:
        expected[each["ctr_type"], sum(element["combination_element"] == "cat_feature_value" for element in each["elements"])] += 1
    assert max(n for _, n in expected) > 1
    found = inspect_statistics(load_ensemble(tmp_path / "m.json").ensemble.statistics)
    assert {(each.kind, each.features): each.columns for each in found.kinds} == expected
    assert all(isinstance(each, StatisticsOfKind) for each in found.kinds)
    statistics = load_ensemble(model).ensemble.statistics
    assert found.entries == sum(len(set(keys)) for keys in keys_of(statistics))
    assert found.table_bytes > 8 * found.entries


def keys_of(statistics):
    """The keys of every projection."""
    return [statistics.key[start:stop].tolist() for start, stop in zip(statistics.key_start[:-1], statistics.key_start[1:], strict=True)]


def test_a_model_without_statistics_has_none():
    """Rather than empty ones."""
    assert inspect_statistics(NO_STATISTICS) is None
