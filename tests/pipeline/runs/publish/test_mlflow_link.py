"""Runs on models that MLflow keeps, and runs that MLflow gets a link to."""

import hashlib
import json
import logging
import traceback

import pandas as pd
import pytest

from leafledger import check_run, explain, inspect_model, load_ensemble, read_manifest
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import NotThere, RunConflict, StorageError
from leafledger.pipeline.runs.publish import mlflow_link as mlflow_run
from tests.pipeline.registering import ROWS, TARGET, log, quiet
from tests.pipeline.running import contents

pytestmark = pytest.mark.usefixtures("registry")


def boosted(n_trees):
    import lightgbm

    frame = pd.DataFrame(ROWS, columns=list("abc"))
    return lightgbm.train({"verbosity": -1, "num_threads": 1}, lightgbm.Dataset(frame, TARGET), n_trees)


@pytest.fixture
def data(tmp_path):
    """Rows of the models' columns."""
    pd.DataFrame(ROWS, columns=list("abc")).to_parquet(tmp_path / "rows.parquet")
    return str(tmp_path / "rows.parquet")


@pytest.fixture
def mlflow_run_id():
    """A run that stands in MLflow, finished."""
    import mlflow

    with quiet(), mlflow.start_run() as run:
        return run.info.run_id


@pytest.mark.slow
def test_a_run_is_of_the_version_that_its_alias_meant(data, tmp_path):
    """The plan and the manifest have it; when the alias moves, the same run is refused, the version goes on, and a deep check finds it."""
    from mlflow import MlflowClient

    for n_trees in (2, 3):
        log("lightgbm", boosted(n_trees), registered_model_name="late")
    client, out = MlflowClient(), tmp_path / "run"
    client.set_registered_model_alias("late", "champion", 1)
    manifest = explain("models:/late@champion", data, out, scheduler="serial", lineage=tmp_path / "events")
    assert json.loads((out / "plan.json").read_text())["model"] == manifest.model == "models:/late/1"
    assert manifest.model_digest == load_ensemble("models:/late/1").digest
    client.set_registered_model_alias("late", "champion", 2)
    named = [json.loads(line)["inputs"][1]["name"] for line in (tmp_path / "events").read_text().splitlines()]
    assert named == ["models:/late", "models:/late"]
    with pytest.raises(RunConflict, match=r"different in model .*models:/late/1.*models:/late/2"):
        explain("models:/late@champion", data, out, scheduler="serial")
    assert explain("models:/late/1", data, out, scheduler="serial") == manifest
    assert check_run(out, deep=True).sound
    assert check_run(out, deep=True, model="models:/late/1").sound
    assert inspect_model("models:/late/1").digest == manifest.model_digest


@pytest.mark.slow
def test_plan_and_compare_take_it_too(data, tmp_path, capsys):
    """From the command line, and say what it was."""
    import pyarrow.parquet as pq

    logged = log("lightgbm", boosted(2))
    uri = f"runs:/{logged.run_id}/model"
    assert main(["plan", uri, data, "--out", str(tmp_path / "run")]) == 0
    assert main(["inspect", uri, "--methods", ""]) == 0
    said = capsys.readouterr()
    assert said.out.count(uri) == 2
    assert "Downloading" not in said.err
    out = tmp_path / "measures.parquet"
    assert main(["compare", uri, data, "--methods", "shapley,banzhaf", "--scales", "", "--out", str(out), "--scheduler", "serial", "--quiet"]) == 0
    assert json.loads(pq.read_schema(out).metadata[b"leafledger"])["model"] == uri


def test_mlflow_gets_a_link_and_the_summaries(data, tmp_path, mlflow_run_id):
    """Of a run of any model; what is published does not depend on it."""
    from mlflow import MlflowClient

    model, client = tmp_path / "model.txt", MlflowClient()
    boosted(2).save_model(model)
    alone = explain(model, data, tmp_path / "alone", scheduler="serial")
    manifest = explain(model, data, tmp_path / "linked", scheduler="serial", mlflow_run=mlflow_run_id)
    assert contents(tmp_path / "alone") == contents(tmp_path / "linked")
    assert manifest == alone
    tags = client.get_run(mlflow_run_id).data.tags
    assert (tags["leafledger.run"], tags["leafledger.manifest"]) == (f"{tmp_path}/linked", manifest.sha256)
    logged = {found.path for found in client.list_artifacts(mlflow_run_id, "leafledger/summary")}
    assert logged == {f"leafledger/{entry['uri']}" for entry in manifest.summaries}
    local = client.download_artifacts(mlflow_run_id, "leafledger/manifest.json", str(tmp_path))
    with open(local) as file:
        assert file.read() == manifest.text


def test_an_unknown_run_of_mlflow_is_refused_before_anything_is_written(data, tmp_path):
    """Whoever misspells its id learns it at once."""
    model = tmp_path / "model.txt"
    boosted(2).save_model(model)
    with pytest.raises(StorageError, match=r"^runs:/nobody: cannot find it in MLflow: [^\n]*nobody[^\n]*$"):
        explain(model, data, tmp_path / "run", scheduler="serial", mlflow_run="nobody")
    assert not (tmp_path / "run").exists()


def test_a_deleted_run_of_mlflow_is_refused_before_anything_is_written(data, tmp_path, mlflow_run_id):
    """It is found, and takes no link."""
    from mlflow import MlflowClient

    model = tmp_path / "model.txt"
    boosted(2).save_model(model)
    MlflowClient().delete_run(mlflow_run_id)
    with pytest.raises(NotThere, match=rf"^runs:/{mlflow_run_id}: is deleted in MLflow, expected a run that can be linked to"):
        explain(model, data, tmp_path / "run", scheduler="serial", mlflow_run=mlflow_run_id)
    assert not (tmp_path / "run").exists()


def test_a_token_is_not_shown(monkeypatch):
    """Of one with a line end, as it is read from a file, requests quotes the header that it refuses; no traceback has it either."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "cana\try\n")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(StorageError, match=r"header value: 'Bearer \*\*\*'$") as raised:
        mlflow_run.find_run("abc")
    assert "cana" not in "".join(traceback.format_exception(raised.value))


def test_what_cannot_be_logged_is_said(data, tmp_path, mlflow_run_id, monkeypatch, capsys, caplog):
    """The run is published and sound all the same."""
    model, out = tmp_path / "model.txt", tmp_path / "run"
    boosted(2).save_model(model)
    command = ["explain", str(model), data, "--out", str(out), "--scheduler", "serial", "--quiet", "--mlflow-run", mlflow_run_id]

    def fail(*given):
        raise StorageError("the server is away")

    monkeypatch.setattr(mlflow_run, "_log", fail)
    assert main(command) == 3
    says = f"{out}: is published, but MLflow has no link to it; run the same again to log it: the server is away"
    assert says in " ".join(capsys.readouterr().err.split())
    with caplog.at_level(logging.WARNING, "leafledger"):
        manifest = explain(model, data, out, scheduler="serial", mlflow_run=mlflow_run_id)
    assert says in caplog.text
    assert check_run(out).sound
    assert read_manifest(str(out)) == manifest


def test_the_same_command_logs_what_was_not_logged(data, tmp_path, mlflow_run_id):
    """A finished run is logged again."""
    from mlflow import MlflowClient

    model, out = tmp_path / "model.txt", tmp_path / "run"
    boosted(2).save_model(model)
    manifest = explain(model, data, out, scheduler="serial")
    assert explain(model, data, out, scheduler="serial", mlflow_run=mlflow_run_id) == manifest
    assert MlflowClient().get_run(mlflow_run_id).data.tags["leafledger.manifest"] == manifest.sha256


def test_a_run_that_took_another_s_place_is_logged_in_its_place(data, tmp_path, mlflow_run_id):
    """Of summaries that go by one name there are no two, of which one is the other run's."""
    from mlflow import MlflowClient

    model, out, client = tmp_path / "model.txt", tmp_path / "run", MlflowClient()
    for n_trees in (2, 3):
        boosted(n_trees).save_model(model)
        manifest = explain(model, data, out, scheduler="serial", mlflow_run=mlflow_run_id, if_changed="replace")
    logged = {found.path for found in client.list_artifacts(mlflow_run_id, "leafledger")}
    assert logged == {"leafledger/manifest.json", "leafledger/summary"}
    local = client.download_artifacts(mlflow_run_id, "leafledger/summary/importance.json", str(tmp_path))
    with open(local, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    assert digest == manifest.summary("importance.json")["sha256"]


def test_a_run_that_was_replaced_meanwhile_is_not_linked_to(data, tmp_path, mlflow_run_id):
    """Or MLflow had the digest of one manifest, and the bytes of another one."""
    from mlflow import MlflowClient

    model, out = tmp_path / "model.txt", tmp_path / "run"
    boosted(2).save_model(model)
    first = explain(model, data, out, scheduler="serial")
    boosted(3).save_model(model)
    explain(model, data, out, scheduler="serial", if_changed="replace")
    said = mlflow_run.log_run(mlflow_run_id, str(out), first)
    assert said == f"{out}: was replaced or removed meanwhile; MLflow has no link to it"
    assert "leafledger.manifest" not in MlflowClient().get_run(mlflow_run_id).data.tags
