"""What a comparison needs before its rows are read: the data are read once before where something is drawn from them, and slices fit into memory."""

from dataclasses import replace

import numpy as np
import pytest

from leafledger.kernels.prediction_gap.leaf_regions import count_visits
from leafledger.kernels.prediction_gap.rankings import EXACT
from leafledger.kernels.prediction_gap.tables import prepare_gap
from leafledger.kernels.trees.forest import make_forest
from leafledger.pipeline.comparisons import compare as comparing
from leafledger.pipeline.comparisons import prepare as prepare_
from leafledger.pipeline.comparisons.compare import compare
from leafledger.pipeline.comparisons.measures import Measures
from leafledger.pipeline.comparisons.prepare import _affordable, _slice_rows
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.methods.worker_memory import max_slice_rows
from leafledger.pipeline.models import load_ensemble
from tests.pipeline.conftest import FEATURES


def prepared_by(example, tmp_path, monkeypatch, **given):
    """The record that tasks get, and what was done for it."""
    found, works = [], []
    prepare = prepare_.prepare_comparison

    def watched(request):
        found.append(prepare(request))
        return found[-1]

    def progress(work):
        works.append(work.doing)
        return lambda _: None

    monkeypatch.setattr(comparing, "prepare_comparison", watched)
    given = {"methods": ("shapley", "gap_greedy"), "scheduler": "serial", "progress": progress} | given
    compare(example.model, example.data, tmp_path / "out.parquet", **given)
    return found[0], works


@pytest.mark.parametrize(
    ("given", "measured", "n_tables", "removed"),
    [
        ({"scales": ()}, False, 0, None),
        ({"scales": (), "label": "delay", "top": (2,)}, True, 0, (0, 2)),
        ({"scales": (0.1, 1.0), "gap_rows": 3}, True, 2, None),
        ({"scales": (1.0,), "gap_rows": 3, "label": "flight"}, True, 1, (0, 1, 3, 10)),
    ],
)
@pytest.mark.slow
def test_the_data_are_measured_once_where_that_is_needed(example, tmp_path, monkeypatch, given, measured, n_tables, removed):
    """For scales, or for what features are drawn from, or both."""
    comparison, works = prepared_by(example, tmp_path, monkeypatch, **given)
    assert works == ["measuring", "comparing"][not measured :]
    assert len(comparison.gaps.tables) == n_tables
    assert (comparison.removal.sizes if comparison.removal else None) == removed
    assert comparison.gaps.seed == EXACT
    assert [ranking.method for ranking in comparison.rankings] == ["shapley", "gap_greedy"]


@pytest.mark.slow
def test_more_than_the_budget_is_refused_before_the_data_are_read(example, tmp_path, monkeypatch):
    """Or estimated, where that was asked for; without scales nothing is."""
    with pytest.raises(UsageError, match=r"PGI² of 2 rankings at 1 scales takes up to .* pairs of leaves per row, the budget is 1; raise it"):
        prepared_by(example, tmp_path, monkeypatch, scales=(1.0,), budget=1)
    comparison, _ = prepared_by(example, tmp_path, monkeypatch, scales=(1.0,), budget=1, approximate=True, seed=7, gap_rows=2)
    assert comparison.gaps.seed == 7


def test_exactly_the_budget_is_affordable(example):
    """As many pairs of leaves as it has, of every ranking and scale; for one less PGI² is refused, or estimated."""
    _, forest = make_forest(load_ensemble(example.model).ensemble)
    tables = prepare_gap(forest, np.zeros(len(FEATURES)), None)
    measures = Measures(budget=2 * 3 * count_visits(tables.regions), scales=(0.1, 0.5, 1.0))
    assert _affordable(tables, 2, measures)
    less = replace(measures, budget=measures.budget - 1)
    assert not _affordable(tables, 2, replace(less, approximate=True))
    with pytest.raises(UsageError, match="PGI² of 2 rankings at 3 scales"):
        _affordable(tables, 2, less)


def test_slices_shrink_with_what_a_row_has():
    """Features, outputs, rankings, and players of rankings that place all."""
    few = _slice_rows(10, 1, 2, 0)
    assert few > _slice_rows(10, 1, 4, 0) > _slice_rows(30, 1, 4, 0) > _slice_rows(30, 3, 4, 0)
    assert few > _slice_rows(10, 1, 2, 1000)
    own, each, pairs = 3 * 10, 4 * 9 * 11, 6 * 11  # values of features; four rankings', a sum among them; of six pairs
    assert _slice_rows(10, 1, 4, 0) == max_slice_rows(own + each + pairs)
