"""One work item of a comparison: a sample spread evenly however rows are cut, columns of earlier runs row by row, and states of all its rows."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernels.comparison import Value
from kernels.reductions import MEANS, merge_all
from pipeline.comparisons import compare
from pipeline.comparisons.item import Ranking, Sample, _Columns, compare_item, name_values
from pipeline.errors import InvalidData, InvalidRun
from pipeline.runs.states import unpack_state
from tests.pipeline.conftest import write_data


@given(n_rows=st.integers(1, 200), taken=st.integers(0, 200), cuts=st.lists(st.integers(0, 200), max_size=5))
def test_the_sample_is_spread_evenly_however_rows_are_cut(n_rows, taken, cuts):
    """As many rows as are asked for in all; of any stretch as many as its share, but for one; where the slices end does not matter."""
    sample = Sample(min(taken, n_rows), n_rows, (0,))
    whole = sample.choose(0, 0, n_rows)
    assert whole.size == min(taken, n_rows)
    edges = [0, *sorted(min(cut, n_rows) for cut in cuts), n_rows]
    pieces = [first + sample.choose(0, first, last - first) for first, last in pairwise(edges)]
    assert_array_equal(np.concatenate(pieces), whole)
    for first, last in pairwise(edges):
        share = (last - first) * sample.size / n_rows
        assert abs(np.count_nonzero((whole >= first) & (whole < last)) - share) < 1


def test_values_are_named_in_the_order_in_which_they_are_measured():
    """Of all rows: areas of every ranking, then differences of every two, then how far every two agree. Of the sample likewise, with standard errors
    where they are estimates."""
    of_all, of_sample = name_values(2, (3,), ["pgi2 1"], exact=False)
    areas = ["insertion", "deletion", "insertion - deletion"]
    agreements = ["top 3", "correlation", "size correlation"]
    assert of_all == (*(Value(area, r) for area in areas for r in (0, 1)), *(Value(name, 0, 1) for name in (*areas, *agreements)))
    gaps = (Value("pgi2 1", 0), Value("pgi2 1", 1), Value("pgi2 1", 0, 1))
    assert of_sample == (*gaps, Value("pgi2 1 error", 0), Value("pgi2 1 error", 1))
    assert name_values(2, (3,), ["pgi2 1"], exact=True)[1] == gaps


@given(sizes=st.lists(st.integers(0, 90), max_size=8))
def test_columns_of_a_run_are_read_along_with_the_rows(part, sizes):
    """So many rows at a time as are asked for, whatever the part's own row groups; every row once."""
    table, ranking = part
    columns, done = _Columns(ranking, 0), 0
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
    return table, Ranking("run:x", "shapley", "", str(run), names)


@pytest.fixture(scope="module")
def asked(example, tmp_path_factory):
    """What a comparison asks of its items, its items, and what they answered; the tables are kept."""
    folder, found = tmp_path_factory.mktemp("asked"), []
    data = write_data(example.frame, folder / "data", row_group_size=150)
    map_items = compare.execute.map_items

    def watched(job, work, warm, task, items, memory):
        for item, answer in map_items(job, work, warm, task, items, memory):
            found.append((task, item, answer))
            yield item, answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare.execute, "map_items", watched)
        patch.setattr(compare.commit, "remove", lambda _: None)
        table = compare.compare(
            example.model, data, folder / "out.parquet", methods=("shapley", "banzhaf:0.25"), scales=(0.5,), gap_rows=60, scheduler="serial"
        )
    return [entry for entry in found if isinstance(entry[0], compare.Comparison)], table


def means_of(answers):
    """Means of both passes, of all rows and of the sample, ``(outputs, values)``, and of how many rows they are."""
    merged = [merge_all(MEANS, [unpack_state(MEANS, answer[k]) for answer in answers], 1, 0) for k in (0, 1)]
    return [state.mean for state in merged], [int(state.rows[0]) for state in merged]


def test_states_are_of_all_rows_and_of_the_sample(asked):
    """Of every item, and merged those of the table."""
    entries, table = asked
    for comparison, item, answer in entries:
        _, (n_rows, n_sampled) = means_of([answer])
        assert n_rows == item.n_rows
        assert n_sampled == comparison.gaps.sample.choose(item.part, 0, item.n_rows).size
    means, (n_rows, n_sampled) = means_of([answer for *_, answer in entries])
    assert (n_rows, n_sampled) == (3000, 60)
    assert_array_equal(np.concatenate([each.reshape(-1) for each in means]), table["mean"])


def test_slices_do_not_show_in_means(asked):
    """Sixty-four rows at a time and all of them at once: rounding alone differs."""
    (comparison, item, answer), *_ = asked[0]
    (means, counts), (cut, same_counts) = means_of([answer]), means_of([compare_item(replace(comparison, slice_rows=64), item)])
    assert counts == same_counts
    for was, found in zip(means, cut, strict=True):
        assert_allclose(found, was, rtol=1e-9, atol=1e-12)


def test_other_rows_than_were_listed_are_refused(asked):
    """As in runs."""
    (comparison, item, _), *_ = asked[0]
    with pytest.raises(InvalidData, match=r"got \d+ rows, the footer says 5000$"):
        compare_item(comparison, replace(item, n_rows=5000))
