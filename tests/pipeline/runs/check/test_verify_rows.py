"""Rows explained again agree to the last bit, of every kind of run; what was changed is found, and what cannot be repeated is said."""

import json
import shutil

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger import explain, read_run
from leafledger.pipeline.errors import InvalidRun, NotRepeatable, UsageError
from leafledger.pipeline.runs.check.verify_rows import verify_rows


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Three classes; categories; files of several row groups, whose dictionaries differ."""
    folder, rng = tmp_path_factory.mktemp("verify"), np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(90, 2)).round(2), columns=["a", "b"]).assign(city=pd.Categorical(rng.choice(["x", "y", "z"], 90)))
    given = {"n_estimators": 3, "verbose": -1, "n_jobs": 1, "min_child_samples": 2, "min_data_per_group": 1}
    lightgbm.LGBMClassifier(**given).fit(frame, np.digitize(frame["a"], [-0.5, 0.5])).booster_.save_model(folder / "model.txt")
    (folder / "data").mkdir()
    for file in range(2):
        rows = frame.iloc[file * 45 : file * 45 + 45].assign(n=range(file * 45, file * 45 + 45))
        rows.to_parquet(folder / f"data/{file}.parquet", row_group_size=20)
    return folder


def check(out, rows, model=None):
    run = read_run(out)
    for n in rows:
        verify_rows(run.uri, run.manifest, run.plan, run.find({"n": n}), model)


@pytest.mark.parametrize(
    "given",
    [
        {"values": True},
        {"values": True, "interactions": 2, "top": 2, "columns": "top", "precision": "float64"},
        {"output": "other:7"},
        {"background": "{folder}/data", "space": "probability", "background_errors": True},
        {"method": "curves"},
        {"method": "banzhaf", "ids": ["n", "city"]},
    ],
)
@pytest.mark.slow
def test_rows_of_every_kind_of_run_agree(trained, tmp_path, given):
    """The first and last of files and of row groups."""
    given = {name: value.format(folder=trained) if isinstance(value, str) else value for name, value in given.items()}
    explain(trained / "model.txt", trained / "data", tmp_path / "run", **({"ids": "n", "scheduler": "serial", "item_rows": "file"} | given))
    check(tmp_path / "run", (0, 19, 20, 44, 45, 70, 89))


def test_rows_agree_whatever_types_they_were_found_in(trained, tmp_path):
    """Halves and views are read as others, and so is a category that one file has and the path of another: all of them were said to differ."""
    table = pa.Table.from_pandas(pd.read_parquet(trained / "data/0.parquet"), preserve_index=False)
    half = pa.array(np.arange(45) / 8, pa.float16())
    (tmp_path / "data/city=x").mkdir(parents=True)
    views = pa.array([f"a name of more than twelve letters {n}" for n in range(45)], pa.string_view())
    pq.write_table(table.append_column("half", half).append_column("view", views), tmp_path / "data/0.parquet")
    other = table.drop_columns("city").set_column(2, "n", pa.array(range(100, 145))).append_column("half", half).append_column("view", views)
    pq.write_table(other, tmp_path / "data/city=x/1.parquet")
    explain(trained / "model.txt", tmp_path / "data", tmp_path / "run", ids=["n", "half", "view"], values=True, scheduler="serial", item_rows="file")
    check(tmp_path / "run", (0, 44, 100, 144))
    run = read_run(tmp_path / "run")
    both = run.find({"half": 1.5})
    assert len(both.places) == 2
    verify_rows(run.uri, run.manifest, run.plan, both)


@pytest.fixture
def run(trained, tmp_path):
    """A run of copies that a test may change."""
    shutil.copytree(trained, tmp_path / "its")
    explain(tmp_path / "its/model.txt", tmp_path / "its/data", tmp_path / "run", ids="n", values=True, scheduler="serial", item_rows="file")
    return tmp_path


@pytest.mark.parametrize("column", ["phi_1_b", "margin_0", "value_a", "value_city", "n"])
def test_a_changed_number_or_text_is_found(run, column):
    """In a part that is otherwise as it was."""
    part = run / "run/attributions/part-00001.parquet"
    table = pq.read_table(part)
    old = table[column].cast(table[column].type.value_type) if pa.types.is_dictionary(table[column].type) else table[column]
    values = old.to_pylist()
    values[7] = {"x": "y"}.get(values[7], "x") if column == "value_city" else 1000
    changed = pa.array(values, old.type).cast(table[column].type)
    with pq.ParquetFile(part) as parquet:
        kept = parquet.metadata.metadata[b"leafledger"].decode()
    with pq.ParquetWriter(part, table.schema) as writer:
        writer.write_table(table.set_column(table.schema.get_field_index(column), table.schema.field(column), changed))
        writer.add_key_value_metadata({"leafledger": kept})
    check(run / "run", (0, 51, 53))
    with pytest.raises(InvalidRun, match=rf"part-00001\.parquet: row 7 explained again differs in column '{column}'$"):
        check(run / "run", (1000 if column == "n" else 52,))


def test_a_part_of_another_plan_and_other_base_values_are_found(run):
    its, out = run / "its", run / "run"
    explain(its / "model.txt", its / "data", run / "other", ids="n", values=True, precision="float64", scheduler="serial", item_rows="file")
    shutil.copy(run / "other/attributions/part-00001.parquet", out / "attributions/part-00001.parquet")
    check(out, (3,))
    with pytest.raises(InvalidRun, match=r"part-00001\.parquet: a part of another plan"):
        check(out, (50,))
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["base"][1] += 1e-9
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1))
    with pytest.raises(InvalidRun, match=r"manifest\.json: what it says of the model, such as base values, differs from the model$"):
        check(out, (3,))


def test_what_is_not_there_any_more_is_said(run):
    """Other data, the model elsewhere or another one."""
    its, out = run / "its", run / "run"
    rows = pq.read_table(its / "data/1.parquet")
    pq.write_table(rows.slice(1), its / "data/1.parquet")
    check(out, (3,))
    with pytest.raises(NotRepeatable, match=r"1\.parquet: changed since the run was planned$"):
        check(out, (50,))
    (its / "model.txt").rename(its / "moved.txt")
    with pytest.raises(NotRepeatable, match=r"model\.txt: cannot read: no such file or object$"):
        check(out, (3,))
    check(out, (3,), str(its / "moved.txt"))
    (its / "other.txt").write_text((its / "moved.txt").read_text() + "\n")
    with pytest.raises(UsageError, match=r"other\.txt: SHA-256 is .*, the run's model had"):
        check(out, (3,), str(its / "other.txt"))


def test_a_background_that_changed_is_said(trained, tmp_path):
    shutil.copytree(trained / "data", tmp_path / "background")
    given = {"background": tmp_path / "background", "ids": "n", "scheduler": "serial"}
    explain(trained / "model.txt", trained / "data", tmp_path / "run", **given)
    check(tmp_path / "run", (3,))
    (tmp_path / "background/1.parquet").unlink()
    with pytest.raises(NotRepeatable, match="background"):
        check(tmp_path / "run", (3,))
