"""Statistics are found by the hash of what a row holds, as the definition says in Python's integers."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.trees.statistics import ABOVE, CATEGORY, EQUAL, NO_STATISTICS, Statistics, find_fault, look_up, make_directory
from tests.trees import STATISTICS

WORD, FACTOR = 2**64, 0x4906BA494954CB65
HASHES = (0, 1, 2**31 - 1, 2**31, 2**32 - 1)
NUMBERS = (-1.0, 0.5, 0.50000006, np.inf, -np.inf)
PROJECTIONS = (
    ((0, CATEGORY, 0.0),),
    ((0, CATEGORY, 0.0), (1, CATEGORY, 0.0), (2, ABOVE, 0.5), (1, EQUAL, 1.0)),
    ((1, CATEGORY, 0.0), (2, ABOVE, -1.0)),
    ((1, CATEGORY, 0.0), (2, ABOVE, 0.5)),
)
N_COLUMNS = 2 * len(PROJECTIONS)
NAN_ABOVE = (False, False, True)


def naive_key(row, elements):
    """CatBoost's CalcHash over a projection's elements, or None where a category is missing."""
    key = 0
    for source, kind, bound in elements:
        x = row[source]
        if kind == CATEGORY:
            if np.isnan(x):
                return None
            part = int(x) - (2**32 if x >= 2**31 else 0)
        else:
            part = int(x == bound) if kind == EQUAL else int(NAN_ABOVE[source] if np.isnan(x) else x > bound)
        key = FACTOR * (key + FACTOR * part) % WORD
    return key


def lay_out(keys):
    """Two columns to a projection, whose codes are 2 k and 2 k + 1 of the k-th key, and 200 of the others."""
    directories = [make_directory(np.array(sorted(each), np.uint64)) for each in keys]
    sizes = [len(each) for each in keys]
    codes = [np.append(2 * np.arange(size) + second, 200) for size in sizes for second in (0, 1)]
    starts = lambda lengths: np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)  # noqa: E731 - a definition in a line
    elements = [element for projection in PROJECTIONS for element in projection]
    made = Statistics(
        source=np.arange(3, dtype=np.int32),
        nan_above=np.array(NAN_ABOVE),
        element_start=starts([len(projection) for projection in PROJECTIONS]),
        element=np.array([source for source, _, _ in elements], np.int32),
        kind=np.array([kind for _, kind, _ in elements], np.uint8),
        bound=np.array([bound for _, _, bound in elements]),
        key_start=starts(sizes),
        key=np.array([key for each in keys for key in sorted(each)], np.uint64),
        directory_bits=np.array([bits for bits, _ in directories], np.int64),
        directory_start=starts([directory.size for _, directory in directories])[:-1],
        directory=np.concatenate([directory for _, directory in directories]),
        column=np.arange(3, 3 + N_COLUMNS, dtype=np.int32),
        projection=np.repeat(np.arange(len(PROJECTIONS), dtype=np.int32), 2),
        code_start=starts([code.size for code in codes])[:-1],
        code=np.concatenate(codes).astype(np.uint8),
    )
    return frozen(made)  # as runs have them, so that the kernel is not compiled for others too


def rows_of(n):
    category, number = st.sampled_from((*map(float, HASHES), np.nan)), st.sampled_from((*NUMBERS, np.nan))
    return st.lists(st.tuples(category, category, number), min_size=n, max_size=n)


@given(known=rows_of(6), asked=rows_of(5), others=st.lists(st.integers(0, WORD - 1), max_size=4))
@pytest.mark.slow
def test_codes_are_those_of_the_key(known, asked, others):
    """Of rows whose keys are known, and of others, missing and unseen ones among them; directories with several keys to an entry or none."""
    keys = [{*others, *(naive_key(row, elements) for row in known)} - {None} for elements in PROJECTIONS]
    statistics, rows = lay_out(keys), [*known, *asked]
    out, seen = np.full((N_COLUMNS, len(rows)), -1.0), np.ones((3, len(rows)), bool)
    look_up(np.array(rows).T.copy(), statistics, out, seen)
    for i, row in enumerate(rows):
        places = [
            sorted(each).index(key) if (key := naive_key(row, elements)) in each else None for each, elements in zip(keys, PROJECTIONS, strict=True)
        ]
        assert out[:, i].tolist() == [200 if place is None else 2 * place + second for place in places for second in (0, 1)]
        expected = [
            any(place is not None and s in {e[0] for e in elements} for place, elements in zip(places, PROJECTIONS, strict=True)) for s in range(3)
        ]
        assert seen[:, i].tolist() == expected


@pytest.mark.parametrize("n_keys", [0, 1, 1000])
def test_a_directory_leads_to_every_key(n_keys):
    """Every key lies between its entry and the next."""
    key = np.unique(np.random.default_rng(n_keys).integers(0, WORD - 1, n_keys, np.uint64, endpoint=True))
    bits, directory = make_directory(key)
    assert directory.size == 2**bits + 1
    assert directory[-1] == n_keys
    for place, each in enumerate(key.tolist()):
        entry = each >> (64 - bits)
        assert directory[entry] <= place < directory[entry + 1]


def test_a_key_may_be_the_highest_number():
    """Nothing lies behind it."""
    key = np.array([2**64 - 1], np.uint64)
    assert make_directory(key)[1].tolist() == [0, 0, 0, 0, 1]


def test_keys_that_begin_alike_are_found():
    """A file may have any keys: here all lie in one entry of the directory."""
    first = naive_key((0.0, 0.0, 0.0), PROJECTIONS[0])
    rows = [(float(HASHES[1]), 0.0, 0.0), (0.0, 0.0, 0.0)]
    sought = [naive_key(row, PROJECTIONS[0]) for row in rows]
    for key, row in zip(sought, rows, strict=True):
        alike = {(key + step) % WORD for step in range(-40, 41)}
        statistics = lay_out([alike, {0}, {0}, {0}])
        out, seen = np.zeros((N_COLUMNS, 1)), np.zeros((3, 1), bool)
        look_up(np.array([row]).T.copy(), statistics, out, seen)
        assert out[0, 0] == 2 * sorted(alike).index(key)
        statistics = lay_out([alike - {key}, {0}, {0}, {0}])
        look_up(np.array([row]).T.copy(), statistics, out, seen)
        assert out[0, 0] == 200
    assert first in sought


def test_without_statistics_nothing_is_looked_up():
    """Most models have none."""
    seen = np.ones((0, 4), bool)
    look_up(np.zeros((0, 4)), frozen(NO_STATISTICS), np.zeros((0, 4)), seen)
    assert not seen.any()


def test_many_rows_are_looked_up_as_few_are():
    """A block at a time, the last one shorter."""
    rng = np.random.default_rng(0)
    rows = np.array([rng.choice(HASHES, 700), rng.choice(HASHES, 700), rng.choice(NUMBERS, 700)], float)
    statistics = lay_out([{naive_key(row, elements) for row in rows.T[:9]} for elements in PROJECTIONS])
    whole, apart = (np.zeros((N_COLUMNS, 700)) for _ in range(2))
    look_up(rows, statistics, whole, np.zeros((3, 700), bool))
    for i in range(700):
        look_up(np.ascontiguousarray(rows[:, i : i + 1]), statistics, column := np.zeros((N_COLUMNS, 1)), np.zeros((3, 1), bool))
        apart[:, i] = column[:, 0]
    assert np.array_equal(whole, apart)
    assert 0 < (whole == 200).mean() < 1


def test_a_missing_number_is_not_above_an_infinite_border():
    """CatBoost puts inf in its place where it is above all."""
    border = PROJECTIONS[3][0], (2, ABOVE, np.inf)
    statistics = lay_out([set(), set(), set(), {naive_key((5.0, 5.0, np.inf), border)}])
    statistics = frozen(statistics._replace(bound=np.append(statistics.bound[:-1], np.inf)))
    out = np.zeros((N_COLUMNS, 2))
    look_up(np.array([[5.0, 5.0], [5.0, 5.0], [np.nan, np.inf]]), statistics, out, np.zeros((3, 2), bool))
    assert out[6].tolist() == [0, 0]


N_CATEGORIES = np.array([0, 40, 0, 0], np.int32)  # of a number, a category, and two columns of statistics


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kind": np.zeros(3, np.uint8)}, r"array 'kind' of statistics has shape \(3,\), expected \(4,\)"),
        ({"formula": np.zeros(1, np.uint8)}, r"array 'formula' of statistics has shape \(1,\), expected \(2,\)"),
        ({"code": np.zeros((2, 2), np.uint8)}, r"array 'code' of statistics has shape \(2, 2\), expected \(4,\)"),
        ({"key_start": np.array([0, 2])}, r"array 'key_start' of statistics has shape \(2,\), expected \(3,\)"),
        ({"nan_above": np.zeros(1, bool)}, r"array 'nan_above' of statistics has shape \(1,\), expected \(2,\)"),
        ({"code_start": np.zeros(1, int)}, r"array 'code_start' of statistics has shape \(1,\), expected \(2,\)"),
        ({"key": np.array([5, 6])}, "keys of statistics are int64, expected uint64"),
        ({"element_start": np.array([0, 5, 4])}, "elements of projections begin at .*, expected ascending numbers from 0 to 4"),
        ({"element_start": np.array([1, 1, 4])}, "elements of projections begin at"),
        ({"key_start": np.array([0, 2, 3])}, "keys of projections begin at .*, expected ascending numbers from 0 to 2"),
        ({"n_categories": np.array([0, 40, 3, 0], np.int32)}, r"statistics are columns \[2, 3\], expected the last of 4, which are numbers"),
        ({"column": np.array([1, 3], np.int32)}, r"statistics are columns \[1, 3\], expected the last of 4"),
        ({"column": np.array([1, 2, 3, 4, 5], np.int32)}, "has shape"),
        ({"source": np.array([1, 0], np.int32)}, r"sources are columns \[1, 0\], expected ascending ones of 0\.\.1"),
        ({"source": np.array([0, 2], np.int32)}, r"sources are columns \[0, 2\]"),
        ({"source": np.array([1, 1], np.int32)}, r"sources are columns \[1, 1\]"),
        ({"source": np.array([-1, 1], np.int32)}, r"sources are columns \[-1, 1\]"),
        ({"element": np.array([1, 1, 0, 2], np.int32)}, "element 3 is source 2 of kind 2, expected one of 2 sources and 3 kinds"),
        ({"element": np.array([1, 1, -1, 1], np.int32)}, "element 2 is source -1"),
        ({"kind": np.array([0, 0, 3, 2], np.uint8)}, "element 2 is source 0 of kind 3"),
        ({"kind": np.array([0, 2, 1, 0], np.uint8)}, "element 3 is a category behind a bit, expected categories first"),
        (
            {"element_start": np.array([0, 2, 4]), "element": np.array([0, 1, 1, 1]), "kind": np.array([1, 0, 0, 0])},
            "element 1 is a category behind a bit",
        ),
        ({"kind": np.array([0, 0, 2, 2], np.uint8)}, "element 2 of kind 2 is of column 0, which has other values"),
        ({"kind": np.array([0, 0, 1, 1], np.uint8)}, "element 3 of kind 1 is of column 1, which has other values"),
        ({"bound": np.array([0, 0, np.nan, 7])}, "element 2 has bound nan, expected a border"),
        ({"bound": np.array([0, 0, 0.5, 2.0**32])}, "element 3 has bound 4294967296.0, expected a hash"),
        ({"bound": np.array([0, 0, 0.5, -1.0])}, "element 3 has bound -1.0, expected a hash"),
        ({"bound": np.array([0, 0, 0.5, 1.5])}, "element 3 has bound 1.5, expected a hash"),
        ({"directory_bits": np.array([0, 1])}, r"projection 0 has a directory of 0 bits at 0, expected 1\.\.62 and at least 0"),
        ({"directory_bits": np.array([1, 63])}, "projection 1 has a directory of 63 bits"),
        ({"directory_bits": np.array([1, 62])}, "projection 1 has a directory that is not of its keys"),
        ({"directory_start": np.array([0, -1])}, "projection 1 has a directory of 1 bits at -1"),
        ({"directory_start": np.array([0, 4])}, "projection 1 has a directory that is not of its keys"),
        ({"directory": np.array([0, 0, 2, 0, 0, 0])}, "projection 0 has a directory that is not of its keys"),
        ({"directory": np.array([1, 1, 2, 0, 0, 0])}, "projection 0 has a directory that is not of its keys"),
        ({"key": np.array([2**63, 5], np.uint64)}, "projection 0 has keys that do not ascend"),
        ({"key": np.array([5, 5], np.uint64)}, "projection 0 has keys that do not ascend"),
        ({"projection": np.array([1, 0], np.int32)}, r"statistics are of projections \[1, 0\], expected ascending ones of 0\.\.1"),
        ({"projection": np.array([-1, 0], np.int32)}, r"statistics are of projections \[-1, 0\]"),
        ({"projection": np.array([0, 2], np.int32)}, r"statistics are of projections \[0, 2\]"),
        ({"code_start": np.array([0, 4])}, r"codes of statistic 1 are 4\.\.4, expected some of 4"),
        ({"code_start": np.array([-1, 3])}, r"codes of statistic 0 are -1\.\.1, expected some of 4"),
    ],
)
def test_statistics_that_cannot_be_looked_up_have_a_fault(changes, says):
    """Kernels check nothing: shapes, order, ranges."""
    n_categories = changes.get("n_categories", N_CATEGORIES)
    statistics = STATISTICS._replace(**{name: array for name, array in changes.items() if name != "n_categories"})
    assert re.search(says, find_fault(statistics, n_categories))


def test_statistics_that_can_be_looked_up_have_none():
    """Two projections, of which one has no keys; bounds of numbers may be any; formulas are named or not; and no statistics at all."""
    assert find_fault(STATISTICS, N_CATEGORIES) == ""
    for border in (-np.inf, np.inf, 2.0**40):
        assert find_fault(STATISTICS._replace(bound=np.array([0, 2.0**32 - 1, border, 0])), N_CATEGORIES) == ""
    assert find_fault(STATISTICS._replace(formula=np.zeros(2, np.uint8)), N_CATEGORIES) == ""
    assert find_fault(STATISTICS, np.array([0, 1, 0, 0], np.int32)) == ""
    assert find_fault(STATISTICS._replace(projection=np.array([1, 1], np.int32)), N_CATEGORIES) == ""
    each = STATISTICS._replace(key_start=np.array([0, 1, 2]), directory=np.array([0, 1, 1, 0, 0, 1]), code_start=np.array([0, 2]))
    assert find_fault(each, N_CATEGORIES) == ""
    assert find_fault(NO_STATISTICS, np.zeros(0, np.int32)) == ""
    assert find_fault(NO_STATISTICS, np.zeros(3, np.int32)) == ""


def test_more_statistics_than_columns_are_a_fault():
    """There is no room for features."""
    assert find_fault(STATISTICS, np.zeros(1, np.int32)) == "statistics are columns [2, 3], expected the last of 1, which are numbers"
