"""Attribute, explain, check and report without what Windows and macOS lack, to the bytes of Linux."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xgboost

from tests.pipeline.conftest import bucket, s3_endpoint  # noqa: F401 - fixtures

ROOT = Path(__file__).parents[2]
MORE = [("darwin", ("folder",)), ("darwin", ("bucket",))]  # macOS lacks less, and nothing that whoever writes to a bucket asks for


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A model, rows, and what Linux makes of them."""
    folder = tmp_path_factory.mktemp("given")
    rows = pd.DataFrame(np.random.default_rng(1).normal(size=(3000, 3)), columns=["a", "b", "c"])
    booster = xgboost.train({"max_depth": 3, "nthread": 1}, xgboost.DMatrix(rows, rows["a"] * rows["b"]), num_boost_round=5)
    booster.save_model(folder / "model.json")
    rows.to_parquet(folder / "rows.parquet")
    _run(sys.executable, "-m", "leafledger", "explain", folder / "model.json", folder / "rows.parquet", "--out", folder / "linux", "--quiet")
    return folder


def _run(*command):
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("system", "places"), [("win32", ("folder", "bucket")), *(pytest.param(*case, marks=pytest.mark.more) for case in MORE)])
def test_runs_are_made_without_what_a_system_lacks(system, places, given, tmp_path, request):
    """In a folder, under Windows's rules about open files and names, and in a bucket; text is read and written in UTF-8 by name."""
    outs = [request.getfixturevalue("bucket") if place == "bucket" else tmp_path / "out" for place in places]
    inputs = given / "model.json", given / "rows.parquet"
    _run(sys.executable, "-X", "warn_default_encoding", "-m", "tests.platforms.elsewhere", system, tmp_path, *inputs, *outs)
    if "folder" in places:
        made, linux = (pq.read_table(folder / "attributions") for folder in (tmp_path / "out" / "night", given / "linux"))
        assert made.equals(linux)


@pytest.mark.slow
def test_rules_refuse_what_windows_refuses(tmp_path):
    """Else the test above could not fail: a mapped file is not removed, an open one not replaced, a folder not opened, a colon no name."""
    program = f"""
import os
from tests.platforms.elsewhere import pretend
rules = pretend("win32", {str(tmp_path)!r})
import numpy as np, pathlib
here = pathlib.Path({str(tmp_path)!r})
np.save(here / "a.npy", np.zeros(10))
mapped, opened = np.load(here / "a.npy", mmap_mode="r"), open(here / "b", "w")
(here / "c").touch()
for refused in ("os.remove(here / 'a.npy')", "os.replace(here / 'c', here / 'b')", "os.open(here, os.O_RDONLY)", "open(here / 'd:e', 'w')"):
    try:
        exec(refused)
    except PermissionError:
        continue
    raise SystemExit("let through")
assert len(rules.refused) == 4
"""
    _run(sys.executable, "-c", program)
