"""People, and nights that explain their rows."""

import shutil

import pytest

from tests.pipeline.forgetting.people import (
    make_nights,
    write_people,
)


@pytest.fixture(scope="module")
def people(example, tmp_path_factory):
    return write_people(example, tmp_path_factory.mktemp("people") / "data")


@pytest.fixture(scope="module")
def nights(example, people, tmp_path_factory):
    return make_nights(example, people, tmp_path_factory.mktemp("nights") / "runs")


@pytest.fixture
def runs(nights, tmp_path):
    """A copy of the nights, whose pointer names the copy."""
    shutil.copytree(nights, tmp_path / "runs")
    pointer = tmp_path / "runs" / "latest.json"
    pointer.write_text(pointer.read_text().replace(str(nights), str(tmp_path / "runs")))
    return tmp_path / "runs"
