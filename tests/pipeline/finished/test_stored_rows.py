"""Stored rows are read as the plan says; what no run can have is refused in one line."""

import dataclasses

import pyarrow as pa
import pytest

from leafledger import explain, read_run
from leafledger.pipeline.errors import InvalidRun, UsageError
from leafledger.pipeline.finished.stored_rows import show_rows
from leafledger.pipeline.runs.columns.top_attributions import column_type
from leafledger.pipeline.runs.lookup.row_lookup import FoundRows, RowAddress


@pytest.fixture(scope="module")
def run(example, tmp_path_factory):
    out = tmp_path_factory.mktemp("stored") / "run"
    explain(example.model, example.data, out, ids="flight", scheduler="serial")
    return read_run(out)


def show(run, table, output=None):
    return show_rows(run.uri, run.manifest, run.plan, FoundRows(1, (RowAddress(0, f"{run.uri}/part", 7),), table), output)


def test_rows_that_do_not_add_up_are_refused(run):
    """A number that somebody changed is not drawn as if it were right."""
    table = run.find({"flight": 7}).table
    assert show(run, table).rows[0].ids == {"flight": 7}
    number = table.schema.field("phi_delay")
    changed = table.set_column(table.schema.get_field_index("phi_delay"), number, pa.array([1000.0], number.type))
    with pytest.raises(InvalidRun, match=r"part: row 7: attributions do not add up to margin - base value; check the run$"):
        show(run, changed)


def test_columns_that_are_missing_are_said(run):
    table = run.find({"flight": 7}).table
    for name in ("margin", "flight", "phi_month"):
        with pytest.raises(InvalidRun, match=rf"part: row 7: not a row of this run: '{name}'$"):
            show(run, table.drop_columns([name]))


def test_outputs_are_named(run):
    table = run.find({"flight": 7}).table
    assert len(show(run, table, "0").rows[0].outputs) == 1
    with pytest.raises(UsageError, match=r"^output is 'x', expected one of 0$"):
        show(run, table, "x")
    own = dataclasses.replace(run.plan, row_output=object())
    with pytest.raises(UsageError, match=r"^output is '0', each row has one of its own$"):
        show_rows(run.uri, run.manifest, own, FoundRows(1, (), table), "0")


def test_reasons_are_shown_where_a_part_has_them(run):
    """A list of records that is no id column."""
    table = run.find({"flight": 7}).table
    entry = {"rank": 1, "code": "R1", "text": "late", "feature": "delay", "phi": 1.0, "share": 0.5, "value": "3"}
    (output,) = show(run, table.append_column("reasons", pa.array([[entry]]))).rows[0].outputs
    assert output.reasons == (entry,)
    for other in (pa.array(["late"]), pa.nulls(1, column_type(pa.float32()))):
        assert show(run, table.append_column("reasons", other)).rows[0].outputs[0].reasons is None
    assert show(run, table).rows[0].outputs[0].reasons is None
