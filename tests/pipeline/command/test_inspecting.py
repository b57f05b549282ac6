"""The command that says what a model is made of: for people, and as JSON."""

import json

import pytest

from leafledger import inspect_model
from pipeline.command import cli


def test_it_says_what_the_model_is_made_of(example, capsys):
    """The trees, the features that are asked for most, and a cost."""
    assert cli.main(["inspect", example.model]) == 0
    said = capsys.readouterr().out
    found = inspect_model(example.model)
    assert f"{found.n_trees:,} with {found.n_leaves:,} leaves; values are compared in double precision" in said
    most = max(found.features, key=lambda feature: feature.splits)
    assert f"│ {most.name}" in said
    assert f"{most.splits:,}" in said
    assert "µs per row" in said


def test_everything_is_json(example, capsys):
    """And nothing else is on standard output."""
    assert cli.main(["inspect", example.model, "--json", "--methods", "shapley,owen"]) == 0
    said = json.loads(capsys.readouterr().out)
    expected = inspect_model(example.model).to_dict()
    assert {name: said[name] for name in ("digest", "n_leaves", "library")} == {name: expected[name] for name in ("digest", "n_leaves", "library")}
    assert [cost["method"] for cost in said["costs"]] == ["shapley", "owen"]
    assert said["costs"][1]["refused"] == "needs a partition of the features"


def test_no_costs_on_request(example, capsys):
    """Where compiling would take longer than looking."""
    assert cli.main(["inspect", example.model, "--methods", ""]) == 0
    assert "µs per row" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [((["--methods", "shap"]), 2, "there is no method 'shap', expected some of shapley"), ([], 1, "cannot read")],
)
def test_a_mistake_is_one_line(example, capsys, arguments, code, says):
    """A method that there is not, a model that there is not."""
    assert cli.main(["inspect", example.model if arguments else "nowhere.json", *arguments]) == code
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
