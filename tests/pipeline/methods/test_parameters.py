"""Importances of groups of rows: those of pandas on the rows of each, typed as the data, the same bytes however the run goes, verified."""

import json
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from leafledger import check_run, explain
from leafledger.pipeline.errors import InvalidRun, RunConflict, SchemaMismatch, UsageError
from leafledger.pipeline.methods import worker_memory as sizes
from tests.more import more
from tests.pipeline.conftest import FEATURES, write_data
from tests.pipeline.forking import forked_workers
from tests.pipeline.running import attributions, contents

BY = ["month", "carrier"]
VALUES = ["mean_abs", "mean", "std", "min", "max", "share", "rank", "rows"]


@pytest.fixture(autouse=True, scope="module")
def _small():
    """Many parts, so that states merge."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "ITEM_ROWS", 150)
        yield


def run(example, out, **given):
    return explain(example.model, example.data, out, **({"by": BY, "ids": BY, "precision": "float64", "scheduler": "serial"} | given))


@pytest.fixture(scope="module")
def example(example, tmp_path_factory):
    """The same rows in small row groups."""
    return replace(example, data=write_data(example.frame, tmp_path_factory.mktemp("small") / "data", row_group_size=75))


@pytest.fixture(scope="module")
def serial(example, tmp_path_factory):
    out = tmp_path_factory.mktemp("by") / "run"
    return out, run(example, out)


def naive(frame, phi, n_features):
    """Every group's table by pandas, from attributions as they are stored; a group of no value last."""
    found = []
    for key, rows in frame.groupby(BY, dropna=False, sort=False):
        some = rows[phi]
        mean_abs = some.abs().mean()
        columns = [mean_abs, some.mean(), some.std(ddof=0), some.min(), some.max(), mean_abs / mean_abs.sum()]
        table = pd.DataFrame(dict(zip(VALUES, columns, strict=False)))
        table["rank"] = mean_abs.rank(ascending=False, method="first").astype(int)
        table["rows"] = len(rows)
        key = tuple(None if pd.isna(value) else value for value in key)
        found.append(([(value is None, value or "") for value in key], key, table))
    assert all(len(table) == n_features for _, _, table in found)
    return [(key, table) for _, key, table in sorted(found, key=lambda group: group[0])]


def test_every_group_has_the_importances_of_its_rows(example, serial):
    """All columns, by pandas from the stored attributions, in the order of the groups' values; also of rows without a carrier."""
    out, manifest = serial
    assert len(manifest.parts) > 9  # more than are merged at a time
    stored = pq.read_table(out / "summary" / "importance_by.parquet")
    assert stored.column_names == [*BY, "output", "feature", *VALUES]
    phi = [f"phi_{name}" for name in FEATURES]
    groups = naive(attributions(out).to_pandas(), phi, len(FEATURES))
    assert None in {key[1] for key, _ in groups}
    table, n = stored.to_pandas(), len(FEATURES)
    assert len(table) == n * len(groups)
    for g, (key, expected) in enumerate(groups):
        mine = table[g * n : g * n + n]
        assert [tuple(None if pd.isna(value) else value for value in row) for row in mine[BY].to_numpy()] == [key] * n
        assert mine["feature"].tolist() == FEATURES
        for name in VALUES:
            assert_allclose(mine[name], expected[name], rtol=1e-9, atol=1e-12)
    assert table.groupby(BY, dropna=False)["rows"].first().sum() == len(example.frame)
    assert json.loads((out / "summary" / "importance_by.json").read_text()) == stored.to_pylist()


def test_groups_change_nothing_else(example, serial, tmp_path):
    """Parts' rows and the other summaries are those of a run without groups, which has no summary of them."""
    run(example, tmp_path / "run", by=())
    assert not (tmp_path / "run" / "summary" / "importance_by.parquet").exists()
    for name in ("importance.parquet", "importance.json", "inputs.parquet"):
        assert (tmp_path / "run" / "summary" / name).read_bytes() == (serial[0] / "summary" / name).read_bytes()
    assert attributions(tmp_path / "run").equals(attributions(serial[0]))
    with pytest.raises(RunConflict, match=r"different in by \(was \(\), is "):
        run(example, tmp_path / "run")


@pytest.mark.parametrize("workers", [*more(1), 2])
@pytest.mark.slow
def test_the_bytes_do_not_depend_on_the_workers(example, serial, tmp_path, workers):
    """Everything that is published."""
    with forked_workers():
        run(example, tmp_path / "run", scheduler=None, workers=workers)
    assert contents(tmp_path / "run") == contents(serial[0])


@pytest.mark.slow
def test_a_run_that_goes_on_has_the_same_bytes(example, serial, tmp_path):
    """Where some of the parts and all summaries are missing."""
    run(example, tmp_path / "run")
    for name in ("manifest.json", "attributions/part-00001.parquet", "attributions/part-00003.parquet"):
        (tmp_path / "run" / name).unlink()
    for path in (tmp_path / "run" / "summary").iterdir():
        path.unlink()
    run(example, tmp_path / "run")
    assert contents(tmp_path / "run") == contents(serial[0])


@pytest.mark.slow
def test_a_changed_summary_is_found(example, tmp_path):
    """It is computed again from the parts' states, and these from the rows."""
    run(example, tmp_path / "run")
    report = check_run(tmp_path / "run", all_rows=True)
    assert report.sound
    assert report.n_again == len(example.frame)
    path = tmp_path / "run" / "summary" / "importance_by.json"
    path.write_text(path.read_text().replace('"rank": 1,', '"rank": 2,', 1))
    with pytest.raises(InvalidRun, match=r"importance_by\.json: SHA-256 is .*, the manifest says"):
        check_run(tmp_path / "run")


@pytest.mark.parametrize(
    "given",
    [{"method": "ranker"}, {"method": "banzhaf", "global_only": True, "ids": ()}, {"partition": {"b": FEATURES[:2]}}],
    ids=["ranker", "global", "partition"],
)
@pytest.mark.slow
def test_other_methods_have_groups_too(example, tmp_path, given):
    """Groups add up to the whole: rows, and means weighted by rows."""
    run(example, tmp_path / "run", **given)
    found = pq.read_table(tmp_path / "run" / "summary" / "importance_by.parquet").to_pandas()
    every = pq.read_table(tmp_path / "run" / "summary" / "importance.parquet").to_pandas().set_index("feature")
    for feature, rows in found.groupby("feature"):
        assert rows["rows"].sum() == len(example.frame)
        for name in ("mean", "mean_abs"):
            assert_allclose(np.average(rows[name], weights=rows["rows"]), every.loc[feature, name], rtol=1e-9, atol=1e-12)
    assert check_run(tmp_path / "run", all_rows=True).sound


def test_values_of_groups_keep_their_types(example, tmp_path):
    """Dates are dates in Parquet, and texts in JSON; small integers stay small, categories are their values. So it is of r2."""
    frame = example.frame[:300].reset_index(drop=True)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    days = [None if i % 3 == 2 else date(2026, 1, 1) + timedelta(days=i % 3) for i in range(300)]
    columns = {"day": pa.array(days), "small": pa.array([i % 2 for i in range(300)], pa.uint8()), "yes": pa.array([True] * 300)}
    columns["kind"] = pa.array(["a", "b"] * 150).dictionary_encode()
    for name, column in columns.items():
        table = table.append_column(name, column)
    pq.write_table(table, tmp_path / "data.parquet")
    for method, label in (("shapley", {}), ("r2", {"label": "delay"})):
        out = tmp_path / method
        explain(example.model, tmp_path / "data.parquet", out, by=[*columns], method=method, scheduler="serial", **label)
        summary = "importance_by" if method == "shapley" else "r2_by"
        stored = pq.read_table(out / "summary" / f"{summary}.parquet")
        assert [stored.schema.field(name).type for name in columns] == [pa.date32(), pa.uint8(), pa.bool_(), pa.string()]
        assert stored["day"].to_pylist()[0] == date(2026, 1, 1)
        assert stored["day"].to_pylist()[-1] is None
        assert json.loads((out / "summary" / f"{summary}.json").read_text())[0]["day"] == "2026-01-01"
        assert check_run(out, all_rows=True).sound


def test_no_rows_have_no_groups(example, tmp_path):
    """An empty data set has no groups, and a table with all columns."""
    example.frame[:0].to_parquet(tmp_path / "data.parquet")
    explain(example.model, tmp_path / "data.parquet", tmp_path / "run", by="carrier", scheduler="serial")
    found = pq.read_table(tmp_path / "run" / "summary" / "importance_by.parquet")
    assert found.num_rows == 0
    assert found.column_names == ["carrier", "output", "feature", *VALUES]
    assert check_run(tmp_path / "run").n_rows == 0


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"method": "curves"}, UsageError, "by is month, carrier, but method 'curves' has ranks, and no importances of groups of rows; leave it out"),
        ({"by": ["rows"]}, UsageError, "by has 'rows', as a column of the summary is called; rename it"),
        ({"by": ["no"]}, SchemaMismatch, "column 'no' missing"),
        ({"by": ["distance"]}, SchemaMismatch, "column 'distance' is double, expected texts, integers or dates to group rows by"),
    ],
)
def test_refusals_are_one_line_and_while_planning(example, tmp_path, given, error, says):
    """Nothing is written."""
    with pytest.raises(error, match=says) as raised:
        run(example, tmp_path / "run", **given)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "run").exists()


def test_a_column_of_two_types_is_refused(example, tmp_path):
    """A path carries texts; a file that has numbers of the same name says something else."""
    (tmp_path / "data" / "k=1").mkdir(parents=True)
    example.frame[:50].to_parquet(tmp_path / "data" / "k=1" / "a.parquet")
    example.frame[:50].assign(k=2).to_parquet(tmp_path / "data" / "b.parquet")
    with pytest.raises(SchemaMismatch, match=r"column 'k' is .*, it is .* in "):
        explain(example.model, tmp_path / "data", tmp_path / "run", by="k", scheduler="serial")


@pytest.mark.parametrize(("item_rows", "some"), [(1 << 20, False), (150, True)], ids=["slices", "parts"])
def test_more_groups_than_a_table_is_worth_are_refused(example, tmp_path, monkeypatch, item_rows, some):
    """As soon as there are too many: within a part that has them in all of its slices, before it is written, or in all parts so far."""
    monkeypatch.setattr("leafledger.kernels.slices.labels.MOST_VALUES", 2000)
    monkeypatch.setattr(sizes, "SLICE_ROWS", 256)
    monkeypatch.setattr(sizes, "ITEM_ROWS", item_rows)
    monkeypatch.setattr("leafledger.pipeline.runs.records.plan_file.SLICE_ROWS", 256)
    with pytest.raises(UsageError, match=r"^'flight' make \d+ groups of 4 values each, expected at most 2000 values in all$"):
        run(example, tmp_path / "run", by="flight", ids="flight")
    made = list((tmp_path / "run").rglob("part-*.parquet"))
    assert bool(made) == some
    assert len(made) < 10
