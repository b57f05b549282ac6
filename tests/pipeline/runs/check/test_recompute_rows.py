"""Finished runs are done again: with a background, with summaries alone, with every method; and what differs is found."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from leafledger import check_run, explain
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.errors import InvalidRun
from tests.pipeline.conftest import write_data
from tests.pipeline.running import contents

GIVEN = {  # to methods that need something, or that take long without it
    "semivalue": {"parameters": {"density": "0:0,0.5:2,1:0"}},
    "probabilistic": {"parameters": {"sizes": [0.5, 0.25, 0.25, 0.0]}},
    "owen": {"partition": {"when": ["month", "delay"]}},
    "two_step": {"partition": {"when": ["month", "delay"]}},
    "asymmetric": {"partition": {"when": ["month", "delay"]}, "parameters": {"sequence": ["carrier", "when", "distance"]}},
    "shapley": {"by": ["carrier", "month"]},
    "r2": {"label": "delay", "by": ["carrier"]},
    "gap": {"parameters": {"scale": "0.5"}},
    "gap_greedy": {"parameters": {"scale": "0.5", "top": 2}},
}


@pytest.fixture(scope="module")
def few(example, tmp_path_factory):
    """Some rows of every month."""
    return write_data(example.frame.groupby("month").head(40), tmp_path_factory.mktemp("few"))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_done_again(example, few, tmp_path, method):
    """All rows, to the same bytes, and the manifest's base values, bounds and players."""
    explain(example.model, few, tmp_path / "run", method=method, scheduler="serial", **GIVEN.get(method, {}))
    report = check_run(tmp_path / "run", all_rows=True)
    assert report.unverified == ()
    assert report.n_again == 160


def test_a_background_is_counted_again(example, few, tmp_path):
    """The marginal game's rows are explained again, from the background's own files and not from tables that a run left."""
    background = write_data(example.frame.groupby("month").head(10), tmp_path / "background")
    explain(example.model, few, tmp_path / "run", background=background, tables=tmp_path / "tables", scheduler="serial")
    for path in (tmp_path / "tables").rglob("*"):
        path.unlink() if path.is_file() else None
    report = check_run(tmp_path / "run", deep=True)
    assert report.sound
    assert report.n_again == 160
    whole = (tmp_path / "run" / "manifest.json").read_text()
    manifest = json.loads(whole)
    manifest["base"][0] += 1e-7
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest, indent=1))
    with pytest.raises(InvalidRun, match=r"its base values are .*, the manifest's "):
        check_run(tmp_path / "run", deep=True)
    (tmp_path / "run" / "manifest.json").write_text(whole)
    write_data(example.frame.groupby("month").head(11), background)
    report = check_run(tmp_path / "run", deep=True)
    assert "the background's files changed since the run was planned" in report.unverified[0]


def test_summaries_alone_are_verified_by_all_rows(example, few, tmp_path):
    """A sample of rows says nothing of sums over all of them."""
    explain(example.model, few, tmp_path / "run", global_only=True, scheduler="serial")
    sample = check_run(tmp_path / "run", deep=True)
    assert sample.n_again == 0
    assert "rows of 4 of 4 parts were not explained again: " in sample.unverified[0]
    whole = check_run(tmp_path / "run", all_rows=True)
    assert whole.sound
    assert whole.n_again == 160
    assert 0 < whole.residual < 1e-12
    assert not whole.as_stored


def test_nan_among_ids_is_the_same_again(example, tmp_path):
    """NaN is a value of such a column, beside null."""
    frame = example.frame.head(100).assign(score=np.where(np.arange(100) % 2, np.nan, 1.5))
    frame["score"] = pd.arrays.ArrowExtensionArray(pa.array(frame["score"].to_numpy(), from_pandas=False))
    data = write_data(frame, tmp_path / "data")
    explain(example.model, data, tmp_path / "run", ids=["score", "delay"], scheduler="serial")
    assert check_run(tmp_path / "run", deep=True).sound
    assert check_run(tmp_path / "run", all_rows=True).sound


def test_checking_changes_nothing(example, few, tmp_path):
    """It reads the run's folder."""
    explain(example.model, few, tmp_path / "run", scheduler="serial")
    before = contents(tmp_path)
    check_run(tmp_path / "run", all_rows=True)
    assert contents(tmp_path) == before
