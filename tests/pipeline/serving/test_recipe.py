"""Explainers as folders: they give the bits of ``attribute`` whatever the model came from, and what was changed is refused."""

import json
from importlib.metadata import version

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost
from sklearn.ensemble import RandomForestClassifier

from leafledger import attribute, load_ensemble
from leafledger.pipeline.errors import InvalidModel, OtherVersion, StorageError, UsageError
from leafledger.pipeline.serving import recipe as recipes
from leafledger.pipeline.serving.recipe import answer, open_explainer, write_explainer

RNG = np.random.default_rng(3)
FRAME = pd.DataFrame({"a": RNG.normal(size=200), "b": RNG.integers(0, 9, 200).astype(float), "c": RNG.choice(["x", "y", "z"], 200)})
TARGET = FRAME.a + FRAME.b * (FRAME.c == "y")
LATE = np.where(TARGET > 2, "late", "on time")
NUMBERS, CATEGORY = FRAME[["a", "b"]], FRAME.assign(c=pd.Categorical(FRAME.c))
QUIET = {"verbosity": -1, "n_jobs": 1, "n_estimators": 4}


def forest():
    return RandomForestClassifier(4, max_depth=3, random_state=0, n_jobs=1).fit(NUMBERS, LATE)


def statistics():
    return catboost.CatBoostRegressor(iterations=5, verbose=False, allow_writing_files=False, thread_count=1).fit(FRAME, TARGET, ["c"])


MODELS = {
    "a classifier of LightGBM, whose classes its file lacks": (lambda: lightgbm.LGBMClassifier(**QUIET).fit(NUMBERS, LATE), NUMBERS),
    "XGBoost, where -1 is missing": (
        lambda: xgboost.XGBRegressor(n_estimators=4, missing=-1.0, n_jobs=1).fit(NUMBERS, TARGET),
        NUMBERS.replace(3.0, -1.0),
    ),
    "categories of XGBoost": (lambda: xgboost.XGBRegressor(n_estimators=4, enable_categorical=True, n_jobs=1).fit(CATEGORY, TARGET), CATEGORY),
    "a forest": (forest, NUMBERS),
    "CatBoost's statistics": (statistics, FRAME),
    "a loaded model": (lambda: load_ensemble(forest(), output="late"), NUMBERS),
}


def written(folder, model, background=None, **asked):
    """What a folder gives that was written by one process and opened by another, as far as files are concerned."""
    given = {"method": "shapley", "ids": (), "top": None} | {name: asked.pop(name) for name in ("method", "ids", "top") if name in asked}
    folder.mkdir(exist_ok=True)
    write_explainer(folder, model, given["method"], background, given["ids"], given["top"], asked)
    return open_explainer(folder)


@pytest.fixture
def saved(tmp_path):
    """A folder with an explainer against a background."""
    written(tmp_path, forest(), NUMBERS[:20])
    return tmp_path


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("background", [None, "rows"])
@pytest.mark.slow
def test_an_explainer_gives_the_bits_of_attribute(tmp_path, kind, background):
    """From an object, with names and types as the object has them."""
    train, rows = MODELS[kind]
    model, background = train(), None if background is None else rows[:30]
    found = answer(*written(tmp_path, model, background), rows)
    assert found.equals(attribute(model, rows, background=background).to_arrow())


@pytest.mark.slow
def test_a_path_and_an_object_give_the_same(tmp_path):
    """Of CatBoost's statistics, too, for which our own format has no place."""
    model = statistics()
    model.save_model(tmp_path / "model.cbm")
    of_path = answer(*written(tmp_path / "path", tmp_path / "model.cbm"), FRAME)
    assert of_path.equals(answer(*written(tmp_path / "object", model), FRAME))


@pytest.mark.slow
def test_what_is_asked_is_kept(tmp_path):
    """Groups, one output, a method with parameters, interactions, a matrix for a background, ids."""
    model, matrix = forest(), NUMBERS.to_numpy()
    asked = {"method": "banzhaf", "parameters": {"p": 0.25}, "interactions": "all", "output": "late", "background": matrix[:40]}
    rows = NUMBERS.assign(customer=range(200))
    found = answer(*written(tmp_path / "banzhaf", model, ids="customer", **asked), rows)
    assert found.equals(attribute(model, rows, **asked).to_arrow("customer"))
    (tmp_path / "groups.json").write_text(json.dumps({"both": ["a", "b"]}))
    read = written(tmp_path / "groups", model, partition=str(tmp_path / "groups.json"))
    assert answer(*read, rows).equals(attribute(model, rows, partition={"both": ["a", "b"]}).to_arrow())


@pytest.mark.slow
def test_the_largest_attributions_are_a_row_each(tmp_path):
    """As sorted by hand; null where a row has fewer that are not 0."""
    model = xgboost.XGBRegressor(n_estimators=1, max_depth=1, enable_categorical=True, n_jobs=1).fit(CATEGORY, TARGET)
    rows = CATEGORY.set_axis(range(200, 0, -1))
    found = answer(*written(tmp_path, model, top=2), rows).to_pandas()
    phi = attribute(model, rows).phi[:, 0]
    place = np.abs(phi).argmax(axis=1)
    assert (np.abs(phi) > 0).sum(axis=1).max() == 1
    assert found["feature_1"].tolist() == [rows.columns[j] for j in place]
    assert found["phi_1"].tolist() == phi[np.arange(200), place].tolist()
    assert found["value_1"].tolist() == [str(rows.iloc[i, j]) for i, j in enumerate(place)]
    assert found[["feature_2", "phi_2", "value_2"]].isna().all(axis=None)
    with pytest.raises(UsageError, match=r"top is of one output, but the model has late, on time; give output"):
        answer(*written(tmp_path / "several", forest(), top=2), NUMBERS)


@pytest.mark.parametrize("name", ["model", "background.parquet"])
def test_a_file_that_was_changed_is_refused(saved, name):
    """By its digest, in one line; and one that is gone."""
    data = (saved / name).read_bytes()
    (saved / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(InvalidModel, match=rf"{name}: was changed after the explainer was logged: its SHA-256 is \w+…, expected \w+…$"):
        open_explainer(saved)
    (saved / name).unlink()
    with pytest.raises(StorageError, match=name):
        open_explainer(saved)


def test_tables_that_were_changed_are_refused(saved):
    """By theirs."""
    (tables,) = saved.glob("tables/*/tables.npy")
    data = bytearray(tables.read_bytes())
    data[-100] ^= 1
    other = saved.with_name("other")
    saved.rename(other)  # a place that this process has not looked at
    (other / tables.relative_to(saved)).write_bytes(data)
    with pytest.raises(InvalidModel, match="were changed after the explainer was logged"):
        open_explainer(other)


def test_a_recipe_of_something_else_is_refused(saved):
    """A damaged one, one of a later format, none."""
    path = saved / "recipe.json"
    text = path.read_text()
    path.write_text(text.replace('"format_version": 1', '"format_version": 2'))
    with pytest.raises(OtherVersion, match=rf"format 2, made by leafledger {version('leafledger')}, expected 1; log it again$"):
        open_explainer(saved)
    path.write_text(text.replace('"method"', '"methods"'))
    with pytest.raises(InvalidModel, match=r"recipe\.json: "):
        open_explainer(saved)
    path.unlink()
    with pytest.raises(InvalidModel, match=r"has no recipe.json, expected an explainer that leafledger.mlflow logged$"):
        open_explainer(saved)


def test_another_version_makes_the_tables_again(saved, monkeypatch):
    """To the same values; its own are mapped, and nothing is prepared."""
    expected = answer(*open_explainer(saved), NUMBERS)
    made = []
    prepare_game = recipes.ask.__globals__["prepare_game"]
    monkeypatch.setitem(recipes.ask.__globals__, "prepare_game", lambda *given: made.append(given) or prepare_game(*given))
    assert answer(*open_explainer(saved), NUMBERS).equals(expected)
    assert not made
    monkeypatch.setattr(recipes, "version", lambda name: "9.9")
    assert answer(*open_explainer(saved), NUMBERS).equals(expected)
    assert len(made) == 1


REFUSED = {
    "unknown": ({"sorted": True}, "sorted is no argument here, expected one of parameters, partition"),
    "drawn": ({"output": "other:7"}, "output 'other:7' is drawn by a row's number, which served rows do not have"),
    "no JSON": ({"parameters": {"p": np.float32(0.5)}}, "parameters is .*, expected what JSON can hold"),
    "top": ({"top": 0}, "top is 0, expected"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_served_is_refused_when_it_is_written(tmp_path, kind):
    """In one line."""
    asked, line = REFUSED[kind]
    with pytest.raises(UsageError, match=line):
        written(tmp_path, forest(), **asked)


def test_losses_need_labels(tmp_path):
    """Which served rows do not have."""
    model = lightgbm.LGBMRegressor(**QUIET).fit(NUMBERS, TARGET)
    with pytest.raises(UsageError, match="label"):
        answer(*written(tmp_path, model, NUMBERS[:20], space="loss"), NUMBERS)


def test_statistics_whose_file_says_less_are_refused(tmp_path):
    """A part of such a model has no file."""
    with pytest.raises(UsageError, match=r"the file of a Model is not known here, expected a path or an object of its library$"):
        written(tmp_path, load_ensemble(statistics(), trees=2))


def test_a_background_that_arrow_cannot_hold_is_refused(tmp_path):
    """Columns of several types."""
    with pytest.raises(UsageError, match="rows of the background are a DataFrame that Arrow cannot hold: "):
        written(tmp_path, forest(), pd.DataFrame({"a": [1.0, "x"], "b": [1.0, 2.0]}))


def test_tables_of_arrow_are_a_background(tmp_path):
    """Like the frame."""
    model = forest()
    of_table = answer(*written(tmp_path / "table", model, pa.table(NUMBERS[:20])), NUMBERS)
    assert of_table.equals(attribute(model, NUMBERS, background=NUMBERS[:20]).to_arrow())
