"""Importances over the nights: shares as the runs' own summaries have them."""

import shutil

import pyarrow.parquet as pq
import pytest

from leafledger import explain, list_runs
from pipeline.errors import InvalidRun
from pipeline.nights.shares import read_importances


@pytest.fixture(scope="module")
def nights(example, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shares")
    explain(example.model, f"{example.data}/month=1", folder / "2026-03-01", scheduler="serial", global_only=True)
    explain(example.model, f"{example.data}/month=1", folder / "2026-03-02", method="banzhaf", scheduler="serial", global_only=True)
    explain(example.model, f"{example.data}/month=2", folder / "2026-03-03", scheduler="serial", global_only=True)
    explain(example.model, example.data, folder / "2026-02-28", method="r2", label="delay", scheduler="serial", global_only=True)
    return folder


def test_shares_are_those_of_the_summaries(nights):
    """Of the runs of the last one's method; the others are counted."""
    found = read_importances(list_runs(nights))
    assert [run.date for run in found.runs] == ["2026-03-01", "2026-03-03"]
    assert (found.left_out, found.n_outputs) == (2, 1)
    (output,) = found.outputs
    for i, run in enumerate(found.runs):
        rows = pq.read_table(f"{run.run}/summary/importance.parquet").to_pylist()
        assert {line.feature: line.shares[i] for line in output.lines} == {row["feature"]: row["share"] for row in rows}
    means = [line.mean for line in output.lines]
    assert means == sorted(means, reverse=True)


def test_nothing_to_show_and_what_is_damaged(nights, tmp_path):
    """No runs; none with importances; a summary that is none."""
    assert read_importances(()).runs == ()
    shutil.copytree(nights / "2026-02-28", tmp_path / "2026-02-28")
    assert read_importances(list_runs(tmp_path)).outputs == ()
    shutil.copytree(nights / "2026-03-01", tmp_path / "2026-03-01")
    runs = list_runs(tmp_path)
    (tmp_path / "2026-03-01/summary/importance.json").write_text('[{"output": 1}]')
    with pytest.raises(InvalidRun, match=r"importance\.json: not a summary of importances"):
        read_importances(runs)
