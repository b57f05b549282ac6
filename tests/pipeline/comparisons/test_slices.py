"""A slice of rows: columns of earlier runs read along with them, whatever the part's own row groups; and what is measured is what it is in memory."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import leafledger
from leafledger.kernels.comparison.agreement import Value
from leafledger.pipeline.comparisons import compare as comparing
from leafledger.pipeline.comparisons.comparison import Comparison, Ranking, name_values
from leafledger.pipeline.comparisons.slices import Columns, Slice, SliceTables
from leafledger.pipeline.dataset.columns.labels import lay_out
from leafledger.pipeline.dataset.files.listing import WorkItem
from leafledger.pipeline.dataset.files.rows import read_slices
from leafledger.pipeline.errors import InvalidRun
from tests.pipeline.conftest import FEATURES, train, write_data


@given(sizes=st.lists(st.integers(0, 90), max_size=8))
def test_columns_of_a_run_are_read_along_with_the_rows(part, sizes):
    """So many rows at a time as are asked for, whatever the part's own row groups; every row once."""
    table, ranking = part
    columns, done = Columns(ranking, f"{ranking.run}/attributions/part-00000.parquet"), 0
    for n in sizes:
        if done + n > table.num_rows:
            with pytest.raises(InvalidRun, match=r"part-00000\.parquet: has fewer rows than the data$"):
                columns.take(n)
            return
        found = columns.take(n) if n else np.zeros((2, 2, 0))
        for k, names in enumerate(ranking.columns):
            for j, name in enumerate(names):
                assert_array_equal(found[k, j], table[name].slice(done, n))
        done += n


@pytest.fixture(scope="module")
def part(tmp_path_factory):
    """A part of two outputs and two players, and the ranking that its columns are."""
    run = tmp_path_factory.mktemp("part")
    names = (("phi_0_a", "phi_0_b"), ("phi_1_a", "phi_1_b"))
    values = np.random.default_rng(1).normal(size=(4, 250)).astype(np.float32)
    table = pa.table({"margin": np.zeros(250), **dict(zip((name for some in names for name in some), values, strict=True))})
    (run / "attributions").mkdir()
    pq.write_table(table, run / "attributions" / "part-00000.parquet", row_group_size=70)
    return table, Ranking("run:x", "shapley", "", str(run), names, (0, 1))


@dataclass(frozen=True)
class Asked:
    """A comparison as tasks get it, its item, and the same rows as a frame."""

    comparison: Comparison
    item: WorkItem
    parts: tuple[str, ...]  # of the runs
    rows: pd.DataFrame

    def measure(self, n, chosen=(), label=None, **changes) -> Slice:
        """The first rows of the item."""
        comparison = replace(self.comparison, **changes)
        tables = SliceTables(comparison, n)
        tables.fill(next(read_slices(self.item, [feature.name for feature in comparison.features], n)))
        runs = [(r, ranking) for r, ranking in enumerate(comparison.rankings) if ranking.run is not None]
        columns = {r: Columns(ranking, uri) for (r, ranking), uri in zip(runs, self.parts, strict=True)}
        return tables.measure(columns, n, 0, np.array(chosen, int), None if label is None else lay_out(label, np.ones(n)))

    def value(self, measured, which, measure, ranking, other=None):
        """One measure of all outputs, ``(outputs, rows)``, of what was measured: of all rows, of the sample, or of rows with a label."""
        names = name_values(self.comparison, ["pgi2"])[which]
        return measured[which][:, names.index(Value(measure, ranking, other))]


def ask(model, frame, folder, **given):
    """Compare methods and runs, values and ranks; keep what tasks get, and the tables."""
    data, kept, map_items = write_data(frame, folder / "data"), [], comparing.map_items
    output = {"output": given["output"]} if "output" in given else {}
    for name in ("banzhaf", "curves"):
        leafledger.explain(model, data, folder / name, method=name, precision="float64", scheduler="serial", **output)

    def watched(where, work, warm, task, items, memory):
        kept.extend((task, item) for item in items if isinstance(task, Comparison))
        return map_items(where, work, warm, task, items, memory)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "map_items", watched)
        patch.setattr(comparing.commit, "remove", lambda _: None)
        methods = ("shapley", f"run:{folder}/banzhaf", "curves", f"run:{folder}/curves")
        comparing.compare(model, data, folder / "out.parquet", methods=methods, top=(1, 2), scheduler="serial", gap_rows=4, **given)
    comparison, item = kept[0]
    rows = pd.read_parquet(item.item.uri).assign(month=1)
    return Asked(comparison, item.item, item.parts, rows[FEATURES].reset_index(drop=True))


N = 40


@pytest.fixture(scope="module")
def labelled(example, tmp_path_factory):
    """Of a regression, with labels."""
    return ask(example.model, example.frame.iloc[::10], tmp_path_factory.mktemp("labelled"), scales=(0.5, 1.0), label="flight")


@pytest.fixture(scope="module")
def classes(example, tmp_path_factory):
    """Of a model of three classes, each row's predicted one."""
    folder = tmp_path_factory.mktemp("classes")
    train(example.frame, objective="multiclass", num_class=3).save_model(folder / "model.txt")
    asked = ask(str(folder / "model.txt"), example.frame.iloc[::10], folder, scales=(0.5,), output="predicted")
    return asked, str(folder / "model.txt")


@pytest.mark.slow
def test_areas_are_those_of_each_ranking(example, labelled):
    """Of a method and of a run; a ranking that places players itself has the areas of the values that it ranks by."""
    measured = labelled.measure(N).measured
    rows = labelled.rows.head(N)
    for r, method in enumerate(("shapley", "banzhaf")):
        curves = leafledger.curves(example.model, rows, leafledger.attribute(example.model, rows, method).phi)
        assert_allclose(labelled.value(measured, 0, "insertion", r), curves.insertion_area.T, rtol=1e-12)
        assert_allclose(labelled.value(measured, 0, "deletion", r), curves.deletion_area.T, rtol=1e-12)
    for r in (2, 3):
        assert_array_equal(labelled.value(measured, 0, "insertion", r), labelled.value(measured, 0, "insertion", 0))
        assert_array_equal(labelled.value(measured, 0, "correlation", 0, r), np.ones((1, N)))


def test_values_are_listed_and_set_apart(example, labelled):
    """Those of the two rankings that have values, and their differences, summed over features; of ranks nothing is known but ranks."""
    found, rows = labelled.measure(N), labelled.rows.head(N)
    used = [FEATURES.index(feature.name) for feature in labelled.comparison.features]
    a, b = (leafledger.attribute(example.model, rows, method).phi[:, 0, used].T for method in ("shapley", "banzhaf"))
    assert_allclose(found.measured[3], np.concatenate([a, b, a - b])[None], rtol=0, atol=1e-12)
    assert [each.values is None for each in found.seen] == [False, False, True, True]
    assert_allclose(found.apart.difference[0, 0], np.abs(a - b).sum(axis=0), rtol=1e-12)
    assert np.isnan(found.apart.difference[0, 1:]).all()
    for q, (r, other) in enumerate(labelled.comparison.pairs):
        assert_array_equal(found.apart.swaps[:, q], labelled.value(found.measured, 0, "list swaps 2", r, other))
        assert_array_equal(found.apart.correlation[:, q], labelled.value(found.measured, 0, "size correlation", r, other))


def test_gaps_are_those_of_the_rows_that_are_chosen(example, labelled):
    """At every scale, exact or estimated; estimates come with their standard errors."""
    chosen, gaps = [1, 7, 30], labelled.comparison.gaps
    data = example.frame.iloc[::10][FEATURES]
    exact = labelled.measure(N, chosen).measured[1]
    estimated = labelled.measure(N, chosen, gaps=replace(gaps, seed=5)).measured[1]
    for s, scale in enumerate((0.5, 1.0)):
        for r, method in enumerate(("shapley", "banzhaf")):
            expected = leafledger.prediction_gap(example.model, labelled.rows.iloc[chosen], ranking=method, scale=scale, data=data)
            assert_allclose(exact[0, 4 * s + r], expected[:, 0], rtol=1e-9)
    assert exact.shape == (1, 2 * (4 + 6), 3)
    assert estimated.shape == (1, 2 * (4 + 6) + 2 * 4, 3)
    known, unknown = estimated[:, 20:].reshape(2, 4, 3)[:, :2], estimated[:, 20:].reshape(2, 4, 3)[:, 2:]
    assert (known >= 0).all()
    assert np.isnan(unknown).all()


def test_removal_is_of_rows_with_a_label(example, labelled):
    """Without any feature drawn it is the squared error of the margin; there is none without labels."""
    label = np.where(np.arange(N) % 3 == 0, np.nan, 100.0)
    assert labelled.measure(N).measured[2].shape == (1, 0, 0)
    measured = labelled.measure(N, label=label).measured
    margin = leafledger.attribute(example.model, labelled.rows.head(N), "shapley").margin[:, 0]
    there = ~np.isnan(label)
    for r in range(2):
        assert_allclose(labelled.value(measured, 2, "removal 0", r)[0], (label[there] - margin[there]) ** 2, rtol=1e-9)


@pytest.mark.slow
def test_the_output_of_each_row_is_measured(classes):
    """What is measured of the predicted class is what is measured of that class on all rows; so is what is seen of rows."""
    asked, model = classes
    chosen = np.array([0, 5, 39])
    found, every = asked.measure(N, chosen), asked.measure(N, chosen, row_output=None)
    output = leafledger.attribute(model, asked.rows.head(N), "shapley").margin.argmax(axis=1)
    assert len(set(output.tolist())) > 1
    for which, rows in ((0, np.arange(N)), (1, chosen), (3, np.arange(N))):
        expected = np.stack([every.measured[which][output[i], :, k] for k, i in enumerate(rows)], axis=1)
        assert_array_equal(found.measured[which], expected[None])
    assert [each.ranks is None for each in found.seen] == [False, False, True, True]
    for mine, all_of_them in zip(found.seen[:2], every.seen[:2], strict=True):
        assert_array_equal(mine.ranks[0], np.stack([all_of_them.ranks[output[i], :, i] for i in range(N)], axis=1))
    assert_array_equal(found.apart.difference[0, 0], every.apart.difference[output, 0, np.arange(N)])
    assert found.measured[2].shape[0] == 1


def test_rows_that_were_not_read_have_values_of_nothing(labelled):
    """So that kernels can be compiled before there are any."""
    listed = SliceTables(labelled.comparison, 1).measure({}, 1, 0, np.arange(1), None).measured[3]
    n = len(labelled.comparison.features)
    assert_array_equal(listed[:, n : 2 * n], np.zeros((1, n, 1)))
