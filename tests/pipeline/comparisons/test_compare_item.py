"""One work item of a comparison: states of all its rows, whatever the slices, and the rows on which rankings differ most."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.reductions.reduction import MEANS, merge_all
from leafledger.pipeline.comparisons import compare
from leafledger.pipeline.comparisons.compare_item import compare_item
from leafledger.pipeline.comparisons.comparison import Comparison
from leafledger.pipeline.comparisons.differing import merge_rows
from leafledger.pipeline.errors import InvalidData
from leafledger.pipeline.methods.reduction_states import unpack_state
from tests.pipeline.conftest import write_data


@pytest.fixture(scope="module")
def asked(example, tmp_path_factory):
    """What a comparison asks of its items, its items, and what they answered; the tables are kept."""
    folder, found = tmp_path_factory.mktemp("asked"), []
    data = write_data(example.frame, folder / "data", row_group_size=150)
    map_items = compare.map_items

    def watched(where, work, warm, task, items, memory):
        for item, answer in map_items(where, work, warm, task, items, memory):
            found.append((task, item, answer))
            yield item, answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "map_items", watched)
        patch.setattr(compare.commit, "remove", lambda _: None)
        table = compare.compare(
            example.model, data, folder / "out.parquet", methods=("shapley", "banzhaf:0.25"), scales=(0.5,), gap_rows=60, scheduler="serial"
        )
    return [entry for entry in found if isinstance(entry[0], Comparison)], table


def means_of(answers):
    """Means of both passes, of all rows and of the sample, ``(outputs, values)``, and of how many rows they are."""
    merged = [merge_all(MEANS, [unpack_state(MEANS, answer.states[k]) for answer in answers], 1, 0) for k in (0, 1)]
    return [state.mean for state in merged], [int(state.rows[0]) for state in merged]


def test_states_are_of_all_rows_and_of_the_sample(asked):
    """Of every item, and merged those of the table."""
    entries, table = asked
    for comparison, item, answer in entries:
        _, (n_rows, n_sampled) = means_of([answer])
        assert n_rows == item.item.n_rows
        assert n_sampled == comparison.gaps.sample.choose(item.item.part, 0, item.item.n_rows).size
    means, (n_rows, n_sampled) = means_of([answer for *_, answer in entries])
    assert (n_rows, n_sampled) == (3000, 60)
    assert_array_equal(np.concatenate([each.reshape(-1) for each in means]), table["mean"])


def test_slices_do_not_show_in_means(asked):
    """Sixty-four rows at a time and all of them at once: rounding alone differs, and the rows on which rankings differ most are the same."""
    (comparison, item, answer), *_ = asked[0]
    again = compare_item(replace(comparison, slice_rows=64), item)
    (means, counts), (cut, same_counts) = means_of([answer]), means_of([again])
    rows = [merge_rows([each.rows], comparison.named, comparison.pairs) for each in (answer, again)]
    assert rows[0].num_rows == 10
    assert rows[0].equals(rows[1])
    assert counts == same_counts
    for was, found in zip(means, cut, strict=True):
        assert_allclose(found, was, rtol=1e-9, atol=1e-12)


def test_other_rows_than_were_listed_are_refused(asked):
    """As in runs."""
    (comparison, item, _), *_ = asked[0]
    with pytest.raises(InvalidData, match=r"got \d+ rows, the footer says 5000$"):
        compare_item(comparison, replace(item, item=replace(item.item, n_rows=5000)))
