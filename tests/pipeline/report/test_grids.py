"""Grids hold nearly all rows, and tell few values apart one by one."""

from pathlib import Path

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from leafledger import explain, read_run, report
from leafledger.kernels.distributions.histogram import Histogram, find_cells
from leafledger.pipeline.drift.measure.distribution import Categories, Distribution
from leafledger.pipeline.drift.measure.measured_run import measure_run
from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.report.counts.counts import QUANTILES, RANKS, TAIL, place_values
from leafledger.pipeline.report.grids import (
    COMBINED,
    MANY,
    MISSING,
    SEVERAL,
    UNKEPT,
    _say_lacking,
    choose_grids,
    choose_values,
    find_ends,
    find_rank_edges,
)


@pytest.fixture(scope="module")
def measured(reported):
    return measure_run(reported, scheduler="serial")


def grids(measured):
    names, plan = [feature.name for feature in measured.plan.features], measured.plan
    return dict(zip(names, choose_grids(measured, plan.written_outputs[0], names, dict(zip(names, plan.columns[1], strict=True))), strict=True))


def test_axes_hold_nearly_all_attributions(measured, reported):
    found, table = grids(measured), read_run(reported).attributions()
    assert len({each.shared for each in found.values()}) == 1
    for each in found.values():
        phi = table[each.column].to_numpy()
        low, high = each.own[TAIL], each.own[-TAIL - 1]
        assert ((phi >= low - 1e-6) & (phi <= high + 1e-6)).mean() > 0.99
        assert each.own[0] <= phi.min()
        assert each.own[-1] >= phi.max()


def test_quantiles_of_attributions_are_those_of_all_rows(tmp_path):
    """Also where nearly all rows lie in one cell: of a feature that is 0 in most rows, and far from it in others."""
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({"amount": np.where(rng.random(3000) < 0.97, 0, rng.lognormal(5, 1, 3000)), "other": rng.normal(size=3000)})
    model = lightgbm.train({"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5}, lightgbm.Dataset(rows, rows.amount + rows.other), 20)
    model.save_model(tmp_path / "model.txt")
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    explain(tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "run", values=True, scheduler="serial")
    found, table = grids(measure_run(tmp_path / "run", scheduler="serial")), read_run(tmp_path / "run").attributions()
    for each in found.values():
        phi = table[each.column].to_numpy()
        assert each.quantiles == pytest.approx(np.quantile(phi, QUANTILES), abs=2e-3 * np.ptp(np.quantile(phi, QUANTILES)))


def test_numbers_have_edges_and_few_of_them_points(measured, reported):
    """A category of the model is one; a number with four values is told apart by them."""
    found = {name: each.values for name, each in grids(measured).items()}
    distance = read_run(reported).attributions()["value_distance"].to_numpy()
    assert found["distance"].edges[0] == pytest.approx(np.quantile(distance, 0.01), rel=0.02)
    assert found["distance"].edges[-1] == pytest.approx(np.quantile(distance, 0.99), rel=0.02)
    assert found["distance"].points == ()
    assert found["month"].points == (1.0, 2.0, 3.0, 4.0)
    assert set(found["carrier"].categories) == {"UA", "AA", "B6", "DL"}


def test_nothing_is_told_apart_where_nothing_is_known(classes):
    measured = measure_run(classes, scheduler="serial")
    names = [feature.name for feature in measured.plan.features]
    found = choose_grids(measured, "1", names, dict.fromkeys(names, "phi"))
    assert [each.values for each in found] == [None] * 4
    assert choose_grids(measured, "no output", names, {}) == ()
    assert choose_values(Feature("x"), "value_x", None) is None
    assert find_ends([], 0.1) == (0.0, 1.0)


def test_where_nearly_all_numbers_are_equal_the_axis_holds_the_others():
    """It has no ends that no number has."""
    cells = Histogram(0, find_cells(np.array([5.0, 8.0, 11.0]), 0), np.array([997, 2, 1]))
    found = Distribution(1000, 0, 0, 5.0, 1.0, 5.0, 1.0, 5.0, 11.0, cells)
    assert find_ends([found], 0.01) == (5.0, 11.0)
    assert find_ends([found], 0.0005)[1] > 8


def test_infinite_values_are_beyond_the_axis():
    values = Histogram(0, find_cells(np.array([-np.inf, 0.0, 1.0, 2.0, np.inf]), 0), np.array([3, 1, 1, 1, 3]))
    assert find_ends([Distribution(9, 0, 6, 1.0, 2.0, 1.0, 2.0, 0.0, 2.0, values)], 0.01) == (0.0, 2.0)


def test_why_values_are_not_told_apart_is_said(example, odd, classes, tmp_path):
    """A group of one feature has that feature's values, one of several has none; values may all be missing, or not be kept."""
    together = {"both": ["distance", "delay"], "who": ["carrier"]}
    explain(example.model, example.data, tmp_path / "run", partition=together, values=True, scheduler="serial")
    found = {}
    for run in (tmp_path / "run", odd(300), classes):
        measured = measure_run(run, scheduler="serial")
        plan = measured.plan
        chosen = choose_grids(measured, plan.written_outputs[0], plan.players, dict(zip(plan.players, plan.columns[1], strict=False)))
        found |= dict(zip(plan.players, chosen, strict=True)) | {run: chosen}
    assert set(found["who"].values.categories) == {"UA", "AA", "B6", "DL"}
    assert (found["both"].values, found["both"].lacking) == (None, SEVERAL)
    assert (found["null"].values, found["null"].lacking) == (None, MISSING)
    assert {each.lacking for each in found[classes]} == {UNKEPT}
    assert _say_lacking(True, "x", (), "x", Categories(9, 0, None, None)) == MANY
    page = contents_of(tmp_path / "run")
    assert "explain --values" not in page
    assert f"Grey: {SEVERAL}." in page
    assert "How who acts" in page


def contents_of(run):
    return Path(report(run, scheduler="serial").uri).read_text()


def test_combinations_have_no_values(tmp_path):
    """As players of their own; it was said that all values are missing."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"city": rng.choice(list("abcdef"), 600), "job": rng.choice(list("uvwxyz"), 600)})
    label = (frame["city"].map(ord) * frame["job"].map(ord)) % 5.0
    options = {"iterations": 20, "cat_features": ["city", "job"], "max_ctr_complexity": 2, "verbose": 0, "allow_writing_files": False}
    catboost.CatBoostRegressor(**options, thread_count=1).fit(frame, label).save_model(str(tmp_path / "model.cbm"))
    frame.to_parquet(tmp_path / "data.parquet")
    explain(tmp_path / "model.cbm", tmp_path / "data.parquet", tmp_path / "run", values=True, combinations="own", scheduler="serial")
    measured = measure_run(tmp_path / "run", scheduler="serial")
    assert "city×job" in measured.plan.players
    (found,) = choose_grids(measured, measured.plan.written_outputs[0], ["city×job"], {"city×job": "phi_city×job"})
    assert (found.values, found.lacking) == (None, COMBINED)


def test_neighbouring_numbers_are_told_apart():
    """1.4 and 0.1 + 1.3, between which no double lies, so that their middle is one of them; and the largest doubles, whose sum is infinite."""
    for points in ([1.4, 0.1 + 1.3], [1.0, np.nextafter(1.0, 2), np.nextafter(1.0, 0)], [-1.7e308, 1e308, 1.7e308], [-5e-324, 0.0, 5e-324]):
        ascending, counts = np.sort(points), np.arange(1, len(points) + 1)
        cells = Histogram(0, find_cells(ascending, 0), counts)
        values = choose_values(Feature("x"), "x", Distribution(counts.sum(), 0, 0, 0.0, 1.0, 0.0, 1.0, ascending[0], ascending[-1], cells))
        placed = place_values(values, pa.array(np.repeat(ascending, counts)))
        assert np.bincount(placed, minlength=values.n_bins)[2:-1].tolist() == counts.tolist()
        assert values.points == tuple(ascending.tolist())
        assert np.isfinite(values.edges[:-1]).all()


def test_ranks_have_cells_of_about_as_many_rows():
    """A frequent value is alone in its own, and few values each in one; a wide cell of many rows tells no ranks."""
    few = Histogram(0, find_cells(np.arange(5.0), 0), np.array([1, 1, 1, 1, 996]))
    assert find_rank_edges(Distribution(1000, 0, 0, 0.0, 1.0, 0.0, 1.0, 0.0, 4.0, few)) == (1.0, 2.0, 3.0, 4.0)
    many = Histogram(0, find_cells(np.arange(1000.0), 0), np.where(np.arange(1000) == 500, 1000, 1))
    edges = find_rank_edges(Distribution(1999, 0, 0, 0.0, 1.0, 0.0, 1.0, 0.0, 999.0, many))
    assert {500.0, 501.0} <= {*edges}
    assert len(edges) <= 2 * RANKS
    wide = Histogram(50, find_cells(np.array([1.0, 2.0, 4.0]), 50), np.array([1, 8, 1]))
    assert find_rank_edges(Distribution(10, 0, 0, 0.0, 1.0, 0.0, 1.0, 1.0, 4.9, wide)) is None
