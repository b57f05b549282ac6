"""A finished run given again: recognised without tables, by the plan that planning with tables makes."""

import pytest

from leafledger import explain
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan.model import load_model
from leafledger.pipeline.runs.plan.planned_run import plan_run
from tests.pipeline.conftest import write_data

SERIAL = {"scheduler": "serial"}
ASKED = [
    {},
    {"interactions": 3, "top": 2, "ids": "flight", "item_rows": 500},
    {"background": "rows", "background_errors": True},
    {"method": "banzhaf", "parameters": {"p": 0.3}, "precision": "float64", "by": "name", "values": True},
]


def _plan(example, data, out, **options):
    job = make_job(example.model, data, out, Options(**SERIAL | options))
    return [plan_run(job, load_model(job), unfinished=unfinished) for unfinished in (True, False)]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.slow
def test_a_finished_run_is_planned_alike_without_tables(example, tmp_path, asked):
    """Not a field differs; what is asked for otherwise is planned with tables."""
    asked = {name: example.data if given == "rows" else given for name, given in asked.items()}
    explain(example.model, example.data, tmp_path / "run", **SERIAL | asked)
    short, whole = _plan(example, example.data, tmp_path / "run", **asked)
    assert (short.tables is None, whole.tables is None) == (True, False)
    assert (short.plan, short.finished, short.place, short.kept) == (whole.plan, whole.finished, whole.place, whole.kept)
    assert short.finished is not None
    with pytest.raises(ValueError, match="is finished, and was planned without tables"):
        _ = short.memory
    other, _ = _plan(example, example.data, tmp_path / "run", **asked | {"if_changed": "replace", "ids": "name"})
    assert other.tables is not None


def test_what_is_not_finished_or_of_other_data_is_planned_with_tables(example, tmp_path):
    """Whatever stands in the folder."""
    data, out = write_data(example.frame, tmp_path / "data"), tmp_path / "run"
    assert _plan(example, data, out)[0].tables is not None
    explain(example.model, data, out, **SERIAL)
    write_data(example.frame.query("month < 3"), tmp_path / "data")
    (tmp_path / "data" / "month=4" / "data.parquet").unlink()
    short, whole = _plan(example, data, out, if_changed="keep")
    assert short.tables is not None
    assert short.kept == whole.kept != ""


def test_a_rate_that_is_left_open_is_found_with_tables(example, tmp_path):
    """It is in the plan, and nobody knows it before rows are ranked."""
    asked = {"method": "ranker", "parameters": {"rate": "auto"}}
    explain(example.model, example.data, tmp_path / "run", **SERIAL | asked)
    short, whole = _plan(example, example.data, tmp_path / "run", **asked)
    assert short.tables is not None
    assert short.plan == whole.plan
    assert short.finished == whole.finished is not None
