"""Values of features beside their attributions: those of the data, in its own types, found changed where somebody changed them."""

import hashlib
import re

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost

from leafledger import check_run, compare, drift, explain, read_run
from leafledger.pipeline.errors import InvalidRun, SchemaMismatch, UsageError
from tests.pipeline.conftest import FEATURES
from tests.pipeline.running import attributions


@pytest.fixture(scope="module")
def run(example, tmp_path_factory):
    out = tmp_path_factory.mktemp("values") / "run"
    explain(example.model, example.data, out, ids="flight", values=True, scheduler="serial")
    return out


def given(example):
    """The data set as pyarrow reads it, its folders as texts."""
    table = pa.concat_tables(pq.ParquetFile(f"{example.data}/month={month}/data.parquet").read() for month in range(1, 5))
    counts = example.frame["month"].value_counts().sort_index()
    return table.append_column("month", pa.array(np.repeat(["1", "2", "3", "4"], counts)))


def test_values_are_those_of_the_data(run, example):
    """Nulls among them, a text where the path says it; beside what is there without them."""
    found, data = attributions(run), given(example)
    assert found.column_names == ["flight", "margin", *(f"phi_{name}" for name in FEATURES), *(f"value_{name}" for name in FEATURES)]
    for name in FEATURES:
        assert found[f"value_{name}"].equals(data[name]), name
    assert check_run(run, all_rows=True).n_again == 3000


@pytest.mark.slow
def test_attributions_of_a_run_have_them(run, example):
    """A waterfall shows them, and shap has them as data: numbers where the path has texts of numbers."""
    found, row = read_run(run).row(flight=17), example.frame.set_index("flight").loc[17]
    assert found.values("distance").tolist() == [row["distance"]]
    assert found.values("month").tolist() == [row["month"]]
    assert f"distance = {row['distance']:.6g}" in str(found.waterfall())
    assert found.to_shap().data[0, FEATURES.index("carrier")] == row["carrier"]


def test_lists_alone_and_groups_go_with_values(example, tmp_path):
    """With groups they are still the features'."""
    options = {"ids": "flight", "values": True, "scheduler": "serial", "partition": {"when": ["month", "delay"]}}
    explain(example.model, example.data, tmp_path / "run", top=1, columns="top", **options)
    found = attributions(tmp_path / "run")
    assert found.column_names == ["flight", "margin", "top", *(f"value_{name}" for name in FEATURES)]
    assert found["value_delay"].equals(given(example)["delay"])
    check_run(tmp_path / "run", deep=True)


@pytest.mark.slow
def test_every_type_comes_through(tmp_path):
    """Categories stay dictionaries, with values that no row has; a feature of no split is there too; the check explains again and agrees."""
    rng = np.random.default_rng(0)
    city = pd.Categorical(rng.choice(["Ä", "b"], 200), ["Ä", "b", "never"])
    frame = pd.DataFrame({"x": rng.normal(size=200).astype(np.float32), "city": city, "flag": rng.random(200) < 0.5, "none": np.int16(3)})
    model = lightgbm.train({"verbosity": -1, "min_data_in_leaf": 2, "min_data_per_group": 1}, lightgbm.Dataset(frame, frame["x"] + city.codes), 3)
    model.save_model(tmp_path / "model.txt")
    table = pa.Table.from_pandas(frame.assign(n=range(200)), preserve_index=False)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=70)
    explain(tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "run", ids="n", values=True, scheduler="serial")
    found, table = attributions(tmp_path / "run"), pq.read_table(tmp_path / "rows.parquet")
    for name in frame:
        assert found.schema.field(f"value_{name}").type == table.schema.field(name).type
        assert found[f"value_{name}"].to_pylist() == table[name].to_pylist()
    assert check_run(tmp_path / "run", all_rows=True).sound
    assert check_run(tmp_path / "run", deep=True).sound
    assert read_run(tmp_path / "run").row(n=150).values("city").tolist() == [city[150]]


def test_a_changed_value_is_found(example, tmp_path):
    """By its digest; and where the manifest was written anew, by what the data say."""
    out = tmp_path / "run"
    explain(example.model, example.data, out, values=True, scheduler="serial")
    part = out / "attributions/part-00001.parquet"
    before, size = part.read_bytes(), part.stat().st_size
    table = pq.read_table(part)
    values = pa.array([1.0, *table["value_distance"].to_pylist()[1:]])
    changed = table.set_column(table.schema.get_field_index("value_distance"), table.schema.field("value_distance"), values)
    with pq.ParquetFile(part) as parquet:
        kept = parquet.metadata.metadata[b"leafledger"].decode()
    with pq.ParquetWriter(part, changed.schema, compression="zstd", write_page_checksum=True) as writer:
        writer.write_table(changed)
        writer.add_key_value_metadata({"leafledger": kept})
    manifest = (out / "manifest.json").read_text()
    (out / "manifest.json").write_text(
        re.sub(hashlib.sha256(before).hexdigest(), hashlib.sha256(part.read_bytes()).hexdigest(), manifest).replace(
            f'"size": {size},', f'"size": {part.stat().st_size},'
        )
    )
    (out / "provenance.json").unlink()  # it names the manifest as it was
    check_run(out)
    with pytest.raises(InvalidRun, match=r"part-00001\.parquet: rows 0 to 63 explained again differ in column 'value_distance'$"):
        check_run(out, deep=True)


@pytest.mark.slow
def test_what_cannot_be_is_refused(example, tmp_path):
    """Without rows; a name that is taken; a column of other types in other files, which no reader takes for one data set."""
    with pytest.raises(UsageError, match=r"^values are of rows, but with global_only no rows are written"):
        explain(example.model, example.data, tmp_path / "a", values=True, global_only=True)
    rows = example.frame.drop(columns="name").assign(value_delay=1)
    rows.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(SchemaMismatch, match="'value_delay' would stand twice"):
        explain(example.model, tmp_path / "rows.parquet", tmp_path / "b", ids="value_delay", values=True, scheduler="serial")
    (tmp_path / "two").mkdir()
    rows.to_parquet(tmp_path / "two/1.parquet")
    rows.assign(month=rows["month"].astype(float)).to_parquet(tmp_path / "two/2.parquet")
    with pytest.raises(SchemaMismatch, match=r"2\.parquet: column 'month' is double, it is int64 in .*1\.parquet$"):
        explain(example.model, tmp_path / "two", tmp_path / "c", values=True, scheduler="serial")
    assert explain(example.model, tmp_path / "two", tmp_path / "c", scheduler="serial").n_rows == 6000


def test_a_run_with_values_is_compared_as_any(run, example, tmp_path):
    """Its files are known to be the same ones."""
    compare(example.model, example.data, tmp_path / "x.parquet", methods=["shapley", f"run:{run}"], scales=(), scheduler="serial")


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_missing_number_rounded_to_single_precision_is_missing_where_the_library_takes_it_so(tmp_path, library):
    """XGBoost compares in single precision: what drift, the largest attributions and the summary say agrees with it. LightGBM takes it as a value."""
    rng, n, number = np.random.default_rng(0), 300, -99.9
    x, gone = rng.normal(size=n), np.arange(n) % 4 == 0
    frame = pd.DataFrame({"x": np.where(gone, np.nan, x), "y": rng.normal(size=n)})
    model = tmp_path / ("model.json" if library == "xgboost" else "model.txt")
    target = np.where(gone, 5.0, x)
    if library == "xgboost":
        xgboost.train({"max_depth": 3}, xgboost.DMatrix(frame, target), 5).save_model(model)
    else:
        lightgbm.train({"verbosity": -1}, lightgbm.Dataset(frame, target), 5).save_model(model)
    rounded = float(np.float32(number))
    assert rounded != number
    options = {"missing": number, "columns": "both", "top": 2, "values": True, "scheduler": "serial"}
    for name, written in (("exact", number), ("rounded", rounded)):
        frame.assign(x=np.where(gone, written, x)).to_parquet(tmp_path / f"{name}.parquet")
        explain(model, tmp_path / f"{name}.parquet", tmp_path / name, **options)
    exact, found = (read_run(tmp_path / name).attributions() for name in ("exact", "rounded"))
    assert found["phi_x"].equals(exact["phi_x"]) == (library == "xgboost")
    values = [{each["feature"]: each["value"] for each in row}["x"] for row in found["top"].to_pylist()]
    assert {value is None for value in np.array(values, object)[gone]} == {library == "xgboost"}
    assert read_run(tmp_path / "rounded").summary("inputs")["missing"].to_pylist()[0] == (75 if library == "xgboost" else 0)
    alarms = [
        alarm for alarm in drift(tmp_path / "rounded", against=tmp_path / "exact").alarms if alarm.startswith(("value of x", "missing values of x"))
    ]
    assert bool(alarms) == (library == "lightgbm")
    assert check_run(tmp_path / "rounded", deep=True).sound
    assert explain(model, tmp_path / "rounded.parquet", tmp_path / "rounded", **options).sha256 == read_run(tmp_path / "rounded").manifest.sha256
