"""Prediction gaps by runs: what Python gives, estimates beyond the budget, and refusals while planning."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal

import leafledger
from leafledger.pipeline.errors import UsageError
from tests.more import more


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """An XGBoost model of numbers, and rows."""
    folder, rng = tmp_path_factory.mktemp("gaps"), np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(50, 4)), columns=list("abcd"))
    rows.to_parquet(folder / "rows.parquet")
    booster = xgboost.train({"max_depth": 3, "nthread": 1}, xgboost.DMatrix(rows[["a", "b", "c", "d"]], rows["a"] * rows["b"] + rows["c"]), 6)
    booster.save_model(folder / "model.json")
    return folder, rows


@pytest.mark.parametrize("method", ["gap", "gap_greedy"])
def test_runs_write_what_python_gives(files, method):
    """Ranks as whole numbers, and the ranking's PGI²; a run that the verifier finds sound."""
    folder, rows = files
    out, model = folder / method, folder / "model.json"
    leafledger.explain(model, folder / "rows.parquet", out, method=method, parameters={"scale": "0.3"}, precision="float64", scheduler="serial")
    found = pq.read_table(out / "attributions").to_pandas()
    if method == "gap":
        order = np.argsort(-np.abs(leafledger.attribute(model, rows).phi), axis=2, kind="stable")
        pgi2 = leafledger.prediction_gap(model, rows, ranking="shapley", scale=0.3)
    else:
        order, gaps = leafledger.rank_by_gap(model, rows, scale=0.3)
        pgi2 = gaps.mean(axis=2)
    assert_array_equal(found["pgi2"], pgi2[:, 0])
    assert (found["pgi2_error"] == 0).all()
    ranks = found[[f"rank_{name}" for name in "abcd"]]
    assert (ranks.dtypes == np.int32).all()
    assert_array_equal(ranks, np.argsort(order[:, 0], axis=1) + 1)
    assert leafledger.check_run(str(out)).n_rows == 50


@pytest.mark.parametrize("method", ["gap_greedy", *more("gap")])
@pytest.mark.slow
def test_runs_estimate_beyond_the_budget_where_they_may(files, method):
    """PGI² as Python estimates it, its error beside it; the exact one is as near as the error says, and what is within the budget is exact."""
    folder, rows = files
    model, data = folder / "model.json", folder / "rows.parquet"
    given = {"scale": "0.3", "approximate": "yes", "seed": "3"}
    for budget in ("1", "1e8"):
        leafledger.explain(
            model, data, folder / f"{method}-{budget}", method=method, parameters=given | {"budget": budget}, precision="float64", scheduler="serial"
        )
    estimated, exact = (pq.read_table(folder / f"{method}-{budget}" / "attributions").to_pandas() for budget in ("1", "1e8"))
    assert (exact["pgi2_error"] == 0).all()
    order, _, errors = leafledger.rank_by_gap(model, rows, scale=0.3, approximate=True, budget=1, seed=3)
    ranking = order if method == "gap_greedy" else "shapley"
    pgi2, error = leafledger.prediction_gap(model, rows, ranking=ranking, scale=0.3, approximate=True, budget=1, seed=3)
    assert (error > 0).all()
    assert errors.shape == order.shape
    assert_allclose(estimated["pgi2"], pgi2[:, 0], rtol=1e-12)
    assert_allclose(estimated["pgi2_error"], error[:, 0], rtol=1e-9)
    if method == "gap":
        assert (np.abs(estimated["pgi2"] - exact["pgi2"]) < 6 * estimated["pgi2_error"]).all()
    else:
        assert (estimated["pgi2"] < exact["pgi2"] + 6 * estimated["pgi2_error"]).all()
        assert estimated["pgi2"].mean() > 0.98 * exact["pgi2"].mean()
    assert leafledger.check_run(str(folder / f"{method}-1"), True).n_rows == 50


@pytest.mark.parametrize(
    ("method", "given", "says"),
    [
        ("gap", {"parameters": {"budget": 1}}, "the budget is 1; raise it, or ask for approximate ones"),
        ("gap_greedy", {"parameters": {"approximate": "maybe"}}, "parameter 'approximate' is 'maybe', expected one of no, yes"),
        ("gap", {"parameters": {"seed": -1}}, "parameter 'seed' is -1, expected a whole number from 0"),
        ("gap", {"parameters": {"ranking": "owen"}}, "expected one of shapley, banzhaf, beta"),
        ("gap", {"parameters": {"scale": "1,2"}}, "parameter 'scale' has 2 numbers"),
        ("gap_greedy", {"partition": {"both": ["a", "b"]}}, "groups of features are drawn from a background, but none was given"),
        ("gap", {"parameters": {"noise": "empirical"}}, "'empirical', which draws values from a background, but none was given"),
        ("gap", {"background": "model"}, "rows are perturbed by what is measured of a background, expected rows, got the model"),
        ("gap_greedy", {"interactions": "all"}, "method 'gap_greedy' has no interactions"),
    ],
    ids=str,
)
def test_runs_refuse_while_planning(files, method, given, says):
    """Before anything is written."""
    folder, _ = files
    with pytest.raises(UsageError, match=says):
        leafledger.explain(folder / "model.json", folder / "rows.parquet", folder / "refused", method=method, scheduler="serial", **given)
    assert not (folder / "refused").exists()
