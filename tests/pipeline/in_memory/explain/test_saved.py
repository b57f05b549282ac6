"""Attributions are saved once: to a place that is free, and of rows that Arrow can hold."""

import lightgbm
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from leafledger import attribute
from leafledger.pipeline.errors import RunConflict, UnusablePlace, UsageError

FRAME = pd.DataFrame(np.random.default_rng(11).normal(size=(30, 2)), columns=list("ab"))
MODEL = lightgbm.LGBMRegressor(n_estimators=2, min_child_samples=5, verbose=-1, n_jobs=1).fit(FRAME, FRAME["a"])


def test_another_file_is_not_replaced(tmp_path):
    """The same may be saved again."""
    place = str(tmp_path / "it.parquet")
    found = attribute(MODEL, FRAME)
    found.save(place)
    found.save(place)
    with pytest.raises(RunConflict, match="holds another file; choose another name"):
        found[:3].save(place)


@pytest.mark.parametrize("name", ["it.csv", "it", "it.pkl"])
def test_other_endings_are_refused(tmp_path, name):
    """What is written is Parquet, and is called so."""
    with pytest.raises(UsageError, match=r", expected one that ends in \.parquet; found\.to_frame\(\) is a table for other formats$"):
        attribute(MODEL, FRAME).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(UnusablePlace, match=r"is no folder; make it, or choose another place$"):
        attribute(MODEL, FRAME).save(tmp_path / "nowhere" / "it.parquet")
    assert not list(tmp_path.iterdir())


def test_other_programs_read_its_numbers(tmp_path):
    """Lists of numbers, row by row."""
    found = attribute(MODEL, FRAME)
    found.save(tmp_path / "it.parquet")
    table = pq.read_table(tmp_path / "it.parquet")
    assert table["phi"].to_pylist() == found.phi[:, 0].tolist()
    assert table["margin"].to_pylist() == found.margin.tolist()


def test_a_column_that_arrow_cannot_hold_is_named(tmp_path):
    found = attribute(MODEL, FRAME.assign(odd=[object()] * 30))
    with pytest.raises(UsageError, match=r"^save: the rows have a column that Arrow cannot hold: .*odd"):
        found.save(tmp_path / "it.parquet")
    assert not list(tmp_path.iterdir())
