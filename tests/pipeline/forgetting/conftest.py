"""People, and nights that explain their rows."""

from pathlib import Path

import pytest

from tests.pipeline.forgetting.people import (
    copy_nights,
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
    return Path(copy_nights(nights, str(tmp_path / "runs")))
