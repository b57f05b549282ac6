"""Interactions: chosen as a loop would choose them, by their definition, stored the same whoever computed them, summarised and verified."""

import json
import shutil
from functools import cache
from itertools import combinations
from math import factorial

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger import attribute, check_run, explain, load_ensemble
from leafledger.pipeline.errors import InvalidRun, SchemaMismatch, UsageError
from leafledger.pipeline.stores.storage import sha256
from tests import naive
from tests.pipeline.conftest import FEATURES, TRAINING, train
from tests.pipeline.running import as_model, attributions, contents
from tests.strategies import batches, forests


@pytest.fixture(scope="module")
def deep(example, tmp_path_factory):
    """A model of the example's rows in which more than two features interact."""
    folder = tmp_path_factory.mktemp("deep")
    frame = example.frame[FEATURES].assign(carrier=example.frame["carrier"].astype("category"))
    target = frame["delay"].fillna(0) * frame["month"] + frame["distance"] / 10 * (frame["carrier"] == "UA")
    lightgbm.train(TRAINING, lightgbm.Dataset(frame, target), 8).save_model(folder / "model.txt")
    return str(folder / "model.txt")


@settings(max_examples=25)
@given(data=st.data(), ensemble=forests())
@pytest.mark.slow
def test_interactions_are_those_of_the_definition(data, ensemble):
    """Shapley and Banzhaf interaction indices of every two features; those that are no pair do not interact."""
    model, rows = as_model(ensemble), data.draw(batches(ensemble, max_rows=2, of_data=True))
    n = ensemble.n_features
    for method, weight in (("shapley", naive.shapley_weight), ("banzhaf", naive.banzhaf_weight)):
        found = attribute(model, rows, method, interactions="all")
        everywhere = np.zeros((len(rows), ensemble.base.size, n, n))
        for p, (first, second) in enumerate(found.pairs):
            i, j = found.players.index(first), found.players.index(second)
            assert i < j
            everywhere[:, :, i, j] = everywhere[:, :, j, i] = found.interactions[:, :, p]
        for i, row in enumerate(rows):
            assert_allclose(everywhere[i], naive.interactions(ensemble, row, weight), rtol=1e-9, atol=1e-9)


def test_in_memory_they_are_there_only_if_asked_for(example):
    """None else; groups interact as groups."""
    frame = example.frame[FEATURES]
    assert attribute(example.model, frame).interactions is None
    assert attribute(example.model, frame).pairs is None
    found = attribute(example.model, frame, interactions="all", partition={"flight": ["delay", "distance"]})
    assert found.players == ("flight", "carrier", "month")
    assert found.pairs == (("flight", "carrier"),)
    alone = attribute(example.model, frame, interactions="all")
    assert alone.pairs == (("delay", "carrier"),)
    assert_allclose(found.interactions, alone.interactions, rtol=1e-12, atol=1e-12)


@pytest.fixture(scope="module")
def serial(deep, example, tmp_path_factory):
    """A serial run that keeps all interactions, and the values in memory."""
    out = tmp_path_factory.mktemp("interactions") / "run"
    explain(deep, example.data, out, interactions="all", scheduler="serial")
    return out, attribute(deep, example.frame[FEATURES], interactions="all")


def test_a_run_stores_what_interacts(serial):
    """A list of names and values per row, the largest first, as the documented type; names are a dictionary in Parquet."""
    out, expected = serial
    table = attributions(out)
    assert table.column_names[-1] == "interactions"
    assert table.schema.field("interactions").type == pa.list_(pa.struct([("first", pa.string()), ("second", pa.string()), ("value", pa.float32())]))
    assert len(expected.pairs) == 3
    stored = expected.interactions[:, 0].astype(np.float32)
    for row, values in zip(table["interactions"].to_pylist(), stored, strict=True):
        order = [p for p in np.argsort(-np.abs(values), kind="stable") if values[p]]
        assert [(entry["first"], entry["second"], entry["value"]) for entry in row] == [(*expected.pairs[p], values[p]) for p in order]
    row_group = pq.read_metadata(out / "attributions" / "part-00000.parquet").row_group(0)
    leaves = {row_group.column(c).path_in_schema: row_group.column(c) for c in range(row_group.num_columns)}
    assert leaves["interactions.list.element.first"].has_dictionary_page
    assert leaves["interactions.list.element.second"].has_dictionary_page
    assert "BYTE_STREAM_SPLIT" in leaves["interactions.list.element.value"].encodings


def test_fewer_are_the_first_of_all(deep, example, serial, tmp_path):
    """``interactions=2`` keeps the two largest of every row; the summary is that of all."""
    explain(deep, example.data, tmp_path / "run", interactions="2", scheduler="serial")
    kept, everything = attributions(tmp_path / "run")["interactions"].to_pylist(), attributions(serial[0])["interactions"].to_pylist()
    assert kept == [row[:2] for row in everything] != everything
    for name in ("summary/interactions.parquet", "summary/interactions.json"):
        assert contents(tmp_path / "run")[name] == contents(serial[0])[name]


def test_a_run_summarises_interactions(serial):
    """The summary is the moments over all rows, as Parquet and as JSON."""
    out, expected = serial
    table = pq.read_table(out / "summary" / "interactions.parquet")
    assert table.column_names == ["output", "first", "second", "mean_abs", "mean", "std", "min", "max", "rank"]
    assert table.to_pylist() == json.loads((out / "summary" / "interactions.json").read_text())
    assert list(zip(table["first"].to_pylist(), table["second"].to_pylist(), strict=True)) == list(expected.pairs)
    values = expected.interactions[:, 0]
    for name, moment in (
        ("mean_abs", np.abs(values).mean(axis=0)),
        ("mean", values.mean(axis=0)),
        ("std", values.std(axis=0)),
        ("min", values.min(axis=0)),
        ("max", values.max(axis=0)),
    ):
        assert_allclose(table[name].to_numpy(), moment, rtol=1e-9, atol=1e-12)
    assert table["rank"].to_pylist() == (np.argsort(np.argsort(-np.abs(values).mean(axis=0), kind="stable")) + 1).tolist()


@pytest.mark.slow
def test_a_cluster_gives_the_serial_run_s_bits(deep, example, serial, tmp_path, two_workers):
    """Interactions included, byte for byte."""
    explain(deep, example.data, tmp_path / "run", interactions="all", scheduler=two_workers)
    assert contents(tmp_path / "run") == contents(serial[0])


def test_they_are_verified(serial, tmp_path):
    """``check_run`` computes the summary again from the parts."""
    assert check_run(str(serial[0])).n_rows == 3000
    shutil.copytree(serial[0], tmp_path / "run")
    path = tmp_path / "run" / "summary" / "interactions.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(3, "mean_abs", pa.array([0.0] * table.num_rows)), path)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    for entry in manifest["summaries"]:
        if entry["uri"] == "summary/interactions.parquet":
            entry |= {"sha256": sha256(path), "size": path.stat().st_size}
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest, indent=1))
    with pytest.raises(InvalidRun, match=r"summary/interactions\.parquet: differs from the summary computed again from the parts"):
        check_run(str(tmp_path / "run"))


def test_several_outputs_have_a_column_each(example, tmp_path):
    """``interactions_<output>``; groups are named as groups."""
    train(example.frame, objective="multiclass", num_class=3).save_model(tmp_path / "model.txt")
    partition = {"where": ["distance", "carrier"]}
    explain(tmp_path / "model.txt", example.data, tmp_path / "run", interactions="all", partition=partition, scheduler="serial")
    table = attributions(tmp_path / "run")
    assert table.column_names[-3:] == [f"interactions_{k}" for k in range(3)]
    assert [name for name in table.column_names if name.startswith("phi_0_")] == ["phi_0_where", "phi_0_delay", "phi_0_month"]
    found = attribute(load_ensemble(tmp_path / "model.txt"), example.frame[FEATURES], interactions="all", partition=partition)
    first = {(entry["first"], entry["second"]): entry["value"] for entry in table["interactions_2"][0].as_py()}
    expected = {pair: value for pair, value in zip(found.pairs, found.interactions[0, 2].astype(np.float32), strict=True) if value}
    assert first == expected
    assert pq.read_table(tmp_path / "run" / "summary" / "interactions.parquet").num_rows == 3 * len(found.pairs)
    assert check_run(str(tmp_path / "run")).parts == 4


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"interactions": 0}, UsageError, "interactions is 0, expected a number of at least 1, or 'all'"),
        ({"interactions": "some"}, UsageError, "interactions is 'some', expected a number of at least 1, or 'all'"),
        ({"interactions": 1.5}, UsageError, "interactions is 1.5, expected a number"),
        ({"interactions": 1, "method": "owen", "partition": {}}, UsageError, "method 'owen' has no interactions"),
        (
            {"interactions": 1, "method": "probabilistic", "parameters": {"sizes": "1,0,0,0"}},
            UsageError,
            "method 'probabilistic' has no interactions",
        ),
        ({"interactions": 1, "ids": ["interactions"]}, SchemaMismatch, "interactions"),
    ],
)
def test_mistakes_are_refused_in_one_line(example, tmp_path, arguments, error, says):
    """While planning; nothing is written."""
    with pytest.raises(error, match=says) as refusal:
        explain(example.model, example.data, tmp_path / "run", scheduler="serial", **arguments)
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "run").exists()


def test_in_memory_a_number_keeps_those_that_a_run_keeps(deep, example, tmp_path):
    """``interactions=2`` means the same to both: of every row the two largest; in memory the others are 0."""
    rows = example.frame[FEATURES]
    explain(deep, example.data, tmp_path / "run", interactions=2, precision="float64", scheduler="serial")
    found, everything = (attribute(deep, rows, interactions=given) for given in (2, "all"))
    assert found.pairs == everything.pairs
    kept = found.interactions != 0
    assert (found.interactions[kept] == everything.interactions[kept]).all()
    assert kept.sum(axis=2).max() == 2
    entries = [
        entry for part in sorted((tmp_path / "run" / "attributions").rglob("*.parquet")) for entry in pq.read_table(part)["interactions"].to_pylist()
    ]
    of_run = [{frozenset((entry["first"], entry["second"])) for entry in row} for row in entries]
    assert of_run == [{frozenset(found.pairs[pair]) for pair in np.flatnonzero(row[0])} for row in kept]
    assert (attribute(deep, rows, interactions=1000).interactions == everything.interactions).all()


@pytest.mark.parametrize("wrong", [True, 0, -1, "few", 2.5, [1]])
def test_both_refuse_other_interactions(deep, example, wrong):
    """In the same words."""
    says = []
    for ask in (lambda: attribute(deep, example.frame[FEATURES], interactions=wrong), lambda: explain(deep, example.data, "out", interactions=wrong)):
        with pytest.raises(UsageError, match=r"interactions is .*, expected a number of at least 1, or 'all'") as error:
            ask()
        says.append(str(error.value))
    assert says[0] == says[1]


@pytest.mark.slow
def test_against_a_background_they_are_differences_of_the_library_s_predictions(tmp_path):
    """XGBoost's predictions of rows mixed with those of the background, over all sets of the other features; in memory and in a run, verified."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.standard_normal((400, 5)), columns=list("abcde"))
    label = frame["a"] * frame["b"] + np.sin(frame["c"]) * frame["d"] + frame["e"]
    model = xgboost.train({"max_depth": 4, "seed": 1, "nthread": 1}, xgboost.DMatrix(frame, label), 8)
    background, rows = frame[:20], frame[50:53]

    @cache
    def value(row, present):
        mixed = background.copy()
        mixed[list(present)] = rows.iloc[row][list(present)].to_numpy()
        return float(model.predict(xgboost.DMatrix(mixed), output_margin=True).mean(dtype=np.float64))

    def index(row, i, j):
        others, total = [name for name in frame.columns if name not in (i, j)], 0.0
        for size in range(len(others) + 1):
            weight = factorial(size) * factorial(3 - size) / factorial(4)
            for some in combinations(others, size):
                total += weight * (value(row, (*some, i, j)) - value(row, (*some, i)) - value(row, (*some, j)) + value(row, some))
        return total

    found = attribute(model, rows, background=background, interactions="all")
    expected = np.array([[index(row, *pair) for pair in found.pairs] for row in range(3)])
    assert_allclose(found.interactions[:, 0], expected, rtol=0, atol=2e-6)  # XGBoost predicts in float32
    assert_allclose(found.phi.sum(axis=2) + found.base, found.margin, rtol=0, atol=1e-12)
    model.save_model(tmp_path / "model.json")
    for name, some in (("background", background), ("rows", rows)):
        some.to_parquet(tmp_path / f"{name}.parquet")
    places = tmp_path / "model.json", tmp_path / "rows.parquet", tmp_path / "run"
    explain(*places, background=tmp_path / "background.parquet", interactions="all", precision="float64", scheduler="serial")
    for row, entries in enumerate(attributions(tmp_path / "run")["interactions"].to_pylist()):
        stored = {(entry["first"], entry["second"]): entry["value"] for entry in entries}
        assert stored == {pair: value for pair, value in zip(found.pairs, found.interactions[row, 0].tolist(), strict=True) if value}
    assert check_run(tmp_path / "run", all_rows=True).sound
    assert pq.read_table(tmp_path / "run" / "summary" / "interactions.parquet").num_rows == len(found.pairs)


def test_the_model_s_own_leaf_weights_have_interactions_too():
    """Against them, those of rows that reach every leaf as often as they say."""
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 3, size=(300, 3)).astype(float)
    model = catboost.CatBoostRegressor(iterations=5, depth=3, thread_count=1, verbose=False, allow_writing_files=False)
    model.fit(rows, rows[:, 0] * rows[:, 1] + rows[:, 2])
    found, counted = (attribute(model, rows[:9], background=background, interactions="all") for background in ("model", rows))
    assert found.pairs == counted.pairs
    assert_allclose(found.interactions, counted.interactions, rtol=0, atol=1e-9)
