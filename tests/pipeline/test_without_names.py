"""Models that were trained on plain matrices have no names: columns go by position where as many are there, as in the libraries themselves."""

import warnings

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestRegressor

from leafledger import attribute, check_run, compare, curves, explain, gradient, prediction_gap, rank_by_gap, save_model
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import SchemaMismatch, UsageError
from leafledger.pipeline.models import load_ensemble
from tests.pipeline.running import attributions

N, NAMES = 120, ["wind", "rain", "hour"]
SINGLE = 1e-5  # libraries that add in single precision, relative to margins of about 10
ROWS = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32).astype(float)
LABEL = ROWS @ [3, 1, 5]
FRAME = pd.DataFrame(ROWS, columns=NAMES)


def train_xgboost(rows, path):
    booster = xgboost.train({"nthread": 1, "max_depth": 3}, xgboost.DMatrix(rows, LABEL), 5)
    booster.save_model(path / "model.json")
    return path / "model.json", lambda rows: booster.predict(xgboost.DMatrix(rows), pred_contribs=True), "f"


def train_lightgbm(rows, path):
    booster = lightgbm.train({"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5}, lightgbm.Dataset(rows, LABEL), 5)
    booster.save_model(path / "model.txt")
    return path / "model.txt", lambda rows: booster.predict(rows, pred_contrib=True), "Column_"


def train_catboost(rows, path, form="cbm"):
    model = catboost.CatBoostRegressor(iterations=5, depth=3, verbose=0, allow_writing_files=False, thread_count=1).fit(rows, LABEL)
    model.save_model(path / f"model.{form}", format=form)
    return path / f"model.{form}", lambda rows: model.get_feature_importance(catboost.Pool(rows), "ShapValues"), ""


def train_catboost_json(rows, path):
    return train_catboost(rows, path, "json")


def train_sklearn(rows, path):
    """Of which margins alone can be compared."""
    model = RandomForestRegressor(5, max_depth=3, random_state=0).fit(rows, LABEL)
    save_model(model, path / "model.trees")
    return path / "model.trees", lambda rows: model.predict(rows), ""


pytestmark = pytest.mark.filterwarnings("ignore:.*features by position:UserWarning")
TRAININGS = (train_xgboost, train_lightgbm, train_catboost, train_catboost_json, train_sklearn)


@pytest.fixture(params=TRAININGS, ids=lambda train: train.__name__)
def trained(request, tmp_path):
    """A model's file, what the library says of rows (contributions and base, or margins), and what names it makes up."""
    return request.param(ROWS, tmp_path)


@pytest.fixture
def path(tmp_path):
    return train_xgboost(ROWS, tmp_path)[0]


def assert_agrees(phi, margin, expected):
    if expected.ndim == 2:
        assert_allclose(phi, expected[:, :-1], rtol=0, atol=SINGLE * 10)
        expected = expected.sum(axis=1)
    assert_allclose(margin, expected, rtol=SINGLE, atol=SINGLE * 10)


def test_rows_in_memory_go_by_position(trained):
    """Frames, tables and columns of any names, as the library takes them; Python warns, and what comes out is called as the columns."""
    path, predict, made_up = trained
    model, expected = load_ensemble(path), predict(ROWS)
    assert [(feature.name, feature.named) for feature in model.features] == [(f"{made_up}{j}", False) for j in range(3)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for rows in (FRAME, pa.Table.from_pandas(FRAME), {name: FRAME[name].to_numpy() for name in NAMES}):
            found = attribute(path, rows, background=FRAME.rename(columns=str).head(9) if rows is FRAME else None)
            assert found.players == tuple(NAMES)
            if rows is not FRAME:
                assert_agrees(found.phi[:, 0], found.margin[:, 0], expected)
    said = [str(warning.message) for warning in caught if warning.category is UserWarning]
    assert [line for line in said if line.startswith("rows: ")] == ["rows: features by position, since the model has no names: wind, rain, hour"] * 3
    assert {warning.filename for warning in caught if warning.category is UserWarning} == {__file__}
    assert_agrees(attribute(path, FRAME.iloc[5]).phi[:, 0], attribute(path, FRAME.iloc[5]).margin[:, 0], expected[5:6])
    plain, marginal, called = attribute(path, ROWS), attribute(path, ROWS, background=ROWS), [f"{made_up}{j}" for j in range(3)]
    for rows in (ROWS, FRAME):
        assert np.array_equal(attribute(path, rows).phi, plain.phi)
        assert np.array_equal(attribute(path, rows, background=FRAME).phi, marginal.phi)
    assert np.array_equal(attribute(path, FRAME, background=ROWS).phi, marginal.phi)
    by_name = pd.DataFrame(ROWS, columns=called).assign(other="text")
    assert np.array_equal(attribute(path, by_name).phi, plain.phi)
    with pytest.raises(SchemaMismatch, match=f"^rows of the background: columns '{called[0]}', .* missing, got wind, rain, hour"):
        attribute(path, by_name, background=FRAME)


@pytest.mark.slow
def test_runs_go_by_position(trained, tmp_path, capsys):
    """Explain, plan, check and compare, with ids and an index of pandas beside the features, and a folder's name."""
    path, predict, _ = trained
    (tmp_path / "data" / "month=2").mkdir(parents=True)
    FRAME.assign(flight=np.arange(N)).set_index("flight").to_parquet(tmp_path / "data" / "month=2" / "a.parquet")
    data, run = tmp_path / "data", tmp_path / "run"
    explain(path, data, run, precision="float64", scheduler="serial", ids="month")
    stored = attributions(run)
    assert_agrees(np.transpose([stored[f"phi_{name}"] for name in NAMES]), stored["margin"].to_numpy(), predict(ROWS))
    assert check_run(run, deep=True).sound
    explain(path, data, tmp_path / "marginal", background=data, scheduler="serial")
    assert check_run(tmp_path / "marginal", deep=True).sound
    assert compare(path, data, tmp_path / "c.parquet", methods=[f"run:{run}", "banzhaf"], scales=(), scheduler="serial").num_rows
    said = "by position, since the model has no names: wind, rain, hour\n"
    assert main(["plan", str(path), str(data), "--out", str(tmp_path / "own")]) == 0
    assert f"features  {said}" in capsys.readouterr().out
    assert main(["explain", str(path), str(data), "--out", str(tmp_path / "own"), "--scheduler", "serial"]) == 0
    assert capsys.readouterr().out.startswith(f"features {said}")


@pytest.mark.slow
def test_python_warns_of_runs_and_comparisons_and_commands_say_a_line(path, tmp_path, capsys):
    """A warning is of the line that called; a command has no such line to show."""
    data = tmp_path / "data.parquet"
    FRAME.to_parquet(data)
    says = rf"^{data}: features by position, since the model has no names: wind, rain, hour$"
    with pytest.warns(UserWarning, match=says) as caught:
        explain(path, data, tmp_path / "run", scheduler="serial")
    with pytest.warns(UserWarning, match=says) as also:
        compare(path, data, tmp_path / "c.parquet", methods=["shapley", "banzhaf"], scales=(), scheduler="serial")
    assert [warning.filename for warning in (*caught, *also)] == [__file__] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        given = ["--out", str(tmp_path / "d.parquet"), "--methods", "shapley,banzhaf", "--scales", "", "--scheduler", "serial"]
        assert main(["compare", str(path), str(data), *given]) == 0
    assert f"leafledger: {data}: features by position, since the model has no names: wind, rain, hour\n" in capsys.readouterr().err


@pytest.mark.parametrize("asked", [{"ids": "flight"}, {"by": "flight"}, {"method": "r2", "label": "flight"}])
def test_a_column_before_those_by_position_may_be_a_feature(path, asked, tmp_path):
    """The model may have been trained on it; without it, the label that stands last would be taken for the third feature."""
    given, data = {"scheduler": "serial", **asked}, tmp_path / "data.parquet"
    first = FRAME.drop(columns="hour").assign(flight=np.arange(N) ** 2, late=LABEL)[["flight", "wind", "rain", "late"]]
    first.to_parquet(data)
    with pytest.raises(SchemaMismatch, match=r"data\.parquet: column 'flight' stands before columns that go by position.* one of its 3 features"):
        explain(path, data, tmp_path / "run", **given)
    first[["wind", "rain", "late", "flight"]].to_parquet(data)
    explain(path, data, tmp_path / "run", **given)
    first.set_index("flight").to_parquet(data)  # an index is none
    explain(path, data, tmp_path / "index", **given)


def test_gaps_and_rankings_go_by_position(trained):
    """Every function that takes rows, with data beside them."""
    path, _, _ = trained
    few, noise = FRAME.head(3), {"scale": 0.1, "noise": "normal"}
    for data in (None, FRAME, ROWS):
        plain = None if data is None else ROWS
        assert np.array_equal(prediction_gap(path, few, data=data, **noise), prediction_gap(path, ROWS[:3], data=plain, **noise))
        assert np.array_equal(rank_by_gap(path, few, data=data, **noise)[0], rank_by_gap(path, ROWS[:3], data=plain, **noise)[0])
    assert np.array_equal(prediction_gap(path, ROWS[:3], data=FRAME, **noise), prediction_gap(path, ROWS[:3], data=ROWS, **noise))
    assert np.array_equal(gradient(path, few).phi, gradient(path, ROWS[:3]).phi)
    assert np.array_equal(curves(path, few, 0).insertion, curves(path, ROWS[:3], 0).insertion)


def test_labels_are_no_features(path):
    """Of rows in memory, a column that another argument names."""
    rows = FRAME.assign(delay=LABEL)
    assert attribute(path, rows, "r2", label="delay").players == tuple(NAMES)
    with pytest.raises(
        SchemaMismatch, match=r"^rows: the model has no names for its 3 features; .* 4 columns \(wind, rain, hour, delay\), expected 3 "
    ):
        attribute(path, rows)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (["wind", "rain"], r"have 2 columns \(wind, rain\), expected 3 in the model's order, or columns called f0, f1, f2$"),
        (["f0", "rain", "hour"], r"has column 'f0' but not 'f1': the model has no names, expected 3 columns in its order, either all or none"),
        (["f1", "f0", "f2"], r"column 'f1' stands where the model, which has no names, takes 'f0': position and name differ"),
        (["wind", "rain", "wind"], "column 'wind' stands 2 times"),
    ],
)
def test_doubtful_matches_are_refused(columns, says, path, tmp_path):
    """With both names, in memory and from a file; XGBoost itself would take the columns as they stand."""
    table = pa.table([pa.array(column) for column in ROWS.T[: len(columns)]], names=columns)
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(SchemaMismatch, match=f"^rows: .*{says}"):
        attribute(path, table)
    with pytest.raises(SchemaMismatch, match=rf"a\.parquet: .*{says}"):
        explain(path, tmp_path / "a.parquet", tmp_path / "run", scheduler="serial")


def test_names_go_in_any_order_where_position_cannot_be_meant(path):
    """With further columns the made-up names are what counts; and files that order columns otherwise are refused."""
    moved = pd.DataFrame({"f2": ROWS[:, 2], "f0": ROWS[:, 0], "other": 1.0, "f1": ROWS[:, 1]})
    assert np.array_equal(attribute(path, moved).phi, attribute(path, ROWS).phi)


def test_files_agree_on_the_order(path, tmp_path):
    """What is first in one is first in all."""
    (tmp_path / "data").mkdir()
    for name, columns in (("a", NAMES), ("b", NAMES[::-1])):
        pq.write_table(pa.table(dict(zip(columns, ROWS.T, strict=True))), tmp_path / "data" / f"{name}.parquet")
    with pytest.raises(SchemaMismatch, match=r"b\.parquet: has column 'hour', it is 'wind' in .*a\.parquet$"):
        explain(path, tmp_path / "data", tmp_path / "run", scheduler="serial")


@pytest.mark.parametrize("train", [train_xgboost, train_lightgbm, train_catboost])
def test_numbers_that_pandas_gives_columns_are_names(train, tmp_path):
    """Which these libraries write into models as texts: in any order then, and by nothing else; scikit-learn keeps none."""
    numbered = pd.DataFrame(ROWS)
    path, predict, _ = train(numbered, tmp_path)
    assert [(feature.name, feature.named) for feature in load_ensemble(path).features] == [("0", True), ("1", True), ("2", True)]
    expected = predict(numbered)
    for rows in (numbered, numbered[[2, 0, 1]], numbered.assign(other=1.0), numbered.rename(columns=str)):
        found = attribute(path, rows)
        assert_agrees(found.phi[:, 0], found.margin[:, 0], expected)
        numbered[[2, 0, 1]].rename(columns=str).to_parquet(tmp_path / "a.parquet")
    explain(path, tmp_path / "a.parquet", tmp_path / "run", precision="float64", scheduler="serial")
    assert_allclose(attributions(tmp_path / "run")["margin"], expected.sum(axis=1), rtol=SINGLE, atol=SINGLE * 10)
    with pytest.raises(SchemaMismatch, match="columns '0', '1', '2' missing"):
        attribute(path, FRAME)


def test_numbers_that_pandas_gives_columns_are_positions_to_scikit_learn(tmp_path):
    """Its own names for them are none, so that columns which stand otherwise are doubtful."""
    numbered = pd.DataFrame(ROWS)
    path, predict, _ = train_sklearn(numbered, tmp_path)
    assert_allclose(attribute(path, numbered).margin[:, 0], predict(numbered), rtol=1e-12)
    assert_allclose(attribute(path, FRAME).margin[:, 0], predict(ROWS), rtol=1e-12)
    with pytest.raises(SchemaMismatch, match="column '2' stands where the model, which has no names, takes '0'"):
        attribute(path, numbered[[2, 1, 0]])


def test_features_by_position(path):
    """Where features are named, a position does too; none that is not there, and no truth value."""
    few = FRAME.head(4)
    by_name, by_position = {"sky": ["rain", "wind"]}, {"sky": [1, np.int64(0)]}
    assert attribute(path, few, partition=by_position).groups == attribute(path, few, partition=by_name).groups
    for names, positions in ((["hour", "wind"], [2, 0]), (["hour"], 2), (["rain"], np.array([1])), (["rain", "hour"], ["rain", 2])):
        assert np.array_equal(prediction_gap(path, few, features=names), prediction_gap(path, few, features=positions))
    assert np.array_equal(prediction_gap(path, few, ranking=["hour", "wind"]), prediction_gap(path, few, ranking=[2, 0]))
    named = prediction_gap(path, few, scale={"wind": 1, "rain": 2, "hour": 3})
    assert np.array_equal(named, prediction_gap(path, few, scale={0: 1, "rain": 2, 2: 3}))
    assert np.array_equal(named, prediction_gap(path, few, scale=[1, 2, 3]))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"features": [3]}, "^features names position 3, expected 0 to 2$"),
        ({"features": -1}, "^features names position -1, expected 0 to 2$"),
        ({"features": [True]}, "^features is "),
        ({"features": [0, "wind"]}, "^features has 'wind' twice"),
        ({"ranking": [0, 5]}, "^ranking names position 5, expected 0 to 2$"),
        ({"scale": {0: 1, 1: 1, 7: 1}}, "^scale names position 7, expected 0 to 2$"),
        ({"scale": {0: 1, 1: 1, "wind": 1, 2: 1}}, "^scale has a feature twice"),
        ({"scale": {False: 1, 1: 1, 2: 1}}, "^scale names False, which is no feature"),
        ({"partition": {"a": [0, 9]}}, "^partition: group 'a' names position 9, expected 0 to 2$"),
        ({"partition": {"a": [True]}}, "^partition: group 'a' names True, which is no feature"),
        ({"partition": {"a": [1.0]}}, "^partition: group 'a' is not a list of feature names or positions$"),
        ({"partition": {"a": [0, "wind"]}}, "^partition: feature 'wind' stands in group 'a' twice"),
    ],
)
def test_what_is_no_position_is_refused(given, says, path):
    """In one line that says what there is."""
    with pytest.raises(UsageError, match=says):
        prediction_gap(path, FRAME.head(2), **given)


def test_a_number_that_is_another_features_name_is_refused(tmp_path):
    """Columns that pandas numbered, trained on in another order: 2 may be the first or the last."""
    path, _, _ = train_xgboost(pd.DataFrame(ROWS, columns=[2, 1, 0]), tmp_path)
    rows = pd.DataFrame(ROWS, columns=[2, 1, 0]).head(2)
    assert prediction_gap(path, rows, features=[1, "2"]).shape == (2, 1)
    with pytest.raises(UsageError, match=r"^features names 2, which may be '0' at this position or the one called '2'; give its name as text$"):
        prediction_gap(path, rows, features=[2])


def test_positions_in_a_file_of_groups(path, tmp_path):
    """As whole numbers."""
    (tmp_path / "groups.json").write_text('{"sky": [0, "rain"]}')
    assert attribute(path, FRAME.head(2), partition=tmp_path / "groups.json").players == ("sky", "hour")
