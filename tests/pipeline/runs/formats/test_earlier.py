"""What earlier formats lack has a meaning; runs that were kept of them are in ``tests/earlier``."""

import pytest

from leafledger.kernels.methods import METHODS
from leafledger.pipeline.runs.formats import earlier
from leafledger.pipeline.runs.records.plan import Plan


def test_only_fields_of_a_plan_have_a_meaning():
    """By their names."""
    assert earlier.PLAN.keys() <= Plan.__dataclass_fields__.keys()


def test_scores_and_summaries_are_those_of_their_format():
    """Of curves 0.1 wrote the two areas; all else is as it is."""
    assert earlier.list_scores("curves", 1) == ("insertion", "deletion") == earlier.list_scores("curves", 2)[:2]
    assert len(earlier.list_scores("curves", 3)) == 6
    for name, method in METHODS.items():
        assert earlier.list_scores(name, 2) == method.phi.scores
        assert earlier.list_summaries(name, 2) == method.summaries
        if name != "curves":
            assert (earlier.list_scores(name, 1), earlier.list_summaries(name, 1)) == (method.phi.scores, method.summaries)


def test_a_later_parameter_has_its_default():
    """Which is what the method did without it; a method that nobody knows is left to its reader."""
    found = earlier.take_plan({"method": "owen", "parameters": [], "features": [], "slice_rows": 64}, 1)
    assert found["parameters"] == [["across", "shapley"], ["within", "shapley"]]
    assert found["group_rows"] == 64
    assert earlier.take_plan({"method": "none", "parameters": [["x", 1]]}, 1)["parameters"] == [["x", 1]]


@pytest.mark.parametrize(
    "entry", [None, 1, [], "x", {}, {"features": 1, "labels": 2, "items": 3, "parameters": 4}, {"items": [None, {"partition": 1}]}]
)
def test_what_is_no_plan_is_left_to_its_reader(entry):
    """Nothing is made of it but what it says."""
    found = earlier.take_plan(entry, 1)
    assert found == entry or {**found, **entry} == found


def test_what_the_plan_says_too_is_taken_from_it():
    """Features of a player of a group are those of the group; scores are of none."""
    plan = {"model": "m", "method": "shapley", "groups": [["both", ["a", "c"]]], "features": [{"name": name} for name in "abc"]}
    plan["items"] = [{"uri": "1"}, {"uri": "1"}, {"uri": "2"}]
    manifest = {"method": "shapley", "parameters": {}, "players": [0, 1], "r2": None}
    found = earlier.take_manifest(manifest, 1, lambda: plan)
    assert (found["model"], found["n_files"], found["used"], found["totals"]) == ("m", 2, [0, 1, 2], {})
    assert earlier.take_manifest({**manifest, "players": [0]}, 1, lambda: plan)["used"] == [0, 2]
    assert earlier.take_manifest({**manifest, "players": [0, 3]}, 1, lambda: {**plan, "method": "gap", "groups": []})["used"] == [0]
    for broken in ({}, None, {**plan, "groups": 1}, {**plan, "items": [1]}, {**plan, "method": "none"}):
        with pytest.raises(ValueError, match="its plan does not say what it lacks"):
            earlier.take_manifest(manifest, 1, lambda broken=broken: broken)


def test_a_footer_of_0_1_has_the_rows_of_its_item():
    """Which it had in a record of its own, beside the number of rows."""
    item = {"part": 3, "uri": "u", "n_rows": 2, "partition": [["k", 1], ["l", "x"], ["m", None]]}
    found = earlier.take_footer({"plan": "p", "item": item, "n_rows": 2, "stored": 2}, 2)
    assert found["partition"] == [["k", "1"], ["l", "x"], ["m", None]]
    assert {**found, "partition": []} == {
        "format_version": 2,
        "recipe": "p",
        "uri": "u",
        "n_rows": 2,
        "partition": [],
        "stored": 2,
        "space": "margin",
        "base": None,
    }
    with pytest.raises(ValueError, match="other rows than its work item"):
        earlier.take_footer({"plan": "p", "item": item, "n_rows": 3}, 2)
