"""A part measured: counts of every column in any order of its pieces, and damage said in one line."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from leafledger import explain, read_run
from leafledger.kernels.distributions.histogram import TALLY_BYTES, merge_histograms
from leafledger.pipeline.drift.measure import measure_part as item
from leafledger.pipeline.drift.measure.measure_part import TEXTS, Measuring, Values, count_values, measure_columns, measure_item, merge_values, warm
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.models.catboost.cityhash import HashedCategory
from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.runs.records.current_run import list_parts


@pytest.fixture(scope="module")
def run(example, tmp_path_factory):
    out = tmp_path_factory.mktemp("item") / "run"
    explain(example.model, example.data, out, values=True, scheduler="serial")
    return read_run(out)


def test_few_columns_at_a_time_change_nothing(run, monkeypatch):
    """Neither does the order of pieces, of which counts add up exactly."""
    asked = Measuring(run.uri, run.manifest.plan)
    warm(asked)
    whole = measure_item(asked, list_parts(run.uri, run.manifest, run.plan)[0])
    monkeypatch.setattr(item, "TABLE_BYTES", TALLY_BYTES)
    again = measure_item(asked, list_parts(run.uri, run.manifest, run.plan)[0])
    assert repr(again) == repr(whole)
    other = measure_item(asked, list_parts(run.uri, run.manifest, run.plan)[1])
    for a, b in zip(whole.counts, other.counts, strict=True):
        for one, two in zip(merge_histograms(a, b), merge_histograms(b, a), strict=True):
            assert_array_equal(one, two)


class Watched:
    """A Parquet file that says which columns are read together."""

    def __init__(self, parquet):
        self._parquet, self.columns = parquet, []

    def __getattr__(self, name):
        return getattr(self._parquet, name)

    def read_row_group(self, group, columns, **given):
        self.columns.append(columns)
        return self._parquet.read_row_group(group, columns, **given)


def test_cells_of_all_groups_count_for_memory(run, monkeypatch):
    """Of three groups of rows a third as many columns fit; the groups together have what the part has."""
    monkeypatch.setattr(item, "TABLE_BYTES", TALLY_BYTES * 6)
    asked = Measuring(run.uri, run.manifest.plan)
    whole = measure_item(asked, list_parts(run.uri, run.manifest, run.plan)[0])
    with pq.ParquetFile(f"{run.uri}/attributions/part-00000.parquet") as parquet:
        watched, n = Watched(parquet), parquet.num_row_groups
        rows = [[np.arange(parquet.metadata.row_group(i).num_rows)[k::3] for i in range(n)] for k in range(3)]
        thirds = measure_columns("", run.plan, watched, rows)
    assert max(map(len, watched.columns)) == 2
    for c, expected in enumerate(whole.counts):
        found = merge_histograms(merge_histograms(thirds[0].counts[c], thirds[1].counts[c]), thirds[2].counts[c])
        assert_array_equal(found.cells, expected.cells)
        assert_array_equal(found.counts, expected.counts)


def test_categories_are_counted_by_the_models_list():
    """Others are unseen, whatever they are; numbers and texts, plain or encoded."""
    feature, column = Feature("a", True, ("x", "y")), pa.array(["y", None, "z", "y", "<b>"])
    for each in (column, column.dictionary_encode()):
        assert count_values(feature, each) == Values(5, 1, 2, {"y": 2})
    assert count_values(Feature("a", True, (3, 5)), pa.array([5, 3, 9, 5])) == Values(4, 0, 1, {"3": 1, "5": 2})


@pytest.mark.parametrize("feature", [Feature("a", True), Feature("a", True, (HashedCategory(1),)), Feature("a", hashed=True)])
def test_categories_that_the_model_does_not_list_are_counted_up_to_a_limit(feature):
    """In any order: too many are too many."""
    few, many = count_values(feature, pa.array([3, None, 3])), count_values(feature, pa.array(range(TEXTS + 1)))
    assert few == Values(3, 1, None, {"3": 2})
    assert many == Values(TEXTS + 1, 0, None, None)
    assert merge_values(few, many) == merge_values(many, few) == Values(TEXTS + 4, 1, None, None)
    halves = [count_values(feature, pa.array(range(k, k + TEXTS))) for k in (0, 1)]
    assert merge_values(*halves).counts is None
    assert merge_values(halves[0], halves[0]).counts["7"] == 2


def test_a_damaged_part_is_refused(example, tmp_path):
    """In one line that names it: other bytes, and a part of another run."""
    out = tmp_path / "run"
    explain(example.model, example.data, out, scheduler="serial")
    run = read_run(out)
    asked, part = Measuring(run.uri, run.manifest.plan), out / "attributions" / "part-00000.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidRun, match=r"part-00000\.parquet: "):
        measure_item(asked, list_parts(run.uri, run.manifest, run.plan)[0])
    part.write_bytes((out / "attributions" / "part-00001.parquet").read_bytes())
    with pytest.raises(InvalidRun, match=r"part-00000\.parquet: "):
        measure_item(asked, list_parts(run.uri, run.manifest, run.plan)[0])
