"""A model of three classes."""

import pytest

from tests.pipeline.conftest import train


@pytest.fixture(scope="session")
def several(example, tmp_path_factory):
    path = tmp_path_factory.mktemp("rankings") / "several.txt"
    train(example.frame, objective="multiclass", num_class=3).save_model(path)
    return str(path)
