"""Two nights of one model: the second has more delays, and more carriers that nobody wrote down."""

import numpy as np
import pytest

from leafledger import explain
from tests.pipeline.conftest import make_frame, write_data


def second_night(seed=1):
    """The frame of another night."""
    frame, rng = make_frame(), np.random.default_rng(seed)
    frame["delay"] += 25
    frame["distance"] = rng.permutation(frame["distance"].to_numpy())
    frame.loc[rng.random(len(frame)) < 0.05, "carrier"] = None
    frame.loc[rng.random(len(frame)) < 0.03, "carrier"] = "<b>"
    return frame.iloc[:2500]


@pytest.fixture(scope="package")
def frames():
    return make_frame(), second_night()


@pytest.fixture(scope="package")
def nights(example, frames, tmp_path_factory):
    """Folders of both runs, the reference first, with the values of features."""
    folder = tmp_path_factory.mktemp("nights")
    for name, frame in zip("ab", frames, strict=True):
        explain(example.model, write_data(frame, folder / f"data-{name}"), folder / name, values=True, scheduler="serial")
    return folder / "a", folder / "b"
