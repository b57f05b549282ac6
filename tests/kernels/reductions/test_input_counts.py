"""Kinds of values are what the words say: found again from the values and the splits of the ensemble."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leafledger.kernels.reductions.input_counts import INPUTS, KINDS, InputCounts, classify
from leafledger.kernels.reductions.reduction import merge_all
from leafledger.kernels.reductions.summary import Subject
from leafledger.kernels.trees.binning import bin_dtype, bin_ensemble, bin_rows, padded
from tests.strategies import batches, forests
from tests.trees import one_tree


def kind_of(ensemble, feature, x):
    """By the words of ``classify`` and of ``TreeEnsemble``; None where there is nothing to say."""
    n = ensemble.n_categories[feature]
    if math.isnan(x) or (ensemble.zero_missing[feature] and abs(x) <= float(np.float32(1e-35))):
        return "missing"
    if n:
        return None if -1 < x < n else "unseen"
    with np.errstate(over="ignore"):
        x = float(np.float32(x)) if ensemble.single_precision else x
    thresholds = [t for t in ensemble.threshold[ensemble.feature == feature] if t < math.inf]
    if not thresholds:
        return None
    return "below" if x <= min(thresholds) else "above" if x > max(thresholds) else None


def classified(ensemble, rows):
    """``(used, n)`` kinds by name, and the used features."""
    tables, _ = bin_ensemble(ensemble)
    values = np.zeros((tables.column.size, padded(len(rows))))
    values[:, : len(rows)] = rows.T[tables.column]
    bins, kinds = np.zeros(values.shape, bin_dtype(tables)), np.full(values.shape, 9, np.uint8)
    bin_rows(values, tables, bins)
    classify(bins, tables, kinds)
    return kinds, tables.column.tolist()


@given(data=st.data(), ensemble=forests())
def test_every_value_is_of_the_kind_that_the_words_say(data, ensemble):
    """Missing, unseen, below or above all thresholds, or none of these."""
    rows = data.draw(batches(ensemble))
    kinds, used = classified(ensemble, rows)
    for j, feature in enumerate(used):
        assert [(None, *KINDS)[kind] for kind in kinds[j, : len(rows)]] == [kind_of(ensemble, feature, float(x)) for x in rows[:, feature]]


@given(data=st.data(), ensemble=forests())
def test_the_table_counts_them_whatever_the_slices(data, ensemble):
    """The most unseen first; what is unseen is also said as a share of what is there."""
    rows = np.concatenate([data.draw(batches(ensemble)) for _ in range(3)])
    cut = data.draw(st.integers(0, len(rows)))
    states = []
    for part in (rows[:cut], rows[cut:]):
        kinds, used = classified(ensemble, part)
        empty = INPUTS.reduction.init(1, len(used))
        states.append(INPUTS.reduction.update(empty, kinds[None], len(part)))
    names = tuple(f"f{feature}" for feature in used)
    subject = Subject(("y",), (), np.zeros(0, np.int64), np.zeros((0, 2), np.int32), 0, inputs=names)
    table = INPUTS.tabulate(merge_all(INPUTS.reduction, states, 1, 0), subject)["inputs"]
    assert tuple(table.columns) == INPUTS.columns
    expected = {}
    for name, feature in zip(names, used, strict=True):
        found = [kind_of(ensemble, feature, float(x)) for x in rows[:, feature]]
        expected[name] = [len(rows), *(found.count(kind) for kind in KINDS)]
    found = list(zip(*table.columns.values(), strict=True))
    assert {name: counts for name, *counts in found} == expected
    assert [counts[2:0:-1] for _, *counts in found] == sorted((counts[2:0:-1] for counts in expected.values()), reverse=True)
    unseen = {name: counts[2] for name, counts in expected.items() if counts[2]}
    assert table.totals == {"rows": len(rows), "unseen": unseen}
    line = INPUTS.headline(table.totals)
    assert all(f"{count} of {len(rows)} in {name!r}" in line for name, count in unseen.items())
    assert bool(line) == bool(unseen)


def test_features_come_by_what_is_unseen_and_then_by_what_is_missing():
    """Where both are equal the model's order stays; a state has the shapes that its record says."""
    values = np.zeros((1, 4, len(KINDS)), np.int64)
    values[0, :, :2] = [[1, 0], [0, 5], [7, 0], [3, 5]]
    subject = Subject(("y",), (), np.zeros(0, np.int64), np.zeros((0, 2), np.int32), 0, inputs=("a", "b", "c", "d"))
    state = INPUTS.reduction.merge(INPUTS.reduction.init(1, 4), InputCounts(np.array([9]), values))
    assert (state.rows.shape, state.values.shape) == ((1,), values.shape)
    assert INPUTS.tabulate(state, subject)["inputs"].columns["feature"] == ["d", "b", "c", "a"]


def test_what_the_model_does_not_tell_is_unknown():
    """Neither a number, nor among what is said, and of no weight in the order: codes that no split asks for may well have been seen."""
    values = np.zeros((1, 3, len(KINDS)), np.int64)
    values[0, :, :2] = [[0, 9], [2, 0], [0, 3]]
    subject = Subject(("y",), (), np.zeros(0, np.int64), np.zeros((0, 2), np.int32), 0, inputs=("a", "b", "c"), untold=frozenset("a"))
    table = INPUTS.tabulate(InputCounts(np.array([9]), values), subject)["inputs"]
    assert table.columns["feature"] == ["c", "b", "a"]
    assert table.columns["unseen"].tolist() == [3, 0, None]
    assert table.totals == {"rows": 9, "unseen": {"c": 3}, "unasked": {"a": 9}}


def test_of_no_rows_there_is_nothing_to_say():
    """Not even how many features were looked at."""
    subject = Subject(("y",), ("a", "b"), np.zeros(0, np.int64), np.zeros((0, 2), np.int32), 0, inputs=("a", "b", "c"))
    table = INPUTS.tabulate(merge_all(INPUTS.reduction, [], 1, 2), subject)["inputs"]
    assert list(zip(*table.columns.values(), strict=True)) == [(name, 0, 0, 0, 0, 0) for name in "abc"]


def test_a_feature_that_is_split_only_where_it_is_missing_has_no_thresholds():
    """LightGBM parts the missing from the rest at inf: no number is beyond it."""
    tree = one_tree([0, -1, -1], np.inf, [1, -1, -1], [2, -1, -1], [0.0, 1.0, 2.0], [2.0, 1.0, 1.0], 1)
    kinds, _ = classified(tree, np.array([[np.nan], [-1.0], [np.inf]]))
    assert [(None, *KINDS)[kind] for kind in kinds[0, :3]] == ["missing", None, None]
