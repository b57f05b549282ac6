"""A report's words say what the run says."""

from dataclasses import replace

import pytest

from leafledger import read_run
from pipeline.dataset.listing import Rejected
from pipeline.report.contents import read_summaries
from pipeline.report.words import judge, last_name, list_facts, list_provenance, write_headline, write_lede


@pytest.fixture(scope="module")
def run(reported):
    return read_run(reported)


def test_the_headline_names_the_first_feature_and_its_share(run):
    summaries = read_summaries(run)
    first = max(summaries["importance"], key=lambda row: row["mean_abs"])
    assert write_headline(run, summaries) == f"{first['feature']} accounts for {first['share']:.0%}".replace("%", " %") + " of what moves the margin"
    assert write_headline(run, {"r2": [{"feature": "x", "rank": 1, "r2": 0.5}]}) == "x adds the most to R²"
    assert write_headline(run, {"areas": [{"output": run.plan.outputs[0], "feature": "x", "rank": 1, "mean": 1.0}]}) == "x ranks first on average"
    assert write_headline(run, {}) == "3,000 rows explained"


def test_the_verdict_says_what_was_rejected(run):
    assert judge(run).kind == "sound"
    assert "add up to margin minus base value" in judge(run).text
    rejected = replace(run, manifest=replace(run.manifest, rejected=(Rejected(None, "x.parquet", (), None, "reason"),)))
    assert judge(rejected).kind == "partly"
    assert "1 piece of the data could not be read" in judge(rejected).text
    assert judge(replace(run, manifest=replace(run.manifest, n_rows=0))).kind == "none"


def test_the_mean_margin_is_that_of_the_rows(run):
    facts = dict(list_facts(run, read_summaries(run)))
    mean = run.attributions(["margin"])["margin"].to_numpy().astype(float).mean()
    assert float(facts["mean margin"]) == pytest.approx(mean, rel=1e-3)
    assert facts["rows"] == "3,000"


def test_provenance_has_every_digest(run):
    said = dict(list_provenance(run))
    assert said["SHA-256 of the model"] == run.plan.model_digest
    assert said["SHA-256 of plan.json"] == run.manifest.plan
    assert said["SHA-256 of manifest.json"] == run.manifest.sha256
    assert "background" not in said
    assert write_lede(run)[0].startswith("3,000 rows of data, explained by model.txt")
    assert last_name("s3://bucket/a/b/") == "b"
    assert last_name(None) == ""
