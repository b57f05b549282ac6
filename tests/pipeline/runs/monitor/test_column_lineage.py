"""Columns of parts are traced to the columns of the data that they are of; every column that a part has is among them."""

import pyarrow.parquet as pq
import pytest

from leafledger import explain, read_run
from leafledger.pipeline.runs.monitor.column_lineage import list_fields, trace_columns
from tests.pipeline.conftest import FEATURES

TOLD = {"direction": "raises", "default": {"code": "x", "text": "{feature}"}}


@pytest.mark.parametrize(
    "options",
    [
        {"ids": ["flight"], "values": True, "interactions": 1, "top": 2, "reasons": TOLD},
        {"partition": {"trip": ["distance", "month"]}, "precision": "float64"},
        {"method": "r2", "label": "delay", "by": "carrier"},
        {"method": "curves"},
        {"method": "gap"},
    ],
    ids=["all", "groups", "r2", "curves", "gap"],
)
def test_every_column_of_a_part_is_traced(example, tmp_path, options):
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", **options)
    plan, found = read_run(tmp_path / "run").plan, trace_columns(read_run(tmp_path / "run").plan)
    schema = pq.read_schema(tmp_path / "run" / "attributions" / "part-00000.parquet")
    assert list(found) == schema.names
    known = [name for name, _ in list_fields(plan)]
    assert all(set(each.features) <= set(known) for each in found.values())
    assert set(known) == {*FEATURES, *plan.ids, *(("delay", "carrier") if plan.labels else ())}
    for name, each in found.items():
        assert each.kind in (None, str(schema.field(name).type).removesuffix("32")), name


def test_a_loss_is_traced_to_its_label(example, tmp_path):
    """Besides its own columns; a margin is not, and a label that is the feature itself stands once."""
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", method="r2", label="delay")
    found = trace_columns(read_run(tmp_path / "run").plan)
    assert (found["loss_carrier"].features, found["loss_delay"].features) == (("carrier", "delay"), ("delay",))
    assert found["margin"].features == tuple(FEATURES)


def test_a_feature_is_traced_to_its_attribution(example, tmp_path):
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", ids="flight", values=True, partition={"trip": ["distance", "month"]})
    found = trace_columns(read_run(tmp_path / "run").plan)
    assert {name: each.features for name, each in found.items() if name.startswith("phi_")} == {
        "phi_trip": ("distance", "month"),
        "phi_delay": ("delay",),
        "phi_carrier": ("carrier",),
    }
    assert (found["flight"].features, found["flight"].how) == (("flight",), "IDENTITY")
    assert (found["value_month"].features, found["value_month"].how) == (("month",), "IDENTITY")
    assert found["margin"].features == tuple(FEATURES)
