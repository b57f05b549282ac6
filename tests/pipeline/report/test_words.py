"""A report's words say what the run says."""

from dataclasses import replace

import pytest

from leafledger import read_run
from leafledger.pipeline.dataset.files.listing import Rejected
from leafledger.pipeline.finished.names import Name, Names
from leafledger.pipeline.models.row_output import RowOutput
from leafledger.pipeline.report.contents import read_summaries
from leafledger.pipeline.report.vocabulary import make_vocabulary
from leafledger.pipeline.report.words import judge, last_name, list_facts, list_provenance, write_headline, write_lede
from leafledger.pipeline.runs.records.provenance import FlowRun


@pytest.fixture(scope="module")
def run(reported):
    return read_run(reported)


@pytest.fixture(scope="module")
def words(run):
    return make_vocabulary(run.plan, Names())


def test_the_headline_names_the_first_feature_and_its_share(run, words):
    summaries = read_summaries(run)
    first = max(summaries["importance"], key=lambda row: row["mean_abs"])
    assert (
        write_headline(run, summaries, words) == f"{first['feature'].capitalize()} accounts for {first['share']:.0%} of all that moves the prediction"
    )
    assert write_headline(run, {"r2": [{"feature": "x", "rank": 1, "r2": 0.5}]}, words) == "x adds the most to R²"
    assert (
        write_headline(run, {"areas": [{"output": run.plan.outputs[0], "feature": "x", "rank": 1, "mean": 1.0}]}, words) == "x ranks first on average"
    )
    assert write_headline(run, {}, words) == "3,000 rows explained"
    signed = replace(run, plan=replace(run.plan, method="curves"))
    said = write_headline(signed, {"areas": [{"output": run.plan.outputs[0], "feature": "x", "rank": 1, "mean": 1.0}]}, words)
    assert said == "x ranks first on average, from what raises the prediction to what lowers it"


@pytest.mark.parametrize(
    ("share", "said"), [(None, "R² is not defined on these rows"), (0.0, "No feature adds to R²"), (-0.1, "No feature adds to R²")]
)
def test_the_headline_names_no_feature_where_none_adds_to_r2(run, share, said, words):
    """Of rows with the same label, or a single one, and of a model that is worse than the mean."""
    assert write_headline(run, {"r2": [{"feature": "x", "rank": 1, "r2": share}]}, words) == said


@pytest.mark.parametrize("name", ["areas", "gaps"])
def test_the_headline_names_no_feature_of_a_model_without_splits(run, name, words):
    """Its features have ranks all the same, in their order."""
    without = replace(run, manifest=replace(run.manifest, used=()))
    ranks = {name: [{"output": run.plan.outputs[0], "feature": "x", "rank": 1, "mean": 1.0}]}
    assert write_headline(without, ranks, words) == "No feature moves the prediction"
    assert write_headline(run, ranks, words) == "x ranks first on average"


def test_the_verdict_says_what_was_rejected(run, words):
    assert judge(run, words).kind == "sound"
    assert "the attributions and the base value add up to the prediction (rounding error below " in judge(run, words).text
    rejected = replace(run, manifest=replace(run.manifest, rejected=(Rejected(None, "x.parquet", (), None, "reason"),)))
    assert judge(rejected, words).kind == "partly"
    assert "1 piece of the data could not be read" in judge(rejected, words).text
    assert judge(replace(run, manifest=replace(run.manifest, n_rows=0)), words).kind == "none"


@pytest.mark.parametrize(("n", "said"), [(0, "Every row is explained"), (3, "Every row that has a label is explained")])
def test_rows_without_a_label_are_not_explained(run, n, said, words):
    """Of r2."""
    assert judge(replace(run, manifest=replace(run.manifest, totals={"r2": {"n_unlabelled": n}})), words).text.startswith(
        f"{said}, none was rejected."
    )


def test_the_mean_margin_is_that_of_the_rows(run, words):
    facts = dict(list_facts(run, read_summaries(run), words))
    mean = run.attributions(["margin"])["margin"].to_numpy().astype(float).mean()
    assert float(facts["mean prediction"]) == pytest.approx(mean, rel=5e-3)
    assert facts["rows"] == "3,000"
    large = replace(run, manifest=replace(run.manifest, base=(20260105.0,)))
    facts = dict(list_facts(large, {"importance": [{"mean": 2.0}]}, words))
    assert (facts["base value"], facts["mean prediction"]) == ("20,260,105", "20,260,107")  # both would be 2.03e+07


def test_provenance_has_every_digest(run, words):
    said = dict(list_provenance(run, None, words))
    assert said["units"] == "margin"
    assert said["SHA-256 of the model"] == run.plan.model_digest
    assert said["SHA-256 of plan.json"] == run.manifest.plan
    assert said["SHA-256 of manifest.json"] == run.manifest.sha256
    assert "background" not in said
    assert "iterations" not in said
    assert dict(list_provenance(replace(run, plan=replace(run.plan, trees=(0, 10))), None, words))["iterations"] == "0:10"  # as --trees has them
    assert write_lede(run, words)[0] == (
        "3,000 rows of data. For each, its prediction by the model model.txt is split into a base value and one attribution for each feature, which "
        "add up to it (Shapley values)."
    )
    other = replace(run, plan=replace(run.plan, space="probability", background="s3://bucket/rows"))
    assert write_lede(other, words)[0].endswith(
        " add up to it (Shapley values, against the background rows). They are carried into units of the probability, where they add up to "
        "prediction minus base value."
    )
    ordered = replace(run, plan=replace(run.plan, method="asymmetric", parameters=(("sequence", ("plan", "route")),)))
    assert write_lede(ordered, words)[0].endswith(" and later ones absent. Their sequence is plan, route.")
    assert last_name("s3://bucket/a/b/") == "b"
    assert last_name(None) == ""


@pytest.mark.parametrize(
    ("which", "said"), [("predicted", "the output that is predicted for it"), ("other", "an output that is not the one predicted")]
)
def test_the_lede_says_which_output_each_row_is_explained_for(run, which, said, words):
    chosen = replace(run, plan=replace(run.plan, row_output=RowOutput(which)))
    (lede,) = write_lede(chosen, words)
    assert f" Each row is explained for {said}" in lede
    assert lede.endswith(", with that output’s base value.")
    assert "Each row" not in write_lede(run, words)[0]


def test_the_lede_names_the_only_output_that_is_explained(run, words):
    """With --output NAME, of a model that may have others."""
    assert "explained for" not in write_lede(run, words)[0]
    alone = replace(run, plan=replace(run.plan, output=1, outputs=("late",)))
    assert write_lede(alone, words)[0].endswith("(Shapley values). Rows are explained for output late alone.")


def test_how_a_run_was_made_is_said_where_it_is_known(run, words):
    made = run.provenance()
    said = dict(list_provenance(run, made, words))
    assert said["made"].startswith(f"{made.started} to {made.finished}: planning ")
    assert said["explained on"].startswith(f"1 process on {made.client.host} (")
    assert said["parts"] == "4 computed, 0 taken over from an earlier attempt"
    assert f"numpy {made.packages['numpy']}" in said["packages"]
    assert "flow run" not in said
    flow = FlowRun("2026-03-02", "b3f0", "nightly")
    assert dict(list_provenance(run, replace(made, flow=flow), words))["flow run"] == "2026-03-02, b3f0 of deployment nightly"


def test_words_are_those_that_were_given(run):
    """Of features, the prediction and the rows; margins that are no predictions stay margins."""
    names = Names({"delay": Name("departure delay", "min")}, Name("arrival delay", "min"), "flight", "flights")
    words = make_vocabulary(run.plan, names)
    summaries = {"importance": names.rename([{"output": run.plan.outputs[0], "feature": "delay", "rank": 1, "share": 0.5, "mean": 2.0}])}
    assert write_headline(run, summaries, words) == "Departure delay accounts for 50% of all that moves the arrival delay"
    assert write_lede(run, words)[0].startswith("3,000 flights of data. For each, its arrival delay by the model ")
    assert judge(run, words).text.startswith("Every flight is explained, none was rejected.")
    facts = dict(list_facts(run, summaries, words))
    assert facts["flights"] == "3,000"
    assert facts["mean arrival delay"].endswith(" min")
    assert dict(list_provenance(run, None, words))["units"] == "min (margin)"
    single = replace(run, plan=replace(run.plan, row_output=RowOutput("predicted")))
    assert " Each flight is explained for the output that is predicted for it" in write_lede(single, words)[0]
    scores = replace(run.plan, predicts=False)
    assert make_vocabulary(scores, Names()).total == "margin"
    assert write_lede(replace(run, plan=scores), make_vocabulary(scores, Names()))[0].endswith("that makes a prediction of it.")
