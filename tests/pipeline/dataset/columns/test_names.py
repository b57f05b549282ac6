"""Features go by the names of their columns: LightGBM's files have underscores where the data have spaces."""

from dataclasses import replace

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from leafledger import attribute, check_run, compare, explain, prediction_gap
from leafledger.pipeline.dataset.columns.names import call, name_at, say_positions, spell
from leafledger.pipeline.errors import SchemaMismatch, UsageError
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.models.model import Feature
from tests.pipeline.running import attributions

N = 200


def called(model, columns, apart=(), asked=()):
    """The model with its features called as such columns of rows are."""
    return call(model, *spell(model.features, columns, "rows", apart, asked))


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"mean radius": rng.normal(size=N), "mean_area": rng.normal(size=N), "kind of cell": pd.Categorical(rng.choice(["a", "b"], N))}
    )


@pytest.fixture(scope="module")
def booster(frame):
    label = frame["mean radius"] * 3 + frame["mean_area"] + frame["kind of cell"].cat.codes * 5
    return lightgbm.train({"verbosity": -1, "num_threads": 1}, lightgbm.Dataset(frame, label), 10)


@pytest.fixture(scope="module")
def model(booster, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.txt"
    booster.save_model(path)
    assert [feature.name for feature in load_ensemble(path).features] == ["mean_radius", "mean_area", "kind_of_cell"]
    return path


@pytest.mark.slow
def test_the_frame_that_was_trained_on_is_explained(frame, booster, model, tmp_path):
    """In memory, from a file or the booster, and from Parquet, where the outputs are called as its columns are; groups too."""
    expected = booster.predict(frame, pred_contrib=True)
    for given in (booster, model):
        for rows in (frame, pa.Table.from_pandas(frame), frame.rename(columns={"mean radius": "mean_radius"})):
            found = attribute(given, rows)
            assert list(found.players) == [str(name) for name in (rows.column_names if isinstance(rows, pa.Table) else rows.columns)]
            assert_allclose(found.phi[:, 0], expected[:, :-1], rtol=1e-9, atol=1e-9)
    assert_allclose(attribute(model, frame.iloc[3]).phi[0, 0], expected[3, :-1], rtol=1e-9, atol=1e-9)
    assert attribute(model, frame, partition={"cell": ["kind of cell", "mean radius"]}).players == ("cell", "mean_area")
    assert prediction_gap(model, frame.head(3), scale=0.1, features=["mean radius"]).shape == (3, 1)

    frame.to_parquet(tmp_path / "rows.parquet")
    explain(model, tmp_path / "rows.parquet", tmp_path / "run", precision="float64", scheduler="serial", background=tmp_path / "rows.parquet")
    explain(model, tmp_path / "rows.parquet", tmp_path / "own", precision="float64", scheduler="serial")
    stored = attributions(tmp_path / "own")
    assert_allclose(np.transpose([stored[f"phi_{name}"] for name in frame]), expected[:, :-1], rtol=1e-9, atol=1e-9)
    for run in ("run", "own"):
        assert check_run(tmp_path / run, deep=True).sound
    methods = [f"run:{tmp_path / 'own'}", "banzhaf"]
    assert compare(model, tmp_path / "rows.parquet", tmp_path / "out.parquet", methods=methods, scales=(), scheduler="serial").num_rows


def test_columns_in_the_path_too(frame, booster, model, tmp_path):
    """A folder is called as its column is, with the space as it stands or escaped."""
    for folder, (kind, rows) in zip(("kind of cell=a", "kind%20of%20cell=b"), frame.groupby("kind of cell", observed=True), strict=True):
        assert folder.endswith(str(kind))
        (tmp_path / "data" / folder).mkdir(parents=True)
        pq.write_table(pa.Table.from_pandas(rows.drop(columns="kind of cell"), preserve_index=False), tmp_path / "data" / folder / "f.parquet")
    explain(model, tmp_path / "data", tmp_path / "run", precision="float64", scheduler="serial")
    ordered = pd.concat([frame[frame["kind of cell"] == kind] for kind in ("b", "a")])
    assert_allclose(np.sort(attributions(tmp_path / "run")["margin"]), np.sort(booster.predict(ordered, raw_score=True)), rtol=1e-9)


def test_two_columns_that_may_be_a_feature_are_refused(frame, model, tmp_path):
    """The other one's values were taken before. So are files that do not agree; and the other libraries write names as they are."""
    both = frame.assign(mean_radius=0.0)
    says = r"columns 'mean radius' and 'mean_radius' may both be the model's 'mean_radius', expected one of them"
    with pytest.raises(SchemaMismatch, match=f"^rows: {says}"):
        attribute(model, both)
    for name, rows in (("a", frame), ("b", frame.rename(columns={"mean radius": "mean_radius"}))):
        rows.to_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(SchemaMismatch, match=r"b\.parquet: has column 'mean_radius', it is 'mean radius' in .*a\.parquet$"):
        explain(model, tmp_path, tmp_path.parent / "run", scheduler="serial")
    both.to_parquet(tmp_path / "b.parquet")
    with pytest.raises(SchemaMismatch, match=rf"b\.parquet: {says}"):
        explain(model, tmp_path / "b.parquet", tmp_path.parent / "run", scheduler="serial")
    plain = load_ensemble(model)
    unmarked = plain.__class__(plain.ensemble, tuple(type(f)(f.name, f.categorical, f.categories) for f in plain.features), ("0",), "xgboost", "")
    assert called(unmarked, both.columns).features == unmarked.features


def test_features_without_names_are_called_as_the_columns_are(model):
    """By position only where none has a name; once called so, they have names. Other columns do not count."""
    loaded = load_ensemble(model)
    made_up = replace(loaded, features=tuple(Feature(f"f{j}", named=False) for j in range(3)))
    found = called(made_up, ["index", "b", "c", "month", "a", "id"], ["index", "month"], ["id"])
    assert [(feature.name, feature.named) for feature in found.features] == [("b", True), ("c", True), ("a", True)]
    assert say_positions(found) == "by position, since the model has no names: b, c, a"
    assert called(found, ["x", "y", "z"]) == found
    by_name = called(made_up, ["f2", "id", "f0", "f1"])
    assert [feature.name for feature in by_name.features] == ["f0", "f1", "f2"]
    assert say_positions(by_name) == ""
    mixed = replace(made_up, features=(*made_up.features[:2], Feature("hour")))
    assert called(mixed, ["x", "y", "z"]) == mixed


def test_a_position_is_the_name_that_stands_there():
    """Unless the number is another one's name; what is no whole number is left to who reads names."""
    places = {"b": 0, "1": 1, "0": 2}
    assert [name_at(given, places, "features") for given in (1, np.int8(2), "b", 1.0, True, None)] == ["1", "0", "b", 1.0, True, None]
    for given, says in ((3, "position 3, expected 0 to 2"), (-1, "position -1"), (0, "0, which may be 'b' at this position or the one called '0'")):
        with pytest.raises(UsageError, match=f"^features names {says}"):
            name_at(given, places, "features")


def unnamed(model, n):
    """A model that was trained on a plain matrix."""
    return replace(load_ensemble(model), features=tuple(Feature(f"f{j}", named=False) for j in range(n)))


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (["f0", "f2", "f1"], "column 'f2' stands where the model, which has no names, takes 'f1': position and name differ"),
        (["a", "f1", "f2"], "has column 'f1' but not 'f0': the model has no names, expected 3 columns in its order, either all or none of them"),
        (["a", "b", "id"], r"have 2 columns \(a, b\), expected 3 in the model's order, or columns called f0, f1, f2$"),
        (
            ["a", "b", "id", "label"],
            "column 'id' stands before columns that go by position, .* be one of its 3 features itself: expected it behind",
        ),
        (["a", "b", "c", "d"], r"have 4 columns \(a, b, c, d\), expected 3 in the model's order"),
    ],
)
def test_columns_that_may_be_others_are_refused_without_names(model, columns, says):
    """By what is doubtful: the order, some of the names, or how many there are."""
    with pytest.raises(SchemaMismatch, match=f"^rows: .*{says}"):
        spell(unnamed(model, 3).features, columns, "rows", (), ["id"])


def test_ten_names_are_enough_for_a_message(model):
    """Of more it says how many."""
    names = list("abcdefghijkl")
    assert say_positions(called(unnamed(model, 10), names[:10])).endswith(": a, b, c, d, e, f, g, h, i, j")
    assert say_positions(called(unnamed(model, 12), names)).endswith(": a, b, c, d, e, f, g, h, i, j and 2 more")
