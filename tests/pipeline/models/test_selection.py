"""Some iterations of a model, or one of its outputs, are what the library predicts with them."""

import json

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.testing import assert_allclose
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier

from leafledger import attribute, check_run, explain, load_ensemble, save_model
from leafledger.kernels.trees.ensemble import check
from leafledger.pipeline.arguments.iterations import read_iterations
from leafledger.pipeline.errors import UnsupportedModel, UsageError
from leafledger.pipeline.models.selection import find_output, keep_iterations, keep_output, name_outputs, select
from tests.pipeline.running import attributions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)).astype(np.float32)
CLASSES = np.array(["high", "low", "mid"])
LABEL = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.4, 0.4])
TARGET = X[:, 0] + X[:, 1] * X[:, 2] + 5


def margins(model, **part):
    loaded = load_ensemble(model, **part)
    check(loaded.ensemble)
    return attribute(loaded, X).margin


@pytest.fixture(scope="module")
def boosters():
    """Three libraries' boosters of three classes, and how each predicts margins with some of its iterations."""
    parameters = {"objective": "multi:softprob", "num_class": 3, "num_parallel_tree": 2, "nthread": 1, "max_depth": 3}
    one = xgboost.train(parameters, xgboost.DMatrix(X, LABEL), 8)
    two = lightgbm.train({"objective": "multiclass", "num_class": 3, "verbosity": -1, "num_threads": 1}, lightgbm.Dataset(X, LABEL), 8)
    three = catboost.CatBoostClassifier(iterations=8, verbose=0, allow_writing_files=False, thread_count=1, depth=3).fit(X, CLASSES[LABEL])
    return {
        "xgboost": (one, lambda a, b: one.predict(xgboost.DMatrix(X), iteration_range=(a, b), output_margin=True)),
        "lightgbm": (two, lambda a, b: two.predict(X, start_iteration=a, num_iteration=b - a, raw_score=True)),
        "catboost": (three, lambda a, b: three.predict(X, ntree_start=a, ntree_end=b, prediction_type="RawFormulaVal")),
    }


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
@pytest.mark.parametrize("part", [3, "2:5", (7, 8), "8"])
def test_margins_are_the_librarys_own(boosters, library, part):
    """Of the first iterations and of some behind them; and of each output alone."""
    model, predict = boosters[library]
    expected = predict(*read_iterations("trees", part))
    assert_allclose(margins(model, trees=part), expected, rtol=1e-5, atol=1e-5)
    for k in range(3):
        assert_allclose(margins(model, trees=part, output=str(k) if library != "catboost" else CLASSES[k]), expected[:, [k]], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("part", ["0:1", "0:4", "1:2", "1:5", "4:5"])
def test_iterations_without_trees_count_too(boosters, part, tmp_path):
    """XGBoost's files say which trees an iteration has; some may have none."""
    file = json.loads(boosters["xgboost"][0].save_raw("json"))
    model = file["learner"]["gradient_booster"]["model"]
    model["iteration_indptr"] = [0, 6, 6, 6, 18, 48]
    (tmp_path / "model.json").write_text(json.dumps(file))
    same = xgboost.Booster({"nthread": 1}, model_file=tmp_path / "model.json")
    expected = same.predict(xgboost.DMatrix(X), iteration_range=read_iterations("trees", part), output_margin=True)
    assert_allclose(margins(tmp_path / "model.json", trees=part), expected, rtol=1e-5, atol=1e-5)


def test_a_base_value_is_kept_as_the_library_does():
    """CatBoost's belongs to the first iteration, XGBoost's to all; LightGBM's is in its first tree."""
    one = xgboost.train({"nthread": 1, "base_score": 5.0}, xgboost.DMatrix(X, TARGET), 6)
    two = lightgbm.train({"verbosity": -1, "num_threads": 1}, lightgbm.Dataset(X, TARGET), 6)
    three = catboost.CatBoostRegressor(iterations=6, verbose=0, allow_writing_files=False, thread_count=1).fit(X, TARGET)
    found = [margins(model, trees="3:6")[:, 0] for model in (one, two, three)]
    expected = [
        one.predict(xgboost.DMatrix(X), iteration_range=(3, 6)),
        two.predict(X, start_iteration=3),
        three.predict(X, ntree_start=3, ntree_end=6),
    ]
    for mine, theirs in zip(found, expected, strict=True):
        assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)
    assert [round(float(mine.mean())) for mine in found] == [5, 0, 0]


@pytest.mark.parametrize("kind", [GradientBoostingClassifier, HistGradientBoostingClassifier])
def test_stages_of_scikit_learn(kind):
    """As ``staged_decision_function`` has them; outputs are called as the classes are."""
    given = {"max_iter": 6} if kind is HistGradientBoostingClassifier else {"n_estimators": 6}
    model = kind(random_state=0, max_depth=2, **given).fit(X, CLASSES[LABEL])
    assert load_ensemble(model).outputs == ("high", "low", "mid")
    for number, expected in enumerate(model.staged_decision_function(X), start=1):
        assert_allclose(margins(model, trees=number), expected, rtol=1e-10, atol=1e-10)
        assert_allclose(margins(model, trees=number, output="mid"), expected[:, [2]], rtol=1e-10, atol=1e-10)


def test_classes_name_the_outputs_of_estimators():
    """A single margin of two classes is for the second; names that are given come first."""
    names, two = CLASSES[LABEL], np.where(LABEL > 0, "yes", "no")
    few = {"n_estimators": 3, "n_jobs": 1}
    assert load_ensemble(lightgbm.LGBMClassifier(verbosity=-1, **few).fit(X, names)).outputs == ("high", "low", "mid")
    assert load_ensemble(lightgbm.LGBMClassifier(verbosity=-1, **few).fit(X, two)).outputs == ("yes",)
    assert load_ensemble(xgboost.XGBClassifier(**few).fit(X, LABEL)).outputs == ("0", "1", "2")
    assert load_ensemble(RandomForestClassifier(**few).fit(X, names), output="low").outputs == ("low",)
    model = load_ensemble(lightgbm.LGBMClassifier(verbosity=-1, **few).fit(X, names), outputs=("a", "b", "c"))
    assert model.outputs == ("a", "b", "c")
    assert find_output(model.outputs, "b") == find_output(model.outputs, "1") == find_output(model.outputs, 1) == 1
    assert name_outputs(model, ()) is model
    assert keep_output(model, 2).outputs == select(model, output="c").outputs == ("c",)


@pytest.mark.slow
def test_runs_explain_a_part(boosters, tmp_path):
    """Plans say which; counts of a background are those of the part; a run is checked by the same part."""
    model, predict = boosters["lightgbm"]
    model.save_model(tmp_path / "m.txt")
    pd.DataFrame(X, columns=model.feature_name()).to_parquet(tmp_path / "rows.parquet")
    given = {"precision": "float64", "scheduler": "serial", "outputs": CLASSES.tolist()}
    for name, options in {"low": {"output": "low"}, "some": {"trees": 4}, "both": {"trees": "2:4", "output": "2"}}.items():
        for game, background in {"own": {}, "marginal": {"background": tmp_path / "rows.parquet"}}.items():
            run = tmp_path / f"{name}-{game}"
            explain(tmp_path / "m.txt", tmp_path / "rows.parquet", run, **given, **options, **background)
            assert check_run(run, deep=True).n_again
            stored = attributions(run)
            columns = [column for column in stored.column_names if column.startswith("margin")]
            expected = predict(*read_iterations("trees", options.get("trees", 8)))
            if name == "some":
                assert columns == ["margin_high", "margin_low", "margin_mid"]
            else:
                expected = expected[:, [1 if name == "low" else 2]]
                assert columns == ["margin"]
            assert_allclose(np.transpose([stored[column].to_numpy() for column in columns]), expected, rtol=1e-9, atol=1e-9)
    assert len(list((tmp_path / "_leafledger").iterdir())) == 3


def test_a_file_of_no_library_keeps_its_iterations(boosters, tmp_path):
    """And whose the base value is."""
    model = catboost.CatBoostRegressor(iterations=6, verbose=0, allow_writing_files=False, thread_count=1).fit(X, TARGET)
    save_model(model, tmp_path / "m.trees")
    assert_allclose(margins(tmp_path / "m.trees", trees="3:6")[:, 0], model.predict(X, ntree_start=3, ntree_end=6), rtol=0, atol=1e-9)
    save_model(boosters["lightgbm"][0], tmp_path / "l.trees")
    assert_allclose(margins(tmp_path / "l.trees", trees="2:5"), boosters["lightgbm"][1](2, 5), rtol=0, atol=1e-9)


def test_what_is_no_part_is_refused(boosters):
    """In one line each."""
    model = boosters["xgboost"][0]
    for trees in (0, -1, "x", "1:2:3", "5:5", 2.5, True, [1, "a"]):
        with pytest.raises(UsageError, match=r"trees is .*, expected"):
            load_ensemble(model, trees=trees)
    with pytest.raises(UsageError, match=r"trees is 0:9, expected some of the model's iterations 0:8"):
        load_ensemble(model, trees=9)
    for missing in ("-999", "x", True, [1], b"1", 10**400):  # texts were taken, and equal to no value
        with pytest.raises(UsageError, match=r"missing is .*, expected a number$"):
            load_ensemble(model, missing=missing)
    assert load_ensemble(model, missing=np.float32(-999)).features[0].missing == -999.0
    with pytest.raises(UsageError, match="output is 'high', expected one of 0, 1, 2, or a position"):
        load_ensemble(model, output="high")
    for output in (1.5, True, ["1"], b"1"):
        with pytest.raises(UsageError, match=r"output is .*, expected a name or a position"):
            load_ensemble(model, output=output)
    for outputs in (5, [1, 2, 3], {"a": 1}):
        with pytest.raises(UsageError, match=r"outputs is .*, expected a name for every output"):
            load_ensemble(model, outputs=outputs)
    for outputs in (("a", "a", "b"), ("a", "b", "\ud800")):
        with pytest.raises(UsageError, match=r"outputs are \(.*\), expected different names without half characters"):
            load_ensemble(model, outputs=outputs)
    assert load_ensemble(model, output=2).outputs == ("2",)
    with pytest.raises(UsageError, match="output is 3, expected one of 0, 1, 2, or a position"):
        load_ensemble(model, output=3)
    with pytest.raises(UsageError, match="outputs are a, b, expected names for 3 of them"):
        load_ensemble(model, outputs=("a", "b"))
    averaged = RandomForestClassifier(3, n_jobs=1).fit(X, LABEL)
    with pytest.raises(UnsupportedModel, match="whose trees are averaged"):
        load_ensemble(averaged, trees=2)
    with pytest.raises(UsageError, match="trees is 0:2, but the model has none"):
        load_ensemble(xgboost.train({}, xgboost.DMatrix(X, LABEL), 0), trees=2)
    forest = lightgbm.train({"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5, "verbosity": -1}, lightgbm.Dataset(X, TARGET), 3)
    with pytest.raises(UnsupportedModel, match="whose trees are averaged"):
        keep_iterations(load_ensemble(forest), (0, 2))


def test_a_number_that_is_a_position_and_the_name_of_another_output_is_refused():
    """Positions were taken for names: of classes 1, 2, 3 both 0 and 1 were the first, and 2 the second."""
    model = RandomForestClassifier(3, random_state=0).fit(X, LABEL + 1)
    assert [load_ensemble(model, output=asked).outputs for asked in (0, "1", "2", "3", 3)] == [("1",), ("1",), ("2",), ("3",), ("3",)]
    found = attribute(model, X[:3])
    assert found.waterfall(output=0).title == found.waterfall(output="1").title == "row 0, output 1"
    for asked, there in ((1, "2"), (2, "3")):
        says = rf"output is {asked}, which may be '{there}' at this position or the one called '{asked}'; give its name as text"
        for ask in (load_ensemble, lambda model, output: attribute(model, X[:3], output=output), lambda _, output: found.waterfall(output=output)):
            with pytest.raises(UsageError, match=says):
                ask(model, output=asked)
    assert load_ensemble(RandomForestClassifier(3).fit(X, LABEL), output=1).outputs == ("1",)
    with pytest.raises(UsageError, match=r"output is -1, expected one of 1, 2, 3, or a position"):
        load_ensemble(model, output=-1)
