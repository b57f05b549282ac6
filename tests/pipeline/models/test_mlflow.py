"""Models of MLflow: what its own functions log is read, by every kind of URI, and what is a pickle or code is refused and never run."""

import os
import pickle
import sys

import catboost
import lightgbm
import mlflow
import numpy as np
import pytest
import xgboost
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leafledger import attribute, load_ensemble
from leafledger.pipeline.errors import InvalidModel, StorageError, UnsupportedModel, UsageError
from leafledger.pipeline.models.mlflow import is_logged, pin
from tests.pipeline.registering import ROWS, TARGET, log, quiet

pytestmark = pytest.mark.usefixtures("registry")
QUIET = {"verbosity": -1, "num_threads": 1}


class Trap:
    """Whoever unpickles it has run it."""

    def __reduce__(self):
        return print, ("run",)


def boosted(n_trees):
    return xgboost.train({"max_depth": 3, "nthread": 1}, xgboost.DMatrix(ROWS, TARGET), n_trees)


def margins(booster):
    return booster.predict(xgboost.DMatrix(ROWS), output_margin=True)


@pytest.mark.slow
def test_uris_of_mlflow_are_told_from_paths():
    """A folder may be called models."""
    assert is_logged("models:/late/1")
    assert is_logged("runs:/0123/model")
    assert not any(map(is_logged, ("models/late", "/models:/late", "s3://models:/late", "models://profile@databricks/late/1")))


MODELS = {
    "xgboost": (lambda: boosted(3), "xgboost", margins),
    "xgboost's estimator": (
        lambda: xgboost.XGBRegressor(n_estimators=3, max_depth=3).fit(ROWS, TARGET),
        "xgboost",
        lambda model: model.predict(ROWS),
    ),
    "lightgbm": (lambda: lightgbm.train(QUIET, lightgbm.Dataset(ROWS, TARGET), 3), "lightgbm", lambda model: model.predict(ROWS, num_threads=1)),
    "lightgbm's estimator": (
        lambda: lightgbm.LGBMRegressor(n_estimators=3, verbosity=-1, n_jobs=1).fit(ROWS, TARGET),
        "lightgbm",
        lambda model: model.predict(ROWS),
    ),
    "catboost": (
        lambda: catboost.CatBoostRegressor(iterations=3, verbose=False, allow_writing_files=False).fit(ROWS, TARGET),
        "catboost",
        lambda model: model.predict(ROWS),
    ),
    "sklearn": (lambda: RandomForestRegressor(3, max_depth=3, random_state=0).fit(ROWS, TARGET), "sklearn", lambda model: model.predict(ROWS)),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.slow
def test_every_flavour_s_own_file_is_read(kind):
    """By the id of the model and by its run; margins are the library's own, and the digest is the file's."""
    train, flavour, predict = MODELS[kind]
    model = train()
    logged = log(
        flavour, model, **({"serialization_format": "skops", "skops_trusted_types": ["sklearn.tree._tree.Tree"]} if kind == "sklearn" else {})
    )
    found = load_ensemble(f"models:/{logged.model_id}")
    assert_allclose(attribute(found, ROWS).margin[:, 0], predict(model), rtol=1e-5)
    assert found.origin == f"models:/{logged.model_id}"
    of_run = load_ensemble(f"runs:/{logged.run_id}/model/")
    assert (of_run.digest, of_run.origin) == (found.digest, f"runs:/{logged.run_id}/model")


@pytest.mark.slow
def test_an_alias_is_the_version_that_it_names():
    """So are "latest" and the newest version; the pinned form stays when the alias moves."""
    from mlflow import MlflowClient

    for n_trees in (2, 4):
        log("xgboost", boosted(n_trees), registered_model_name="moving")
    client = MlflowClient()
    client.set_registered_model_alias("moving", "champion", 1)
    assert (pin("models:/moving@champion"), pin("models:/moving/latest"), pin("models:/moving/1")) == (
        "models:/moving/1",
        "models:/moving/2",
        "models:/moving/1",
    )
    found = load_ensemble("models:/moving@champion")
    assert "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR" not in os.environ
    assert (found.origin, found.ensemble.root.size) == ("models:/moving/1", 2)
    client.set_registered_model_alias("moving", "champion", 2)
    assert load_ensemble("models:/moving@champion").ensemble.root.size == 4
    assert load_ensemble(found.origin).digest == found.digest


def test_a_file_of_a_run_is_read_by_its_path(tmp_path):
    """Logged as an artifact, without any description."""
    import mlflow

    boosted(2).save_model(tmp_path / "model.json")
    with mlflow.start_run() as run:
        mlflow.log_artifact(str(tmp_path / "model.json"), "files")
        mlflow.log_text("x", "notes/a.txt")
    where = f"runs:/{run.info.run_id}"
    assert load_ensemble(f"{where}/files/model.json").origin == f"{where}/files/model.json"
    with pytest.raises(InvalidModel, match=rf"^{where}/notes: has no MLmodel, expected the folder of a model or one file$"):
        load_ensemble(f"{where}/notes")
    with pytest.raises(InvalidModel, match=rf"^{where}/notes/a.txt: not a model file, expected XGBoost"):
        load_ensemble(f"{where}/notes/a.txt")
    with pytest.raises(StorageError, match=rf"^{where}/other: cannot read it in MLflow: .*'other'"):
        load_ensemble(f"{where}/other")


def test_what_is_not_there_is_said_in_one_line(monkeypatch):
    """A model, a version, an alias, a run, a server, MLflow itself."""
    for uri in ("models:/nobody/1", "models:/nobody@champion", f"models:/m-{'0' * 32}"):
        with pytest.raises(StorageError, match=rf"^{uri}: cannot (find|read) it in MLflow: [^\n]*not found[^\n]*$") as caught:
            load_ensemble(uri)
        assert isinstance(caught.value.__cause__, FileNotFoundError)  # so that nobody tries again
    with pytest.raises(StorageError, match=rf"^runs:/{'0' * 32}/model: cannot read it in MLflow: [^\n]*$"):
        load_ensemble(f"runs:/{'0' * 32}/model")
    with pytest.raises(StorageError, match=r"^models:/a/1/b: cannot find it in MLflow: Not a proper models:/ URI"):
        load_ensemble("models:/a/1/b")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(StorageError, match=r"^models:/a/1: cannot read it in MLflow: [^\n]*(refused|Max retries)[^\n]*$"):
        load_ensemble("models:/a/1")


def test_without_mlflow_or_a_server_the_line_says_what_to_do(monkeypatch, tmp_path):
    """And no database is made in the working directory."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"^models:/a/1: where is MLflow's server\? Set MLFLOW_TRACKING_URI$"):
        load_ensemble("models:/a/1")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setitem(sys.modules, "mlflow.exceptions", None)
    with pytest.raises(UsageError, match=r"^models:/a/1 needs mlflow: pip install 'leafledger\[mlflow\]'$"):
        load_ensemble("models:/a/1")


def test_pickles_are_refused_with_what_to_log_instead(capsys):
    """And are not read."""
    forest = log("sklearn", RandomForestRegressor(2, max_depth=2).fit(ROWS, TARGET), serialization_format="cloudpickle")
    with pytest.raises(UnsupportedModel, match=r"is a pickle, which is not read; log the model by mlflow\.sklearn\.log_model\(model, …, seri"):
        load_ensemble(f"models:/{forest.model_id}")
    assert "run" not in capsys.readouterr().out


@pytest.mark.parametrize("stored", ["cloudpickle", "skops"])
def test_of_a_pipeline_the_two_lines_are_told(stored):
    """Who trusts it loads it, and gives the object; what is read without running it is no object of scikit-learn."""
    model = make_pipeline(StandardScaler(), RandomForestRegressor(2, max_depth=2, random_state=0)).fit(ROWS, TARGET)
    trusted = {"skops_trusted_types": ["sklearn.tree._tree.Tree"]} if stored == "skops" else {}
    uri = f"models:/{log('sklearn', model, serialization_format=stored, **trusted).model_id}"
    with pytest.raises(UnsupportedModel) as refusal:
        load_ensemble(uri)
    said = str(refusal.value)
    assert "mlflow.sklearn.load_model(" in said
    assert "leafledger.attribute(model, rows)" in said
    found = attribute(mlflow.sklearn.load_model(uri), ROWS)
    assert_allclose(found.margin[:, 0], model.predict(ROWS))


def write_description(folder, text):
    (folder / "MLmodel").write_text(text)
    (folder / "trap.pkl").write_bytes(pickle.dumps(Trap()))


DESCRIPTIONS = {
    "flavors: {python_function: {loader_module: os, data: trap.pkl}}": (UnsupportedModel, "has flavours python_function, which would have to be run"),
    "flavors: {sklearn: {pickled_model: trap.pkl}}": (UnsupportedModel, r"model/trap\.pkl: is a pickle, which is not read"),
    "flavors: {xgboost: {data: ../../../../secret}}": (
        InvalidModel,
        r"does not say which files the model has: '\.\./\.\./\.\./\.\./secret'",
    ),
    "flavors: {xgboost: {data: /etc/passwd}}": (InvalidModel, "does not say which files the model has: '/etc/passwd' leads"),
    "flavors: {xgboost: {data: 1}}": (InvalidModel, "does not say which files the model has"),
    "flavors: {xgboost: [data]}": (InvalidModel, "does not say which files the model has"),
    "flavors: {xgboost: {data: other}}": (StorageError, "cannot read it in MLflow"),
    "flavors: {}": (UnsupportedModel, "has flavours none"),
    "flavors: 3": (InvalidModel, "does not say which files the model has"),
    "[": (InvalidModel, "does not say which files the model has"),
    "!!python/object/apply:builtins.print [run]": (InvalidModel, "does not say which files the model has"),
}


@pytest.mark.parametrize("text", DESCRIPTIONS)
def test_a_description_that_leads_elsewhere_is_refused(text, tmp_path, capsys):
    """Out of the artifacts, to code, to nothing; nothing is run."""
    import mlflow

    folder = tmp_path / "model"
    folder.mkdir()
    write_description(folder, text)
    with mlflow.start_run() as run:
        mlflow.log_artifacts(str(folder), "model")
    kind, says = DESCRIPTIONS[text]
    capsys.readouterr()
    with pytest.raises(kind, match=says) as caught, quiet():
        load_ensemble(f"runs:/{run.info.run_id}/model")
    assert len(str(caught.value).splitlines()) == 1
    assert "run\n" not in capsys.readouterr().out


def test_margins_are_those_of_the_rows():
    """What is compared is not all the same number."""
    assert np.unique(margins(boosted(3))).size > 3
