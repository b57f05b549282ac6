"""An advisory is of versions, and perhaps of a library and methods; nothing older or newer is concerned."""

from dataclasses import replace

import pytest

from leafledger.pipeline.runs.advisories.advisory import Advisory
from leafledger.pipeline.runs.records.manifest import read_manifest
from tests.earlier.moving import RUNS

MANIFEST = read_manifest(str(RUNS / "0.2.0/plain"))


@pytest.mark.parametrize(
    ("version", "concerned"),
    [
        ("0.1.9", False),
        ("0.2.0", True),
        ("0.2.11", True),
        ("0.2.0.dev3", True),
        ("0.10.0", False),
        ("0.3.0", False),
        ("1.0.0", False),
        ("odd", False),
    ],
)
def test_versions_are_compared_as_numbers(version, concerned):
    """The first that had it is concerned, the first that does not is not."""
    assert Advisory("1", "0.2.0", "0.3.0", "", "").is_about(replace(MANIFEST, version=version)) is concerned


@pytest.mark.parametrize(
    ("library", "methods", "concerned"),
    [
        ("", (), True),
        ("lightgbm", (), True),
        ("xgboost", (), False),
        ("", ("shapley", "beta"), True),
        ("", ("beta",), False),
        ("lightgbm", ("beta",), False),
    ],
)
def test_library_and_method_have_to_be_the_runs(library, methods, concerned):
    """Where any are named."""
    assert Advisory("1", "0.2.0", "0.3.0", "", "", library, methods).is_about(MANIFEST) is concerned


def test_it_says_of_what_it_is_and_where_it_ends():
    """In one line, with what to do and the page that has more; and of which library, where it is of one."""
    cure = "mended in 0.3.0: make it again with --if-changed replace, see docs/advisories.md"
    told = Advisory("2030-01", "0.2.0", "0.3.0", "sums are wrong", "models of x")
    assert str(told) == f"advisory 2030-01 may concern it (models of x): sums are wrong; {cure}"
    assert str(replace(told, library="xgboost")) == f"advisory 2030-01 may concern it (xgboost: models of x): sums are wrong; {cure}"
