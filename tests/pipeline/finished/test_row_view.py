"""Rows of a run as people and programs read them: numbers as duckdb selects them, nothing but text from data, and what was not kept is said."""

import json
import math

import duckdb
import lightgbm
import numpy as np
import pandas as pd
import pytest

from leafledger import attribute, explain, read_run
from leafledger.pipeline.display.waterfall import Step
from leafledger.pipeline.finished.row_data import ShownRow, left_out, other_totals, row_title, shown_steps, write_reason
from tests.pipeline.conftest import FEATURES
from tests.pipeline.showing import one, shown

EVIL = "\x1b[31m<b>[red]x\u202e\n"


@pytest.fixture(scope="module")
def run(example, tmp_path_factory):
    out = tmp_path_factory.mktemp("shown") / "run"
    explain(example.model, example.data, out, ids=["flight", "carrier"], values=True, interactions=2, top=2, scheduler="serial")
    return out


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """A model of three classes, and its rows."""
    folder, rng = tmp_path_factory.mktemp("classes"), np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(100, 3)).round(2), columns=list("abc"))
    model = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1).fit(rows, np.digitize(rows["a"], [-0.5, 0.5]))
    model.booster_.save_model(folder / "model.txt")
    rows.assign(n=range(100)).to_parquet(folder / "rows.parquet")
    return folder


def made(classes, out, **given):
    explain(classes / "model.txt", classes / "rows.parquet", out, **({"ids": "n", "scheduler": "serial"} | given))
    return read_run(out)


@pytest.mark.parametrize("flight", [0, 1234, 2999])
def test_json_has_what_duckdb_selects(run, flight):
    """Every number to the last bit, values in their own types, lists entry by entry."""
    found = json.loads(json.dumps(read_run(run).show({"flight": flight}).to_dict()))
    selected = duckdb.sql(f"SELECT * FROM '{run}/attributions/*.parquet' WHERE flight = {flight}")
    stored = dict(zip(selected.columns, selected.fetchall()[0], strict=True))
    (row,) = found["rows"]
    (output,) = row["outputs"]
    assert found["n_found"] == 1
    assert row["ids"] == {"flight": flight, "carrier": stored["carrier"]}
    assert row["values"] == {name: stored[f"value_{name}"] for name in FEATURES}
    assert output["margin"] == stored["margin"]
    assert {entry["feature"]: entry["phi"] for entry in output["attributions"]} == {name: stored[f"phi_{name}"] for name in FEATURES}
    assert {entry["feature"]: entry["value"] for entry in output["attributions"]} == row["values"]
    sizes = [abs(entry["phi"]) for entry in output["attributions"]]
    assert sizes == sorted(sizes, reverse=True)
    assert output["interactions"] == stored["interactions"]
    with open(run / "manifest.json") as file:
        assert output["base"] == json.load(file)["base"][0]


def test_the_text_is_that_of_the_waterfall(run, example):
    """The same lines as of the attributions in Python, with the features' values, which are those of the data."""
    found, row = read_run(run), example.frame.set_index("flight").loc[1234]
    text, way = str(found.show({"flight": 1234})), str(found.row(flight=1234).waterfall())
    *steps, total = text.split("\n")[1:7]
    assert [line.split() for line in steps] == [line.split() for line in way.split("\n")[1:-1]]
    assert total.split() == ["prediction", way.split()[-1]]  # the model is one of label units: its margins are predictions
    assert text.startswith(f"row flight = 1234, carrier = {row['carrier']}\nbase value ")
    assert f"distance = {row['distance']:.6g} " in text
    assert "\ninteractions\n" in text


def test_where_a_row_is_in_the_data(run, example):
    """The file, and the number of the row there."""
    (row,) = read_run(run).show({"flight": 1234}).rows
    held = pd.read_parquet(row.file)
    assert held["flight"].iloc[row.file_row] == 1234


def test_lists_alone_are_shown_with_what_was_not_kept(run, example, tmp_path):
    """What is missing to the margin is one step; where nothing adds up it is only counted."""
    explain(example.model, example.data, tmp_path / "top", ids="flight", top=1, columns="top", scheduler="serial")
    found = read_run(tmp_path / "top").show({"flight": 7})
    (whole,) = read_run(run).show({"flight": 7}).rows[0].outputs
    (output,) = found.rows[0].outputs
    first, rest = shown_steps(found.wording, output, 10)
    assert (first.player, first.phi) == (whole.steps[0].player, whole.steps[0].phi)
    assert rest.phi == pytest.approx(sum(step.phi for step in whole.steps[1:]), rel=1e-5)
    assert "\n3 others, not kept " in str(found)
    assert found.to_dict()["rows"][0]["outputs"][0]["not_kept"] == 3
    loose = shown(one([Step("a", "x", 2.0), Step("b", None, 1.0)], n_others=3), additive=False)
    assert [step.player for step in shown_steps(loose.wording, loose.rows[0].outputs[0], 1)] == ["a"]
    assert left_out(loose.wording, loose.rows[0].outputs[0], 1) == "1 more; 3 others, not kept"
    assert "base value" not in str(loose)


@pytest.mark.parametrize(("total", "rest"), [(1.3, 0.0), (1.31, 0.01)])
def test_what_rounding_leaves_is_nothing_that_was_not_kept(total, rest):
    """Attributions of 0 are in no list, and then single precision alone is missing to the margin."""
    stored = [float(np.float32(each)) for each in (0.1, 0.2, total)]
    found = shown(one([Step("a", None, stored[0]), Step("b", None, stored[1])], base=1.0, total=stored[2], n_others=1))
    *_, last = shown_steps(found.wording, found.rows[0].outputs[0], 10)
    assert (last.player, last.phi) == ("1 other, not kept", pytest.approx(rest, rel=1e-4, abs=0))


def test_the_output_of_the_largest_margin_comes_first(classes, tmp_path):
    """And all are in JSON; one can be asked for by its name."""
    run = made(classes, tmp_path / "run", outputs=["low", "mid", "high"])
    expected = attribute(classes / "model.txt", pd.read_parquet(classes / "rows.parquet")).margin
    for n in (0, 42, 99):
        row = run.show({"n": n}).rows[0]
        assert [each.output for each in row.outputs] == [("low", "mid", "high")[k] for k in np.argsort(-expected[n])]
        assert [each.total for each in row.outputs] == pytest.approx(sorted(expected[n], reverse=True), rel=1e-6)
        assert f"margins, the largest first: {row.outputs[0].output} " in str(run.show({"n": n}))
    (mid,) = run.show({"n": 42}, output="mid").rows[0].outputs
    assert mid.output == "mid"
    assert mid.total == pytest.approx(expected[42, 1], rel=1e-6)
    assert "row n = 42, output mid\n" in str(run.show({"n": 42}, output="mid"))
    assert other_totals(shown(one()).wording, one()) == ""


def test_the_only_output_that_was_asked_for_is_named(classes, tmp_path):
    """It is one of three, and margins of the others are not there."""
    run = made(classes, tmp_path / "run", outputs=["low", "mid", "high"], output="mid")
    assert run.show({"n": 42}).to_dict()["rows"][0]["outputs"][0]["output"] == "mid"
    assert str(run.show({"n": 42})).startswith("row n = 42, output mid\n")


def test_a_row_s_own_output_has_its_base_value(classes, tmp_path):
    run = made(classes, tmp_path / "own", output="predicted", space="probability")
    (found,) = run.show({"n": 42}).rows[0].outputs
    expected = attribute(classes / "model.txt", pd.read_parquet(classes / "rows.parquet"), space="probability")[42]
    k = int(expected.prediction.argmax())
    assert (found.output, found.base) == (str(k), expected.base[k])
    assert "prediction " in str(run.show({"n": 42}))


def test_methods_that_do_not_add_up_are_lists(classes, example, tmp_path):
    """No base value; ranks are numbered, with the method's scores; a row without a label has no shares."""
    text = str(made(classes, tmp_path / "banzhaf", method="banzhaf", output="1").show({"n": 4}))
    assert "base value" not in text
    assert "\nmargin " in text
    ranked = made(classes, tmp_path / "curves", method="curves", output="1").show({"n": 4})
    assert [step.phi for step in ranked.rows[0].outputs[0].steps] == [1, 2, 3]
    assert "\n   1  " in str(ranked)
    assert "\ninsertion " in str(ranked)
    assert set(ranked.to_dict()["rows"][0]["outputs"][0]["attributions"][0]) == {"feature", "rank"}
    explain(example.model, example.data, tmp_path / "r2", ids="flight", method="r2", label="delay", scheduler="serial")
    lost = read_run(tmp_path / "r2").show({"flight": int(example.frame["flight"][example.frame["delay"].isna()].iloc[0])})
    assert all(math.isnan(step.phi) for step in lost.rows[0].outputs[0].steps)
    assert all(entry["loss"] is None for entry in lost.to_dict()["rows"][0]["outputs"][0]["attributions"])
    assert "nan" in str(lost)


def test_groups_errors_and_missing_values_are_shown(classes, tmp_path):
    """Values of groups of one are theirs; a missing one is nan, and null in JSON."""
    rows = pd.read_parquet(classes / "rows.parquet").assign(b=np.nan)
    rows.to_parquet(tmp_path / "rows.parquet")
    given = {"values": True, "partition": {"ac": ["a", "c"]}, "background": classes / "rows.parquet", "background_errors": True, "output": "1"}
    explain(classes / "model.txt", tmp_path / "rows.parquet", tmp_path / "run", ids="n", scheduler="serial", **given)
    found = read_run(tmp_path / "run").show({"n": 3})
    assert "b = nan " in str(found)
    (output,) = found.to_dict()["rows"][0]["outputs"]
    entries = {entry["feature"]: entry for entry in output["attributions"]}
    assert entries["b"]["value"] is None
    assert "value" not in entries["ac"]
    assert entries["ac"]["error"] > 0
    assert found.to_dict()["rows"][0]["values"]["a"] == rows["a"][3]


def test_several_rows_are_counted(run, example):
    """All are found, the first are shown."""
    n = int((example.frame["carrier"] == "UA").sum())
    found = read_run(run).show({"carrier": "UA"}, most=3)
    flights = example.frame[example.frame["carrier"] == "UA"]["flight"].tolist()
    assert [row.ids["flight"] for row in found.rows] == flights[:3]
    assert found.n_found == n
    assert str(found).endswith(f"\n\n{n} rows found, of which 3 are shown")
    none = read_run(run).show({"carrier": None}, most=1)
    assert none.n_found == int(example.frame["carrier"].isna().sum())


def test_what_data_say_is_text_and_nothing_else():
    """Control characters, marks of direction, line ends; in names, values, ids, outputs and reasons."""
    reason = {"rank": 1, "code": EVIL, "text": EVIL, "feature": EVIL, "phi": 1.0, "share": 0.5, "value": EVIL}
    step = Step(EVIL, EVIL, 1.0)
    row = one([step], output=EVIL, interactions=(((EVIL, EVIL), 1.0),), reasons=(reason,), scores={EVIL: 1.0})
    row = ShownRow(row.place, row.file, 0, {EVIL: EVIL}, {EVIL: EVIL}, (*row.outputs, one([step], output=EVIL).outputs[0]))
    for text in (str(shown(row)), str(shown(row, ranks=True)), str(shown(row, additive=False))):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert all(line.isprintable() for line in text.split("\n"))
        assert text.count("x\\u202e\\n") >= 4


def test_rows_without_ids_are_known_by_their_place():
    assert row_title(one()) == "row 5 of part 2"


def test_reasons_are_written_by_rank():
    reason = {"rank": 2, "code": "R07", "text": "High debt", "feature": "debt", "phi": 0.25, "share": 0.4, "value": "12"}
    assert write_reason(reason) == "   2  R07 High debt (debt = 12, +0.25, 40%)"
    text = str(shown(one(reasons=(reason,))))
    assert text.endswith("\nreasons\n   2  R07 High debt (debt = 12, +0.25, 40%)")
    assert str(shown(one(reasons=(), interactions=()))).endswith("\nno interactions\nno reasons")
    assert shown(one(reasons=(reason,))).to_dict()["rows"][0]["outputs"][0]["reasons"] == [reason]


def test_json_holds_what_it_can_and_else_texts():
    """Infinite values are texts, what is missing is null."""
    row = one([Step("a", float("inf"), 1.0), Step("b", float("nan"), 1.0)])
    row = ShownRow(row.place, row.file, 0, {"day": pd.Timestamp("2020-01-01").date(), "n": 2**60, "flag": True, "no": None}, {}, row.outputs)
    found = shown(row).to_dict()["rows"][0]
    assert found["ids"] == {"day": "2020-01-01", "n": 2**60, "flag": True, "no": None}
    assert [entry["value"] for entry in found["outputs"][0]["attributions"]] == ["inf", None]
    json.dumps(found, allow_nan=False)
