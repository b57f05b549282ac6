"""Numbers counted in cells against NumPy: exactly up to CELLS different ones, else by as many of their first bits as fit; in any pieces."""

import struct

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from leafledger.kernels.distributions.histogram import (
    CELLS,
    LEVELS,
    NOTHING,
    Histogram,
    cell_edges,
    coarsen,
    count_cells,
    find_cells,
    finish_histogram,
    merge_histograms,
    round_histogram,
    start_histogram,
)

ODD = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, -1e-300, 3e38, 1.0, -1.0, 1.0078125, 5e-324, -5e-324, 2.0**1023])


def draw(n=700, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n) * 10.0 ** rng.integers(-30, 30, n)
    values[rng.random(n) < 0.1] = np.nan
    return np.concatenate((values, ODD))


def counted(values):
    tally = start_histogram()
    count_cells(values, tally)
    return finish_histogram(tally)


def first_bits(x, level):
    """Sign and magnitude of a number without its last bits, by Python's own integers."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", x + 0.0))
    return bits >> 63, (bits & (1 << 63) - 1) >> level


def neighbours(places):
    """Numbers so many bits above 1, each before a missing value."""
    above = (np.float64(1.0).view(np.int64) + places).view(np.float64)
    return np.stack((above, np.full_like(above, np.nan)), axis=1).ravel()


# Each fills CELLS to the last one at level 1: pairs of numbers, and numbers of different pairs, one of which is completed.
FULL = [neighbours(np.arange(2 * CELLS)), neighbours(np.append(2 * np.arange(CELLS), 1))]


def same(a, b):
    return a.level == b.level and a.cells.tolist() == b.cells.tolist() and a.counts.tolist() == b.counts.tolist()


@pytest.mark.parametrize("level", [0, 1, 20, 45, LEVELS - 1])
def test_cells_are_in_the_order_of_numbers_and_have_these_edges(level):
    """Every value lies between the edges of its cell, of which the one nearer to 0 is in it; infinities have cells of their own."""
    values = np.sort(draw()[~np.isnan(draw())])
    cells = find_cells(values, level)
    assert (np.diff(cells) >= 0).all()
    lower, upper = cell_edges(cells, level)
    assert ((lower <= values) & (values <= upper)).all()
    assert (lower[1:] >= upper[:-1])[np.diff(cells) > 0].all()
    assert_array_equal(find_cells(np.where(values < 0, upper, lower)[values != -5e-324], level), cells[values != -5e-324])
    assert (lower == upper)[np.isinf(values)].all()
    if level == 0:
        assert_array_equal(lower, values)
        assert_array_equal(upper, values)
    else:
        finite = np.isfinite(values)
        assert (lower < upper)[finite].all()
        assert not np.isin(cells[~finite], cells[finite]).any()


@pytest.mark.parametrize("n", [1, CELLS - 1, CELLS])
def test_up_to_so_many_different_values_are_counted_one_by_one(n):
    """As ``unique`` counts them; zeros are one, missing values none."""
    values = np.tile(np.append(np.arange(n) / 7.0 - 10.0, np.nan), 3)
    found = counted(values)
    expected, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    assert found.level == 0
    assert_array_equal(cell_edges(found.cells, 0)[0], expected)
    assert_array_equal(found.counts, counts)
    expected, counts = np.unique(ODD[~np.isnan(ODD)] + 0.0, return_counts=True)
    found = counted(ODD)
    assert_array_equal(cell_edges(found.cells, 0)[1], expected)
    assert_array_equal(found.counts, counts)


@pytest.mark.again
@pytest.mark.parametrize("values", [np.random.default_rng(0).normal(offset, 1.0, 20_000) for offset in (0.0, 1e3, -1e6)] + [draw(20_000), *FULL])
def test_more_are_told_apart_by_as_many_bits_as_fit(values):
    """The level is the lowest that leaves so many cells, and values of one cell are those with these bits in common, by Python's integers."""
    found = counted(values)
    there = values[~np.isnan(values)]
    kinds = [{first_bits(x, level) for x in there.tolist()} for level in (found.level - 1, found.level)]
    assert len(kinds[1]) <= CELLS < len(kinds[0])
    assert found.cells.size == len(kinds[1])
    assert_array_equal(found.counts, np.unique(find_cells(there, found.level), return_counts=True)[1])
    assert (np.diff(found.cells) > 0).all()


def test_cells_follow_the_spread_and_not_the_magnitude():
    """However far from 0 the values lie, cells are a thousandth of their range wide at most."""
    for offset in (1e3, 1e6, 1e9, -1e12):
        values = np.random.default_rng(1).uniform(offset, offset + 1.0, 50_000)
        found = counted(values)
        lower, upper = cell_edges(found.cells, found.level)
        assert (upper - lower).max() <= 1 / 1000


@pytest.mark.again
@pytest.mark.parametrize("seed", range(4))
def test_pieces_in_any_order_and_grouping_count_the_same(seed):
    """One by one, all at once, in a tree, backwards, and in one tally: the same level, cells and counts."""
    rng = np.random.default_rng(seed)
    values = rng.permutation(np.concatenate((draw(3000, seed), rng.normal(1e6, 1.0, 3000), np.repeat(np.arange(50.0), 40))))
    pieces = np.split(values, np.sort(rng.integers(0, values.size, 9)))
    whole, states, tally = counted(values), list(map(counted, pieces)), start_histogram()
    forwards, backwards = NOTHING, NOTHING
    for piece, state in zip(pieces, states, strict=True):
        forwards = merge_histograms(forwards, state)
        count_cells(piece, tally)
    for state in states[::-1]:
        backwards = merge_histograms(state, backwards)
    while len(states) > 1:
        states = [merge_histograms(*pair) if len(pair) == 2 else pair[0] for pair in (states[i : i + 2] for i in range(0, len(states), 2))]
    assert all(same(each, whole) for each in (forwards, backwards, states[0], finish_histogram(tally)))
    assert whole.counts.sum() == np.count_nonzero(~np.isnan(values))


def test_wider_cells_have_the_same_values():
    """Counting them at the higher level at once is the same, and there are never more than CELLS."""
    values = np.concatenate((2.0 ** np.arange(-1022.0, 1024.0), -(2.0 ** np.arange(-1022.0, 1024.0)), [np.inf, -np.inf]))
    values = np.concatenate((values, values * 1.5, [5e-324, -5e-324]))
    found = counted(values)
    assert found.level == LEVELS - 1
    assert found.cells.size == CELLS
    few = counted(np.array([1.0, 1.25, 3.0, -7.0]))
    coarse = coarsen(few, LEVELS - 1)
    assert (coarse.counts.tolist(), cell_edges(coarse.cells, coarse.level)[0].tolist()) == ([1, 2, 1], [-8.0, 1.0, 2.0])
    assert coarsen(few, 0) is few
    assert same(merge_histograms(few, NOTHING), few)
    assert same(merge_histograms(NOTHING, NOTHING), Histogram(0, *NOTHING[1:]))


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_rounded_counts_are_those_of_rounded_values(kind):
    """Where cells are as narrow as half a step of the type; wider ones are left as they are."""
    close = np.random.default_rng(8).normal(1e-3, 1e-9, 9000)
    for values in (draw(), np.arange(500) / 10, close, -close):
        found = counted(values)
        with np.errstate(over="ignore"):
            expected = counted(values.astype(kind).astype(float))
        assert same(round_histogram(found, kind), expected)
    assert [counted(each).level > 0 for each in (draw(), close)] == [False, True]
    wide = counted(np.random.default_rng(8).normal(size=9000))
    assert round_histogram(wide, kind) is wide
