"""In memory, every library's model and every way to hand over rows give that library's own values."""

import dataclasses
import inspect

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost
from numpy.testing import assert_allclose

from leafledger import LeafledgerError, attribute, explain, load_ensemble
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.errors import AdditivityBreach, InvalidModel, SchemaMismatch, UnsupportedModel, UsageError
from leafledger.pipeline.in_memory.explain import question as preparation
from tests.pipeline.conftest import FEATURES, TRAINING, WRONG

N = 400
# XGBoost adds its contributions up in float32, CatBoost and LightGBM in float64.
TOLERANCE = {"xgboost": {"rtol": 1e-4, "atol": 2e-4}, "lightgbm": {"rtol": 1e-11, "atol": 1e-11}, "catboost": {"rtol": 1e-9, "atol": 1e-9}}


def inputs(frame, missing_category=None):
    """The features, categories as pandas strings or filled in."""
    frame = frame[FEATURES].iloc[:: len(frame) // N][:N].reset_index(drop=True)
    return frame if missing_category is None else frame.assign(carrier=frame["carrier"].fillna(missing_category))


def target(frame):
    return frame["delay"].fillna(0) + 70 * (frame["carrier"] == "UA") + frame["month"] * 3 + frame["distance"] / 20


@pytest.fixture(scope="module", params=["xgboost", "lightgbm", "catboost"])
def trained(request, example):
    """A library's model, the rows it was trained on, and its own contributions, base last."""
    frame = inputs(example.frame)
    categorical = frame.assign(carrier=frame["carrier"].astype("category"))
    if request.param == "xgboost":
        data = xgboost.DMatrix(categorical, target(frame), enable_categorical=True)
        model = xgboost.train({"max_depth": 4, "nthread": 1, "max_cat_to_onehot": 2}, data, 10)
        return request.param, model, frame, model.predict(data, pred_contribs=True)
    if request.param == "lightgbm":
        model = lightgbm.train(TRAINING, lightgbm.Dataset(categorical, target(frame)), 10)
        return request.param, model, frame, model.predict(categorical, pred_contrib=True)
    frame = inputs(example.frame, "none")
    pool = catboost.Pool(frame, target(frame), cat_features=["carrier"])
    model = catboost.CatBoostRegressor(iterations=10, depth=4, one_hot_max_size=10, thread_count=1, verbose=False, allow_writing_files=False)
    model.fit(pool)
    return request.param, model, frame, model.get_feature_importance(pool, type="ShapValues", thread_count=1)


def assert_same(trained, found, expected=None):
    library, _, _, contributions = trained
    expected = contributions if expected is None else expected
    assert_allclose(found.phi[:, 0], expected[:, :-1], **TOLERANCE[library])
    assert_allclose(found.base[0], expected[0, -1], rtol=1e-5)
    assert_allclose(found.margin[:, 0], expected.sum(axis=1), **TOLERANCE[library])


def test_a_data_frame_gives_the_library_s_values(trained):
    """Strings, missing values and the library's own object in; its own contributions out."""
    library, model, frame, contributions = trained
    loaded = load_ensemble(model)
    assert loaded.library == library
    assert (np.abs(contributions[:, :-1]).max(axis=0) > 0.5).all(), "every feature matters, or this would show little"
    assert_same(trained, attribute(loaded, frame))
    assert_same(trained, attribute(model, frame))


@pytest.mark.parametrize("encode", ["reordered", "shuffled columns", "large strings", "unused categories", "more columns"])
def test_the_encoding_of_the_rows_does_not_matter(trained, encode):
    """Categories are matched by value and columns by name, whatever dictionary, order or string type the rows have."""
    _, model, frame, _ = trained
    table = pa.table(frame)
    at = table.column_names.index("carrier")
    if encode == "reordered":
        values = pa.array(["zz", "DL", "B6", "none", "UA", "AA", None])
        index = {value: i for i, value in enumerate(values.to_pylist())}
        codes = pa.array([index[value] for value in table["carrier"].to_pylist()], pa.int8())
        table = table.set_column(at, "carrier", pa.DictionaryArray.from_arrays(codes, values))
    elif encode == "shuffled columns":
        table = table.select(table.column_names[::-1])
    elif encode == "large strings":
        table = table.set_column(at, "carrier", table["carrier"].cast(pa.large_string()))
    elif encode == "unused categories":
        frame = frame.assign(carrier=pd.Categorical(frame["carrier"], ["XX", "UA", "none", "DL", "YY", "B6", "AA"]))
        table = pa.table(frame)
    else:
        table = table.append_column("unrelated", pa.array([{"a": 1}] * len(frame)))
    assert_same(trained, attribute(model, table))


def test_a_matrix_holds_codes(trained):
    """An array's columns are in the model's order, its categories the positions in the model's list; CatBoost takes no such array."""
    library, model, frame, _ = trained
    loaded = load_ensemble(model)
    carrier = next(feature for feature in loaded.features if feature.name == "carrier")
    code = {category: i for i, category in enumerate(carrier.categories)}
    codes = [np.nan if pd.isna(value) else code.get(value, len(code)) for value in frame["carrier"]]
    rows = frame.assign(carrier=codes)[[feature.name for feature in loaded.features]].to_numpy(float)
    if library == "catboost":
        with pytest.raises(SchemaMismatch, match=r"^rows, an array: column 'carrier' is double, .* on categories that are strings$"):
            attribute(loaded, rows)
    else:
        assert_same(trained, attribute(loaded, rows))


def test_unseen_categories_go_one_way(trained):
    """A value the model has never seen is none of its categories: margins are those of a frame in which the library sees it so."""
    library, model, frame, _ = trained
    frame = frame.assign(carrier="never seen")
    found = attribute(model, frame, allow_unseen=True)
    if library == "catboost":
        expected = model.predict(frame)
    elif library == "lightgbm":
        expected = model.predict(frame.assign(carrier=pd.Categorical(frame["carrier"], ["never seen"])))
    else:  # XGBoost refuses unseen strings; a code beyond its list is what they would be
        loaded = load_ensemble(model)
        rows = frame.assign(carrier=float(len(loaded.features[2].categories)))
        expected = attribute(loaded, rows[[feature.name for feature in loaded.features]].to_numpy(float), allow_unseen=True).margin[:, 0]
    assert_allclose(found.margin[:, 0], expected, **TOLERANCE[library])


def test_banzhaf_of_a_stump_is_its_shapley_value(trained):
    """With one player all values agree; with several, Banzhaf does not add up."""
    _, model, frame, _ = trained
    assert not np.allclose(attribute(model, frame, "banzhaf").phi, attribute(model, frame).phi)
    if isinstance(model, lightgbm.Booster):
        stump = lightgbm.train(TRAINING | {"num_leaves": 2}, lightgbm.Dataset(frame[["delay"]], frame["delay"].fillna(0)), 1)
        assert_allclose(attribute(stump, frame, "banzhaf", parameters={"p": 0.3}).phi, attribute(stump, frame).phi, rtol=1e-14)


def test_many_rows_are_cut_into_slices(trained):
    """Slices on several threads give each row the same bits as alone."""
    _, model, frame, _ = trained
    many = pd.concat([frame] * 25, ignore_index=True)
    assert (attribute(model, many).phi == np.tile(attribute(model, frame).phi, (25, 1, 1))).all()


def test_no_rows_are_fine(trained):
    """Zero rows in, zero rows out."""
    _, model, frame, _ = trained
    assert attribute(model, frame.iloc[:0]).phi.shape == (0, 1, 4)


def test_unused_columns_of_a_frame_are_not_converted(example):
    """Arrow takes a frame column by column: numbers that no split asks for, and columns that are no features, stay where they are."""
    model = load_ensemble(example.model)
    (unused, *_) = {"distance", "month"} - {model.features[j].name for j in model.ensemble.feature if j >= 0}
    frame = example.frame[FEATURES].assign(other=[object()] * len(example.frame))
    found, expected = attribute(model, frame), attribute(model, example.frame[FEATURES])
    assert (found.phi == expected.phi).all()
    assert (found.margin == expected.margin).all()
    with pytest.raises(SchemaMismatch, match=f"column '{unused}' is .*string, the model was trained on numbers"):
        attribute(model, frame.drop(columns="other").assign(**{unused: "x"}))
    with pytest.raises(SchemaMismatch, match=f"column '{unused}' missing"):
        attribute(model, frame.drop(columns=["other", unused]))


def test_a_density_may_be_a_function(example):
    """In memory, as in no plan; that of Beta(2, 3), and the same as a polyline is near."""
    frame = example.frame[FEATURES][:100]
    beta = attribute(example.model, frame, "beta", parameters={"alpha": 2, "beta": 3})
    assert_allclose(
        attribute(example.model, frame, "semivalue", parameters={"density": lambda t, rest: t**2 * rest}).phi, beta.phi, rtol=1e-9, atol=1e-9
    )
    t = np.linspace(0, 1, 1001)
    points = np.column_stack((t, t**2 * (1 - t)))
    assert_allclose(attribute(example.model, frame, "semivalue", parameters={"density": points}).phi, beta.phi, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("method", "parameters", "says"),
    [
        ("shapley", {"p": 1}, "method 'shapley' has no parameter 'p', it takes none"),
        ("semivalue", {}, "method 'semivalue' needs parameter 'atoms' or 'density'"),
        ("probabilistic", {"sizes": [1], "weights": [1]}, "needs parameter 'sizes' or 'weights', and not both"),
        ("probabilistic", {"sizes": [1]}, "parameter 'sizes' has 1 numbers, expected one for each of 4 players"),
        ("semivalue", {"atoms": "0.5"}, "parameter 'atoms' is '0.5', expected points"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(example, method, parameters, says):
    """One line, whoever finds it."""
    with pytest.raises(UsageError, match=says):
        attribute(example.model, example.frame[FEATURES], method, parameters=parameters)


def test_a_breach_names_the_row(example, monkeypatch):
    """The residual is checked in memory too."""
    wrong = METHODS["shapley"]

    def off_on_one_row(buffers, tables):
        wrong.kernel(buffers, tables)
        buffers.phi[0, 0, 5] += 1.0

    monkeypatch.setitem(METHODS, "shapley", dataclasses.replace(wrong, kernel=off_on_one_row))
    with pytest.raises(AdditivityBreach, match="row 5: attributions miss margin - base value by"):
        attribute(example.booster, example.frame[:100])


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (np.zeros((3, 2)), r"rows have shape \(3, 2\), the model was trained on 4 features"),
        (np.zeros(4), r"rows have shape \(4,\)"),
        ([1, 2, 3], "rows are a list, expected a data frame, an Arrow table, "),
        (pd.DataFrame({"delay": [1.0]}), "rows: columns 'distance', 'carrier', 'month' missing, got delay"),
        (
            pd.DataFrame({"distance": ["far"], "delay": [1.0], "carrier": ["UA"], "month": [1]}),
            "column 'distance' is .*string, the model was trained on numbers",
        ),
        (
            pd.DataFrame({"distance": [1.0], "delay": [1.0], "carrier": [3.5], "month": [1]}),
            "column 'carrier' is double, .* categories that are strings",
        ),
        (
            pd.DataFrame({"distance": pd.to_datetime(["2013-01-01"]), "delay": [1.0], "carrier": ["UA"], "month": [1]}),
            "column 'distance' is timestamp",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(example, rows, says):
    """Wrong shapes, missing columns and wrong types: one line."""
    with pytest.raises(SchemaMismatch, match=says) as refusal:
        attribute(example.booster, rows)
    assert "\n" not in str(refusal.value)


def test_sources_that_are_no_models_are_refused(tmp_path):
    """Pickles, text and objects of other libraries are named for what they are."""
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04\x95\x00")
    with pytest.raises(UnsupportedModel, match=r"model\.pkl: is a pickle, .*; load it where you trust it, and save the model"):
        load_ensemble(tmp_path / "model.pkl")
    (tmp_path / "model.txt").write_bytes(b"trees")
    with pytest.raises(InvalidModel, match=r"model\.txt: not a model file, expected "):
        load_ensemble(tmp_path / "model.txt")
    with pytest.raises(UsageError, match="cannot load a dict"):
        load_ensemble({})


def test_every_class_has_the_library_s_values(example):
    """Multi-class models of all three libraries, one tree per class or a vector at each leaf: each class's own contributions."""
    frame = inputs(example.frame, "none")
    categorical = frame.assign(carrier=frame["carrier"].astype("category"))
    label = (target(frame) // 40).clip(0, 2).astype(int)

    booster = lightgbm.train(TRAINING | {"objective": "multiclass", "num_class": 3}, lightgbm.Dataset(categorical, label), 4)
    found = attribute(booster, frame)
    expected = booster.predict(categorical, pred_contrib=True).reshape(N, 3, -1)
    assert_allclose(found.phi, expected[:, :, :-1], **TOLERANCE["lightgbm"])
    assert_allclose(found.margin, booster.predict(categorical, raw_score=True), **TOLERANCE["lightgbm"])

    data = xgboost.DMatrix(categorical, label, enable_categorical=True)
    booster = xgboost.train({"objective": "multi:softprob", "num_class": 3, "max_depth": 4, "nthread": 1}, data, 4)
    found = attribute(booster, frame)
    assert_allclose(found.phi, booster.predict(data, pred_contribs=True)[:, :, :-1], rtol=1e-4, atol=1e-5)
    assert_allclose(found.margin, booster.predict(data, output_margin=True), rtol=1e-5, atol=1e-5)

    pool = catboost.Pool(frame, label, cat_features=["carrier"])
    model = catboost.CatBoostClassifier(iterations=4, depth=4, one_hot_max_size=10, thread_count=1, verbose=False, allow_writing_files=False)
    model.fit(pool)
    found = attribute(model, frame)
    expected = model.get_feature_importance(pool, type="ShapValues", thread_count=1)
    assert_allclose(found.phi, expected[:, :, :-1], **TOLERANCE["catboost"])
    assert_allclose(found.margin, model.predict(frame, prediction_type="RawFormulaVal"), **TOLERANCE["catboost"])


def test_a_background_makes_it_the_marginal_game():
    """CatBoost's "Exact" values of a symmetric model, from its own leaf weights, are ours against the rows it was trained on."""
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((400, 6)).astype(np.float32)
    target = rows[:, 0] * rows[:, 1] + np.abs(rows[:, 2]) + 0.1 * rng.standard_normal(400)
    model = catboost.CatBoostRegressor(iterations=20, depth=5, verbose=False, allow_writing_files=False, random_seed=1, boosting_type="Plain")
    model.fit(rows, target)
    exact = model.get_feature_importance(catboost.Pool(rows[:50]), type="ShapValues", shap_calc_type="Exact")
    for background in (rows.astype(float), "model"):
        found = attribute(model, rows[:50].astype(float), background=background)
        assert_allclose(found.phi[:, 0], exact[:, :-1], rtol=0, atol=1e-9)
        assert_allclose(found.base[0], exact[0, -1], rtol=1e-9)


def test_a_background_may_be_a_data_frame_and_must_have_rows():
    """Read like rows; an empty one is refused, and a method without a marginal game says so."""
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(rng.standard_normal((300, 4)), columns=list("abcd"))
    model = xgboost.train({"max_depth": 3}, xgboost.DMatrix(frame, frame["a"] * frame["b"]), 5)
    found = attribute(model, frame[:20], background=frame)
    assert_allclose(found.phi, attribute(model, frame.to_numpy()[:20], background=frame.to_numpy()).phi, rtol=0, atol=0)
    assert_allclose(found.phi.sum(axis=2) + found.base, found.margin, rtol=0, atol=1e-12)
    assert_allclose(found.base, attribute(model, frame).margin.mean(axis=0), rtol=1e-12)
    with pytest.raises(UsageError, match=r"tree 0, node \d+: a leaf does not say how its rows compare at every split"):
        attribute(model, frame, background="model")
    with pytest.raises(UsageError, match="background is 'rows', expected rows or 'model'"):
        attribute(model, frame, background="rows")
    with pytest.raises(UsageError, match="the background has no rows, expected at least one"):
        attribute(model, frame, background=frame[:0])
    with pytest.raises(UsageError, match="method 'r2' has no marginal game"):
        attribute(model, frame, "r2", background=frame, label=frame["a"].to_numpy())


def test_tables_that_do_not_fit_are_refused_before_they_are_made(monkeypatch):
    """With both sizes."""
    rows = np.random.default_rng(9).standard_normal((300, 4))
    model = xgboost.train({"max_depth": 6}, xgboost.DMatrix(rows, rows[:, 0] * rows[:, 1]), 20)
    monkeypatch.setattr(preparation, "table_budget", lambda: 1 << 10)
    with pytest.raises(UsageError, match=r"tables of the marginal game would have [0-9.]+ MiB, 0\.0 MiB are allowed"):
        attribute(model, rows, background=rows)


@pytest.mark.parametrize("method", ["owen", "two_step"])
def test_values_of_a_partition_add_up_in_the_marginal_game(method):
    """Within groups to the groups' values, with features in no split named all the same."""
    rng = np.random.default_rng(10)
    frame = pd.DataFrame(rng.standard_normal((300, 6)), columns=list("abcdef"))
    frame["f"] = 0.0
    model = xgboost.train({"max_depth": 4}, xgboost.DMatrix(frame, frame["a"] * frame["b"] + frame["c"]), 10)
    partition = {"first": ["a", "c", "f"], "second": ["b", "d"]}
    found = attribute(model, frame[:30], method, background=frame, partition=partition)
    groups = attribute(model, frame[:30], background=frame, partition=partition)
    assert found.players == tuple("abcdef")
    for group, members in (*partition.items(), ("e", "e")):
        together = found.phi[:, :, [found.players.index(name) for name in members]].sum(axis=2)
        assert_allclose(together, groups.phi[:, :, groups.players.index(group)], rtol=0, atol=1e-12)
    assert (found.phi[:, :, 5] != 0).any() == (method == "two_step")


@pytest.mark.parametrize("background", [None, "model"])
def test_errors_of_a_background_that_is_no_sample_are_refused(example, background):
    """There would be none."""
    with pytest.raises(UsageError, match="background_errors are of a background of rows as a sample, but none was given"):
        attribute(example.model, inputs(example.frame)[:5], background=background, background_errors=True)


def test_what_was_not_asked_for_is_not_there(example):
    """Pairs and their interactions come together."""
    rows = inputs(example.frame)[:5].assign(month=1)
    plain, pairs = attribute(example.model, rows), attribute(example.model, rows, interactions="all")
    assert (plain.pairs, plain.interactions, plain.path, plain.errors, plain.output) == (None,) * 5
    assert len(pairs.pairs) == pairs.interactions.shape[2] == 1


@pytest.mark.parametrize("name", ["model", "rows", "method", "parameters", "partition", "interactions", "background", "label", "weight"])
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
def test_a_wrong_type_is_told_in_one_line(example, name, wrong):
    """Whatever stands in the place of an argument: a refusal of one line, no traceback."""
    given = {"model": example.model, "rows": example.frame[FEATURES], "method": "r2", "label": "delay"} | {name: wrong}
    with pytest.raises(LeafledgerError) as error:
        attribute(**given)
    assert "\n" not in str(error.value)


def test_the_arguments_are_those_of_a_run():
    """What ``attribute`` and ``explain`` share has one name and one default; rows in memory take the place of data and output."""
    shared = {key: given.default for key, given in inspect.signature(attribute).parameters.items()}
    run = {key: given.default for key, given in inspect.signature(explain).parameters.items()}
    del shared["rows"]
    assert {key: run[key] for key in shared} == shared


def test_labels_may_be_a_column_of_the_rows(example):
    """A column's name stands for its values, whatever the rows are; another name is refused."""
    frame, columns = example.frame[[*FEATURES, "flight"]], {name: example.frame[name] for name in [*FEATURES, "flight"]}
    expected = attribute(example.model, frame, "r2", label=frame["delay"], weight=frame["flight"]).summaries["r2"]
    for rows in (frame, pa.table(frame), columns):
        assert attribute(example.model, rows, "r2", label="delay", weight="flight").summaries["r2"] == expected
    for rows in (frame, pa.table(frame), columns, frame[FEATURES].assign(carrier=0.0).to_numpy(float)):
        with pytest.raises(UsageError, match="label is 'nowhere', which is no column of the rows"):
            attribute(example.model, rows, "r2", label="nowhere")
