"""Rows in memory mean one thing, or are refused in one line: matrices, frames, and a single row."""

import re
from decimal import Decimal

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from leafledger import Explainer, attribute, curves, explain, gradient, nearest_changes, prediction_gap, prepare, rank_by_gap
from leafledger.kernels.trees.forest import make_forest
from leafledger.pipeline.errors import SchemaMismatch, UsageError
from leafledger.pipeline.in_memory.rows.arrow_batches import as_batch
from leafledger.pipeline.in_memory.rows.given_rows import as_rows, bin_batch, spell_features
from leafledger.pipeline.models import load_ensemble
from tests.pipeline.conftest import FEATURES, TRAINING

NUMBERS = np.array([[1.0, 2.0, 0.0, 3.0], [4.0, 5.0, 1.0, 2.0]])  # in the model's order, the third a code


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (NUMBERS.astype(str), "rows are an array of <U32, expected numbers"),
        (NUMBERS.astype("S"), "rows are an array of |S32, expected numbers"),
        (NUMBERS.astype(complex), "rows are an array of complex128, expected numbers"),
        (NUMBERS.astype("M8[s]"), "rows are an array of datetime64[s], expected numbers"),
        (NUMBERS.astype(str).astype(object), "rows are an array of other things than numbers"),
        (NUMBERS.astype(np.complex64).astype(object), "rows are an array of other things than numbers"),
        (np.ma.masked_array(NUMBERS, NUMBERS > 3), "rows are a masked array, expected NaN where a value is missing"),
        (
            pd.DataFrame(NUMBERS, columns=pd.MultiIndex.from_product([["a", "b"], ["c", "d"]])),
            "rows have columns of 2 levels, expected one name for each",
        ),
        (pd.Series(NUMBERS[0]), "rows: columns 'distance', 'delay', 'carrier', 'month' missing"),
    ],
)
def test_what_could_mean_something_else_is_refused(example, rows, says):
    """In one line."""
    with pytest.raises(SchemaMismatch) as refusal:
        attribute(example.model, rows)
    assert str(refusal.value).startswith(says)
    assert "\n" not in str(refusal.value)


FEW = np.array([[0.5, 0.25], [1.0, 0.75]])
OTHERS = {
    "masked": lambda numbers: np.ma.masked_array(numbers, numbers > 0.9),
    "dates": lambda numbers: (4 * numbers).astype("M8[D]"),
    "spans of time": lambda numbers: (4 * numbers).astype("m8[s]"),
    "complex": lambda numbers: numbers + 1j,
    "complex objects": lambda numbers: (numbers + 1j).astype(object).tolist(),
    "texts": lambda numbers: numbers.astype(str),
}


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("name", ["label", "weight", "z", "scores", "scale", "ranking"])
def test_what_numpy_makes_numbers_of_is_no_numbers(name, kind):
    """In the place of any numbers: a value that is masked, a date, half of a complex number, a text. In one line."""
    model = xgboost.train({"max_depth": 2, "nthread": 1}, xgboost.DMatrix(FEW, FEW[:, 0]), 1)
    asked = {
        "label": lambda given: attribute(model, FEW, "r2", label=given),
        "weight": lambda given: attribute(model, FEW, "r2", label=[1.0, 2.0], weight=given),
        "z": lambda given: gradient(model, FEW, given),
        "scores": lambda given: curves(model, FEW, given),
        "scale": lambda given: prediction_gap(model, FEW, scale=given),
        "ranking": lambda given: prediction_gap(model, FEW, ranking=given),
    }[name]
    numbers = FEW[:, None] * [1, 0] if name in ("z", "scores") else np.array([[0, 1], [1, 0]]) if name == "ranking" else FEW[:, 0]
    asked(numbers)
    with pytest.raises(
        UsageError, match=r"^(label|weight|probabilities|scores|scale|ranking) (is|are|names|has) .*expected|^ranking names"
    ) as refusal:
        asked(OTHERS[kind](numbers))
    assert "\n" not in str(refusal.value)


def test_numbers_of_any_kind_are_taken(example):
    """By their values; None is missing."""
    expected = attribute(example.model, NUMBERS)
    for same in (
        NUMBERS.astype(np.float16),
        NUMBERS.astype(np.int8),
        NUMBERS.astype(object),
        NUMBERS.view(np.matrix),
        np.vectorize(Decimal)(NUMBERS),
    ):
        np.testing.assert_array_equal(attribute(example.model, same).phi, expected.phi)
    missing = NUMBERS.astype(object)
    missing[0, 1] = None
    np.testing.assert_array_equal(attribute(example.model, missing).phi, attribute(example.model, missing.astype(float)).phi)


@pytest.mark.parametrize("i", [0, 1, 17, 2999])
def test_one_row_is_a_series(example, i):
    """As pandas takes it out of a frame, with texts and missing values: its values are those of the row in the frame, and LightGBM's own."""
    row = example.frame.iloc[i]
    found = attribute(example.model, row)
    np.testing.assert_array_equal(found.phi, attribute(example.model, example.frame.iloc[[i]]).phi)
    one = example.frame.iloc[[i]][FEATURES]
    one = one.assign(carrier=pd.Categorical(one["carrier"], ["AA", "B6", "DL", "UA"]))
    np.testing.assert_allclose(found.margin[:, 0], example.booster.predict(one), rtol=1e-12)


def test_values_are_binned_by_the_thresholds_below_them(example):
    """Of a numeric feature; every row, and no value beyond them counts."""
    model = load_ensemble(example.model)
    bins, forest = make_forest(model.ensemble)
    rows = example.frame[FEATURES].assign(month=example.frame["month"].astype(int)).dropna()[:50]
    features, batch = as_batch(model, rows, bins.column.tolist())
    values, binned = bin_batch(features, bins, batch)
    assert binned.shape == values.shape
    numeric = [f for f, column in enumerate(forest.column) if model.ensemble.n_categories[column] == 0]
    assert numeric
    for f in numeric:
        asked = np.unique(model.ensemble.threshold[model.ensemble.feature == forest.column[f]])
        x = rows[FEATURES[forest.column[f]]].to_numpy()
        assert_array_equal(values[f, :50], x)
        assert_array_equal(binned[f, :50], np.searchsorted(asked, x))


def test_python_warns_where_columns_go_by_position(example):
    """For a model without names, once for a model; not of columns that have its names, nor of numbers that pandas gives columns in their order."""
    rows = np.arange(200.0).reshape(100, 2)
    nameless = load_ensemble(lightgbm.train(TRAINING, lightgbm.Dataset(rows, rows[:, 0]), 2))
    assert not spell_features(load_ensemble(example.model), example.frame).by_position
    assert spell_features(nameless, pd.DataFrame(rows)).by_position
    with pytest.warns(UserWarning, match="^rows: features by position, since the model has no names: b, a$"):
        found = spell_features(nameless, pd.DataFrame(rows, columns=["b", "a"]))
    assert [feature.name for feature in found.features] == ["b", "a"]
    assert spell_features(found, pd.DataFrame(rows, columns=["b", "a"])).by_position


def test_other_rows_are_left_as_they_are(example):
    """Whoever reads them refuses them, or not."""
    for rows in (example.frame, None, [1, 2]):
        assert as_rows(rows) is rows


@pytest.mark.parametrize("known", [["x", 1, 2.5], ["x", True, "y"], [True, 2.5], ["1", 1, 2]])
def test_categories_of_several_types_are_coded_as_lightgbm_codes_them(known, tmp_path):
    """Seen, unseen and missing: LightGBM's own predictions. A file has no such column, which is said while planning."""
    draw = np.random.default_rng(1)
    values = draw.choice(np.array([*known, None], object), 300)
    frame = pd.DataFrame({"a": draw.normal(size=300), "c": pd.Categorical(values)})
    target = frame["a"] + 10 * np.array([value is known[0] or value is None for value in values])
    booster = lightgbm.train(TRAINING, lightgbm.Dataset(frame, target), 5)
    probes = frame.assign(c=pd.Categorical([*known, None, "never", 7, 1.0] * 37 + [None] * (300 - 37 * (len(known) + 4))))
    for rows in (frame, probes, frame.assign(c=frame["c"].cat.remove_unused_categories())):
        np.testing.assert_allclose(attribute(booster, rows).margin[:, 0], booster.predict(rows), rtol=1e-12)
    booster.save_model(tmp_path / "model.txt")
    pq.write_table(pa.table({"a": frame["a"], "c": pa.array(["x"] * 300)}), tmp_path / "data.parquet")
    says = "feature 'c' has categories of several types, which only a pandas column of categories holds"
    with pytest.raises(SchemaMismatch, match=rf"^rows: {says}$"):
        attribute(booster, pa.table({"a": frame["a"], "c": pa.array(["x"] * 300)}))
    with pytest.raises(SchemaMismatch, match=rf"/data\.parquet: {says}$"):
        explain(tmp_path / "model.txt", tmp_path / "data.parquet", tmp_path / "run", scheduler="serial")


def test_numbers_of_columns_are_texts():
    """Of frames alone, which are left as they are; two of one name are refused later."""
    numbered = pd.DataFrame(NUMBERS)
    assert list(as_rows(numbered).columns) == ["0", "1", "2", "3"]
    assert list(as_rows(numbered.iloc[0]).columns) == ["0", "1", "2", "3"]
    assert list(numbered.columns) == [0, 1, 2, 3]
    with pytest.raises(SchemaMismatch, match="Duplicate column names found"):
        attribute(lightgbm.train(TRAINING, lightgbm.Dataset(numbered, [1.0, 2.0]), 1), numbered.rename(columns={3: "0"}).assign(**{"3": 1.0}))


def test_a_stream_is_refused(example):
    """In the place of any rows: whoever reads it a second time, as to choose a rate or to rank, finds it empty."""
    frame = example.frame[FEATURES][:50]
    asked = {
        "rows": [
            lambda stream: attribute(example.model, stream),
            lambda stream: attribute(example.model, stream, "ranker", parameters={"rate": "auto"}),
            lambda stream: prediction_gap(example.model, stream, ranking="shapley"),
            lambda stream: curves(example.model, stream, 0.0),
        ],
        "rows of the background": [
            lambda stream: attribute(example.model, frame, background=stream),
            lambda stream: prediction_gap(example.model, frame, background=stream),
        ],
    }
    for where, calls in asked.items():
        for call in calls:
            with pytest.raises(SchemaMismatch) as refusal:
                call(pa.table(frame).to_reader())
            says = "are a RecordBatchReader, a stream that can be read once, expected a table, as pyarrow.table makes of it"
            assert str(refusal.value) == f"{where} {says}"


def test_a_sparse_matrix_is_refused_by_what_it_does_not_store(example):
    """Zeros to one library, missing to another: who gives it knows which."""
    rows = csr_array(np.eye(len(FEATURES)))
    says = "are a sparse csr_array, expected an array, as its toarray() makes; of XGBoost with NaN in place of what is not stored"
    for call in (attribute, prepare(example.model), nearest_changes):
        given = {"threshold": 0.0} if call is nearest_changes else {}
        with pytest.raises(SchemaMismatch, match=f"^rows {re.escape(says)}"):
            call(*([rows] if isinstance(call, Explainer) else [example.model, rows]), **given)
    with pytest.raises(SchemaMismatch, match=f"^rows of the background {re.escape(says)}"):
        attribute(example.model, example.frame[FEATURES][:5], background=rows)


@pytest.mark.parametrize(
    "make",
    [dict, set, iter, lambda column: zip(column, strict=True), lambda column: "".join(map(str, column)), lambda column: bytes(len(column))],
)
def test_columns_of_a_mapping_are_sequences(example, make):
    """A frame's own ``to_dict()`` has the values behind their labels, which were taken for them; an iterator is empty the second time."""
    rows = pa.Table.from_pandas(example.frame[FEATURES][:3], preserve_index=False).to_pydict()
    assert_array_equal(attribute(example.model, rows).phi, attribute(example.model, example.frame[FEATURES][:3]).phi)
    column = make(dict(enumerate(rows["delay"])) if make is dict else rows["delay"])
    says = f"column 'delay' is a {type(column).__name__}, expected a list or an array of values"
    with pytest.raises(SchemaMismatch, match=f"^rows: {says}$"):
        attribute(example.model, rows | {"delay": column})
    with pytest.raises(SchemaMismatch, match=f"^rows of the background: {says}$"):
        attribute(example.model, rows, background=rows | {"delay": column})


def test_series_of_a_mapping_are_of_the_same_rows(example):
    """A frame made of them would have them in one order; other labels say nothing."""
    frame = example.frame[FEATURES][:5].reset_index(drop=True)
    rows, expected = {name: frame[name] for name in FEATURES}, attribute(example.model, frame).phi
    for index in (None, list("abcde")):
        again = rows | {"delay": frame["delay"] if index is None else frame["delay"].set_axis(index)}
        assert_array_equal(attribute(example.model, again).phi, expected)
    says = r"^rows: column 'delay' is a Series with the labels of the first column in another order, expected the same, or a frame$"
    with pytest.raises(SchemaMismatch, match=says):
        attribute(example.model, rows | {"delay": frame["delay"][::-1]})


def test_what_is_wrong_with_other_rows_is_said_of_them(example):
    """Of a background, and of data that noise is measured on: by what their messages begin with."""
    frame = example.frame[FEATURES][:50]
    for wrong in (frame[["delay"]], frame.to_numpy(), NUMBERS[:, :2], frame.assign(month="May"), [1.0]):
        with pytest.raises(SchemaMismatch, match=r"^rows of the background(:| have| are) "):
            attribute(example.model, frame, background=wrong)
        with pytest.raises(SchemaMismatch, match=r"^rows of the background(:| have| are) "):
            prediction_gap(example.model, frame, data=wrong)


def test_an_integer_beyond_all_numbers_is_refused(example):
    """In one line."""
    large = NUMBERS.astype(object)
    large[1, 1] = 10**400
    with pytest.raises(SchemaMismatch, match=r"^rows: column 'delay' of the array: int too large to convert to float$"):
        attribute(example.model, large)


def test_rows_of_unknown_categories_are_refused_wherever_they_are_looked_at(example):
    """As `attribute` refuses them, with the same way to have them all the same."""
    rows, written = (example.frame[FEATURES][:120].assign(carrier=name) for name in ("UA", "ua"))
    for where, call in (
        ("rows", lambda **more: curves(example.model, written, 0.0, **more)),
        ("rows", lambda **more: gradient(example.model, written, **more)),
        ("rows", lambda **more: prediction_gap(example.model, written, **more)),
        ("rows", lambda **more: prediction_gap(example.model, written, ranking="shapley", **more)),
        ("rows", lambda **more: rank_by_gap(example.model, written, top=1, **more)),
        ("rows of the background", lambda **more: prediction_gap(example.model, rows[:3], data=written, **more)),
        ("rows of the background", lambda **more: rank_by_gap(example.model, rows[:3], top=1, data=written, **more)),
    ):
        with pytest.raises(
            SchemaMismatch, match=rf"^{where}: column 'carrier': 120 of 120 values are no category of the model, .*; allow_unseen takes "
        ):
            call()
        call(allow_unseen=True)
        with pytest.raises(UsageError, match=r"^allow_unseen is "):
            call(allow_unseen="yes")
    assert curves(example.model, written[:99], 0.0).insertion.shape[0] == 99
    assert gradient(example.model, pd.concat([rows[:2], written])).phi.shape[0] == 122
