"""Rows of which the model knows hardly any category are refused; what it does not know is counted and said."""

import json

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost

from leafledger import compare, curves
from leafledger.pipeline.command import cli
from leafledger.pipeline.errors import SchemaMismatch, UsageError
from leafledger.pipeline.explain import explain
from leafledger.pipeline.in_memory.explain.attribute import attribute
from leafledger.pipeline.methods.unseen_categories import ENOUGH, check_predictions, refuse_unseen
from leafledger.pipeline.runs.check.check import check_run
from tests.pipeline.conftest import FEATURES
from tests.pipeline.running import attributions


def summary(feature, rows, missing, unseen):
    return {"inputs": pa.table({"feature": [feature], "rows": [rows], "missing": [missing], "unseen": [unseen]})}


@pytest.mark.parametrize(
    ("rows", "missing", "unseen", "refused"),
    [
        (ENOUGH, 0, ENOUGH, True),
        (ENOUGH, 0, ENOUGH - 1, True),
        (ENOUGH, 0, ENOUGH - 2, False),
        (ENOUGH, 1, ENOUGH - 1, False),
        (ENOUGH + 50, 50, ENOUGH, True),
        (10_000, 0, 9_899, False),
    ],
)
def test_hardly_any_of_enough_values(rows, missing, unseen, refused):
    """One in a hundred is known at the most, of at least a hundred that are there."""
    tables = summary("c", rows, missing, unseen)
    refuse_unseen(tables, allow_unseen=True)
    if not refused:
        refuse_unseen(tables, allow_unseen=False)
        return
    with pytest.raises(SchemaMismatch, match=rf"^column 'c': {unseen} of {rows - missing} values are no category of the model"):
        refuse_unseen(tables, allow_unseen=False)


def test_what_is_not_known_refuses_nothing():
    """A count that the model's file does not tell is null."""
    refuse_unseen({"inputs": summary("c", ENOUGH, 0, 0)["inputs"].set_column(3, "unseen", pa.array([None], pa.int64()))}, allow_unseen=False)


@pytest.mark.parametrize("library", ["catboost.cbm", "catboost.json", "lightgbm.txt"])
def test_the_very_rows_of_training_have_no_unseen_categories(library, tmp_path, capsys):
    """CatBoost's files keep one of two categories, and codes are those that splits ask for: all others were counted as unseen, or the run refused."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"kind": rng.choice([1, 0], 3000, p=[0.005, 0.995]), "x": rng.normal(size=3000)})
    label = frame["x"] + 5 * frame["kind"]
    if library == "lightgbm.txt":
        rows = lightgbm.Dataset(frame, label, categorical_feature=["kind"])
        lightgbm.train({"verbosity": -1, "min_data_per_group": 1, "min_data_in_leaf": 1, "cat_smooth": 0}, rows, 3).save_model(tmp_path / library)
    else:
        options = {"iterations": 5, "cat_features": ["kind"], "verbose": 0, "thread_count": 1, "allow_writing_files": False}
        catboost.CatBoostRegressor(**options).fit(frame, label).save_model(str(tmp_path / library), format=library.partition(".")[2])
    frame.to_parquet(tmp_path / "data.parquet")
    command = ["explain", str(tmp_path / library), str(tmp_path / "data.parquet"), "--out", str(tmp_path / "run"), "--scheduler", "serial"]
    assert cli.main(command) == 0
    assert "no category of the model" not in capsys.readouterr().out
    counted = pq.read_table(tmp_path / "run/summary/inputs.parquet")
    assert counted.schema.field("unseen").type == pa.int64()
    assert {row["feature"]: row["unseen"] for row in counted.to_pylist()} == {"kind": None, "x": 0}
    assert attribute(tmp_path / library, frame).summaries["inputs"].to_pylist() == counted.to_pylist()


@pytest.fixture(scope="module")
def strangers(example, tmp_path_factory):
    """The example's rows with carriers that its model never saw, but for few of them; and a data set of them."""
    frame = example.frame.copy()
    frame["carrier"] = np.where(np.arange(len(frame)) % 200 == 0, frame["carrier"], "ZZ")
    data = tmp_path_factory.mktemp("strangers") / "data.parquet"
    frame.to_parquet(data)
    return frame, data


def test_a_run_of_strangers_is_refused_and_goes_on_where_they_are_meant(example, strangers, tmp_path, capsys):
    """Its rows are done by then: what allows them publishes the same parts."""
    frame, data = strangers
    known = frame["carrier"].ne("ZZ") & frame["carrier"].isin(example.frame["carrier"].dropna())
    says = rf"^column 'carrier': {len(frame) - known.sum() - frame['carrier'].isna().sum():,} of [0-9,]+ values are no category of the model"
    with pytest.raises(SchemaMismatch, match=says):
        explain(example.model, data, tmp_path / "run", scheduler="serial")
    parts = {path: path.stat().st_mtime_ns for path in tmp_path.glob("run/attributions/*")}
    assert parts
    assert cli.main(["explain", example.model, str(data), "--out", str(tmp_path / "run"), "--scheduler", "serial", "--allow-unseen"]) == 0
    n_unseen = len(frame) - known.sum() - frame["carrier"].isna().sum()
    assert f"values that are no category of the model: {n_unseen:,} of {len(frame):,} in 'carrier'" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("run/attributions/*")} == parts
    assert len(attributions(tmp_path / "run")) == len(frame)
    check_run(tmp_path / "run", deep=True)
    counted = {row["feature"]: row for row in json.loads((tmp_path / "run/summary/inputs.json").read_text())}
    assert counted["carrier"]["unseen"] == len(frame) - known.sum() - frame["carrier"].isna().sum()
    for name, row in counted.items():
        assert (row["rows"], row["missing"]) == (len(frame), frame[name].isna().sum())


def test_in_memory_too(example, strangers):
    """By the same rule, with the same counts."""
    frame, _ = strangers
    with pytest.raises(SchemaMismatch, match=r"^column 'carrier': "):
        attribute(example.model, frame)
    found = attribute(example.model, frame, allow_unseen=True)
    assert found.totals["inputs"]["unseen"] == {"carrier": found.summaries["inputs"]["unseen"][0].as_py()}
    assert 0.9 * len(frame) < found.totals["inputs"]["unseen"]["carrier"] < len(frame)
    assert attribute(example.model, example.frame).totals["inputs"]["unseen"] == {}
    few = frame[frame["carrier"] == "ZZ"].head(ENOUGH - 1)
    assert attribute(example.model, few).totals["inputs"]["unseen"] == {"carrier": len(few)}


def test_values_where_a_model_has_codes_are_refused(tmp_path):
    """XGBoost files before 3.1 have no category lists: columns must hold codes, which years, say, are not."""
    years = np.array([2018, 2019, 2020])
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"year": pd.Categorical(years[rng.integers(0, 3, 400)]), "x": rng.normal(size=400)})
    booster = xgboost.train({"max_cat_to_onehot": 1}, xgboost.DMatrix(frame, frame["year"].cat.codes * 5.0 + frame["x"], enable_categorical=True), 5)
    booster.save_model(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    document["learner"]["gradient_booster"]["model"].pop("cats", None)
    document["version"] = [3, 0, 0]
    (tmp_path / "old.json").write_text(json.dumps(document))
    with pytest.raises(SchemaMismatch, match=r"^column 'year': 400 of 400 values are no category of the model"):
        attribute(str(tmp_path / "old.json"), frame.assign(year=frame["year"].astype(int)))
    codes = frame.assign(year=frame["year"].cat.codes)
    margins = booster.predict(xgboost.DMatrix(frame, enable_categorical=True), output_margin=True)
    np.testing.assert_allclose(attribute(str(tmp_path / "old.json"), codes).margin[:, 0], margins, rtol=1e-5, atol=1e-5)


def test_predictions_are_one_for_every_output():
    """Or none at all; one more or one less is told."""
    for names in ((), ("a", "b")):
        check_predictions(names, ("no", "yes"))
    for names in (("a",), ("a", "b", "c")):
        with pytest.raises(UsageError, match=rf"^predictions are {', '.join(names)}, expected a column for each of the model's 2 outputs$"):
            check_predictions(names, ("no", "yes"))


CATEGORIES = "expected 'AA', 'B6', 'DL' and 1 more, got 'Rome', 'Oslo', 'Bonn'; allow_unseen takes them as they are"


@pytest.mark.slow
def test_some_of_what_was_got_and_of_what_was_expected_is_said(example, tmp_path):
    """In the whole line, wherever such rows are refused: in memory, in a background, in a run, its background and a comparison."""
    cities = np.resize(["Rome", "Oslo", "Bonn", "Nice", None], 300)
    known = example.frame[FEATURES][:300]
    rows = known.assign(carrier=cities)
    pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), tmp_path / "rows.parquet")
    pq.write_table(pa.Table.from_pandas(known, preserve_index=False), tmp_path / "known.parquet")
    unknown, at = "column 'carrier': 240 of 240 values are no category of the model", f"{tmp_path}/rows.parquet"
    for where, call in (
        ("", lambda: attribute(example.model, rows)),
        ("", lambda: attribute(example.model, pa.table(rows))),
        ("rows of the background: ", lambda: attribute(example.model, known[:3], background=rows)),
        ("rows: ", lambda: curves(example.model, rows, 0.0)),
        ("", lambda: explain(example.model, at, tmp_path / "run", scheduler="serial")),
        (f"{at}: ", lambda: explain(example.model, tmp_path / "known.parquet", tmp_path / "other", background=at, scheduler="serial")),
        (f"{at}: ", lambda: compare(example.model, at, tmp_path / "compared.parquet", methods=["shapley", "banzhaf"], scheduler="serial")),
    ):
        with pytest.raises(SchemaMismatch) as refusal:
            call()
        assert str(refusal.value) == f"{where}{unknown}, {CATEGORIES}"


def test_codes_of_a_matrix_are_said_too(example):
    """A matrix has codes in the place of categories."""
    codes = np.column_stack([example.frame[["distance", "delay"]][:200], np.full(200, 77.0), example.frame["month"][:200]])
    with pytest.raises(SchemaMismatch) as refusal:
        attribute(example.model, codes)
    assert str(refusal.value) == (
        "column 'carrier': 200 of 200 values are no category of the model, expected 0, 1, 2 and 1 more, got 77.0; allow_unseen takes them as they are"
    )
