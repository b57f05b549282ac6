"""The predicted class of every row, or another one: in memory and in runs, against the libraries' own predictions."""

import json

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import skops.io
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier

from leafledger import attribute, check_run, compare, explain, inspect_model, load_ensemble, save_model
from leafledger.pipeline.errors import InvalidRun, UnsupportedModel, UsageError
from leafledger.pipeline.models.row_output import RowOutput, choose_among, read_row_output
from leafledger.pipeline.runs.records.plan_file import from_json

DATA = load_wine(as_frame=True)
X, Y = DATA.data, DATA.target
CULTIVARS = ("barolo", "grignolino", "barbera")


@pytest.fixture(scope="module")
def models():
    named = np.array(CULTIVARS)[Y]
    return {
        "xgboost": xgboost.XGBClassifier(n_estimators=6, max_depth=3).fit(X, Y),
        "lightgbm": lightgbm.LGBMClassifier(n_estimators=6, num_leaves=6, verbose=-1).fit(X, named),
        "catboost": catboost.CatBoostClassifier(iterations=6, depth=3, verbose=False, allow_writing_files=False).fit(X, named),
        "sklearn": RandomForestClassifier(6, max_depth=3, random_state=0).fit(X, named),
    }


@pytest.fixture(scope="module")
def run(models, tmp_path_factory):
    """A finished run on two files that says which class it explained, and its folder."""
    folder = tmp_path_factory.mktemp("predicted")
    models["lightgbm"].booster_.save_model(folder / "model.txt")
    (folder / "data").mkdir()
    for k, rows in enumerate((X[:100], X[100:])):
        pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), folder / "data" / f"{k}.parquet")
    explain(
        folder / "model.txt", folder / "data", folder / "run", output="predicted", outputs=sorted(CULTIVARS), scheduler="serial", precision="float64"
    )
    return folder


def read_parts(run) -> pd.DataFrame:
    return pd.concat([pq.read_table(part).to_pandas() for part in sorted((run / "attributions").glob("*"))], ignore_index=True)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "sklearn"])
def test_rows_are_explained_for_the_class_that_the_library_predicts(models, library):
    model = models[library]
    found, every = attribute(model, X, output="predicted"), attribute(model, X)
    predicted = np.asarray(model.predict(X)).reshape(-1)
    assert_array_equal(found.output, predicted.astype(str))
    number = np.array([every.outputs.index(each) for each in found.output])
    row = np.arange(len(X))
    assert_array_equal(found.phi[:, 0], every.phi[row, number])
    assert_array_equal(found.margin[:, 0], every.margin[row, number])
    assert_array_equal(found.base[:, 0], every.base[number])
    assert_allclose(found.phi.sum(axis=2) + found.base, found.margin, atol=1e-12)
    importance = found.summaries["importance"].to_pandas()
    assert importance["output"].unique().tolist() == ["predicted"]
    assert_allclose(importance["mean_abs"], np.abs(every.phi[row, number]).mean(axis=0), atol=1e-14)


def test_another_class_is_never_the_predicted_one_and_goes_by_seed(models):
    model = models["catboost"]
    every = attribute(model, X)
    drawn = [attribute(model, X, output=asked).output for asked in ("other", "other:0", "other:1")]
    predicted = np.array(every.outputs)[every.margin.argmax(axis=1)]
    assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()
    for each in drawn:
        assert not (each == predicted).any()
        assert set(each) == set(every.outputs)


@pytest.mark.parametrize("method", ["ranker", "curves", "banzhaf"])
def test_other_methods_are_those_of_the_predicted_class(models, method):
    given = {"parameters": {"steps": 3}} if method == "ranker" else {}
    found, every = (attribute(models["xgboost"], X[:20], method, output=asked, **given) for asked in ("predicted", None))
    number, row = every.margin.argmax(axis=1), np.arange(20)
    assert_array_equal(found.phi[:, 0], every.phi[row, number])
    if every.path is not None:
        assert_array_equal(found.path[:, 0], every.path[row, number])


def test_interactions_are_those_of_the_predicted_class(models):
    found, every = (attribute(models["xgboost"], X[:20], interactions="all", output=asked) for asked in ("predicted", None))
    assert_array_equal(found.interactions[:, 0], every.interactions[np.arange(20), every.margin.argmax(axis=1)])


def test_a_run_says_which_class_it_explained(run, models):
    parts = read_parts(run / "run")
    assert parts.columns[:2].tolist() == ["output", "margin"]
    assert_array_equal(parts["output"], models["lightgbm"].predict(X))
    manifest = json.loads((run / "run" / "manifest.json").read_text())
    base = parts["output"].map(dict(zip(manifest["outputs"], manifest["base"], strict=True)))
    phi = parts.filter(like="phi_")
    assert_allclose(phi.sum(axis=1) + base, parts["margin"], atol=1e-12)
    every = attribute(models["lightgbm"], X)
    number = [every.outputs.index(each) for each in parts["output"]]
    assert_allclose(phi, every.phi[np.arange(len(X)), number], atol=1e-14)
    report = check_run(run / "run", all_rows=True)
    assert report.sound
    assert report.n_again == len(X)
    summary = pq.read_table(run / "run" / "summary" / "importance.parquet").to_pandas()
    assert summary["output"].unique().tolist() == ["predicted"]
    assert_allclose(summary["mean"], phi.mean(axis=0), atol=1e-14)


def test_another_name_of_an_output_is_found(run, tmp_path):
    """A part that says that a row was explained for another class does not add up; one with a class that there is not is refused."""
    from leafledger.pipeline.runs.check.check_parts import CheckTask, _check_sums
    from leafledger.pipeline.runs.records.manifest import read_manifest

    plan = from_json((run / "run" / "plan.json").read_text(), "plan")
    manifest = read_manifest(str(run / "run"))
    asked = CheckTask("run", "run", manifest.plan, manifest.base, manifest.bound, deep=False, all_rows=False, tables="")
    table = pq.read_table(run / "run" / "attributions" / "part-00000.parquet")
    for named, message in (("barolo", "row 5.*: attributions miss"), ("merlot", "has an output that the plan does not have, expected barbera")):
        outputs = [named if at >= 50 else each for at, each in enumerate(table["output"].to_pylist())]
        changed = table.set_column(0, "output", pa.array(outputs))
        pq.write_table(changed, tmp_path / "part.parquet")
        with pytest.raises(InvalidRun, match=message):
            _check_sums("part", plan, asked, pq.ParquetFile(tmp_path / "part.parquet"))


@pytest.mark.slow
def test_rankings_are_compared_on_the_predicted_class(run, models):
    given = {"methods": ["shapley", "banzhaf"], "scales": (0.5,), "gap_rows": 30, "scheduler": "serial"}
    folder = run / "data"
    found = compare(run / "model.txt", folder, run / "of_predicted.parquet", output="predicted", **given).to_pandas()
    assert found["output"].unique().tolist() == ["predicted"]
    number = attribute(models["lightgbm"], X).margin.argmax(axis=1)
    # Rows by their predicted class, of which the measures of that output count.
    totals = dict.fromkeys(found.index, 0.0)
    for k in range(3):
        mine = run / f"class{k}"
        mine.mkdir()
        pq.write_table(pa.Table.from_pandas(X[number == k], preserve_index=False), mine / "rows.parquet")
        alone = compare(run / "model.txt", mine, run / f"class{k}.parquet", **(given | {"scales": ()})).to_pandas()
        means = alone[alone["output"] == str(k)].set_index(["measure", "ranking", "other"])["mean"]
        for at, row in found.iterrows():
            key = (row["measure"], row["ranking"], row["other"])
            totals[at] += means.get(key, np.nan) * (number == k).sum() / len(X) if not row["measure"].startswith("pgi2") else 0.0
    of_rows = ~found["measure"].str.startswith("pgi2")
    assert_allclose(found["mean"][of_rows], [totals[at] for at in found.index[of_rows]], rtol=1e-9, atol=1e-12)
    assert (found["mean"][~of_rows & found["other"].isna()] > 0).all()


def test_an_earlier_run_is_compared_where_it_chose_the_same_outputs(run):
    given = {"scales": (), "scheduler": "serial"}
    both = [f"run:{run / 'run'}", "shapley"]
    found = compare(
        run / "model.txt", run / "data", run / "same.parquet", methods=both, output="predicted", outputs=sorted(CULTIVARS), **given
    ).to_pandas()
    agreement = found[found["other"].notna() & found["measure"].str.startswith("overlap")]
    assert (agreement["mean"] == 1).all()
    with pytest.raises(UsageError, match="has outputs predicted; expected those of the model's features and outputs"):
        compare(run / "model.txt", run / "data", run / "x.parquet", methods=both, output="other", outputs=sorted(CULTIVARS), **given)


@pytest.mark.slow
def test_what_has_no_predicted_class_is_refused(models, tmp_path):
    labels = np.stack([Y == 0, Y == 1], axis=1).astype(int)
    several = xgboost.XGBClassifier(n_estimators=2).fit(X, labels)
    regression = RandomForestClassifier(2).fit(X, labels)
    squares = catboost.CatBoostRegressor(iterations=2, loss_function="MultiRMSE", verbose=False, allow_writing_files=False).fit(X, labels)
    for model in (several, regression, squares):
        with pytest.raises(UnsupportedModel, match=r"chooses by the largest margin, but those of objective .* are no classes of one label"):
            attribute(model, X, output="predicted")
    one = lightgbm.LGBMRegressor(n_estimators=2, verbose=-1).fit(X, Y)
    with pytest.raises(UnsupportedModel, match="chooses by the largest margin, but those of objective 'regression' are no classes of one label"):
        attribute(one, X, output="other")
    called = load_ensemble(models["catboost"], outputs=("predicted", "other", "third"))
    for asked in ("predicted", "other:3"):
        with pytest.raises(UsageError, match="is a class of the model, and a choice of the class for every row; give outputs other names"):
            attribute(called, X, output=asked)
    with pytest.raises(UsageError, match="expected a seed below"):
        attribute(called, X, output=f"other:{1 << 64}")
    save_model(models["sklearn"], tmp_path / "forest")
    choose_among(RowOutput("predicted"), load_ensemble(tmp_path / "forest"))  # the neutral file knows


def test_names_and_positions_are_no_choice():
    assert read_row_output("predicted") == RowOutput("predicted")
    assert read_row_output("other:12") == RowOutput("other", 12)
    for asked in (None, 1, "1", "others", "other:", "other:-1", "predicted:1", "Predicted"):
        assert read_row_output(asked) is None


def test_a_plan_with_a_choice_that_cannot_be_is_none(run):
    text = (run / "run" / "plan.json").read_text()
    plan = json.loads(text)
    for changed in ({"outputs": ["one"]}, {"row_output": {"which": "other", "seed": -1}}, {"row_output": {"which": "first", "seed": 0}}):
        with pytest.raises(InvalidRun, match="not a plan of this version"):
            from_json(json.dumps({**plan, **changed}, indent=1, sort_keys=True), "plan.json")


def test_the_options_reach_the_model(run):
    from leafledger.pipeline.runs.job.job import make_job
    from leafledger.pipeline.runs.job.options import Options

    job = make_job(run / "model.txt", run / "data", run / "never", Options(output="other:4"))
    assert job.row_output == RowOutput("other", 4)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "sklearn"])
def test_of_two_classes_the_first_has_the_negative_of_the_margin(library, tmp_path):
    """One margin says both: what speaks for a class speaks against the other one."""
    kinds = {
        "xgboost": lambda: xgboost.XGBClassifier(n_estimators=4, max_depth=3),
        "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=4, num_leaves=6, verbose=-1),
        "catboost": lambda: catboost.CatBoostClassifier(iterations=4, depth=3, verbose=False, allow_writing_files=False),
        "sklearn": lambda: GradientBoostingClassifier(n_estimators=4, max_depth=3),
    }
    late = np.where(Y == 1, "late", "punctual") if library != "xgboost" else (Y == 1).astype(int)
    model = kinds[library]().fit(X, late)
    every = attribute(model, X)
    (name,), first = every.outputs, str(model.classes_[0])
    for asked, sign in (("predicted", 1), ("other", -1)):
        found = attribute(model, X, output=asked)
        is_second = (every.margin[:, 0] > 0) == (sign > 0)
        assert_array_equal(found.output, np.where(is_second, name, first))
        factor = np.where(is_second, 1.0, -1.0)[:, None]
        assert_allclose(found.phi[:, 0], factor * every.phi[:, 0], atol=1e-14)
        assert_allclose(found.margin, factor * every.margin, atol=1e-14)
        assert_allclose(found.base, factor * every.base, atol=1e-14)
    predicted = attribute(model, X, output="predicted")
    assert_array_equal(predicted.output, np.asarray(model.predict(X)).reshape(-1).astype(str))
    save_model(model, tmp_path / "model")
    pq.write_table(pa.Table.from_pandas(X, preserve_index=False), tmp_path / "rows.parquet")
    explain(tmp_path / "model", tmp_path / "rows.parquet", tmp_path / "run", output="predicted", scheduler="serial", precision="float64")
    assert check_run(tmp_path / "run", all_rows=True).sound
    assert_array_equal(read_parts(tmp_path / "run")["output"], predicted.output)


@pytest.mark.parametrize("suffix", ["json", "ubj", "txt", "cbm", "catboost.json", "skops"])
def test_of_two_classes_files_name_both_or_number_them(suffix, tmp_path):
    """The second class was called "0" where the file has no names, as the only output is, and the first one "not 0"."""
    names, path = np.array(["early", "late"])[(Y == 1).astype(int)], tmp_path / f"model.{suffix}"
    if suffix in ("json", "ubj"):
        model = xgboost.XGBClassifier(n_estimators=4, max_depth=3).fit(X, (names == "late").astype(int))
        model.save_model(path)
    elif suffix == "txt":
        model = lightgbm.LGBMClassifier(n_estimators=4, num_leaves=6, verbose=-1).fit(X, names)
        model.booster_.save_model(path)
    elif suffix == "skops":
        model = GradientBoostingClassifier(n_estimators=4, max_depth=3).fit(X, names)
        skops.io.dump(model, path)
    else:
        model = catboost.CatBoostClassifier(iterations=4, depth=3, verbose=False, allow_writing_files=False).fit(X, names)
        model.save_model(path, format=suffix.rpartition(".")[2])
    is_second = np.asarray(model.predict(X)).reshape(-1) == model.classes_[1]
    first, second = ("0", "1") if suffix in ("json", "ubj", "txt") else ("early", "late")
    assert_array_equal(attribute(path, X, output="predicted").output, np.where(is_second, second, first))
    renamed = attribute(load_ensemble(path, outputs="delayed"), X, output="predicted").output
    assert_array_equal(renamed, np.where(is_second, "delayed", "not delayed"))


def test_the_choice_of_a_class_is_no_name_of_the_first_class_either():
    model = GradientBoostingClassifier(n_estimators=2).fit(X, np.where(Y == 1, "seen", "predicted"))
    with pytest.raises(UsageError, match="output 'predicted' is a class of the model, and a choice of the class for every row"):
        attribute(model, X, output="predicted")


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "sklearn"])
def test_one_of_several_classes_alone_says_nothing_of_the_others(library, models, tmp_path):
    """The sign of its margin was taken for what the model predicts, and its file's probabilities were all 1."""
    kept = load_ensemble(models[library], output=1)
    save_model(kept, tmp_path / "kept.trees")
    for model in (kept, tmp_path / "kept.trees"):
        for asked in ("predicted", "other"):
            with pytest.raises(UnsupportedModel, match=f"chooses among classes, but the model has margins of class '{kept.outputs[0]}' alone"):
                attribute(model, X, output=asked)
        if library == "sklearn":  # whose margins are probabilities
            assert_allclose(attribute(model, X, space="probability").prediction[:, 0], models[library].predict_proba(X)[:, 1], atol=1e-12)
            continue
        with pytest.raises(UsageError, match="a class's probability depends on the margins of all classes"):
            attribute(model, X, space="probability")


def test_one_of_several_labels_alone_is_there_or_not(tmp_path):
    """From a file that was made of it too: the label called "0" was taken for the first of two classes, and rows without it were said to have it."""
    labels = np.stack([Y == 0, Y == 1], axis=1).astype(int)
    model = xgboost.XGBClassifier(n_estimators=3, max_depth=3).fit(X, labels)
    for position, name in enumerate("01"):
        kept = load_ensemble(model, output=position)
        save_model(kept, tmp_path / f"{name}.trees")
        for source in (kept, tmp_path / f"{name}.trees"):
            found = attribute(source, X, output="predicted").output
            assert_array_equal(found, np.where(model.predict(X)[:, position] == 1, name, f"not {name}"))


@pytest.mark.parametrize("library", ["lightgbm", "catboost"])
def test_one_class_against_all_others_is_not_predicted_by_its_sign(library, tmp_path):
    """Each class has a probability of its own, and that of another one may be larger: such a row may have a positive margin here."""
    kinds = {
        "lightgbm": lambda: lightgbm.LGBMClassifier(objective="multiclassova", n_estimators=6, num_leaves=6, verbose=-1),
        "catboost": lambda: catboost.CatBoostClassifier(loss_function="MultiClassOneVsAll", iterations=6, verbose=False, allow_writing_files=False),
    }
    model = kinds[library]().fit(X, Y)
    kept = load_ensemble(model, output="1")
    save_model(kept, tmp_path / "kept.trees")
    for source in (kept, tmp_path / "kept.trees"):
        for asked in ("predicted", "other"):
            with pytest.raises(UnsupportedModel, match="chooses among classes, but the model has margins of class '1' alone"):
                attribute(source, X, output=asked)
        assert_allclose(attribute(source, X, space="probability").prediction[:, 0], model.predict_proba(X)[:, 1], atol=1e-12)
        assert inspect_model(source).margin == "alone"


def test_the_margin_of_a_classifier_that_saw_one_class_is_of_the_other_one(tmp_path):
    """It was called as the class that was seen, whose probability is 1, and rows were predicted not to have it."""
    labels = np.full(len(X), "late")
    skops.io.dump(HistGradientBoostingClassifier(max_iter=2).fit(X, labels), tmp_path / "histogram.skops")
    models = {
        "xgboost": (xgboost.XGBClassifier(n_estimators=2).fit(X, np.zeros(len(X), int)), "0"),
        "lightgbm": (lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(X, labels), "late"),
        "histogram": (HistGradientBoostingClassifier(max_iter=2).fit(X, labels), "late"),
        "skops": (tmp_path / "histogram.skops", "late"),
    }
    for library, (model, seen) in models.items():
        every = attribute(model, X, space="probability")
        assert every.outputs == (f"not {seen}",), library
        assert (every.prediction < 0.5).all(), library
        found = attribute(model, X, output="predicted", space="probability")
        assert set(found.output) == {seen}, library
        assert (found.prediction > 0.5).all(), library
    assert attribute(RandomForestClassifier(2).fit(X, labels), X).outputs == ("late",)  # whose margin is that class's probability
