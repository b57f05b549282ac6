"""Finished runs as Python reads them: what was published, row by row, labelled and refused where there is no such thing."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger import attribute, explain, read_manifest, read_run
from leafledger.pipeline.errors import InvalidRun, UsageError
from leafledger.pipeline.finished.finished_run import read_values
from leafledger.pipeline.models.model import Feature
from tests.more import more
from tests.pipeline.conftest import FEATURES
from tests.pipeline.running import attributions


@pytest.fixture(scope="module")
def run(example, tmp_path_factory):
    """Rows of several parts, known by a number and a text."""
    out = tmp_path_factory.mktemp("finished") / "run"
    explain(example.model, example.data, out, ids=["flight", "carrier"], precision="float64", scheduler="serial")
    return out


def test_everything_that_was_published_is_read(run):
    found = read_run(run)
    assert found.manifest == read_manifest(str(run)) == read_manifest(run)
    assert repr(found) == f"FinishedRun({run}, 3,000 rows, 4 parts, 1 output, method shapley)"
    assert found.attributions().equals(attributions(run))
    assert found.dataset().count_rows() == 3000
    assert found.attributions(["margin", "flight"]).column_names == ["margin", "flight"]
    assert found.summary("importance").equals(pq.read_table(run / "summary/importance.parquet"))


def test_a_row_is_what_it_was_in_memory(run, example):
    """With the labels that the run was given; a waterfall adds up."""
    flights = example.frame.reset_index(drop=True)
    some = flights.iloc[1234]
    found = read_run(run).row(flight=int(some["flight"]), carrier=some["carrier"])
    twins = flights[(flights["flight"] == some["flight"]) & (flights["carrier"] == some["carrier"])]
    expected = attribute(example.model, twins[FEATURES])
    assert_array_equal(found.phi, expected.phi)
    assert_array_equal(found.margin, expected.margin)
    assert_array_equal(found.base, expected.base)
    assert found.index.tolist() == [(some["flight"], some["carrier"])] * len(twins)
    assert found.players == expected.players
    assert found.values("distance") is None
    way = found.waterfall(0, top=2)
    assert way.title == f"row {some['flight']}, {some['carrier']}"
    assert way.base + sum(step.phi for step in way.steps) == pytest.approx(way.total)
    assert_allclose(found.to_frame().to_numpy(), expected.phi[:, 0])


def test_a_sample_is_of_different_rows_in_their_order(run):
    """The same for the same seed; of more rows than there are it is all of them."""
    found, everything = read_run(run), attributions(run)
    some = found.sample(500, seed=3)
    assert len(some) == 500
    assert_array_equal(some.phi, found.sample(500, seed=3).phi)
    assert (some.phi != found.sample(500, seed=4).phi).any()
    rows = zip(everything["flight"].to_pylist(), everything["margin"].to_pylist(), strict=True)
    flights = some.index.get_level_values("flight")
    assert all(row in rows for row in zip(flights, some.margin[:, 0].tolist(), strict=True))  # each behind the one before
    assert_array_equal(found.sample(10_000).margin[:, 0], everything["margin"].to_numpy())
    for n in (0, 1.5, "all"):
        with pytest.raises(UsageError, match=r"^n is .*, expected a number of at least 1$"):
            found.sample(n)


def test_one_id_column_is_a_plain_index(run, example, tmp_path):
    explain(example.model, example.data, tmp_path / "run", ids="flight", scheduler="serial")
    flight = int(example.frame["flight"].iloc[7])
    found = read_run(tmp_path / "run").row(flight=flight)
    assert set(found.index) == {flight}
    assert found.waterfall().total == pytest.approx(float(found.margin[0, 0]))  # as rounded, it adds up


@pytest.mark.parametrize("ids", ["key", ["key", "carrier"]])
def test_integers_are_what_they_are_beside_missing_ones(example, tmp_path, ids):
    """Ids, beyond 2^53 too, and categories: a null among them makes no floating-point number of the others."""
    frame = example.frame[FEATURES].head(4).assign(key=pd.array([2**53 + 1, None, 4711, -1], "Int64")).reset_index(drop=True)
    frame["month"] = frame["month"].astype(int)
    (tmp_path / "data").mkdir()
    frame.to_parquet(tmp_path / "data/x.parquet", index=False)
    explain(example.model, tmp_path / "data", tmp_path / "run", ids=ids, values=True, scheduler="serial")
    found = read_run(tmp_path / "run")
    keys = found.sample(4).index.get_level_values("key")
    assert [None if pd.isna(key) else key for key in keys] == [2**53 + 1, None, 4711, -1]
    assert {type(key) for key in keys if not pd.isna(key)} == {int}
    assert found.row(key=4711).index.get_level_values("key").tolist() == [4711]
    assert found.sample(4).to_frame().index.get_level_values("key")[0] == 2**53 + 1
    assert "9007199254740993" in found.sample(4).waterfall(0).title
    plan, code = found.plan, Feature("code", True, (2**53 + 1, 7))
    table = pa.table({"value_code": pa.array([2**53 + 1, None, 7])})
    kept = read_values(replace(plan, features=(code,), values=True), table)["code"]
    assert kept.tolist() == [2**53 + 1, None, 7]


def test_ids_that_pandas_cannot_look_up_are_texts(example, tmp_path):
    """Lists and records; of a time its nanoseconds too, where there are some."""
    times = pa.array([10**9 * i + i % 2 for i in range(60)], pa.time64("ns"))
    table = pa.Table.from_pandas(example.frame[:60], preserve_index=False).append_column("time", times)
    table = table.append_column("pair", pa.array([None if i == 3 else [i, i] for i in range(60)])).append_column("record", pa.array([{"k": 1}] * 60))
    pq.write_table(table, tmp_path / "rows.parquet")
    explain(example.model, tmp_path / "rows.parquet", tmp_path / "run", ids=["flight", "time", "pair", "record"], scheduler="serial")
    found = read_run(tmp_path / "run")
    labels = [each[1:] for each in found.sample(60).index]
    assert labels[3][0] == "00:00:03.000000001"
    assert pd.isna(labels[3][1])
    assert labels[5] == ("00:00:05.000000001", "[5, 5]", "{'k': 1}")
    shown = [row.ids for row in found.show({"flight": table["flight"][5].as_py()}, most=60).rows]
    assert {"pair": [5, 5], "time": "00:00:05.000000001"}.items() <= next(ids for ids in shown if ids["pair"] == [5, 5]).items()


def test_rows_with_views_of_texts_are_read(example, tmp_path):
    """Arrow filters and takes none of views, whatever column is asked for."""
    table = pa.Table.from_pandas(example.frame[:60], preserve_index=False)
    seen = pa.array([f"row {i % 20}" for i in range(60)], pa.string_view())
    table = table.append_column("seen", seen).append_column("bytes", pa.array([b"b"] * 60, pa.binary_view()))
    pq.write_table(table, tmp_path / "rows.parquet")
    explain(example.model, tmp_path / "rows.parquet", tmp_path / "run", ids=["flight", "seen", "bytes"], scheduler="serial")
    found = read_run(tmp_path / "run")
    assert found.attributions(where={"seen": "row 7"})["seen"].to_pylist() == ["row 7"] * 3
    assert found.attributions(["seen"], {"seen": "row 77"}).to_pydict() == {"seen": []}
    flights = table["flight"].to_pylist()
    assert found.attributions(where={"flight": flights[5]}).num_rows == flights.count(flights[5])
    assert found.attributions()["seen"].combine_chunks().equals(seen)
    assert found.sample(60).index.get_level_values("seen").tolist() == seen.to_pylist()


def regroup(run, size):
    """Write a run's parts anew in row groups of so many rows, which have statistics of their own."""
    for path in (run / "attributions").iterdir():
        pq.write_table(pq.read_table(path), path, row_group_size=size)


def test_missing_values_are_found_in_every_row_group(example, tmp_path):
    """Null and NaN: statistics count nulls alone, so that a group with NaN and without null looks as if it had none."""
    x = np.arange(40.0)
    x[[5, 25, 30]] = np.nan
    column = pa.array([None if i == 2 else value for i, value in enumerate(x.tolist())])
    table = pa.Table.from_pandas(example.frame[FEATURES].head(40), preserve_index=False).append_column("x", column)
    pq.write_table(table.append_column("n", pa.array(range(40))), tmp_path / "rows.parquet")
    explain(example.model, tmp_path / "rows.parquet", tmp_path / "run", ids=["n", "x"], scheduler="serial")
    regroup(tmp_path / "run", 20)
    found = read_run(tmp_path / "run")
    for asked in (None, float("nan"), "nan"):
        assert found.attributions(["n"], {"x": asked})["n"].to_pylist() == [2, 5, 25, 30]
    assert found.find({"x": None}).n_found == 4
    assert found.attributions(["n"], {"x": 24.0})["n"].to_pylist() == [24]


N = 24
ZEROS = [0.0, -0.0, 1.0, float("nan"), None, -1.0, float("inf"), 0.1] * 3
TEXTS = ["a", "ä", "a" * 5000, "a" * 5000 + "b", "", None, "b\x00c", "zürich"] * 3
OF_TYPES = {
    "double": pa.array(ZEROS),
    "single": pa.array(ZEROS, pa.float32()),
    "half": pa.array([None if x is None else np.float16(x) for x in ZEROS], pa.float16()),
    "money": pa.array([None if i % 8 == 4 else Decimal(i % 8 - 3) / 4 for i in range(N)], pa.decimal128(12, 2)),
    "narrow": pa.array([None if i % 8 == 4 else Decimal(i % 8 - 3) / 4 for i in range(N)], pa.decimal128(5, 2)),
    "here": pa.array([None if i % 8 == 4 else datetime(2026, 10, 25, i % 8, 30, tzinfo=UTC) for i in range(N)], pa.timestamp("us", "Europe/Zurich")),
    "local": pa.array([None if i % 8 == 4 else datetime(2026, 10, 25, i % 8, 30) for i in range(N)], pa.timestamp("ms")),
    "day": pa.array([None if i % 8 == 4 else date(1969, 12, 28 + i % 4) for i in range(N)]),
    "text": pa.array(TEXTS),
    "large": pa.array(TEXTS, pa.large_string()),
    "kind": pa.array(TEXTS).dictionary_encode(),
    "unsigned": pa.array([2**63 + i % 8 for i in range(N)], pa.uint64()),
    "byte": pa.array([None if i % 8 == 4 else (i % 8) * 36 for i in range(N)], pa.uint8()),
    "flag": pa.array(([None, True, False, True, False] * 5)[:N]),
    "blob": pa.array([None if i % 8 == 4 else bytes([i % 8 * 30]) for i in range(N)]),
}


def alike(one, other):
    """Equal, or both missing; 0.0 and -0.0 are equal, as Arrow and NumPy have it."""
    missing = [value is None or value != value for value in (one, other)]
    if isinstance(one, datetime) and one.tzinfo is not None and isinstance(other, datetime):  # Python compares no folds
        return one.astimezone(UTC) == other.astimezone(UTC)
    return all(missing) if any(missing) else one == other


@pytest.mark.parametrize("group", [*more(1), 7, *more(N)])
@pytest.mark.slow
def test_rows_of_every_type_are_those_of_a_plain_reading(example, tmp_path, group):
    """For every value that a column has: NaN, null, -0.0, decimals, time zones, categories, and texts that statistics leave out or cut."""
    table = pa.Table.from_pandas(example.frame[FEATURES].head(N), preserve_index=False).append_column("n", pa.array(range(N)))
    for name, column in OF_TYPES.items():
        table = table.append_column(name, column)
    pq.write_table(table, tmp_path / "rows.parquet")
    explain(example.model, tmp_path / "rows.parquet", tmp_path / "run", ids=["n", *OF_TYPES], scheduler="serial")
    regroup(tmp_path / "run", group)
    found = read_run(tmp_path / "run")
    for name in OF_TYPES:
        values = table[name].to_pylist()
        for asked in values[:8]:
            expected = [i for i, value in enumerate(values) if alike(value, asked)]
            kept = found.attributions(["n", name], {name: asked})
            assert kept["n"].to_pylist() == expected, (name, asked)
            assert kept.schema.field(name).type == found.dataset().schema.field(name).type
            assert found.find({name: asked}).n_found == len(expected) >= 3, (name, asked)
    both = found.attributions(["n"], {"flag": True, "double": 0.0})["n"].to_pylist()
    assert both == [i for i in range(N) if OF_TYPES["flag"][i].as_py() and ZEROS[i] == 0.0]


@pytest.mark.parametrize("name", ["a.parquet", "z.parquet"])
def test_an_id_that_some_paths_carry_is_a_text(example, tmp_path, name):
    """As it stands there, before and behind a file that holds numbers: "01" was 1, and "x" could not be read."""
    frame = example.frame[FEATURES].head(30).reset_index(drop=True)
    for folder in ("key=01", "key=x"):
        (tmp_path / "data" / folder).mkdir(parents=True)
        frame[:10].to_parquet(tmp_path / "data" / folder / "rows.parquet", index=False)
    frame[20:].assign(key=1).to_parquet(tmp_path / "data" / name, index=False)
    explain(example.model, tmp_path / "data", tmp_path / "run", ids="key", scheduler="serial")
    found = read_run(tmp_path / "run")
    expected = {"01": 10, "x": 10, "1": 10}
    assert pd.Series(found.attributions(["key"])["key"].to_pylist()).value_counts().to_dict() == expected
    assert found.sample(30).index.value_counts().to_dict() == expected
    assert found.attributions(where={"key": "01"}).num_rows == 10
    assert len(found.row(key="x")) == 10


def test_a_night_without_rows_has_none_of_any_column(example, tmp_path):
    """Nothing says of which types they would be; a sample there is none of, which is no damage."""
    pq.write_table(pa.Table.from_pandas(example.frame[:0], preserve_index=False), tmp_path / "rows.parquet")
    explain(example.model, tmp_path / "rows.parquet", tmp_path / "run", ids=["flight"], scheduler="serial")
    none = read_run(tmp_path / "run")
    assert none.attributions().num_rows == none.dataset().count_rows() == 0
    found = none.attributions(["flight", "margin"], where={"flight": 1})
    assert (found.num_rows, found.column_names) == (0, ["flight", "margin"])
    with pytest.raises(UsageError, match=r"has no column 'fligth'; its id columns are flight; did you mean 'flight'\?$"):
        none.attributions(["fligth"])
    with pytest.raises(UsageError, match=rf"^{tmp_path}/run: has no rows$"):
        none.sample(2)


def test_what_is_not_there_is_said_in_one_line(run, example, tmp_path):
    found = read_run(run)
    with pytest.raises(UsageError, match=r"run: no such row: flight=-1$"):
        found.row(flight=-1)
    with pytest.raises(UsageError, match=r"run: which row\? Give columns and their values, such as flight=…$"):
        found.row()
    with pytest.raises(UsageError, match=r"run: has no column 'customer'; its id columns are flight, carrier$"):
        found.row(customer=1)
    with pytest.raises(UsageError, match=r"run: column 'flight' is int64, got 'x'$"):
        found.row(flight="x")
    with pytest.raises(UsageError, match=r"run: has no summary 'r2', expected one of importance, inputs$"):
        found.summary("r2")
    with pytest.raises(InvalidRun, match=r"nothing: no manifest\.json there: not a finished run$"):
        read_run(tmp_path / "nothing")
    explain(example.model, example.data, tmp_path / "global", global_only=True, scheduler="serial")
    with pytest.raises(UsageError, match=r"global: has no rows$"):
        read_run(tmp_path / "global").row(flight=1)
    explain(example.model, example.data, tmp_path / "top", ids="flight", top=1, columns="top", scheduler="serial")
    with pytest.raises(UsageError, match=r"top: has the largest attributions of a row alone$"):
        read_run(tmp_path / "top").sample(1)


def test_classes_errors_and_probabilities_are_there(tmp_path):
    """Several outputs; a row's own class; margins are not made up of predictions."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(100, 3)).round(2), columns=list("abc"))
    model = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1).fit(rows, np.digitize(rows["a"], [-0.5, 0.5]))
    model.booster_.save_model(tmp_path / "model.txt")
    rows.assign(n=range(100)).to_parquet(tmp_path / "rows.parquet")
    given = {"ids": "n", "space": "probability", "background": tmp_path / "rows.parquet", "precision": "float64", "scheduler": "serial"}
    explain(tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "all", background_errors=True, **given)
    found = read_run(tmp_path / "all").row(n=42)
    expected = attribute(model, rows, background=rows, background_errors=True, space="probability")[42]
    assert_allclose(found.phi, expected.phi, rtol=1e-9, atol=1e-15)
    assert_allclose(found.errors, expected.errors, rtol=1e-6, atol=1e-13)
    assert_allclose(found.phi.sum(axis=2) + found.base, found.prediction, rtol=1e-12)
    assert np.isnan(found.margin).all()
    explain(tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "own", output="predicted", **given)
    own = read_run(tmp_path / "own").row(n=42)
    assert own.output.tolist() == [str(model.predict(rows.iloc[[42]])[0])]
    assert_allclose(own.phi.sum(axis=2) + own.base, own.prediction, rtol=1e-12)
