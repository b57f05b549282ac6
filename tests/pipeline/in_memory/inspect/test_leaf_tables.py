"""Look-up tables of leaves: the definition in exact fractions, what their authors check, and what rows of data have."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_allclose

from leafledger import attribute, leaf_tables, load_ensemble
from leafledger.pipeline.errors import RunConflict, UnsupportedModel, UsageError
from leafledger.pipeline.in_memory.inspect import leaf_tables as module
from leafledger.pipeline.in_memory.inspect.leaf_tables import save_leaf_tables

COMMON = {"verbose": 0, "allow_writing_files": False, "random_seed": 1, "thread_count": 1}
ATOL = 1e-12  # of numbers around one
CATEGORIES = ["city", "job"]


def make_rows(n, seed):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rng.normal(size=(n, 3)).round(2), columns=list("abc")).assign(
        city=rng.choice(list("pqrstuvw"), n), job=rng.choice(["cook", "pilot", "clerk"], n)
    )
    rows.loc[::7, "a"] = np.nan
    return rows


ROWS, OTHERS = make_rows(500, 0), make_rows(40, 1)
NUMBERS = ROWS[list("abc")]
TARGET = NUMBERS["a"].fillna(1.0) * NUMBERS["b"] + (NUMBERS["c"] > 0) * NUMBERS["a"].fillna(0.0) + (ROWS["city"] > "s") * (ROWS["job"] == "cook")
CLASS = np.digitize(TARGET, [-0.3, 0.6])


def regressor(**parameters):
    return catboost.CatBoostRegressor(**COMMON | {"iterations": 5, "depth": 5} | parameters).fit(NUMBERS, TARGET)


def counting(**parameters):
    given = COMMON | {"iterations": 30, "depth": 4, "max_ctr_complexity": 2, "model_size_reg": 0} | parameters
    return catboost.CatBoostRegressor(**given).fit(ROWS, TARGET, cat_features=CATEGORIES)


def classifier():
    return catboost.CatBoostClassifier(**COMMON, iterations=6, depth=3, one_hot_max_size=9).fit(ROWS, CLASS, cat_features=CATEGORIES)


def written(model, folder):
    """A model as CatBoost itself writes it for people."""
    model.save_model(str(folder / "m.json"), format="json")
    return json.loads((folder / "m.json").read_text())


def shapley(features, levels, leaf, value, weight):
    """The marginal Shapley values at a leaf, from the definition: v(S) is the mean over all leaves b, by weight, of the leaf that has the
    bits of ``leaf`` at the levels of S, and those of b elsewhere."""
    total = sum(weight)

    def v(present):
        own = sum(1 << level for level, feature in enumerate(levels) if feature in present)
        return sum(w * value[(leaf & own) | (b & ~own)] for b, w in enumerate(weight)) / total

    n, found = len(features), {}
    for feature in features:
        rest = [other for other in features if other != feature]
        found[feature] = sum(
            Fraction(math.factorial(size) * math.factorial(n - size - 1), math.factorial(n)) * (v({*some, feature}) - v(set(some)))
            for size in range(n)
            for some in itertools.combinations(rest, size)
        )
    return found


@pytest.mark.slow
def test_values_are_those_of_the_definition(tmp_path):
    """At every leaf that a row can reach, from CatBoost's own file, by enumeration of all subsets in exact fractions."""
    model, table = regressor(), leaf_tables(regressor()).to_pandas()
    repeated = 0
    for number, tree in enumerate(written(model, tmp_path)["oblivious_trees"]):
        asked = [(split["float_feature_index"], split["border"]) for split in tree["splits"]]
        levels = ["abc"[feature] for feature, _ in asked]
        value, weight = ([Fraction(each) for each in tree[name]] for name in ("leaf_values", "leaf_weights"))
        grid = itertools.product(*({-np.inf, -9.0, *(border + 1e-4 for feature, border in asked if feature == j)} for j in range(3)))
        reachable = {sum(1 << level for level, (feature, border) in enumerate(asked) if point[feature] > border) for point in grid}
        own, features = table[table["tree"] == number], sorted(set(levels))
        assert own["leaf"].tolist() == np.repeat(sorted(reachable), len(features)).tolist()
        repeated += len(reachable) < len(value)
        for leaf, rows in own.groupby("leaf"):
            expected = shapley(features, levels, leaf, value, weight)
            assert rows["feature"].tolist() == features
            assert_allclose(rows["phi"], [float(expected[feature]) for feature in features], rtol=0, atol=ATOL)
            assert (rows["value"] == float(value[leaf])).all()
            assert (rows["weight"] == float(weight[leaf])).all()
    assert repeated, "some tree asks for a feature twice, so that not all codes can be reached"


@pytest.mark.parametrize("model", [regressor(), counting(), classifier()], ids=["numbers", "statistics", "classes"])
@pytest.mark.slow
def test_values_of_a_leaf_add_up_as_their_authors_check(model):
    """To the leaf's value minus the mean of the tree's values, each leaf by its weight."""
    table = leaf_tables(model).to_pandas()
    leaves = table.groupby(["tree", "output", "leaf"]).agg(phi=("phi", "sum"), value=("value", "first"), weight=("weight", "first")).reset_index()
    for _, tree in leaves.groupby(["tree", "output"]):
        assert_allclose(tree["phi"], tree["value"] - np.average(tree["value"], weights=tree["weight"]), rtol=0, atol=ATOL)
    base = json.loads(leaf_tables(model).schema.metadata[b"leafledger"])["base"]
    assert_allclose(base, attribute(model, ROWS.head(1), background="model").base, rtol=0, atol=ATOL)


@pytest.mark.slow
def test_tables_of_new_rows_are_those_of_the_definition(tmp_path):
    """Every leaf weighs as many rows as reach it (Remark 3.13), by enumeration of all subsets in exact fractions; leaves that none reaches too. Rows
    that look them up have what they have against this background, and the base is its mean margin."""
    model, others = regressor(), make_rows(60, 3)[list("abc")].fillna(0.5) * 2
    table = leaf_tables(model, background=others)
    base = json.loads(table.schema.metadata[b"leafledger"])["base"]
    found = attribute(model, NUMBERS, background=others)
    assert_allclose(base, found.base, rtol=0, atol=ATOL)
    frame = table.to_pandas()
    for number, tree in enumerate(written(model, tmp_path)["oblivious_trees"]):
        asked = [(split["float_feature_index"], split["border"]) for split in tree["splits"]]
        levels, value = ["abc"[feature] for feature, _ in asked], [Fraction(each) for each in tree["leaf_values"]]
        reached = [sum(1 << level for level, (j, border) in enumerate(asked) if np.float32(row[j]) > border) for row in others.to_numpy()]
        weight = [Fraction(reached.count(leaf)) for leaf in range(len(value))]
        for leaf, rows in frame[frame["tree"] == number].groupby("leaf"):
            expected = shapley(sorted(set(levels)), levels, leaf, value, weight)
            assert_allclose(rows["phi"], [float(expected[feature]) for feature in rows["feature"]], rtol=0, atol=ATOL)
            assert (rows["weight"] == weight[leaf]).all()
    assert_allclose(looked_up(table, model.calc_leaf_indexes(NUMBERS), found), found.phi, rtol=0, atol=ATOL)
    grouped = leaf_tables(model, "owen", partition={"ab": ["a", "b"]}, background=others)
    found = attribute(model, NUMBERS, "owen", partition={"ab": ["a", "b"]}, background=others)
    assert_allclose(looked_up(grouped, model.calc_leaf_indexes(NUMBERS), found), found.phi, rtol=0, atol=ATOL)


def test_backgrounds_that_tables_do_not_take_are_refused():
    """No rows, other columns, a name that is not the model's own, and rows for statistics, which are looked up."""
    with pytest.raises(UsageError, match="the background has no rows, expected at least one"):
        leaf_tables(regressor(), background=NUMBERS[:0])
    with pytest.raises(UsageError, match=r"background is 'rows\.parquet', expected rows or 'model'"):
        leaf_tables(regressor(), background="rows.parquet")
    with pytest.raises(UnsupportedModel, match="a background of leaf tables is not there for CatBoost models with target statistics"):
        leaf_tables(counting(), background=ROWS)


def looked_up(table, leaves, found):
    """Attributions ``(n, outputs, players)`` by adding up rows of tables, the leaves ``(n, trees)`` by somebody else."""
    phi = np.zeros_like(found.phi)
    table = table.to_pandas().assign(output=lambda t: t["output"].map({name: k for k, name in enumerate(found.outputs)}))
    table["feature"] = table["feature"].map({name: j for j, name in enumerate(found.players)})
    rows = dict(iter(table.groupby(["tree", "leaf"])))
    for i, own in enumerate(leaves):
        for tree, leaf in enumerate(own):
            if (tree, leaf) in rows:
                some = rows[tree, leaf]
                np.add.at(phi[i], (some["output"].to_numpy(int), some["feature"].to_numpy(int)), some["phi"].to_numpy())
    return phi


@pytest.mark.parametrize("model", [regressor(), counting(), classifier()], ids=["numbers", "statistics", "classes"])
@pytest.mark.parametrize(
    ("method", "given"),
    [("shapley", {}), ("banzhaf", {"parameters": {"p": 0.3}}), ("shapley", {"partition": {"place": ["a", "b"]}})],
    ids=["shapley", "banzhaf", "groups"],
)
@pytest.mark.slow
def test_rows_of_tables_add_up_to_attributions(model, method, given):
    """By CatBoost's own numbers of leaves; a category that was never seen has a leaf too."""
    rows = OTHERS.assign(city=OTHERS["city"].where(OTHERS.index % 3 > 0, "elsewhere"))
    found = attribute(model, rows, method, background="model", **given)
    leaves = model.calc_leaf_indexes(catboost.Pool(rows[model.feature_names_], cat_features=[n for n in CATEGORIES if n in model.feature_names_]))
    assert_allclose(looked_up(leaf_tables(model, method, **given), leaves, found), found.phi, rtol=0, atol=ATOL)


@pytest.mark.parametrize(("method", "given"), [("owen", {}), ("two_step", {}), ("asymmetric", {"sequence": ["b", "both"]})])
def test_values_of_partitions_add_up_too(method, given):
    """Features within groups."""
    model, groups = regressor(), {"both": ["a", "c"]}
    found = attribute(model, OTHERS, method, background="model", partition=groups, parameters=given)
    leaves = model.calc_leaf_indexes(catboost.Pool(OTHERS[list("abc")]))
    assert_allclose(looked_up(leaf_tables(model, method, partition=groups, parameters=given), leaves, found), found.phi, rtol=0, atol=ATOL)


@pytest.mark.slow
def test_trees_of_other_libraries_that_happen_to_be_symmetric():
    """Stumps of three classes: a tree for each, which gives nothing to the others; and trees without splits."""
    data = xgboost.DMatrix(NUMBERS, CLASS)
    booster = xgboost.train({"max_depth": 1, "objective": "multi:softprob", "num_class": 3, "gamma": 9, "nthread": 1}, data, 8)
    table, found = leaf_tables(booster), attribute(booster, NUMBERS, background="model")
    nodes = booster.predict(data, pred_leaf=True).astype(int)
    assert (nodes == 0).all(axis=0).any(), "some trees have no split"
    assert_allclose(looked_up(table, np.where(nodes > 0, nodes - 1, 0), found), found.phi, rtol=0, atol=ATOL)
    assert set(table.column("tree").to_pylist()) == set(np.flatnonzero((nodes > 0).any(axis=0)))


def test_a_part_of_a_model_has_its_own_tables():
    """Trees count from the first that was kept, and outputs are those that were."""
    part, whole = load_ensemble(classifier(), trees="2:4", output="1"), leaf_tables(classifier()).to_pandas()
    found, expected = leaf_tables(part).to_pandas(), whole[whole["tree"].isin([2, 3]) & (whole["output"] == "1")]
    assert_allclose(found["phi"], expected["phi"], rtol=0, atol=ATOL)
    assert (found["tree"] + 2).tolist() == expected["tree"].tolist()
    assert set(found["output"]) == {"1"}


def test_a_model_without_trees_has_an_empty_table():
    """Rather than none."""
    assert leaf_tables(xgboost.train({}, xgboost.DMatrix(NUMBERS, TARGET), 0)).num_rows == 0


def test_what_has_no_tables_is_refused():
    """With the first tree that is not symmetric, or has no weights; methods that are no sums over trees."""
    booster = lightgbm.train({"verbosity": -1, "num_leaves": 5, "num_threads": 1}, lightgbm.Dataset(NUMBERS, TARGET), 3)
    with pytest.raises(UnsupportedModel, match=r"^look-up tables are there for symmetric trees with .*: tree 0, node \d+: a leaf does not say"):
        leaf_tables(booster)
    stump = load_ensemble(lightgbm.train({"verbosity": -1, "num_leaves": 2, "num_threads": 1}, lightgbm.Dataset(NUMBERS, TARGET), 3))
    cover = np.where(np.arange(9) < 6, stump.ensemble.cover, 0.0)
    with pytest.raises(UnsupportedModel, match=r": tree 2: its leaves have no weights"):
        leaf_tables(replace(stump, ensemble=stump.ensemble._replace(cover=cover)))
    for method in ("ranker", "gap", "r2", "shap"):
        with pytest.raises(UsageError, match=f"^method is '{method}', look-up tables of leaves are there for shapley, banzhaf, "):
            leaf_tables(stump, method)
    with pytest.raises(UsageError, match="method 'owen' needs a partition"):
        leaf_tables(stump, "owen")
    with pytest.raises(UnsupportedModel, match="method 'owen' is not there for CatBoost models with target statistics"):
        leaf_tables(counting(), "owen", partition={"x": ["a", "b"]})


@pytest.mark.slow
def test_tables_are_written_once(tmp_path, monkeypatch, bucket):
    """In groups of rows; the same again is no mistake, another file is refused; objects are written too."""
    model, told = regressor(), []
    expected = leaf_tables(model)
    monkeypatch.setattr(module, "GROUP_ROWS", 100)
    for place in (str(tmp_path / "tables.parquet"), f"{bucket}/tables.parquet"):
        assert [save_leaf_tables(model, place, lambda *done: told.append(done)) for _ in range(2)] == [expected.num_rows] * 2
        with pytest.raises(RunConflict, match=r"tables\.parquet: holds another file; choose another name$"):
            save_leaf_tables(counting(), place)
    found = pq.ParquetFile(tmp_path / "tables.parquet")
    groups = [found.metadata.row_group(k).num_rows for k in range(found.num_row_groups)]
    assert len(groups) > 2
    assert all(100 <= n < 200 for n in groups[:-1]), "whole trees, as many as it takes"
    assert groups[-1] < 100
    assert found.read().equals(expected)
    assert found.schema_arrow.metadata[b"leafledger"] == expected.schema.metadata[b"leafledger"]
    assert told[:5] == [(number, 5) for number in range(1, 6)]
    assert pa.types.is_string(expected.schema.field("feature").type)
