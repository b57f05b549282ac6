"""Rankings as they are asked for, and the rows that earlier runs are about."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leafledger
from leafledger.pipeline.comparisons.compare import compare
from leafledger.pipeline.comparisons.entries import Entry, asked_by, parse_entry, read_run
from leafledger.pipeline.dataset.files.matching import ExtraColumns
from leafledger.pipeline.errors import UsageError
from tests.pipeline.conftest import FEATURES


def test_methods_take_parameters_after_colons_or_by_name():
    """In their order, the others by default; what follows ``run:`` is a place."""
    assert parse_entry("banzhaf:0.25") == Entry("banzhaf:0.25", "banzhaf", {"p": 0.25}, None)
    assert parse_entry("shapley").parameters == {}
    assert parse_entry("semivalue(atoms=0:1,1:2)").parameters == {"atoms": ((0.0, 1.0), (1.0, 2.0)), "density": ()}
    assert parse_entry("run:s3://bucket/x") == Entry("run:s3://bucket/x", "", {}, "s3://bucket/x")
    with pytest.raises(UsageError, match="'r2' shares out an error, not a margin"):
        parse_entry("r2")
    with pytest.raises(UsageError, match="'ranker:10:auto': leaves a parameter open, which explain and attribute choose; give the number"):
        parse_entry("ranker:10:auto")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"method": "r2", "label": "delay"}, "shares out an error, not a margin; expected attributions of every row"),
        ({"global_only": True}, "has summaries and no rows; expected attributions of every row"),
        ({"partition": {"where": ["distance", "carrier"]}}, "has no values of feature 'carrier'"),
        ({"missing": 4.0}, "run: 4 stands for a missing value of feature 'distance', expected no number, as here"),
    ],
)
def test_runs_that_do_not_rank_are_refused(example, tmp_path, given, says):
    """Before any row is read."""
    leafledger.explain(example.model, example.data, tmp_path / "run", scheduler="serial", **given)
    with pytest.raises(UsageError, match=says):
        read_run(str(tmp_path / "run"), leafledger.load_ensemble(example.model))


def test_a_run_is_about_the_rows_that_it_saw_with_whatever_ids(example, tmp_path, monkeypatch):
    """Files are told apart by the columns that are read of them: an id column without smallest and largest values makes no other file."""
    monkeypatch.setattr("leafledger.pipeline.dataset.files.identity.BLOCKS", 2)  # so that files of some kB are not read whole anyway
    frame = example.frame.assign(month=example.frame["month"].astype(np.int64))
    table = pa.Table.from_pandas(frame[[*FEATURES, "name"]], preserve_index=False)
    (tmp_path / "data").mkdir()
    pq.write_table(table, tmp_path / "data" / "rows.parquet", write_statistics=FEATURES)
    leafledger.explain(example.model, tmp_path / "data", tmp_path / "run", ids="name", scheduler="serial")
    plan = read_run(str(tmp_path / "run"), leafledger.load_ensemble(example.model)).plan
    assert asked_by(plan) == ExtraColumns(("name",))
    given = {"methods": ("shapley", f"run:{tmp_path}/run"), "scales": (), "scheduler": "serial"}
    found = compare(example.model, tmp_path / "data", tmp_path / "out.parquet", **given).to_pandas()
    assert found.loc[found["measure"] == "correlation", "mean"].item() > 0.999
