"""Nearest changes in runs: what is found in memory, of rows on the side that reasons are of, in the words of the file."""

import json

import lightgbm
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from leafledger import UsageError, check_run, explain, nearest_changes, read_run
from leafledger.pipeline.errors import UnsupportedModel
from leafledger.pipeline.runs.columns.change_columns import read_changes
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan.model import load_model
from leafledger.pipeline.runs.plan.planned_run import plan_run
from leafledger.pipeline.stores.table_arrays import table_bytes
from tests.pipeline.in_memory.changes.libraries import make_frame, train_catboost, train_lightgbm, with_categories
from tests.pipeline.running import attributions

TOLD = {
    "direction": "raises",
    "default": {"text": "{feature} is {value}"},
    "changes": {"threshold": 0.6, "space": "probability", "text": "less risk if {feature} were {change}"},
    "change": [
        {"feature": "share", "direction": "down", "step": 0.05, "at_least": 0.1, "text": "would be accepted if the share were {change:.0%}"},
        {"feature": "hour"},
        {"feature": "carrier", "to": ["WN", "AA", "B6"]},
        {"feature": "delay", "step": 0.5},
    ],
}


@pytest.fixture(scope="module")
def risks(tmp_path_factory):
    """A model and its rows as files, and the rows."""
    folder, frame = tmp_path_factory.mktemp("risks"), make_frame(1)
    model, predict = train_lightgbm(frame)
    model.booster_.save_model(folder / "model.txt")
    rows = make_frame(2).assign(id=np.arange(1000))
    rows.to_parquet(folder / "rows.parquet", row_group_size=300)
    return folder, model, rows, predict(rows[frame.columns])


@pytest.fixture(scope="module")
def run(risks):
    """A run with changes."""
    folder, *_ = risks
    (folder / "reasons.json").write_text(json.dumps(TOLD))
    explain(folder / "model.txt", folder / "rows.parquet", folder / "run", ids=["id"], reasons=folder / "reasons.json", values=True, item_rows=400)
    return folder / "run"


def test_a_run_has_what_is_found_in_memory(risks, run):
    """On the side of the risk, row by row and word by word; null on the other side."""
    _, model, rows, predicted = risks
    table = attributions(run)
    assert table["id"].to_pylist() == list(range(1000))
    found = nearest_changes(model, rows, reasons=TOLD)
    listed = table["changes"].to_pylist()
    n_told = 0
    for i, entries in enumerate(listed):
        assert (entries is None) == (predicted[i] < 0.6)
        if entries is not None:
            values = {name: found.at(i, name) for name in found.features}
            assert [entry["feature"] for entry in entries] == [name for name, value in values.items() if value is not None]
            assert [entry["text"] for entry in entries] == found.words(i)
            for entry in entries:
                assert entry["value"] == str(values[entry["feature"]]).removesuffix(".0")
            n_told += len(entries)
    assert n_told > 100
    texts = [entry["text"] for entries in listed if entries for entry in entries]
    assert any(text.startswith("would be accepted if the share were at most ") and text.endswith("%") for text in texts)
    assert any(text.startswith("less risk if hour were ") for text in texts)
    assert "less risk if carrier were AA" in texts or "less risk if carrier were WN" in texts


@pytest.mark.slow
def test_other_scales_and_places_have_the_same_changes(risks, run, tmp_path):
    """Predictions in place of margins, a background, several threads: changes are the model's own."""
    folder, *_ = risks
    given = {"ids": ["id"], "reasons": folder / "reasons.json", "threads": 2}
    explain(folder / "model.txt", folder / "rows.parquet", tmp_path / "a", **given, space="probability")
    explain(folder / "model.txt", folder / "rows.parquet", tmp_path / "b", **given, background=folder / "rows.parquet")
    for other in ("a", "b"):
        assert attributions(tmp_path / other)["changes"].to_pylist() == attributions(run)["changes"].to_pylist()


def test_a_worker_s_memory_holds_the_tables_of_changes(risks, tmp_path):
    """Beside those of attributions."""
    folder, *_ = risks

    def plan(**given):
        job = make_job(folder / "model.txt", folder / "rows.parquet", tmp_path / "run", Options(scheduler="serial", **given))
        return plan_run(job, load_model(job))

    alone, both = plan(), plan(reasons=TOLD)
    assert both.memory.tables - alone.memory.tables > table_bytes(both.tables.game.changes) * 0.9 > 0


def test_rows_that_are_explained_again_say_the_same(run):
    """Every word."""
    assert check_run(run, deep=True, all_rows=True).sound


def test_reasons_that_lower_are_of_the_other_side(risks, tmp_path):
    """Rows that do not reach the threshold, and the way up."""
    folder, _, _, predicted = risks
    told = {**TOLD, "direction": "lowers", "change": [{"feature": "hour"}]}
    explain(folder / "model.txt", folder / "rows.parquet", tmp_path / "run", reasons=told)
    listed = attributions(tmp_path / "run")["changes"].to_pylist()
    assert [entries is not None for entries in listed] == (predicted < 0.6).tolist()


def test_rows_are_shown_with_their_changes(run):
    """As text, as JSON and as HTML."""
    table = attributions(run)
    lists = dict(zip(table["id"].to_pylist(), table["changes"].to_pylist(), strict=True))
    some = next(row for row, entries in lists.items() if entries)
    none = next(row for row, entries in lists.items() if entries == [])
    good = next(row for row, entries in lists.items() if entries is None)
    shown = {row: read_run(run).show({"id": row}) for row in (some, none, good)}
    assert "one change would do" in shown[some].text()
    assert lists[some][0]["text"] in shown[some].text()
    assert lists[some][0]["text"] in shown[some]._repr_html_()
    assert shown[some].to_dict()["rows"][0]["outputs"][0]["changes"] == lists[some]
    assert "no change of one feature would do" in shown[none].text()
    assert "change" not in shown[good].text()


def test_the_plan_keeps_what_may_be_changed(run):
    """A run without changes says nothing of them."""
    plan = read_run(run).plan
    assert plan.reasons.changes.threshold == 0.6
    assert [change.feature for change in plan.reasons.changes.features] == ["share", "hour", "carrier", "delay"]
    assert "changes" in pq.ParquetFile(run / "attributions" / "part-00000.parquet").schema_arrow.names


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"changes": {"threshold": 0.6}}, "has no [[change]] of a feature; expected both or neither"),
        ({"change": [{"feature": "hour"}]}, "has no table 'changes' with the threshold that they are to cross; expected both or neither"),
        ({"changes": {"treshold": 1}, "change": [{"feature": "hour"}]}, "changes: has 'treshold', expected threshold, space, text; did you mean"),
        ({"changes": {}, "change": [{"feature": "hour"}]}, "changes: threshold is not given"),
        ({"changes": 3, "change": [{"feature": "hour"}]}, "changes: is 3, expected a table of threshold, space, text"),
        ({"changes": {"threshold": 1}, "change": {"feature": "hour"}}, "expected a list of tables, [[change]] in TOML"),
        ({"changes": {"threshold": 1}, "change": [{}]}, "change 1: feature is None, expected a name"),
        ({"changes": {"threshold": 1}, "change": [{"feature": "our"}]}, "change has 'our', which is no feature of the model; did you mean 'hour'?"),
        (
            {"changes": {"threshold": 1}, "change": [{"feature": "hour", "stp": 1}]},
            "change 1: has 'stp', expected feature, text, direction",
        ),
        ({"changes": {"threshold": 1}, "change": [{"feature": "hour"}] * 2}, "change has 'hour' twice, expected once"),
        ({"changes": {"threshold": 1}, "change": [{"feature": "hour", "text": "{x}"}]}, "change 1, of 'hour': text '{x}' cannot be filled in"),
        ({"changes": {"threshold": 1, "text": ""}, "change": [{"feature": "hour"}]}, "changes: text is '', expected words"),
        ({"changes": {"threshold": 1}, "change": [{"feature": "hour", "at_least": 2, "at_most": 1}]}, "of 'hour': at_least is 2, above at_most, 1"),
        ({"changes": {"threshold": 99}, "change": [{"feature": "hour"}]}, "threshold is 99, but all that the model can say is below it"),
        ({"changes": {"threshold": 0}, "change": [{"feature": "carrier", "step": 1}]}, "'carrier': has step, but it is a feature of categories"),
    ],
)
def test_files_that_cannot_be_are_refused(risks, tmp_path, told, message):
    """Before any row is read, in one line that says where."""
    folder, *_ = risks
    with pytest.raises(UsageError, match=r"^[^\n]*$") as refused:
        explain(folder / "model.txt", folder / "rows.parquet", tmp_path / "run", reasons={"direction": "raises", "default": {"text": "x"}, **told})
    assert str(refused.value).startswith(("reasons: ", "threshold is 99"))
    assert message in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_a_file_without_changes_has_none_for_memory(risks):
    """It was asked for them."""
    _, model, rows, _ = risks
    assert read_changes({}, (), "here") is None
    with pytest.raises(UsageError, match="reasons: says nothing of changes; expected a table 'changes'"):
        nearest_changes(model, rows, reasons={"direction": "raises"})


def test_arguments_come_before_the_file(risks):
    """Another threshold, other features."""
    _, model, rows, _ = risks
    found = nearest_changes(model, rows, reasons=TOLD, threshold=0.5, features=["hour"])
    assert (found.threshold, found.space, found.features) == (0.5, "probability", ("hour",))
    assert found.words(int(np.flatnonzero(np.isfinite(found.value[:, 0]))[0]))[0].startswith("less risk if hour were ")


def test_a_threshold_is_of_one_output(tmp_path):
    """Not of several, and not of each row's own."""
    frame = make_frame(1)[["delay", "hour", "share"]]
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(frame, frame["hour"] // 9)
    model.booster_.save_model(tmp_path / "model.txt")
    frame.to_parquet(tmp_path / "rows.parquet")
    told = {**TOLD, "changes": {"threshold": -1.0}, "change": [{"feature": "hour"}]}
    place = tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "run"
    with pytest.raises(UsageError, match="a threshold is of one output, but the model has 0, 1, 2; expected one of them as output"):
        explain(*place, reasons=told)
    with pytest.raises(UsageError, match="a threshold is of one output, but each row has one of its own"):
        explain(*place, reasons=told, output="predicted")
    explain(*place, reasons=told, output="1")
    found = nearest_changes(model, frame, reasons=told, output=1)
    listed = attributions(tmp_path / "run")["changes"].to_pylist()
    told_rows = [i for i, entries in enumerate(listed) if entries]
    assert told_rows
    assert all(listed[i][0]["value"] == str(found.at(i, "hour")) for i in told_rows)


def test_categories_that_are_hashes_are_named_by_the_file(tmp_path):
    """CatBoost's model has no names, so the file has to list them."""
    frame = make_frame(1)
    model, _ = train_catboost(frame)
    model.save_model(tmp_path / "model.cbm")
    with_categories(frame).to_parquet(tmp_path / "rows.parquet")
    place, told = (tmp_path / "model.cbm", tmp_path / "rows.parquet", tmp_path / "run"), {**TOLD, "change": [{"feature": "carrier"}]}
    with pytest.raises(UnsupportedModel, match="'carrier': the model knows its categories by hashes alone"):
        explain(*place, reasons=told)
    explain(*place, reasons={**told, "change": [{"feature": "carrier", "to": ["WN", "AA", "B6"]}, {"feature": "hour"}]})
    entries = [each for listed in attributions(tmp_path / "run")["changes"].to_pylist() for each in listed or ()]
    assert {each["value"] for each in entries if each["feature"] == "carrier"} & {"WN", "AA", "B6"}
    assert pd.to_numeric(pd.Series([each["value"] for each in entries if each["feature"] == "hour"])).between(-10, 40).all()
