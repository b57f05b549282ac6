"""Noise of each feature by its name: in Python, on the command line and in a file of settings, with the same numbers."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

import leafledger
from leafledger.pipeline.command import cli
from leafledger.pipeline.errors import UsageError

NOISE = {"b": "laplace:0.5", "c": [(-1, 0.25), (1, 0.75)], "*": "normal"}
SCALE = {"c": 0.5, "*": 2}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model of numbers, whole ones among them, and a category."""
    folder, rng = tmp_path_factory.mktemp("noise"), np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(40, 4)), columns=list("abcd")).assign(c=rng.integers(0, 5, 40).astype(float))
    rows["d"] = pd.Categorical(rng.choice(["x", "y", "z"], 40))
    target = rows["a"] * rows["b"] + rows["c"] + 2.0 * (rows["d"] == "x")
    booster = xgboost.train({"max_depth": 3, "nthread": 1}, xgboost.DMatrix(rows, target, enable_categorical=True), 6)
    booster.save_model(folder / "model.json")
    rows.to_parquet(folder / "rows.parquet")
    return str(folder / "model.json"), rows, folder


@pytest.mark.slow
def test_names_positions_and_order_say_the_same(files):
    """As a mapping, as a list of all, and as a method's parameter; values with probabilities are what drawing them comes to."""
    model, rows, _ = files
    some = rows[:5]
    gaps = leafledger.prediction_gap(model, some, noise=NOISE, scale=SCALE)
    by_position = {1: NOISE["b"], 2: "1:3,-1:1", 0: "normal", 3: "normal"}
    in_order = ["normal:2", "laplace:0.5", "-1:0.25,1:0.75", "normal"]
    for noise in (by_position, in_order, json.dumps(NOISE)):
        assert_allclose(leafledger.prediction_gap(model, some, noise=noise, scale=SCALE), gaps, rtol=1e-12)
    assert_allclose(leafledger.prediction_gap(model, some, noise=NOISE | {"a": ndtr}, scale=SCALE), gaps, rtol=1e-9)
    moved = pd.concat([some.assign(c=some["c"] + 0.5 * z) for z in (-1, 1, 1, 1)])
    predicted = leafledger.attribute(model, moved).margin.reshape(4, 5)
    start = leafledger.attribute(model, some).margin[:, 0]
    expected = ((predicted - start) ** 2).mean(axis=0)
    assert_allclose(leafledger.prediction_gap(model, some, features="c", noise=NOISE, scale=SCALE)[:, 0], expected, rtol=1e-5, atol=1e-10)


@pytest.mark.parametrize("method", ["gap", "gap_greedy"])
def test_a_method_takes_what_prediction_gap_takes(files, method):
    """Functions as well, of one feature or of all."""
    model, rows, _ = files
    for noise in (NOISE, NOISE | {"a": ndtr}, ndtr):
        found = leafledger.attribute(model, rows[:5], method, parameters={"noise": noise, "scale": SCALE})
        order = np.argsort(found.phi[:, 0, :-2], axis=1)
        expected = leafledger.prediction_gap(model, rows[:5], ranking=order, noise=noise, scale=SCALE)
        assert_allclose(found.phi[:, 0, -2], expected[:, 0], rtol=1e-9)
    assert_array_equal(order, leafledger.rank_by_gap(model, rows[:5], noise=ndtr, scale=SCALE)[0][:, 0] if method == "gap_greedy" else order)


@pytest.mark.slow
def test_a_run_takes_it_by_flag_and_by_file(files, tmp_path, capsys):
    """As an object in a text; the plan has each feature's, in their order, and a second run with another spelling is the same."""
    model, rows, folder = files
    noise, scale = f"noise={json.dumps(NOISE)}", f"scale={json.dumps(SCALE)}"
    asked = ["explain", model, str(folder / "rows.parquet"), "--method", "gap", "--scheduler", "serial", "--precision", "float64", "--quiet"]
    assert cli.main([*asked, "--out", str(tmp_path / "flag"), "--parameter", noise, "--parameter", scale]) == 0
    (tmp_path / "settings.toml").write_text(f"[explain]\nparameter = ['{noise}', '{scale}']\n")
    assert cli.main([*asked, "--out", str(tmp_path / "file"), "--config", str(tmp_path / "settings.toml")]) == 0
    one, two = (pq.read_table(tmp_path / name / "attributions") for name in ("flag", "file"))
    assert one.equals(two)
    in_memory = leafledger.attribute(model, rows, "gap", parameters={"noise": NOISE, "scale": SCALE})
    assert_array_equal(one.column("pgi2").to_numpy(), in_memory.phi[:, 0, -2])
    parameters = leafledger.read_manifest(tmp_path / "flag").parameters
    assert parameters["noise"] == ("normal", "laplace:0.5", "-1.0:0.25,1.0:0.75", "normal")
    assert parameters["scale"] == (2.0, 2.0, 0.5, 0.0)
    other = json.dumps({"c": "1:0.75,-1:0.25", "b": "laplace:0.50", "*": "normal"})
    assert cli.main([*asked, "--out", str(tmp_path / "flag"), "--parameter", f"noise={other}", "--parameter", "scale=2,2,0.5,0"]) == 0
    assert leafledger.check_run(str(tmp_path / "flag"), True).n_rows == 40
    assert cli.main(["plan", *asked[1:-1], "--out", str(tmp_path / "plan"), "--parameter", noise]) == 0
    assert "noise=normal,laplace:0.5,-1.0:0.25,1.0:0.75,normal" in " ".join(capsys.readouterr().out.split())


REFUSED = [
    ({"noise": {"b": "normal"}}, "noise'? has none for feature 'a', nor for all others, '\\*'$"),
    ({"noise": {"bb": "normal", "*": "normal"}}, "noise'? names 'bb', which is no feature of the model; did you mean 'b'\\?$"),
    ({"noise": {"b": "laplac", "*": "normal"}}, "expected one of normal, uniform, laplace, empirical, one with a scale as laplace:0.5"),
    ({"noise": {"b": "normal", 1: "laplace", "*": "normal"}}, "noise'? has a feature twice, by name and position, expected once"),
    ({"noise": ["normal", "laplace"]}, "noise'? has 2 entries, expected one, or (one for each of|as many for) 4 features$"),
    (
        {"noise": lambda z: z},
        "noise'? is a function, which is -inf at minus infinity and inf at infinity, expected a distribution function: 0 and 1$",
    ),
    ({"scale": {"a": 1}}, "scale'? has none for feature 'b', nor for all others, '\\*'$"),
    ({"noise": {"b": "empirical", "*": "normal"}}, "draws values from (data|a background), but none was given$"),
]


@pytest.mark.parametrize(("given", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_what_cannot_be_meant_is_refused(files, given, says):
    """In Python and as a method's parameter, in one line."""
    model, rows, _ = files
    with pytest.raises(UsageError, match=says):
        leafledger.prediction_gap(model, rows[:2], **given)
    with pytest.raises(UsageError, match=says):
        leafledger.attribute(model, rows[:2], "gap", parameters=given)


@pytest.mark.parametrize("noise", [ndtr, {"a": ndtr, "*": "normal"}, ["normal", "normal", ndtr, "normal"]], ids=["all", "named", "listed"])
def test_a_plan_holds_no_function(files, tmp_path, noise):
    """Whether of all features or of one."""
    model, _, folder = files
    with pytest.raises(UsageError, match=r"^parameter 'noise' is a function, which cannot be written into a plan; give numbers in its place$"):
        leafledger.explain(model, folder / "rows.parquet", tmp_path / "run", method="gap", parameters={"noise": noise}, scheduler="serial")
