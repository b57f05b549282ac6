"""Two runs compared from end to end: the same bytes every time, strict JSON, a reference that is read once; one line for what cannot be compared."""

import json
import shutil
from dataclasses import astuple

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

import leafledger
from leafledger import check_run, drift, explain, read_latest
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import InvalidRun, LeafledgerError, UsageError
from leafledger.pipeline.runs.formats.numbers import FORMAT
from tests.pipeline.conftest import WRONG, train, write_data


def refuse_constants(text):
    raise ValueError(text)


def test_drift_is_found_and_written(nights):
    """Alarms say what drifted; table and document hold the same, the record lists them, and a second time nothing changes."""
    a, b = nights
    found = drift(b, against=a)
    assert found.crossed
    assert any(line.startswith("value of delay: ") for line in found.alarms)
    assert not any("distance" in line.split(":")[0] for line in found.alarms)
    document = json.loads((b / "after" / "drift.json").read_text(), parse_constant=refuse_constants)
    table = pq.read_table(b / "after" / "drift.parquet")
    assert document.pop("format_version") == FORMAT
    assert document == json.loads(json.dumps(found.to_dict()))
    assert (document["run"], document["reference"], document["n_rows"], document["alarms"]) == (str(b), str(a), 2500, list(found.alarms))
    for shift, row in zip(found.shifts, document["shifts"], strict=True):
        assert [None if isinstance(each, float) and not np.isfinite(each) else each for each in astuple(shift)] == list(row.values())
    assert table.to_pylist() == document["shifts"]
    assert table.equals(found.table)
    (split,) = found.outputs
    phi = [shift for shift in found.shifts if shift.kind == "phi"]
    assert_allclose(sum(shift.change for shift in phi) + split.base + split.rounding, split.change, atol=1e-12)
    assert all(shift.wasserstein >= abs(shift.change) for shift in found.shifts if not np.isnan(shift.wasserstein))
    before = {path.name: path.read_bytes() for path in (b / "after").iterdir()}
    assert drift(str(b), against=str(a), scheduler="serial").text == found.text
    assert {path.name: path.read_bytes() for path in (b / "after").iterdir()} == before
    assert check_run(b).sound
    assert "alarm" in repr(found)
    assert "<b>" not in found._repr_html_()


def test_the_reference_is_read_once(nights):
    """Its own quantities are kept: the next night needs none of its parts."""
    a, b = nights
    drift(b, against=a)
    parts = {path: path.read_bytes() for path in (a / "attributions").iterdir()}
    try:
        for path in parts:
            path.unlink()
        assert drift(b, against=a).crossed
    finally:
        for path, data in parts.items():
            path.write_bytes(data)


def test_the_reference_may_be_the_latest(example, nights, tmp_path):
    """By the object that names it; not the run itself."""
    write_data(example.frame, tmp_path / "data")
    explain(example.model, tmp_path / "data", tmp_path / "run", date="2026-11-22", latest=tmp_path / "latest.json", scheduler="serial")
    assert drift(nights[1], against=tmp_path / "latest.json").reference == str(tmp_path / "run")
    with pytest.raises(UsageError, match="is the very run"):
        drift(tmp_path / "run", against=tmp_path / "latest.json")
    text = (tmp_path / "latest.json").read_text()
    (tmp_path / "other.json").write_text(text.replace(read_latest(tmp_path / "latest.json").manifest, "0" * 64))
    with pytest.raises(InvalidRun, match=r"its manifest has SHA-256 .* names 000000000000"):
        drift(nights[1], against=tmp_path / "other.json")
    with pytest.raises(UsageError, match=r"nothing\.json: not there"):
        drift(nights[1], against=tmp_path / "nothing.json")


def test_the_same_rows_have_not_drifted(example, nights, tmp_path):
    """Nothing changed at all: no alarm, an order that is the same, changes of 0."""
    write_data(example.frame, tmp_path / "data")
    explain(example.model, tmp_path / "data", tmp_path / "run", values=True, scheduler="serial")
    found = drift(tmp_path / "run", against=nights[0])
    assert (found.alarms, found.differs, found.outputs[0].ndcg, found.outputs[0].change) == ((), (), 1.0, 0.0)
    assert {shift.distance for shift in found.shifts if not np.isnan(shift.distance)} == {0.0}


@pytest.mark.slow
def test_the_same_rows_in_another_precision_have_not_drifted(example, nights, tmp_path):
    """Attributions in float64 that were in float32, and values that are stored as float32: both are said, and no distance is left."""
    given = {"values": True, "scheduler": "serial"}
    explain(example.model, write_data(example.frame, tmp_path / "data"), tmp_path / "double", precision="float64", **given)
    found = drift(tmp_path / "double", against=nights[0])
    assert (found.alarms, found.differs) == ((), ("precision was float32, it is float64; attributions are compared as float32",))
    rows = example.frame.assign(delay=example.frame["delay"] / 7)
    for name, kind in (("wide", "float64"), ("narrow", "float32")):
        data = write_data(rows.assign(delay=rows["delay"].astype(kind)), tmp_path / f"{name}-data")
        explain(example.model, data, tmp_path / name, **given)
    several = drift(tmp_path / "narrow", against=tmp_path / "wide")
    assert (several.alarms, several.differs) == ((), ("features whose values have another precision, and are compared by the lower one: delay",))
    for shift in (*found.shifts, *(shift for shift in several.shifts if shift.kind == "value")):
        assert np.isnan(shift.distance) or shift.distance <= 0.001


def test_a_threshold_of_ones_own(nights):
    """A false discovery rate of 0 lets nothing drift, an nDCG of 1 any change of order."""
    a, b = nights
    assert not drift(b, against=a, thresholds={"false_discovery_rate": 0, "ndcg": 0}).crossed
    assert any("nDCG" in line for line in drift(b, against=a, thresholds={"ndcg": 1.0}).alarms) == (drift(b, against=a).outputs[0].ndcg < 1)


@pytest.mark.parametrize("options", [{"objective": "multiclass", "num_class": 3}, {"objective": "binary"}])
def test_several_outputs_and_predictions(example, frames, tmp_path, options):
    """Of classes, and of probabilities: all add up."""
    target = {"num_class": 3} if "num_class" in options else {}
    frame = frames[0].assign(delay=(frames[0]["delay"] > 50) * 1.0) if not target else frames[0]
    if target:
        train(frame, **options).save_model(tmp_path / "model.txt")
    else:
        import lightgbm

        from tests.pipeline.conftest import FEATURES, TRAINING

        inputs = frames[0][FEATURES].assign(carrier=frames[0]["carrier"].astype("category"))
        lightgbm.train(TRAINING | options, lightgbm.Dataset(inputs, frame["delay"]), 8).save_model(tmp_path / "model.txt")
    for name, night in zip("ab", frames, strict=True):
        explain(tmp_path / "model.txt", write_data(night, tmp_path / f"data-{name}"), tmp_path / name, space="probability", scheduler="serial")
    found = drift(tmp_path / "b", against=tmp_path / "a")
    assert {shift.kind for shift in found.shifts} >= {"prediction", "phi"}
    for split in found.outputs:
        assert_allclose(split.base + split.features + split.rounding, split.change, atol=1e-12)
        assert split.base == 0.0


TOP, SUMMARIES, BANZHAF = {"top": 2, "columns": "top"}, {"global_only": True}, {"method": "banzhaf"}
LESS = [({}, None), ({}, "predicted"), (TOP, "other:3"), (SUMMARIES, None), (SUMMARIES, "predicted"), (BANZHAF, None)]
MORE_LESS = [({}, "other:3"), (TOP, None), (TOP, "predicted"), (SUMMARIES, "other:3"), (BANZHAF, "predicted"), (BANZHAF, "other:3")]


@pytest.mark.parametrize(("options", "output"), [*LESS, *(pytest.param(*case, marks=pytest.mark.more) for case in MORE_LESS)])
@pytest.mark.slow
def test_runs_with_less_are_compared_by_what_they_have(example, frames, tmp_path, options, output):
    """Means from summaries where there are no columns; the mean of base values where every row has its own, which summaries alone do not tell."""
    train(example.frame, objective="multiclass", num_class=3).save_model(tmp_path / "model.txt")
    for name, night in zip("ab", frames, strict=True):
        explain(tmp_path / "model.txt", write_data(night, tmp_path / f"data-{name}"), tmp_path / name, scheduler="serial", output=output, **options)
    found = drift(tmp_path / "b", against=tmp_path / "a")
    assert len([shift for shift in found.shifts if shift.kind == "phi"]) == 4 * len(found.outputs)
    assert any(shift.kind == "missing" and shift.drifted for shift in found.shifts)
    for split in found.outputs:
        if options.get("method") == "banzhaf" or (options.get("global_only") and output):
            assert (split.base, split.features, split.rounding) == (None, None, None)
        else:
            assert_allclose(split.base + split.features + split.rounding, split.change, atol=1e-9)


@pytest.mark.slow
def test_what_is_not_seen_is_said(example, tmp_path):
    """Where most values are in one cell: no figures, and a line that names the columns, of all rows and of groups."""
    rng, n = np.random.default_rng(0), 20_000
    for k, name in enumerate("ab"):
        frame = example.frame.sample(n, replace=True, random_state=k, ignore_index=True)
        wide = np.where(rng.random(n) < 0.4, rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n), rng.normal(7e5 + k, 1.0, n))
        write_data(frame.assign(distance=wide), tmp_path / f"data-{name}")
        explain(example.model, tmp_path / f"data-{name}", tmp_path / name, values=True, scheduler="serial")
    found = drift(tmp_path / "b", against=tmp_path / "a", by="month")
    (shift,) = (each for each in found.shifts if (each.kind, each.feature) == ("value", "distance"))
    assert shift.unsure
    assert np.isnan([shift.distance, shift.p, shift.corrected, shift.psi, shift.wasserstein]).all()
    assert [each.feature for each in found.shifts if each.unsure] == ["distance"]
    (line,) = (each for each in found.differs if "lie in one cell" in each)
    assert "how they moved within it is not known: value of distance" in line


@pytest.mark.parametrize("n_rows", [0, 1])
def test_hardly_any_rows(example, nights, tmp_path, n_rows):
    """None, or one, against many: nothing is sure, nothing breaks, and the document is JSON."""
    write_data(example.frame.iloc[:1], tmp_path / "data")
    if n_rows == 0:
        path = next((tmp_path / "data").rglob("*.parquet"))
        pq.write_table(pq.read_table(path).slice(0, 0), path)
    explain(example.model, tmp_path / "data", tmp_path / "run", values=True, scheduler="serial")
    for run, against in ((tmp_path / "run", nights[0]), (nights[0], tmp_path / "run")):
        found = drift(run, against=against)
        json.loads(found.text, parse_constant=refuse_constants)
        assert not any(shift.drifted for shift in found.shifts)


@pytest.mark.parametrize("name", ["run", "against", "thresholds", "both_ways", "scheduler", "workers"])
def test_wrong_arguments_are_one_line(nights, name):
    """Whatever stands in their place."""
    given = {"run": nights[1], "against": nights[0]}
    for wrong in WRONG:
        with pytest.raises(LeafledgerError) as caught:
            drift(**{**given, name: wrong} if name != "thresholds" or not isinstance(wrong, dict) else {**given, name: {"x": 1}})
        assert "\n" not in str(caught.value)


def test_it_is_public():
    """Exported on first use."""
    assert leafledger.drift is drift
    assert leafledger.Drift.__name__ == "Drift"


def test_days_as_whole_numbers_read_differently(example, tmp_path):
    """In alarms, where both had the mean 2.026e+07."""
    for name, day in (("a", 20260302.0), ("b", 20260303.0)):
        data = write_data(example.frame.iloc[:600].assign(delay=day), tmp_path / f"data-{name}")
        explain(example.model, data, tmp_path / name, values=True, scheduler="serial")
    found = drift(tmp_path / "b", against=tmp_path / "a")
    assert "value of delay: all rows have 20260303, before all had 20260302; expected? --ignore delay" in found.alarms


@pytest.mark.parametrize("options", [{}, {"global_only": True}, {"top": 1, "columns": "top"}])
def test_of_a_night_without_rows_nothing_is_known(example, nights, tmp_path, capsys, options):
    """Neither a mean, which was the base value of a run with summaries alone, nor shares, ranks and an order."""
    example.frame.iloc[:0].to_parquet(tmp_path / "none.parquet")
    explain(example.model, tmp_path / "none.parquet", tmp_path / "none", scheduler="serial", **options)
    for run, against in ((tmp_path / "none", nights[0]), (shutil.copytree(nights[0], tmp_path / "copy"), tmp_path / "none")):
        found = drift(run, against=against)
        (split,) = found.to_dict()["outputs"]
        mine = "" if run.name == "none" else "reference_"
        assert (split[f"{mine}mean"], split["change"], split["ndcg"]) == (None, None, None)
        for shift in (shift for shift in found.to_dict()["shifts"] if shift["kind"] == "phi"):
            assert [shift[f"{mine}{name}"] for name in ("mean", "mean_abs", "share", "rank")] == [None] * 4
        assert found.alarms == (("no rows, before 3,000",) if run.name == "none" else ())
        assert main(["drift", str(run), "--against", str(against)]) == (4 if run.name == "none" else 0)
        said = capsys.readouterr().out
        assert "order of the features by importance: nDCG –" in said
        assert ("no rows, before 3,000" in said) == (run.name == "none")
