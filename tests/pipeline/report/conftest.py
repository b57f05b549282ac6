"""Runs to be reported: of one output with values and interactions, and of classes without them."""

import pytest

from leafledger import explain
from tests.pipeline.conftest import train


@pytest.fixture(scope="session")
def reported(example, tmp_path_factory):
    """A run with everything that a page shows of Shapley values."""
    out = tmp_path_factory.mktemp("reported") / "run"
    explain(example.model, example.data, out, ids=["flight"], values=True, interactions=2, scheduler="serial")
    return out


@pytest.fixture(scope="session")
def classes(example, tmp_path_factory):
    """A run of three classes, without values."""
    folder = tmp_path_factory.mktemp("classes")
    train(example.frame, objective="multiclass", num_class=3).save_model(folder / "model.txt")
    explain(str(folder / "model.txt"), example.data, folder / "run", scheduler="serial")
    return folder / "run"
