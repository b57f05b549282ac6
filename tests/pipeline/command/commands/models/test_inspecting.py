"""The command that says what a model is made of: for people, and as JSON."""

import json
import sys
from dataclasses import replace

import catboost
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from leafledger import inspect_model, leaf_tables
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.command import cli
from leafledger.pipeline.command.commands.models import inspecting
from leafledger.pipeline.command.terminal.terminal import open_console
from leafledger.pipeline.in_memory.inspect.inspection import InspectedFeature


@pytest.fixture(scope="module")
def counting(tmp_path_factory):
    """A file of symmetric trees with target statistics."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("counting") / "m.cbm"
    rows = pd.DataFrame({"x": rng.normal(size=300), "city": rng.choice(list("abcdefg"), 300), "job": rng.choice(list("xyz"), 300)})
    given = {"iterations": 20, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0, "model_size_reg": 0}
    model = catboost.CatBoostRegressor(**given, max_ctr_complexity=2)
    model.fit(rows, rows["x"] + (rows["city"] > "d") * (rows["job"] == "x"), cat_features=["city", "job"]).save_model(str(path))
    return str(path)


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
    """Where compiling would take longer than looking; what is quick says nothing of how far it is."""
    assert cli.main(["inspect", example.model, "--methods", ""]) == 0
    said = capsys.readouterr()
    assert "µs per row" not in said.out
    assert said.err == ""


def test_long_names_are_whole_and_what_is_left_out_is_said(example, capsys):
    """Names that are cut could be the same."""
    names = [f"{'x' * 150}{j}" for j in range(2)]
    features = tuple(InspectedFeature(name, "numbers", 2 - j, 1) for j, name in enumerate(names))
    found = replace(inspect_model(example.model), features=features, base=(0.5,) * (inspecting.TOP + 1), refused=())
    inspecting.show_inspection(open_console(), "m.txt", found)
    said = capsys.readouterr().out.splitlines()
    assert "".join(line.strip("│").split("│")[0].strip() for line in said if line.startswith("│")) == "".join(names)
    assert f"base       {'0.5, ' * inspecting.TOP}…" in said


def test_statistics_and_what_is_not_there_are_said(counting, capsys):
    """In words and as JSON."""
    assert cli.main(["inspect", counting, "--methods", ""]) == 0
    said, found = capsys.readouterr().out, inspect_model(counting)
    assert " of 1 feature, " in said
    assert f"; {found.statistics.entries:,} entries in tables of " in said
    assert "method gap " in said
    assert "CatBoost models with target statistics" in said
    assert cli.main(["inspect", counting, "--methods", "", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.to_dict()))


def test_all_methods_are_measured_or_refused(example, capsys, monkeypatch):
    """By one word; where somebody waits, it says at which it is."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert cli.main(["inspect", example.model, "--json", "--methods", "all"]) == 0
    said = capsys.readouterr()
    assert [cost["method"] for cost in json.loads(said.out)["costs"]] == list(METHODS)
    assert said.err.splitlines() == [f"leafledger: measuring {name}" for name in METHODS]


@pytest.mark.slow
def test_tables_of_leaves_are_written(counting, tmp_path, capsys, monkeypatch):
    """And said; with JSON they are not, and where somebody waits long it says how far it is."""
    out = str(tmp_path / "tables.parquet")
    monkeypatch.setattr(inspecting, "PATIENCE", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert cli.main(["inspect", counting, "--methods", "", "--tables", out]) == 0
    said = capsys.readouterr()
    assert said.out.endswith(f"tables of leaves: {out}, {pq.read_metadata(out).num_rows:,} rows\n")
    assert said.err.splitlines()[-1] == "leafledger: tables of 20 of 20 trees"
    assert pq.read_table(out).equals(leaf_tables(counting))
    assert cli.main(["inspect", counting, "--methods", "", "--tables", out, "--json"]) == 0
    json.loads(capsys.readouterr().out)


def test_a_model_without_tables_of_leaves_is_refused(example, tmp_path, capsys):
    """In one line, and nothing is written."""
    assert cli.main(["inspect", example.model, "--methods", "", "--tables", str(tmp_path / "out.parquet")]) == 8
    assert capsys.readouterr().err.startswith("leafledger: look-up tables are there for symmetric trees with leaf weights: tree 0, ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [((["--methods", "shap"]), 2, "there is no method 'shap', expected some of shapley"), ([], 6, "cannot read")],
)
def test_a_mistake_is_one_line(example, capsys, arguments, code, says):
    """A method that there is not, a model that there is not."""
    assert cli.main(["inspect", example.model if arguments else "nowhere.json", *arguments]) == code
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
