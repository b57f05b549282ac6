"""What an issue asks for is told, and nothing that is somebody's own."""

import platform

import numpy

from leafledger import inspect_model
from leafledger.pipeline.command import cli


def test_versions_and_the_model_are_told_and_no_names(example, capsys):
    """Of the machine, of what is installed, of the model's file; columns and paths are left out."""
    assert cli.main(["inspect", example.model, "--report"]) == 0
    said, found = capsys.readouterr().out, inspect_model(example.model)
    assert f"Python {platform.python_version()}" in said
    assert f"\nnumpy {numpy.__version__}\n" in said
    assert found.digest in said.replace("\n", "")
    assert f"{found.n_trees:,} of {found.n_leaves:,} leaves" in said
    assert example.model not in said
    assert not any(feature.name in said for feature in found.features)
