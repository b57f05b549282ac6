"""Tables of fields have what the records and tables themselves have, each with a word about it where its name alone does not say it."""

from dataclasses import fields as fields_of

import pytest

from docs.fields import read_fields
from leafledger.pipeline.drift.compare.alarm_thresholds import Thresholds
from leafledger.pipeline.drift.drift import SCHEMA as SHIFTS
from leafledger.pipeline.drift.measure.distribution_table import SCHEMA as DISTRIBUTIONS
from leafledger.pipeline.json_records import UNWRITTEN
from leafledger.pipeline.models.portable_format import ARRAYS
from leafledger.pipeline.runs.records.manifest import Manifest


def test_the_manifests_fields_are_those_that_its_file_has():
    """What is not written is left out; types are those of JSON."""
    found = {each.name: each for each in read_fields("pipeline/runs/records/manifest.py", "Manifest")}
    assert list(found) == [each.name for each in fields_of(Manifest) if UNWRITTEN not in each.metadata]
    kinds = {name: found[name].kind for name in ("n_rows", "residual", "parts", "totals", "space", "sets")}
    assert kinds == {"n_rows": "integer", "residual": "number or null", "parts": "array", "totals": "object", "space": "string", "sets": "object"}
    assert found["plan"].meaning == "SHA-256 of plan.json"


@pytest.mark.parametrize(
    ("module", "name", "schema"),
    [("pipeline/drift/measure/distribution_table.py", "SCHEMA", DISTRIBUTIONS), ("pipeline/drift/compare/shifts.py", "Shift", SHIFTS)],
)
def test_columns_are_those_of_the_schema(module, name, schema):
    found = list(read_fields(module, name, columns=True))
    written = [(each.name, str(each.type).replace("list<element: ", "list of ").replace("list<item: ", "list of ").strip(">")) for each in schema]
    assert [(each.name, each.kind) for each in found] == written


def test_arrays_of_a_model_file_and_defaults_of_thresholds():
    assert {each.name: each.kind for each in read_fields("pipeline/models/portable_format.py", "ARRAYS")}.keys() == ARRAYS.keys()
    found = {each.name: each.default for each in read_fields("pipeline/drift/compare/alarm_thresholds.py", "Thresholds")}
    assert found == {each.name: repr(each.default) for each in fields_of(Thresholds)}
    assert all(each.meaning for each in read_fields("pipeline/drift/compare/alarm_thresholds.py", "Thresholds"))
