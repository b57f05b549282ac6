"""What is left open is chosen of rows in memory, or refused where nothing will do; nothing is read where nothing is open."""

import numpy as np
import pandas as pd
import pytest

import leafledger
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.methods.open_parameters import tune
from tests.hypercubes import full_tree
from tests.pipeline.running import as_model

OPEN = {"steps": 6, "rate": "auto", "optimizer": "ascent"}
FUNCTION = full_tree(np.random.default_rng(35).normal(size=8), [0, 1, 2])


def frame(*rows):
    """Rows of three features."""
    return pd.DataFrame(rows, columns=["f0", "f1", "f2"])


def test_a_background_in_memory_is_no_obstacle():
    """It is counted before anything is chosen."""
    given = {"parameters": OPEN, "background": frame(*[[0.0, 0.0, 0.0]] * 3, *[[1.0, 1.0, 0.0]] * 2)}
    found = leafledger.attribute(as_model(FUNCTION), frame(*[[1.0, 0.0, 0.0]] * 5, *[[0.0, 0.0, 1.0]] * 5), "ranker", **given)
    assert isinstance(found.parameters["rate"], float)
    assert (np.diff(found.path.mean(axis=0), axis=1) >= -1e-9).all()


def test_no_candidate_that_will_do_is_refused(monkeypatch):
    """With how many rows were asked."""
    monkeypatch.setattr("leafledger.kernels.ranking.rates.never_falls", lambda path: False)
    with pytest.raises(UsageError, match=r"^rate is left open, but by every candidate the objective falls on the first 30 rows; give a number$"):
        leafledger.attribute(as_model(FUNCTION), frame(*[[0.0, 0.0, 0.0]] * 30), "ranker", parameters=OPEN)


def test_nothing_is_read_where_nothing_is_open():
    """Of most runs."""
    assert tune(METHODS["banzhaf"], {"p": 0.5}, None, None) == {"p": 0.5}
