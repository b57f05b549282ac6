"""What is compared: a sample spread evenly however rows are cut, names of values in the order in which they are measured, rankings with values."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from leafledger.kernels.comparison.agreement import Value
from leafledger.pipeline.comparisons.comparison import Comparison, Gaps, Ranking, Removal, Sample, name_values
from leafledger.pipeline.dataset.columns.labels import LabelColumns
from leafledger.pipeline.models.model import Feature


def compared(*methods, seed=-1, sizes=None):
    """A comparison of rankings by these methods, whose tables are nowhere."""
    removal = None if sizes is None else Removal("", LabelColumns("y", None, "count"), sizes)
    gaps = Gaps(("",), "normal", seed, Sample(0, 0, ()))
    rankings = tuple(Ranking(f"{method}:x", method, "", None, (), (0, 1)) for method in methods)
    return Comparison(rankings, "", "", gaps, removal, (1, 3), (Feature("a"), Feature("b")), ("0",), None, ("id",), 5, 64)


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
    where they are estimates; and of rows with labels where there are some."""
    of_all, of_sample, of_labelled = name_values(compared("shapley", "banzhaf", seed=0, sizes=(0, 2)), ["pgi2 1"])
    areas = ["insertion", "deletion", "insertion - deletion"]
    agreements = ["top 1", "top 3", "same 1", "same 3", "swaps 1", "swaps 3", "list swaps 1", "list swaps 3", "correlation", "size correlation"]
    assert of_all == (*(Value(area, r) for area in areas for r in (0, 1)), *(Value(name, 0, 1) for name in (*areas, *agreements)))
    gaps = (Value("pgi2 1", 0), Value("pgi2 1", 1), Value("pgi2 1", 0, 1))
    assert of_sample == (*gaps, Value("pgi2 1 error", 0), Value("pgi2 1 error", 1))
    removal = [f"removal {size}" for size in (0, 2)]
    assert of_labelled == (*(Value(name, r) for name in removal for r in (0, 1)), *(Value(name, 0, 1) for name in removal))
    assert name_values(compared("shapley", "banzhaf"), ["pgi2 1"])[1:] == [gaps, ()]


def test_rankings_with_values():
    """Not those that are ranks alone; every two of each kind once."""
    found = compared("shapley", "gap_greedy", "banzhaf", "curves")
    assert found.valued == (0, 2)
    assert found.valued_pairs == ((0, 2),)
    assert found.pairs == ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


def test_rows_are_listed_with_names():
    """Of outputs, features, rankings and ids; as many features as the longest list has."""
    named = compared("shapley", "banzhaf").named
    assert named.rankings == ("shapley:x", "banzhaf:x")
    assert (named.outputs, named.features, named.ids, named.n_first, named.n_rows) == (("0",), ("a", "b"), ("id",), 3, 5)
