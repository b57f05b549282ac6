"""The section of reasons has the counts of the rows that were published."""

import json

import pandas as pd
import pytest

from leafledger import explain, read_run, report
from tests.pipeline.report.reading import read_section

REASONS = {
    "direction": "raises",
    "most": 2,
    "never": ["distance"],
    "reason": [{"feature": "delay", "code": "D1", "text": "Left late"}],
    "default": {"text": "By {feature}"},
}


@pytest.fixture(scope="module")
def told(example, tmp_path_factory):
    run = tmp_path_factory.mktemp("told") / "run"
    explain(example.model, example.data, run, ids=["flight"], reasons=REASONS, scheduler="serial")
    report(run, scheduler="serial", names={"rows": {"one": "flight", "many": "flights"}, "features": {"delay": {"title": "departure delay"}}})
    return run


def test_how_often_each_reason_comes_first_is_counted(told):
    rows = pd.DataFrame(read_run(told).attributions(["reasons", "reasons_withheld"]).to_pylist())
    said = read_section(told, "reasons")
    first = rows["reasons"].map(lambda reasons: reasons[0]["feature"] if reasons else None)
    n_delay = int((first == "delay").sum())
    some = int(rows["reasons"].map(lambda reasons: any(each["feature"] == "delay" for each in reasons)).sum())
    assert f"D1 departure delay {n_delay:,} {some:,} " in said
    assert f"For {int(rows['reasons_withheld'].sum()):,} (" in said
    assert "something that is never named (distance) would have been among the reasons and was left out." in said
    assert f" {int((rows['reasons'].map(len) == 0).sum()):,} (" in said.partition("flights.")[2]
    assert json.dumps(said)


def test_a_run_without_reasons_has_no_such_section(reported):
    report(reported, scheduler="serial")
    assert 'id="reasons"' not in (reported / "report/index.html").read_text()
