"""Target statistics as CatBoost computes them: no row ends in another leaf, whatever was counted; and what does not fit together is refused."""

from dataclasses import replace
from functools import cache

import catboost
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger import attribute
from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models.catboost.cbm_format import read_cbm
from leafledger.pipeline.models.catboost.columns import Column
from leafledger.pipeline.models.catboost.ctr import (
    BINARIZED_MEAN,
    BORDERS,
    BUCKETS,
    COUNTER,
    FLOAT_MEAN,
    FREQUENCY,
    KINDS,
    MEANS,
    MOST_BORDERS,
    Counts,
    CtrCounts,
    Projection,
    Statistic,
    count_borders,
    count_targets,
    lay_out_statistics,
    make_counts,
)
from leafledger.pipeline.models.catboost.loader import LOADER
from tests.pipeline.models.catboost.training import asked, counted, counting, ends, looked_up, saved, sums
from tests.trees import assert_same_bits

RTOL, ATOL = 1e-12, 1e-12  # leaves are float64 on both sides, added in the same order; no row ends in another leaf
N_ROWS = 10_000
ALL_KINDS = ["Borders:TargetBorderCount=3", "Buckets:TargetBorderCount=2", "BinarizedTargetMeanValue:TargetBorderCount=5", "Counter"]
TWO_WAYS = ["Borders", "Borders:TargetBorderCount=3"]
ODD = ["Borders:CtrBorderCount=7:Prior=-0.2:Prior=1.7", "Counter:Prior=0.3"]
DEEP = {"max_ctr_complexity": 4, "model_size_reg": 0}
CASES = {  # the target, how rows are drawn, how the model is trained
    "two classes": ("binary", {}, {"iterations": 40}),
    "many trees": ("binary", {}, {"iterations": 250, "depth": 4}),
    "numbers": ("regression", {}, DEEP),
    "in the order of rows": ("regression", {}, DEEP | {"has_time": True, "boosting_type": "Ordered"}),
    "three classes": ("classes", {}, DEEP | {"iterations": 10}),
    "buckets": (
        "classes",
        {},
        DEEP | {"iterations": 10, "loss_function": "MultiClassOneVsAll", "simple_ctr": "Buckets", "combinations_ctr": "Buckets"},
    ),
    "integers": ("binary", {"integers": True}, DEEP),
    "missing numbers": ("regression", {"missing": True}, DEEP),
    "missing numbers above all": ("regression", {"missing": True}, DEEP | {"nan_mode": "Max"}),
    "one-hot too": ("regression", {}, DEEP | {"one_hot_max_size": 7}),
    "all kinds": ("regression", {}, DEEP | {"simple_ctr": ALL_KINDS, "combinations_ctr": ALL_KINDS}),
    "two ways to make classes": ("regression", {}, {"simple_ctr": TWO_WAYS, "combinations_ctr": TWO_WAYS}),
    "odd priors": ("binary", {}, {"simple_ctr": ODD, "combinations_ctr": ODD}),
    "one kind twice": ("regression", {}, {"simple_ctr": ["Borders:Prior=0.3", "Borders:Prior=0.7"]}),
    "few keys": ("binary", {}, {"counter_calc_method": "Full", "ctr_leaf_count_limit": 20, "store_all_simple_ctr": True}),
    "depthwise": ("binary", {}, {"grow_policy": "Depthwise"}),
    "lossguide": ("classes", {}, {"grow_policy": "Lossguide", "iterations": 10}),
    "shrunk by rate": ("regression", {}, {"model_shrink_rate": 0.1}),
    "several targets": ("several", {}, {"loss_function": "MultiRMSE"}),
    "counters of several targets": ("several", {}, {"loss_function": "MultiRMSE", "simple_ctr": "Counter", "combinations_ctr": "Counter"}),
    "survival": ("times", {}, {"loss_function": "SurvivalAft"}),
    "kinds by feature": ("regression", {}, {"per_feature_ctr": ["0:Borders:TargetBorderCount=2:Prior=0.5", "2:Counter:Prior=0.25"]}),
}
ONLY_CBM = {"two ways to make classes", "several targets", "survival"}  # their JSON lacks counts


@cache
def trained(case):
    task, options, parameters = CASES[case]
    return counting(task, *counted(**options), **parameters)


def assert_same_model(model, data, frame):
    """Leaves, and raw predictions."""
    ensemble, features, *_ = LOADER.parse(data, "m")
    assert ensemble.statistics.column.size
    found = ends(ensemble, looked_up(ensemble, features, frame))
    if model._object._is_oblivious():
        n_leaves = (np.diff(np.append(ensemble.root, ensemble.feature.size)) + 1) // 2
        assert_array_equal(found - (ensemble.root + n_leaves - 1)[:, None], model.calc_leaf_indexes(frame).T)
    expected = np.asarray(model.predict(frame, prediction_type="RawFormulaVal")).reshape(len(frame), -1)
    assert_allclose(sums(ensemble, found), expected, rtol=RTOL, atol=ATOL)
    return ensemble, features


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_every_row_ends_in_catboosts_leaf(case):
    """Every kind of statistics and target, a third of the rows with a category that was never seen."""
    assert_same_model(trained(case), LOADER.serialise(trained(case)), asked(N_ROWS, **CASES[case][1]))


@pytest.mark.parametrize("case", CASES)
def test_json_says_the_same_or_is_refused(case, tmp_path):
    """Codes and keys, and symmetric trees, to the bit; nodes of others are in another order. JSON that lacks counts is known by its parameters."""
    data = saved(trained(case), tmp_path, "json")
    if case in ONLY_CBM:
        with pytest.raises(UnsupportedModel, match=r"^m: JSON lacks some counts of a model .* save it as cbm$"):
            LOADER.parse(data, "m")
        return
    (binary, *rest), (text, *others) = LOADER.parse(LOADER.serialise(trained(case)), "m"), LOADER.parse(data, "m")
    assert rest == others
    assert_same_bits(text.statistics, binary.statistics)
    if trained(case)._object._is_oblivious():
        assert_same_bits(text, binary)
    else:
        assert_same_model(trained(case), data, asked(1000, **CASES[case][1]))


@pytest.mark.slow
def test_there_are_statistics_of_every_sort():
    """Of whole categories, and of bits of numbers and of categories; of every kind that CPUs train; with several keys and with one target border."""
    found = [read_cbm(LOADER.serialise(trained(case)), "m").statistics for case in CASES]
    kinds = {statistic.counted.kind for statistics in found for statistic in statistics}
    assert kinds == {BORDERS, BUCKETS, BINARIZED_MEAN, COUNTER}
    parts = [statistic.counted.projection for statistics in found for statistic in statistics]
    assert all(any(len(getattr(part, name)) > 0 for part in parts) for name in ("above", "equal"))
    assert max(len(part.categories) for part in parts) > 2
    assert max(statistic.counted.binarization for statistics in found for statistic in statistics) > 0
    assert max(statistic.target_border for statistics in found for statistic in statistics) > 1


def test_categories_that_are_looked_up_are_marked():
    """All of a model's categories are known by hashes, and those of a combination's category or bit are hashed whether they are known or not."""
    for case, hashed in (("two classes", [True, False, True, True, False, False]), ("numbers", [True, False, True, True, False, True])):
        ensemble, features, *_ = LOADER.parse(LOADER.serialise(trained(case)), "m")
        assert [feature.hashed for feature in features] == hashed
        assert [feature.name for feature in features] == ["c0", "f0", "c1", "c2", "f1", "c3"]
        assert ensemble.n_features == 6 + ensemble.statistics.column.size


@pytest.mark.slow
def test_edited_models_are_read_as_catboost_reads_them(tmp_path):
    """Sums, scales, cut models, features dropped; counters that took in other rows, and have more keys than other tables."""
    frame, target = counted()
    one, other = (counting("regression", frame, target + k, max_ctr_complexity=3 - k, iterations=20, random_strength=1 + k) for k in (0, 1))
    models = [
        catboost.sum_models([one, other], [0.3, 0.7], ctr_merge_policy=policy)
        for policy in ("IntersectingCountersAverage", "LeaveMostDiversifiedTable")
    ]
    full = catboost.CatBoostRegressor(**one.get_params() | {"counter_calc_method": "Full"})
    full.fit(frame, target, cat_features=["c0", "c1", "c2", "c3"], eval_set=(asked(300, 4), np.zeros(300)), use_best_model=False)
    models.append(full)
    for model in models:
        for form in ("cbm", "json"):
            assert_same_model(model, saved(model, tmp_path, form), asked(1000))
    for change in (lambda: one.set_scale_and_bias(2.5, -1.25), lambda: one.shrink(7), one.drop_unused_features):
        change()
        for form in ("cbm", "json"):
            assert_same_model(one, saved(one, tmp_path, form), asked(1000))


@pytest.mark.parametrize("form", ["cbm", "json"])
def test_a_model_that_was_saved_without_counts_is_refused(form, tmp_path):
    """CatBoost itself crashes when it predicts with it."""
    model = counting("regression", *counted(), iterations=5, final_ctr_computation_mode="Skip")
    with pytest.raises(UnsupportedModel, match=r"^m: target statistic 0 has no table of counts: train with .*'Default'$"):
        LOADER.parse(saved(model, tmp_path, form), "m")


def test_margins_of_attributions_are_catboosts():
    """From the object, through hashes, codes and bins."""
    model, frame = trained("numbers"), asked(300)
    assert_allclose(attribute(model, frame).margin[:, 0], model.predict(frame), rtol=RTOL, atol=ATOL)


ONE = Projection((0,), (), ())
NUMBER = Column(False, 0, 1, "x", False, np.array([0.5, 1.5], np.float32), (), None)
CATEGORY = Column(True, 0, 0, "c", False, np.zeros(0, np.float32), (7, 2**32 - 1), None)
COLUMNS, ORDER = (NUMBER, CATEGORY), {0: 0, 1: 1}


def statistic(kind=BORDERS, borders=(0.5,), **changes):
    given = {"counted": CtrCounts(ONE, kind, 0), "target_border": 0, "prior": (0.5, 1.0), "shift": 0.0, "scale": 1.0}
    return Statistic(**given | {"borders": np.array(borders, np.float32)} | changes)


def table(counts, kind=BORDERS, denominator=9, key=None):
    rows = np.array(counts, np.float32 if kind in MEANS else np.int64)
    return make_counts(np.arange(len(rows), dtype=np.uint64) if key is None else np.array(key, np.uint64), rows, denominator, kind, "m: table 0")


@pytest.mark.parametrize(
    ("kind", "target_border", "counts", "values"),
    [
        (BORDERS, 0, [[3, 1]], [(1 + 0.5) / (4 + 1), 0.5]),
        (BORDERS, 1, [[3, 1, 4]], [(4 + 0.5) / (8 + 1), 0.5]),
        (BORDERS, 0, [[3, 1, 4]], [(5 + 0.5) / (8 + 1), 0.5]),
        (BUCKETS, 1, [[3, 1, 4]], [(1 + 0.5) / (8 + 1), 0.5]),
        (BINARIZED_MEAN, 0, [[2.5, 4]], [(2.5 + 0.5) / (4 + 1), 0.5]),
        (FLOAT_MEAN, 0, [[-2.5, 4]], [(-2.5 + 0.5) / (4 + 1), 0.5]),
        (COUNTER, 0, [[3]], [(3 + 0.5) / (9 + 1), 0.5 / 10]),
        (FREQUENCY, 0, [[3]], [(3 + 0.5) / (9 + 1), 0.5 / 10]),
    ],
)
def test_codes_count_the_borders_below_the_value(kind, target_border, counts, values):
    """By hand: the code rises by one where a border is just below the value in single precision, not where it is equal or above."""
    found = table(counts, kind)
    for scale, shift in ((15.0, 0.0), (-2.0, 0.25)):
        for place, value in enumerate(values):
            exact = (np.float32(value) + np.float32(shift)) * np.float32(scale)
            below = np.nextafter(exact, np.float32(-np.inf))
            for border, code in ((below, 1), (exact, 0), (np.inf, 0), (-np.inf, 1)):
                asks = statistic(kind, (border,), target_border=target_border, scale=scale, shift=shift)
                assert count_borders(asks, found)[place] == code
    assert target_border < count_targets(kind, found) == {BORDERS: len(counts[0]) - 1, BUCKETS: len(counts[0])}.get(kind, 1)


def test_nothing_divided_by_nothing_is_above_no_border():
    """And something divided by nothing is infinite, as in CatBoost's arithmetic."""
    found = table([[0, 0], [0, 3]])
    for prior, codes in (((0.0, 0.0), [0, 2, 0]), ((1.0, 0.0), [2, 2, 2]), ((-1.0, 0.0), [0, 2, 0])):
        assert count_borders(statistic(borders=(-1e30, 0.1), prior=prior), found).tolist() == codes


def test_tables_of_one_projection_share_their_keys():
    """A key that one of them lacks has there the code of an unknown one; columns are told apart by projections, in file order within them."""
    above = Projection((0,), ((0, 1.5),), ((0, 7),))
    statistics = (statistic(borders=(0.5,)), statistic(COUNTER, counted=CtrCounts(above, COUNTER, 0)), statistic(COUNTER, borders=(0.2, 0.25, 0.3)))
    tables = {
        statistics[0].counted: table([[0, 9], [9, 0]], key=[5, 2]),
        statistics[1].counted: table([[9]], COUNTER, key=[8]),
        statistics[2].counted: table([[2], [1]], COUNTER, key=[5, 9]),
    }
    found, column = lay_out_statistics(statistics, tables, COLUMNS, ORDER, "m")
    assert column.tolist() == [2, 4, 3]
    assert (found.column.tolist(), found.projection.tolist()) == ([2, 3, 4], [0, 0, 1])
    assert (found.key.tolist(), found.key_start.tolist()) == ([2, 5, 9, 8], [0, 3, 4])
    assert found.code.tolist() == [0, 1, 0, 0, 0, 1, 0, 0, 1, 0]
    assert (found.source.tolist(), found.element.tolist(), found.kind.tolist()) == ([0, 1], [0, 0, 1, 0], [0, 0, 1, 2])
    assert found.bound.tolist() == [0, 0, 1.5, 7]


def says(**changes):
    return {"statistics": (statistic(),), "tables": {statistic().counted: table([[1, 2]])}, "columns": COLUMNS} | changes


def of(*projection):
    counts = CtrCounts(Projection(*projection), BORDERS, 0)
    return says(statistics=(statistic(counted=counts),), tables={counts: table([[1, 2]])})


def such(**changes):
    return says(statistics=(statistic(**changes),))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (says(tables={}), UnsupportedModel, "target statistic 0 has no table of counts"),
        (says(statistics=(statistic(), statistic())), InvalidModel, "target statistic 1 is there twice"),
        (says(statistics=(statistic(),) * 100_001), UnsupportedModel, "100001 target statistics, expected at most 100000"),
        (says(columns=(NUMBER, CATEGORY, replace(CATEGORY, flat=2))), InvalidModel, "two features have one index"),
        (such(target_border=1), InvalidModel, r"target statistic 0 has target border 1, expected 0\.\.0"),
        (such(target_border=-1), InvalidModel, r"target statistic 0 has target border -1, expected 0\.\.0"),
        (such(prior=(np.nan, 1.0)), InvalidModel, "target statistic 0 has prior, shift and scale .*, expected finite numbers"),
        (such(prior=(0.0, 1e39)), InvalidModel, "expected finite numbers"),
        (such(shift=np.inf), InvalidModel, "expected finite numbers"),
        (such(scale=-np.inf), InvalidModel, "expected finite numbers"),
        (such(borders=(2.0, 1.0)), InvalidModel, r"target statistic 0 has borders \[2.0, 1.0\], expected ascending numbers"),
        (such(borders=(np.nan,)), InvalidModel, r"target statistic 0 has borders \[nan\], expected ascending numbers"),
        (such(borders=(1.0, np.nan)), InvalidModel, r"target statistic 0 has borders \[1.0, nan\], expected ascending numbers"),
        (such(borders=np.arange(MOST_BORDERS + 1)), UnsupportedModel, "target statistic 0 has 256 borders, expected at most 255"),
        (of((), ((0, 0.5),), ()), InvalidModel, "target statistic 0 is of no categorical feature, expected at least one"),
        (of((1,), (), ()), InvalidModel, "target statistic 0 is of categorical feature 1, expected one of the model's"),
        (of((-1,), (), ()), InvalidModel, "target statistic 0 is of categorical feature -1"),
        (of((0,), ((1, 0.5),), ()), InvalidModel, "target statistic 0 is of float feature 1, expected one of the model's"),
        (of((0,), ((0, 0.6),), ()), InvalidModel, "target statistic 0 asks for feature 'x' above 0.6, expected one of the feature's own borders"),
        (of((0,), ((0, np.nan),), ()), InvalidModel, "target statistic 0 asks for feature 'x' above nan"),
        (of((0,), (), ((0, 8),)), InvalidModel, "target statistic 0 asks for feature 'c' with hash 8, expected one of the feature's own categories"),
        (of((0,), (), ((3, 8),)), InvalidModel, "target statistic 0 is of categorical feature 3"),
    ],
)
def test_statistics_that_do_not_fit_together_are_refused(given, error, message):
    """In one line, which names the column and what was expected."""
    with pytest.raises(error, match=f"^m: .*{message}") as refusal:
        lay_out_statistics(given["statistics"], given["tables"], given["columns"], ORDER, "m")
    assert "\n" not in str(refusal.value)


def test_as_many_borders_as_a_code_can_count():
    """The highest code is 255."""
    asks = statistic(borders=np.linspace(0, 0.4, MOST_BORDERS))
    assert count_borders(asks, table([[0, 9]])).tolist() == [255, 255]


@pytest.mark.parametrize(
    ("kind", "counts", "key", "denominator", "message"),
    [
        (BORDERS, [[1]], [0], 0, "counts of 1 classes, expected at least 2"),
        (BUCKETS, [[1]], [0], 0, "counts of 1 classes, expected at least 2"),
        (BORDERS, [[1, -1]], [7], 0, r"key 7 has counts \[1, -1\], expected numbers of rows up to 2147483647 in all"),
        (BORDERS, [[2**31 - 1, 1]], [7], 0, r"key 7 has counts \[2147483647, 1\]"),
        (BORDERS, [[2**63 - 1, 2**63 - 1]], [7], 0, "key 7 has counts"),
        (FLOAT_MEAN, [[np.inf, 1]], [7], 0, r"key 7 has counts \[inf, 1.0\]"),
        (FLOAT_MEAN, [[np.nan, 1]], [7], 0, r"key 7 has counts \[nan, 1.0\]"),
        (BINARIZED_MEAN, [[1, -1]], [7], 0, r"key 7 has counts \[1.0, -1.0\]"),
        (COUNTER, [[1]], [7], -1, r"denominator -1, expected 0\.\.2147483647"),
        (FREQUENCY, [[1]], [7], 2**31, r"denominator 2147483648, expected 0\.\.2147483647"),
        (COUNTER, [[1], [2]], [2**64 - 2, 2**64 - 2], 0, f"key {2**64 - 2} is there twice"),
    ],
)
def test_counts_that_are_none_are_refused(kind, counts, key, denominator, message):
    """In one line, with the key."""
    with pytest.raises(InvalidModel, match=f"^m: table 0: {message}") as refusal:
        table(counts, kind, denominator, key)
    assert "\n" not in str(refusal.value)


def test_more_codes_than_a_file_may_hold_are_refused():
    """Many columns of one large table, which a file says in few bytes."""
    large = Counts(np.arange(1000, dtype=np.uint64), np.ones((1000, 1), np.int64), 5)
    statistics = tuple(statistic(COUNTER, prior=(float(k), 1.0)) for k in range(300))
    with pytest.raises(UnsupportedModel, match=r"^m: 300300 codes of target statistics need too much memory$"):
        lay_out_statistics(statistics, {statistics[0].counted: large}, COLUMNS, ORDER, "m")
    assert lay_out_statistics(statistics[:200], {statistics[0].counted: large}, COLUMNS, ORDER, "m")[0].code.size == 200_200


def test_kinds_are_those_of_the_format():
    """In the order of their numbers in cbm files."""
    assert KINDS == ("Borders", "Buckets", "BinarizedTargetMeanValue", "FloatTargetMeanValue", "Counter", "FeatureFreq")
