"""Models in a registry of MLflow over SQLite in a folder: logged by MLflow's own functions, as people log them."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

ROWS = np.random.default_rng(0).normal(size=(200, 3)).round(2)
TARGET = ROWS[:, 0] + ROWS[:, 1] * (ROWS[:, 2] > 0)
GIVEN = {"pip_requirements": ["none"]}  # or MLflow would load the model in another process to see what it imports


@contextmanager
def quiet() -> Iterator[None]:
    """MLflow warns of what others do and of what it will do itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def make_registry(folder: Path) -> dict[str, str]:
    """The environment of a registry, whose default experiment has its artifacts in the folder too."""
    uri = f"sqlite:///{folder}/mlflow.db"
    with quiet():
        from mlflow import MlflowClient

        experiment = MlflowClient(uri).create_experiment("late flights", artifact_location=(folder / "artifacts").as_uri())
    return {"MLFLOW_TRACKING_URI": uri, "MLFLOW_EXPERIMENT_ID": experiment}


def log(flavour: str, model: object, name: str = "model", **given: object) -> object:
    """What ``mlflow.<flavour>.log_model`` says of the model that it logged in a run of its own; ``run_id`` and ``model_id`` are in it."""
    import importlib

    import mlflow

    with quiet(), mlflow.start_run():
        return importlib.import_module(f"mlflow.{flavour}").log_model(model, name=name, **GIVEN, **given)
