"""A report's words say what the run says."""

from dataclasses import replace

import pytest

from leafledger import read_run
from leafledger.pipeline.dataset.files.listing import Rejected
from leafledger.pipeline.models.row_output import RowOutput
from leafledger.pipeline.report.contents import read_summaries
from leafledger.pipeline.report.words import judge, last_name, list_facts, list_provenance, write_headline, write_lede
from leafledger.pipeline.runs.records.provenance import FlowRun


@pytest.fixture(scope="module")
def run(reported):
    return read_run(reported)


def test_the_headline_names_the_first_feature_and_its_share(run):
    summaries = read_summaries(run)
    first = max(summaries["importance"], key=lambda row: row["mean_abs"])
    assert write_headline(run, summaries) == f"{first['feature']} accounts for {first['share']:.0%} of what moves the margin"
    assert write_headline(run, {"r2": [{"feature": "x", "rank": 1, "r2": 0.5}]}) == "x adds the most to R²"
    assert write_headline(run, {"areas": [{"output": run.plan.outputs[0], "feature": "x", "rank": 1, "mean": 1.0}]}) == "x ranks first on average"
    assert write_headline(run, {}) == "3,000 rows explained"
    signed = replace(run, plan=replace(run.plan, method="curves"))
    said = write_headline(signed, {"areas": [{"output": run.plan.outputs[0], "feature": "x", "rank": 1, "mean": 1.0}]})
    assert said == "x ranks first on average, from what raises the margin to what lowers it"


@pytest.mark.parametrize(
    ("share", "said"), [(None, "R² is not defined on these rows"), (0.0, "No feature adds to R²"), (-0.1, "No feature adds to R²")]
)
def test_the_headline_names_no_feature_where_none_adds_to_r2(run, share, said):
    """Of rows with the same label, or a single one, and of a model that is worse than the mean."""
    assert write_headline(run, {"r2": [{"feature": "x", "rank": 1, "r2": share}]}) == said


@pytest.mark.parametrize("name", ["areas", "gaps"])
def test_the_headline_names_no_feature_of_a_model_without_splits(run, name):
    """Its features have ranks all the same, in their order."""
    without = replace(run, manifest=replace(run.manifest, used=()))
    ranks = {name: [{"output": run.plan.outputs[0], "feature": "x", "rank": 1, "mean": 1.0}]}
    assert write_headline(without, ranks) == "No feature moves the margin"
    assert write_headline(run, ranks) == "x ranks first on average"


def test_the_verdict_says_what_was_rejected(run):
    assert judge(run).kind == "sound"
    assert "add up to margin minus base value" in judge(run).text
    rejected = replace(run, manifest=replace(run.manifest, rejected=(Rejected(None, "x.parquet", (), None, "reason"),)))
    assert judge(rejected).kind == "partly"
    assert "1 piece of the data could not be read" in judge(rejected).text
    assert judge(replace(run, manifest=replace(run.manifest, n_rows=0))).kind == "none"


@pytest.mark.parametrize(("n", "said"), [(0, "Every row is explained"), (3, "Every row that has a label is explained")])
def test_rows_without_a_label_are_not_explained(run, n, said):
    """Of r2."""
    assert judge(replace(run, manifest=replace(run.manifest, totals={"r2": {"n_unlabelled": n}}))).text.startswith(f"{said}, none was rejected.")


def test_the_mean_margin_is_that_of_the_rows(run):
    facts = dict(list_facts(run, read_summaries(run)))
    mean = run.attributions(["margin"])["margin"].to_numpy().astype(float).mean()
    assert float(facts["mean margin"]) == pytest.approx(mean, rel=1e-3)
    assert facts["rows"] == "3,000"
    large = replace(run, manifest=replace(run.manifest, base=(20260105.0,)))
    facts = dict(list_facts(large, {"importance": [{"mean": 2.0}]}))
    assert (facts["base value"], facts["mean margin"]) == ("20,260,105", "20,260,107")  # both would be 2.03e+07


def test_provenance_has_every_digest(run):
    said = dict(list_provenance(run, None))
    assert said["SHA-256 of the model"] == run.plan.model_digest
    assert said["SHA-256 of plan.json"] == run.manifest.plan
    assert said["SHA-256 of manifest.json"] == run.manifest.sha256
    assert "background" not in said
    assert "iterations" not in said
    assert dict(list_provenance(replace(run, plan=replace(run.plan, trees=(0, 10))), None))["iterations"] == "0:10"  # as --trees has them
    assert write_lede(run)[0].startswith("3,000 rows of data, explained by model.txt")
    assert write_lede(run)[0].endswith(": Shapley values; they add up to margin minus base value.")
    other = replace(run, plan=replace(run.plan, space="probability", background="s3://bucket/rows"))
    assert write_lede(other)[0].endswith(
        " base value, against the background rows. They are carried into units of the probability, where they add up to prediction minus base value."
    )
    ordered = replace(run, plan=replace(run.plan, method="asymmetric", parameters=(("sequence", ("plan", "route")),)))
    assert write_lede(ordered)[0].endswith(" and later ones absent. Their sequence is plan, route.")
    assert last_name("s3://bucket/a/b/") == "b"
    assert last_name(None) == ""


@pytest.mark.parametrize(
    ("which", "said"), [("predicted", "the output that is predicted for it"), ("other", "an output that is not the one predicted")]
)
def test_the_lede_says_which_output_each_row_is_explained_for(run, which, said):
    chosen = replace(run, plan=replace(run.plan, row_output=RowOutput(which)))
    (lede,) = write_lede(chosen)
    assert f" Each row is explained for {said}" in lede
    assert lede.endswith(", with that output’s base value.")
    assert "Each row" not in write_lede(run)[0]


def test_the_lede_names_the_only_output_that_is_explained(run):
    """With --output NAME, of a model that may have others."""
    assert "explained for" not in write_lede(run)[0]
    alone = replace(run, plan=replace(run.plan, output=1, outputs=("late",)))
    assert write_lede(alone)[0].endswith("base value. Rows are explained for output late alone.")


def test_how_a_run_was_made_is_said_where_it_is_known(run):
    made = run.provenance()
    said = dict(list_provenance(run, made))
    assert said["made"].startswith(f"{made.started} to {made.finished}: planning ")
    assert said["explained on"].startswith(f"1 process on {made.client.host} (")
    assert said["parts made, and found"] == "4, and 0"
    assert f"numpy {made.packages['numpy']}" in said["packages"]
    assert "flow run" not in said
    flow = FlowRun("2026-03-02", "b3f0", "nightly")
    assert dict(list_provenance(run, replace(made, flow=flow)))["flow run"] == "2026-03-02, b3f0 of deployment nightly"
