"""Plans are read back as they were written, and nothing else is taken for one."""

import json
from dataclasses import replace

import pytest

from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.runs.records.plan import recipe, to_json
from leafledger.pipeline.runs.records.plan_file import broadcast_recipe, from_json, open_recipe, read_plan
from tests.pipeline.running import planned


def reread(example, change, **arguments):
    """What is said of a plan in which something was changed."""
    fields = json.loads(to_json(planned(example, example.data, **arguments)[0]))
    change(fields)
    with pytest.raises(InvalidRun, match=r"^run/plan\.json: not a plan of this version: ") as refusal:
        from_json(json.dumps(fields, indent=1, sort_keys=True), "run/plan.json")
    return str(refusal.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda plan: plan.update(groups=[["all", ["delay"]]]), "groups are no partition"),
        (lambda plan: plan.update(method="lime"), "method 'lime' is unknown"),
        (lambda plan: plan.update(parameters=[["p", 0.5]]), "method 'shapley' has no parameter 'p'"),
        (lambda plan: plan.update(precision="float16"), 'precision is "float16", expected'),
        (lambda plan: plan.update(interactions=0), "interactions is 0, expected"),
        (lambda plan: plan.update(interactions="1"), "interactions are '1', of another type"),
        (lambda plan: plan.update(background_digest="x"), "no background"),
        (lambda plan: plan.update(slice_rows=1), "slice_rows is 1, expected"),
        (lambda plan: plan.update(group_rows=1), "group_rows is 1, expected a multiple of slice_rows"),
        (lambda plan: plan.update(output=1 << 100), "output is 1267650600228229401496703205376, the only one"),
        (lambda plan: plan["items"].reverse(), "items are not numbered from 0"),
        (lambda plan: plan["items"][1].update(row_groups=[1, 0]), "item 1 has rows that no file has"),
        (lambda plan: plan["items"][1].update(n_rows=-1), "item 1 has rows that no file has"),
        (lambda plan: plan["items"][1].update(n_rows=True), "items[1].n_rows is true, expected a whole number"),
        (lambda plan: plan.pop("groups"), "it has no 'groups'; choose another output or remove it"),
        (lambda plan: plan.update(more=1), "it has a 'more'"),
        (lambda plan: plan["features"][0].update(categories=[{}]), "categories of feature 'distance': HashedCategory.__init__() missing"),
    ],
)
def test_what_makes_no_sense_is_no_plan(example, change, says):
    """In one line that names it."""
    assert says in reread(example, change)


def test_labels_and_parameters_make_sense(example):
    """Of the method that the plan is of."""
    arguments = {"method": "r2", "label": "delay"}
    assert "missing is 'x', expected 'count' or 'refuse'" in reread(example, lambda plan: plan["labels"].update(missing="x"), **arguments)
    arguments = {"method": "banzhaf", "parameters": {"p": 0.25}}
    assert "parameters are not those of method 'banzhaf'" in reread(example, lambda plan: plan.update(parameters=[["p", "0.25"]]), **arguments)
    still_open = [["optimizer", "adam"], ["rate", "auto"], ["steps", 10]]
    assert "parameters of method 'ranker' are left open" in reread(example, lambda plan: plan.update(parameters=still_open), method="ranker")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda reasons: reasons["worded"][0]["bands"][0].update(at_least=7.0), "a reason begins or ends at two bounds"),
        (lambda reasons: reasons["worded"][0]["bands"][0].update(below=9.0, at_most=9.0), "a reason begins or ends at two bounds"),
        (lambda reasons: reasons["default"].update(below=9.0), "default reasons are for some values, expected all"),
    ],
)
def test_reasons_make_sense(example, change, says):
    """What their file could not say is not in a plan: of two bounds one would be passed over."""
    reasons = {"direction": "raises", "default": {"text": "{feature}"}, "reason": [{"feature": "delay", "text": "late", "above": 0}]}
    assert says in reread(example, lambda plan: change(plan["reasons"]), reasons=reasons)


def test_a_plan_is_written_in_one_way(example):
    """So that its digest is that of what it says."""
    text = to_json(planned(example, example.data)[0])
    assert to_json(from_json(text.encode(), "plan.json")) == text
    with pytest.raises(InvalidRun, match="written otherwise than leafledger writes it"):
        from_json(text.replace("\n", ""), "plan.json")


def test_another_plan_is_not_read(example, tmp_path):
    """Its digest says whose it is."""
    (tmp_path / "plan.json").write_text(to_json(planned(example, example.data)[0]))
    with pytest.raises(InvalidRun, match="not the plan of this run, got "):
        read_plan(str(tmp_path), "0" * 64)


def test_a_recipe_is_read_as_it_was_broadcast(example, tmp_path):
    """All that parts depend on but the rows, by its digest, which is also that of every plan with the same recipe; never one that is damaged."""
    plan, run = planned(example, example.data)[0], str(tmp_path)
    name = broadcast_recipe(run, plan)
    assert name == broadcast_recipe(run, plan) == recipe(plan) == recipe(replace(plan, items=plan.items[:1]))
    found = open_recipe(run, name)
    assert found == replace(plan, model="", data="", items=())
    uri = tmp_path / "_tables" / f"{name}.json"
    uri.write_bytes(uri.read_bytes().replace(b'"shapley"', b'"banzhaf"'))
    open_recipe.cache_clear()
    with pytest.raises(InvalidRun, match=rf"^{uri}: SHA-256 is [0-9a-f]{{12}}, expected {name[:12]}$"):
        open_recipe(run, name)
    with pytest.raises(InvalidRun, match=rf"^{uri}: is damaged; remove it$"):
        broadcast_recipe(run, plan)
