"""Explainers in MLflow: logged, loaded and served by MLflow's own tools, with the bits of ``attribute``, and refused in one line."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import leafledger
from leafledger import attribute
from leafledger.pipeline.errors import UnsupportedModel, UsageError
from tests.docs.blocks import read_blocks
from tests.pipeline.registering import GIVEN as NO_REQUIREMENTS
from tests.pipeline.registering import quiet

ROOT = Path(__file__).parents[3]
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame({"a": RNG.normal(size=300), "b": RNG.integers(0, 9, 300), "c": pd.Categorical(RNG.choice(["x", "y", "z"], 300))})
TARGET = FRAME.a + FRAME.b * (FRAME.c == "y")
GIVEN = FRAME.astype({"c": object}).tail(50)  # as MLflow takes categories
WAIT = 120  # seconds, for a server to start


@pytest.fixture(scope="module")
def model():
    """Of numbers, integers and categories."""
    return xgboost.XGBRegressor(n_estimators=5, max_depth=4, enable_categorical=True, n_jobs=1).fit(FRAME, TARGET)


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    """Against a background, whose rows are the example."""
    path = tmp_path_factory.mktemp("explainer") / "model"
    with quiet():
        leafledger.mlflow.save_explainer(model, path, background=FRAME[:30].assign(name="somebody"))
    return path


@pytest.fixture
def loaded(saved):
    """As MLflow loads it."""
    with quiet():
        from mlflow import pyfunc

        return pyfunc.load_model(str(saved))


@pytest.mark.slow
def test_a_loaded_explainer_gives_the_bits_of_attribute(model, loaded):
    """With the rows' index."""
    expected = attribute(model, FRAME.tail(50), background=FRAME[:30]).to_arrow().to_pandas()
    pd.testing.assert_frame_equal(loaded.predict(GIVEN), expected.set_axis(GIVEN.index), check_exact=True)


@pytest.mark.slow
def test_a_saved_explainer_describes_itself(saved, loaded, model):
    """Signature, example, requirements, base value; no file of it is a pickle, and what loads it is a public module."""
    signature, info = loaded.metadata.signature, loaded.metadata.metadata["leafledger"]
    assert [(each.name, each.type.name) for each in signature.inputs] == [("a", "double"), ("b", "long"), ("c", "string")]
    assert signature.outputs.input_names() == ["margin", "phi_a", "phi_b", "phi_c"]
    assert loaded.metadata.load_input_example(str(saved)).to_dict("list") == FRAME.astype({"c": object}).head(5).to_dict("list")
    assert f"leafledger[mlflow]=={version('leafledger')}" in (saved / "requirements.txt").read_text().splitlines()
    assert info["base"] == attribute(model, FRAME, background=FRAME[:30]).base.tolist()
    assert loaded.metadata.flavors["python_function"]["loader_module"] == "leafledger.mlflow"
    assert pq.read_schema(saved / "data" / "explainer" / "background.parquet").names == ["a", "b", "c"]
    files = [path for path in saved.rglob("*") if path.is_file()]
    assert {path.name for path in files} > {"model", "background.parquet", "recipe.json", "tables.npy"}
    assert not [path for path in files if path.suffix in (".pkl", ".pickle", ".joblib", ".cloudpickle") or path.read_bytes().startswith(b"\x80")]


@pytest.mark.slow
def test_rows_of_other_columns_or_types_are_refused(loaded):
    """Missing columns, and texts or fractions in the place of integers, by the signature."""
    from mlflow.exceptions import MlflowException

    for rows, line in (
        (GIVEN.drop(columns="b"), r"Model is missing inputs \['b'\]"),
        (GIVEN.assign(b="four"), "Incompatible input types for column b"),
        (GIVEN.assign(b=0.5), "Incompatible input types for column b"),
        (GIVEN.assign(c=1), "Incompatible input types for column c"),
    ):
        with pytest.raises(MlflowException, match=line):
            loaded.predict(rows)


@pytest.mark.slow
@pytest.mark.usefixtures("registry")
def test_a_logged_explainer_is_found_by_its_uri(model):
    """Also one that is registered; ids come first."""
    with quiet():
        import mlflow

        example = pa.Table.from_pandas(GIVEN.assign(customer=range(50)), preserve_index=False)
        logged = leafledger.mlflow.log_explainer(model, example=example, ids="customer", top=2, registered_model_name="why")
        found = mlflow.pyfunc.load_model(logged.model_uri).predict(example.to_pandas())
        same = mlflow.pyfunc.load_model("models:/why/1").predict(example.to_pandas())
    pd.testing.assert_frame_equal(found, same)
    assert found.columns.tolist() == ["customer", "margin", "feature_1", "phi_1", "value_1", "feature_2", "phi_2", "value_2"]
    largest = attribute(model, FRAME.tail(50).reset_index(drop=True)).top(1)
    assert found["phi_1"].tolist() == largest["phi"].tolist()


REFUSED = {
    "no example": ({}, "example is missing, expected some rows"),
    "a matrix": ({"example": np.zeros((2, 3))}, "example is a ndarray, expected a pandas data frame or an Arrow table$"),
    "a typo": ({"example": FRAME, "spaces": "margin"}, "spaces is no argument here, expected one of parameters"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_saved_is_refused(model, tmp_path, kind):
    """Before anything is written."""
    given, line = REFUSED[kind]
    with pytest.raises(UsageError, match=line):
        leafledger.mlflow.save_explainer(model, tmp_path / "never", **given)
    assert not (tmp_path / "never").exists()


def fit_pipeline():
    """Of columns that are encoded and scaled."""
    steps = ColumnTransformer([("texts", OneHotEncoder(), ["c"]), ("numbers", StandardScaler(), ["a", "b"])])
    return make_pipeline(steps, RandomForestRegressor(5, max_depth=4, random_state=0)).fit(GIVEN, TARGET.tail(50))


@pytest.mark.parametrize("searched", [False, True])
def test_a_pipeline_is_refused_with_what_to_write(tmp_path, searched):
    """Its steps have no file of ours; what the line says works."""
    pipeline = fit_pipeline()
    model = GridSearchCV(pipeline, {"randomforestregressor__max_depth": [4]}, cv=2).fit(GIVEN, TARGET.tail(50)) if searched else pipeline
    with pytest.raises(
        UnsupportedModel, match=r"^a Pipeline's steps have no file without a pickle; save it by mlflow\.sklearn\.save_model, and serve"
    ):
        leafledger.mlflow.save_explainer(model, tmp_path / "never", background=GIVEN)
    assert not (tmp_path / "never").exists()


@pytest.mark.slow
def test_the_last_step_of_a_pipeline_is_saved_with_its_groups(tmp_path):
    """As the refusal says; it explains transformed rows by columns of the data."""
    pipeline = fit_pipeline()
    made = pd.DataFrame(pipeline[:-1].transform(GIVEN))
    with quiet():
        from mlflow import pyfunc

        leafledger.mlflow.save_explainer(pipeline[-1], tmp_path / "model", example=made, partition=leafledger.encoder_groups(pipeline))
        found = pyfunc.load_model(str(tmp_path / "model")).predict(made.set_axis([*map(str, made)], axis=1))
    assert_array_equal(found[["phi_a", "phi_b", "phi_c"]], attribute(pipeline, GIVEN).to_frame()[["a", "b", "c"]])


@pytest.mark.slow
def test_a_pipeline_in_mlflow_is_explained_as_its_page_says(tmp_path, monkeypatch):
    """By the file that the page shows, of a Pipeline that MLflow keeps: the bits of ``attribute``."""
    name, text = next(block.file for block in read_blocks(ROOT / "docs" / "pipelines.md") if block.file)
    (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    pipeline = fit_pipeline()
    with quiet():
        import mlflow

        mlflow.sklearn.save_model(pipeline, "pipeline", skops_trusted_types=["sklearn.tree._tree.Tree"], **NO_REQUIREMENTS)
        mlflow.pyfunc.save_model("why", python_model=name, artifacts={"pipeline": "pipeline"}, **NO_REQUIREMENTS)
        found = mlflow.pyfunc.load_model("why").predict(GIVEN)
    pd.testing.assert_frame_equal(found, attribute(pipeline, GIVEN).to_frame(), check_exact=True)
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".pkl", ".pickle", ".joblib", ".cloudpickle")]


def test_parameters_of_a_call_are_refused(saved):
    """How rows are explained was said before."""
    (folder,) = (saved / "data").iterdir()
    with pytest.raises(UsageError, match=r"expected none: how rows are explained was said when the explainer was logged$"):
        leafledger.mlflow._load_pyfunc(str(folder)).predict(GIVEN, {"top": 3})


def free_port():
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serving(path, log):
    """MLflow's server of a model, in this environment; its address."""
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", path, "--env-manager", "local", "--port", port]
    found = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # uvicorn, which it starts by its name
    environment = os.environ | {"PATH": found, "PYTHONPATH": str(ROOT), "MLFLOW_TRACKING_URI": f"sqlite:///{log.parent}/never.db"}
    with log.open("w") as said:
        server = subprocess.Popen([*map(str, command)], stdout=said, stderr=said, env=environment, start_new_session=True)
        try:
            wait_for(server, f"http://127.0.0.1:{port}/ping", log)
            yield f"http://127.0.0.1:{port}/invocations"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGTERM)
            server.wait(30)


def wait_for(server, address, log):
    """Until it answers."""
    until = time.monotonic() + WAIT
    while time.monotonic() < until and server.poll() is None:
        try:
            return urllib.request.urlopen(address, timeout=5).close()
        except OSError:
            time.sleep(0.2)
    raise AssertionError(log.read_text())


def post(address, payload):
    """What the server says: the status, and JSON."""
    request = urllib.request.Request(address, json.dumps(payload).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as told:
            return told.status, json.load(told)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.slow
def test_an_explainer_is_served_by_rest(model, saved, tmp_path):
    """By ``mlflow models serve``: the bits of ``attribute`` from numbers in JSON, a missing one too; a missing column is a line."""
    rows = [{"a": 0.5, "b": 3, "c": "y"}, {"a": None, "b": 8, "c": "x"}]
    expected = attribute(model, pd.DataFrame(rows).astype({"c": FRAME.c.dtype}), background=FRAME[:30]).to_arrow().to_pylist()
    with serving(saved, tmp_path / "log") as address:
        status, told = post(address, {"dataframe_records": rows})
        assert (status, told) == (200, {"predictions": expected})
        status, told = post(address, {"dataframe_records": [{"a": 0.5, "c": "y"}]})
        assert status == 400
        assert "missing inputs ['b']" in told["message"]
