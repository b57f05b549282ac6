"""Files of no library: whatever model went in comes out, and whatever is wrong with them is one line."""

import json
from dataclasses import replace

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.testing import assert_array_equal

from leafledger import attribute, check_run, explain, load_ensemble, save_model
from leafledger.pipeline.errors import InvalidModel, RunConflict, UnsupportedModel
from leafledger.pipeline.models.catboost.cityhash import HashedCategory
from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.models.portable_format import ARRAYS, MAGIC, SIZE_BYTES, read_trees, write_trees
from tests.pipeline.models.catboost.training import counted, counting
from tests.pipeline.running import attributions


def trained(library):
    """A model of numbers and categories, and rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "city": pd.Categorical(rng.choice(["Oslo", "Rome", "Bern"], 300))})
    target = frame["x"] * (frame["city"] == "Oslo") + (frame["city"] == "Rome")
    if library == "xgboost":
        return xgboost.train({"max_depth": 3}, xgboost.DMatrix(frame, target, enable_categorical=True), 5), frame
    if library == "lightgbm":
        return lightgbm.train({"num_leaves": 6, "verbosity": -1}, lightgbm.Dataset(frame, target), 5), frame
    model = catboost.CatBoostRegressor(iterations=5, one_hot_max_size=9, verbose=False, allow_writing_files=False)
    return model.fit(frame, target, cat_features=["city"]), frame


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_a_model_is_what_it_was(library, tmp_path):
    """Every array, name and category; attributions to the bit, and of a run too."""
    model, frame = trained(library)
    loaded = load_ensemble(model)
    save_model(model, tmp_path / "model.trees")
    found = load_ensemble(tmp_path / "model.trees")
    assert found.library == "neutral"
    assert (found.features, found.outputs, found.objective) == (loaded.features, loaded.outputs, loaded.objective)
    for name in ARRAYS:
        assert_array_equal(getattr(found.ensemble, name), getattr(loaded.ensemble, name))
        assert getattr(found.ensemble, name).dtype == getattr(loaded.ensemble, name).dtype
    assert found.ensemble.single_precision == loaded.ensemble.single_precision
    expected = attribute(model, frame).phi
    assert_array_equal(attribute(found, frame).phi, expected)
    frame.to_parquet(tmp_path / "rows.parquet")
    explain(tmp_path / "model.trees", tmp_path / "rows.parquet", tmp_path / "run", precision="float64", scheduler="serial")
    assert_array_equal(attributions(tmp_path / "run")["phi_x"].to_numpy(), expected[:, 0, 0])
    assert check_run(tmp_path / "run", deep=True).n_again > 0


def test_a_file_is_not_written_over(tmp_path):
    """The same model again is no harm; another one is refused."""
    model, _ = trained("xgboost")
    other, _ = trained("lightgbm")
    for _ in range(2):
        save_model(model, tmp_path / "model.trees")
    before = (tmp_path / "model.trees").read_bytes()
    with pytest.raises(RunConflict, match=r"model\.trees: holds another file; choose another name$"):
        save_model(other, tmp_path / "model.trees")
    assert (tmp_path / "model.trees").read_bytes() == before


def taken_apart(data):
    """The header of a file, and its arrays' bytes."""
    start = len(MAGIC) + SIZE_BYTES
    size = int.from_bytes(data[len(MAGIC) : start], "little")
    return json.loads(data[start : start + size]), data[start + size :]


def put_together(header, arrays):
    text = json.dumps(header).encode()
    return MAGIC + len(text).to_bytes(SIZE_BYTES, "little") + text + arrays


SOUND = write_trees(load_ensemble(trained("xgboost")[0]))


def test_a_file_written_by_hand_is_read():
    """By who knows no more than what the documentation says: one split, x <= 0.5."""
    arrays = {
        "feature": np.array([0, -1, -1], "<i4"),
        "threshold": np.array([0.5, 0, 0], "<f8"),
        "missing_left": np.array([1, 0, 0], "u1"),
        "category_set": np.full(3, -1, "<i4"),
        "left": np.array([1, -1, -1], "<i4"),
        "right": np.array([2, -1, -1], "<i4"),
        "value": np.array([[0.0], [1.0], [5.0]], "<f8"),
        "cover": np.array([4.0, 3.0, 1.0], "<f8"),
        "root": np.array([0], "<i4"),
        "output": np.array([0], "<i4"),
        "base": np.array([10.0], "<f8"),
        "n_categories": np.array([0], "<i4"),
        "zero_missing": np.array([0], "u1"),
        "set_start": np.array([0], "<i8"),
        "set_words": np.array([], "<u4"),
        "iteration": np.array([0], "<i4"),
    }
    feature = {"name": "x", "categorical": False, "categories": None, "hashed": False, "perhaps_codes": False, "underscored": False}
    feature |= {"missing": None, "named": False, "by_value": False}
    header = {
        "origin": "by hand",
        "objective": "",
        "margin": "label",
        "link": "identity",
        "scale": 1.0,
        "outputs": ["0"],
        "single_precision": False,
        "base_is_first": False,
        "features": [feature],
        "arrays": {name: array.shape for name, array in arrays.items()},
    }
    data = put_together(header, b"".join(array.tobytes() for array in arrays.values()))
    ensemble, features, _, _ = read_trees(data, "hand")
    assert features == (Feature("x", named=False),)
    assert ensemble.value[:, 0].tolist() == [0.0, 1.0, 5.0]


def changed(change):
    """The sound file with a changed header."""
    header, arrays = taken_apart(SOUND)
    change(header)
    return put_together(header, arrays)


WRONG = {
    "cut": (SOUND[:-1], r"bytes, but its header promises"),
    "longer": (SOUND + b"\0", r"bytes, but its header promises"),
    "no header": (SOUND[: len(MAGIC) + 3], r"bytes, expected a header of"),
    "a header beyond the end": (MAGIC + b"\xff" * SIZE_BYTES + SOUND, r"expected a header of 18446744073709551615 bytes"),
    "no JSON": (MAGIC + (2).to_bytes(SIZE_BYTES, "little") + b"{]", r"its header is not sound"),
    "no text": (MAGIC + (2).to_bytes(SIZE_BYTES, "little") + b"\xff\xff", r"its header is not sound"),
    "another field": (changed(lambda header: header.update(pickle="…")), r"its header is not sound: it has a 'pickle'"),
    "no outputs": (changed(lambda header: header.pop("outputs")), r"its header is not sound: it has no 'outputs'"),
    "another link": (changed(lambda header: header.update(link="probit")), r"link is \"probit\", expected 'identity' or"),
    "a threshold of nothing": (changed(lambda header: header.update(threshold=1.5)), r"threshold is 1\.5, expected a number from 0 to 1"),
    "a link of nothing": (changed(lambda header: header.update(scale=0.0)), r"scale is 0\.0, expected a number above 0"),
    "another margin": (
        changed(lambda header: header.update(margin="odds")),
        r"margin is \"odds\", expected 'label' or 'class' or",
    ),
    "arrays in another order": (
        changed(lambda header: header.update(arrays=dict(reversed(header["arrays"].items())))),
        r"its header lists arrays 'iteration, ",
    ),
    "a negative shape": (changed(lambda header: header["arrays"].update(root=[-5])), r"array 'root' has shape \(-5,\), expected 1 sizes"),
    "a flat value": (changed(lambda header: header["arrays"].update(value=[9])), r"array 'value' has shape \(9,\), expected 2 sizes"),
    "more arrays than bytes": (changed(lambda header: header["arrays"].update(root=[1 << 60])), r"bytes, but its header promises"),
    "one feature": (changed(lambda header: header["features"].pop()), r"names of 1 features and 1 outputs, expected 2 and 1"),
    "a number with categories": (
        changed(lambda header: header["features"][0].update(categorical=True)),
        r"feature 'x' has 0 categories, expected some",
    ),
    "fewer categories": (changed(lambda header: header["features"][1]["categories"].pop()), r"lists 2 categories, expected 3 different ones"),
    "a category twice": (
        changed(lambda header: header["features"][1].update(categories=["Oslo", "Oslo", "Rome"])),
        r"lists 3 categories, expected 3 different ones",
    ),
    "values without a list": (changed(lambda header: header["features"][0].update(by_value=True)), r"feature 'x' is by value, expected categories"),
    "texts for hashes": (changed(lambda header: header["features"][1].update(hashed=True)), r"expected whole numbers of 32 bits"),
    "no finite category": (
        changed(lambda header: header["features"][1].update(categories=[1.5, 2.5, float("inf")])),
        r"feature 'city' has a category that is no finite number",
    ),
    "no finite missing value": (
        changed(lambda header: header["features"][0].update(missing=float("nan"))),
        r"has missing value nan, expected a finite",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_one_line(wrong):
    """Sizes, types, names and numbers that do not fit."""
    data, says = WRONG[wrong]
    with pytest.raises(InvalidModel, match=rf"^model: .*{says}") as refused:
        read_trees(data, "model")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("left", 0, r"parents"),
        ("missing_left", 7, r"array 'missing_left' has 7, expected 0 or 1"),
        ("threshold", 0.1, r"node \d+: threshold .*0\.1.* is no number in single precision"),
        ("value", np.nan, r"leaf value is \[nan\]"),
    ],
)
def test_arrays_that_make_no_trees_are_refused(name, value, says):
    """As those of any library's file."""
    model = load_ensemble(trained("xgboost")[0])
    array = getattr(model.ensemble, name).copy().astype(ARRAYS[name][0])
    leaf = model.ensemble.feature < 0
    numeric = ~leaf & (model.ensemble.category_set < 0)
    array[np.flatnonzero(numeric if name == "threshold" else leaf if name == "value" else ~leaf)[-1]] = value
    header, arrays = taken_apart(write_trees(model))
    at = sum(int(np.prod(shape)) * np.dtype(ARRAYS[other][0]).itemsize for other, shape in list(header["arrays"].items())[: list(ARRAYS).index(name)])
    raw = array.tobytes()
    with pytest.raises(InvalidModel, match=rf"^model: .*{says}"):
        read_trees(put_together(header, arrays[:at] + raw + arrays[at + len(raw) :]), "model")


def test_categories_that_json_does_not_have_are_refused():
    """Rather than written as something else; hashes are written as numbers."""
    model = load_ensemble(trained("catboost")[0])
    city = model.features[1]
    hashed = Feature("city", True, tuple(HashedCategory(k) for k in range(len(city.categories))))
    kept = type(model)(model.ensemble, (model.features[0], hashed), model.outputs, model.library, "", model.objective)
    assert read_trees(write_trees(kept), "model")[1][1] == hashed
    truths = replace(hashed, categories=tuple(map(HashedCategory.of, ("True", "x", "y"))), booleans=("False", "True"))
    assert read_trees(write_trees(replace(kept, features=(model.features[0], truths))), "model")[1][1] == truths
    odd = Feature("city", True, (1j, 2j, 3j))
    with pytest.raises(UnsupportedModel, match=r"^feature 'city' has category 1j, expected texts, finite numbers or booleans$"):
        write_trees(type(model)(model.ensemble, (model.features[0], odd), model.outputs, model.library, ""))


def test_an_infinite_number_for_missing_values_is_refused(tmp_path):
    """It was written, into a file that cannot be read."""
    rows = np.random.default_rng(0).normal(size=(50, 2))
    model = xgboost.XGBRegressor(n_estimators=2, max_depth=2, n_jobs=1, missing=np.inf).fit(rows, rows[:, 0])
    with pytest.raises(UnsupportedModel, match=r"^feature 'f0' has inf for missing values, expected a finite number, or NaN alone$"):
        save_model(model, tmp_path / "model.trees")
    assert not [*tmp_path.iterdir()]


def test_hashes_tell_how_booleans_are_written_as_those_of_the_library_do():
    """Also of a feature that no split asks for, with a category that nothing is."""
    truths = np.arange(100) % 3 == 0
    rows = pd.DataFrame({"digits": truths, "words": truths[::-1].astype(str), "same": np.full(100, True)})
    model = catboost.CatBoostRegressor(iterations=5, verbose=0, allow_writing_files=False, thread_count=1)
    loaded = load_ensemble(model.fit(rows, truths + 2.0 * truths[::-1], cat_features=list(rows)))
    assert [feature.booleans for feature in loaded.features] == [("0", "1"), ("False", "True"), ("0", "1")]
    assert read_trees(write_trees(loaded), "model")[1] == loaded.features


def test_a_model_with_target_statistics_is_refused(tmp_path):
    """There is no place for its tables."""
    with pytest.raises(UnsupportedModel, match=r"^the model has target statistics \(CTR\), for which this format has no place") as refusal:
        save_model(counting("regression", *counted(200), iterations=5), tmp_path / "model.trees")
    assert "\n" not in str(refusal.value)
