"""Values of groups in a sequence: against the libraries' own predictions, in memory and in runs, and what is no sequence."""

import itertools
import json

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.testing import assert_allclose

from leafledger import attribute, check_run, explain
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import UnsupportedModel, UsageError
from tests.more import more
from tests.pipeline.running import attributions

RNG = np.random.default_rng(5)
AGE = RNG.normal(40, 10, 400).round()
INCOME = AGE + RNG.normal(0, 5, 400).round()
PEOPLE = pd.DataFrame({"debt": INCOME / 2 + RNG.normal(0, 5, 400).round(), "age": AGE, "income, net": INCOME, "f": RNG.normal(size=400).round(1)})
TARGET = PEOPLE["income, net"] - PEOPLE["debt"] + (AGE > 45) * 5
CLASS = np.digitize(TARGET, TARGET.quantile([0.3, 0.7]))
BACKGROUND, ROWS = PEOPLE[:50], PEOPLE[50:60]
MODEL = xgboost.train({"max_depth": 4, "nthread": 1}, xgboost.DMatrix(PEOPLE, TARGET), 10)
CLASSES = xgboost.train({"max_depth": 3, "objective": "multi:softprob", "num_class": 3, "nthread": 1}, xgboost.DMatrix(PEOPLE, CLASS), 5)
MONEY = {"money": ["income, net", "debt"]}
ATOL = 2e-5  # of XGBoost's own predictions, in single precision


def known(model, row, names):
    """The library's mean margin over the background, with some of a row's values in it."""
    mixed = BACKGROUND.copy()
    for name in names:
        mixed[name] = row[name]
    return model.predict(xgboost.DMatrix(mixed), output_margin=True).astype(float).reshape(len(mixed), -1).mean(axis=0)


def values(model, partition, sequence, **asked):
    return attribute(model, ROWS, "asymmetric", partition=partition, parameters={"sequence": sequence}, **asked)


@pytest.mark.parametrize("model", [*more(MODEL), CLASSES], ids=["regression", "classes"])
@pytest.mark.parametrize("partition", [{}, MONEY, {"all": list(PEOPLE)}], ids=["chain", "groups", "one group"])
def test_values_are_means_over_orders_of_the_library_s_predictions(model, partition):
    """All orders in which groups come one after the other, against a background."""
    members = {**{name: [name] for name in PEOPLE}, **partition} if len(partition.get("all", ())) != 4 else dict(partition)
    for name in (each for listed in partition.values() for each in listed):
        members.pop(name, None)
    sequence = sorted(members)
    orders = [sum(parts, ()) for parts in itertools.product(*(itertools.permutations(members[group]) for group in sequence))]
    found = values(model, partition, sequence, background=BACKGROUND)
    assert found.players == tuple(PEOPLE)
    for i in range(3):
        row = ROWS.iloc[i]
        for j, name in enumerate(found.players):
            steps = [known(model, row, {*order[: order.index(name)], name}) - known(model, row, order[: order.index(name)]) for order in orders]
            assert_allclose(found.phi[i, :, j], np.mean(steps, axis=0), rtol=0, atol=ATOL)
    assert_allclose(found.phi.sum(axis=2) + found.base, found.margin, rtol=0, atol=1e-12)


@pytest.mark.parametrize("background", [None, BACKGROUND], ids=["path-dependent", "marginal"])
def test_the_sequence_is_by_name_and_by_nothing_else(background):
    """A partition is the same in any order of its groups; another sequence has other values, and the model's order of features has no say."""
    partition = {"young": ["f", "age"], **MONEY}
    found = values(MODEL, partition, ["young", "money"], background=background)
    again = values(MODEL, dict(reversed(partition.items())), ["young", "money"], background=background)
    assert np.array_equal(found.phi, again.phi)
    assert abs(found.phi - values(MODEL, partition, ["money", "young"], background=background).phi).max() > 1
    turned = list(reversed(PEOPLE.columns))
    other = attribute(MODEL, ROWS[turned], "asymmetric", partition=partition, parameters={"sequence": ["young", "money"]}, background=background)
    assert np.array_equal(found.phi, other.phi)


@pytest.mark.slow
def test_one_group_has_shapley_values_and_their_errors():
    """Errors by background are of these values as of any that are linear in the game."""
    asked = {"background": PEOPLE[:200], "background_errors": True}
    one, shapley = values(MODEL, {"all": list(PEOPLE)}, ["all"], **asked), attribute(MODEL, ROWS, **asked)
    for name in ("phi", "errors", "base"):
        assert_allclose(getattr(one, name), getattr(shapley, name), rtol=0, atol=1e-12)
    chain = values(MODEL, {}, ["age", "income, net", "debt", "f"], **asked)
    assert (chain.errors >= 0).all()
    assert chain.errors.max() > 0


def test_probabilities_are_shared_out():
    """They add up to the prediction, as those of all methods whose values add up to the margin."""
    found = values(CLASSES, MONEY, ["age", "money", "f"], space="probability")
    assert_allclose(found.phi.sum(axis=2) + found.base, found.prediction, rtol=0, atol=1e-12)


def test_a_run_has_the_values_of_memory(tmp_path):
    """From the command line, of a model with categories; parts, summary and manifest say it, and the check does it again."""
    frame = PEOPLE.assign(k=RNG.choice(["x", "y", None], len(PEOPLE))).astype({"k": "category"}).rename(columns={"income, net": "income"})
    model = tmp_path / "model.txt"
    given = {"verbosity": -1, "num_threads": 1, "min_data_per_group": 5}
    lightgbm.train(given, lightgbm.Dataset(frame, TARGET + 9 * (frame["k"] == "x")), 8).save_model(model)
    frame.astype({"k": "object"}).to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "groups.json").write_text(json.dumps({"money": ["income", "debt"]}))
    told = ["--method", "asymmetric", "--partition", f"{tmp_path}/groups.json", "--parameter", "sequence=k, age,money,f", "--precision", "float64"]
    command = ["explain", str(model), f"{tmp_path}/rows.parquet", "--out", f"{tmp_path}/run", "--scheduler", "serial", "--quiet", *told]
    assert main(command) == 0
    found = attribute(str(model), frame, "asymmetric", partition={"money": ["income", "debt"]}, parameters={"sequence": ["k", "age", "money", "f"]})
    stored = attributions(tmp_path / "run")
    assert_allclose(np.column_stack([stored[f"phi_{name}"] for name in found.players]), found.phi[:, 0], rtol=0, atol=0)
    plan = json.loads((tmp_path / "run" / "plan.json").read_text())
    assert plan["parameters"] == [["sequence", ["k", "age", "money", "f"]]]
    report = check_run(tmp_path / "run", all_rows=True)
    assert report.sound
    assert report.residual < 1e-12


def test_names_with_commas_are_written_as_json():
    """On a command line a list is text with commas; names that have one are quoted."""
    as_list = values(MODEL, {}, ["age", "income, net", "debt", "f"])
    assert np.array_equal(as_list.phi, values(MODEL, {}, '["age", "income, net", "debt", "f"]').phi)


@pytest.mark.parametrize("partition", [None, MONEY], ids=["chain", "groups"])
@pytest.mark.parametrize("space", ["probability", "loss"])
def test_probabilities_and_losses_go_row_by_row(partition, space):
    """As for Shapley values: of each background row alone, times the quotient of predictions and margins, averaged."""
    late = TARGET.gt(TARGET.median()).astype(float)
    model = xgboost.train({"max_depth": 3, "objective": "binary:logistic", "nthread": 1}, xgboost.DMatrix(PEOPLE, late), 8)
    sequence, y = sorted(PEOPLE if partition is None else ["age", "f", "money"]), late[50:60].to_numpy()
    label = {"label": y} if space == "loss" else {}
    found = values(model, partition, sequence, background=BACKGROUND[:6], space=space, **label)
    expected = np.zeros_like(found.phi)
    for b in range(6):
        alone = values(model, partition, sequence, background=BACKGROUND[b : b + 1])
        u, w = alone.margin[:, 0], np.full(10, alone.base[0])
        of = {"probability": lambda m: 1 / (1 + np.exp(-m)), "loss": lambda m: np.where(y == 1, np.log1p(np.exp(-m)), np.log1p(np.exp(m)))}[space]
        slope = np.divide(of(u) - of(w), u - w, out=np.zeros(10), where=np.abs(u - w) > 1e-9)  # no part differs where margins are equal
        expected += slope[:, None, None] * alone.phi / 6
    assert_allclose(found.phi, expected, rtol=0, atol=1e-9)
    assert np.abs(found.phi.sum(axis=2).reshape(-1) - (found.prediction.reshape(-1) - np.reshape(found.base, -1))).max() < 1e-9


def test_without_a_partition_every_feature_is_a_group(tmp_path):
    """As with an empty one, in memory and in a run."""
    sequence = ["age", "f", "debt", "income, net"]
    alone, empty = values(MODEL, None, sequence), values(MODEL, {}, sequence)
    assert np.array_equal(alone.phi, empty.phi)
    MODEL.save_model(tmp_path / "model.ubj")
    ROWS.to_parquet(tmp_path / "rows.parquet")
    given = {"method": "asymmetric", "parameters": {"sequence": sequence}, "precision": "float64", "scheduler": "serial"}
    explain(tmp_path / "model.ubj", tmp_path / "rows.parquet", tmp_path / "run", **given)
    assert_allclose(attributions(tmp_path / "run")["phi_age"].to_numpy(), alone.phi[:, 0, alone.players.index("age")], rtol=0, atol=1e-12)
    assert check_run(tmp_path / "run", all_rows=True).sound


@pytest.mark.parametrize("background", [None, BACKGROUND], ids=["path-dependent", "marginal"])
@pytest.mark.parametrize(
    ("partition", "sequence", "says"),
    [
        (MONEY, None, "method 'asymmetric' needs parameter 'sequence': every group, and every feature that no group names, in their order"),
        (None, ["age"], "parameter 'sequence' lacks 'debt' and 2 more, expected every group"),
        (MONEY, ["age", "money"], "parameter 'sequence' lacks 'f', expected every group, and every feature that no group names"),
        (MONEY, ["money"], "parameter 'sequence' lacks 'age' and 1 more, expected every group"),
        (MONEY, ["age", "money", "f", "age"], "parameter 'sequence' names 'age' twice, expected once"),
        (MONEY, ["age", "debt", "money", "f"], "parameter 'sequence' names 'debt', a feature of group 'money', expected the group"),
        (MONEY, ["age", "monye", "f"], "parameter 'sequence' names 'monye', which is no group, and no feature outside of one; did you mean 'money'?"),
        (MONEY, {"age": 1, "money": 2, "f": 3}, "parameter 'sequence' is {'age': 1, 'money': 2, 'f': 3}, expected names of groups"),
        (MONEY, {"age", "money", "f"}, "parameter 'sequence' is {.*}, expected names of groups"),
        (MONEY, ["age", 2, "f"], "parameter 'sequence' is .*, expected names of groups, as text with commas between them, or a JSON list"),
        (MONEY, "[1, 2", r"parameter 'sequence' is '\[1, 2', expected names of groups"),
        (MONEY, "age,,f", "parameter 'sequence' is 'age,,f', expected names of groups"),
        (MONEY, "[" * 100000, "expected names of groups"),
    ],
)
def test_what_is_no_sequence_is_refused_in_one_line(partition, sequence, says, background):
    """By name, what was got and what is expected."""
    given = {} if sequence is None else {"sequence": sequence}
    with pytest.raises(UsageError, match=says) as refusal:
        attribute(MODEL, ROWS, "asymmetric", partition=partition, parameters=given, background=background)
    assert "\n" not in str(refusal.value)


def test_a_run_refuses_a_sequence_before_it_counts_a_background(tmp_path):
    """While planning; nothing is written."""
    PEOPLE.to_parquet(tmp_path / "rows.parquet")
    rows = f"{tmp_path}/rows.parquet"
    MODEL.save_model(tmp_path / "model.ubj")
    asked = {"method": "asymmetric", "partition": MONEY, "parameters": {"sequence": "age"}, "background": rows, "scheduler": "serial"}
    with pytest.raises(UsageError, match="parameter 'sequence' lacks 'money' and 1 more"):
        explain(tmp_path / "model.ubj", rows, tmp_path / "run", **asked)
    assert not (tmp_path / "run").exists()


def test_combinations_of_features_are_of_several_groups():
    """So that they have no place in a sequence."""
    frame = pd.DataFrame({"a": RNG.choice(list("xy"), 300), "b": RNG.choice(list("xy"), 300), "c": RNG.normal(size=300)})
    given = {"iterations": 5, "max_ctr_complexity": 2, "verbose": False, "thread_count": 1, "allow_writing_files": False, "one_hot_max_size": 1}
    model = catboost.CatBoostRegressor(**given).fit(frame, (frame["a"] == frame["b"]) + frame["c"], cat_features=["a", "b"])
    with pytest.raises(UnsupportedModel, match="method 'asymmetric' is not there for CatBoost models with target statistics"):
        attribute(model, frame, "asymmetric", parameters={"sequence": ["a", "b", "c"]})
