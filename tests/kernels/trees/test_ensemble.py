"""``check`` accepts what is well formed and refuses the rest in one line that names the tree and the node."""

import numpy as np
import pytest
from hypothesis import given

from leafledger.kernels.trees.ensemble import InvalidEnsemble, TreeEnsemble, bit_set, check
from tests.strategies import forests
from tests.trees import STATISTICS


def two_trees():
    """Tree 0: a numeric split over a categorical one; tree 1: a leaf."""
    return TreeEnsemble(
        feature=np.array([0, -1, 1, -1, -1, -1], np.int32),
        threshold=np.array([0.5, 0, 0, 0, 0, 0.0]),
        missing_left=np.zeros(6, bool),
        category_set=np.array([-1, -1, 0, -1, -1, -1], np.int32),
        left=np.array([1, -1, 3, -1, -1, -1], np.int32),
        right=np.array([2, -1, 4, -1, -1, -1], np.int32),
        value=np.array([[0.0], [1], [0], [2], [3], [4]]),
        cover=np.array([10.0, 4, 6, 5, 1, 10]),
        root=np.array([0, 5], np.int32),
        output=np.zeros(2, np.int32),
        base=np.zeros(1),
        n_categories=np.array([0, 40], np.int32),
        zero_missing=np.zeros(2, bool),
        set_start=np.array([0, 2]),
        set_words=bit_set([0, 31, 32, 40], 40),
        single_precision=False,
    )


def changed(name, index, value):
    """The two trees with one number changed."""
    array = getattr(two_trees(), name).copy()
    array[index] = value
    return two_trees()._replace(**{name: array})


def test_bit_sets_hold_their_codes():
    """Bit c of the words is set for every code c, unseen included."""
    words = bit_set([0, 31, 32, 40], 40)
    assert [c for c in range(64) if words[c // 32] >> (c % 32) & 1] == [0, 31, 32, 40]


@given(forests())
def test_well_formed_forests_pass(ensemble):
    """Whatever the strategy draws is well formed, zero covers and single leaves included."""
    check(ensemble)


@pytest.mark.parametrize(
    ("ensemble", "says"),
    [
        (changed("left", 2, 0), r"node 0: has 2 parents"),
        (changed("left", 2, 1), r"node 1: has 2 parents"),
        (changed("left", 0, 6), r"node 0: left child 6 is out of range, expected 0\.\.5"),
        (changed("right", 0, -1), r"node 0: right child -1 is out of range"),
        (changed("right", 1, 2), r"node 1: a leaf has right child 2, expected -1"),
        (changed("root", 1, 6), r"tree 1: root 6 is out of range"),
        (changed("root", 1, 0), r"node 0: has 2 parents"),
        (two_trees()._replace(root=np.array([0], np.int32), output=np.zeros(1, np.int32)), r"node 5: is not reached from any root"),
        (changed("output", 0, 1), r"tree 0: output 1 is out of range"),
        (changed("feature", 0, 2), r"tree 0, node 0: feature 2 is out of range, expected 0\.\.1"),
        (changed("feature", 0, 1), r"tree 0, node 0: feature 1 has both numeric and categorical splits"),
        (changed("category_set", 2, 1), r"tree 0, node 2: category set 1 is out of range"),
        (changed("n_categories", 1, 80), r"tree 0, node 2: category set does not have one bit per category"),
        (changed("set_start", 0, -1), r"category set does not have one bit per category"),
        (changed("set_start", -1, 3), r"category set does not have one bit per category"),
        (two_trees()._replace(set_start=np.array([1, 3]), set_words=np.zeros(3, np.uint32)), r"tree 0, node 0: category set does not"),
        (two_trees()._replace(set_words=np.zeros(3, np.uint32)), r"tree 0, node 0: category set does not"),
        (changed("category_set", 2, 1)._replace(set_start=np.array([0, 4, 6, 2])), r"category set does not have one bit per category"),
        (changed("threshold", 0, np.nan), r"tree 0, node 0: threshold is nan"),
        (changed("threshold", 0, -np.inf), r"tree 0, node 0: threshold is -inf"),
        (changed("value", (3, 0), np.inf), r"tree 0, node 3: leaf value is \[inf\]"),
        (changed("value", (5, 0), np.nan), r"tree 1, node 5: leaf value is \[nan\]"),
        (
            two_trees()._replace(base=np.zeros(2), value=np.array([[0.0, 0], [1, np.inf], [0, 0], [2, 2], [3, 3], [4, 4]])),
            r"node 1: leaf value is \[1",
        ),
        (changed("cover", 4, -1.0), r"tree 0, node 4: cover is -1\.0, expected a finite number >= 0"),
        (changed("cover", 1, np.nan), r"tree 0, node 1: cover is nan"),
        (changed("cover", 1, 9.0), r"tree 0, node 0: cover is 10\.0, its children's add up to 15\.0"),
        (two_trees()._replace(base=np.array([np.nan])), r"base values must be finite"),
        (two_trees()._replace(base=np.array([0.0, np.inf])), r"base values must be finite, got \[0\.0, inf\]"),
        (two_trees()._replace(base=np.zeros(0)), r"needs at least one output"),
        (two_trees()._replace(cover=np.zeros(5)), r"array 'cover' has shape \(5,\), expected \(6,\)"),
        (two_trees()._replace(value=np.zeros((6, 2))), r"array 'value' has shape \(6, 2\)"),
    ],
)
def test_malformed_ensembles_are_refused(ensemble, says):
    """Cycles, shared and stray nodes, indices out of range, NaN, bad covers and sets: each in one line."""
    with pytest.raises(InvalidEnsemble, match=says) as refusal:
        check(ensemble)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("n", [3, 30, 31, 32])
def test_sets_have_no_bit_above_that_for_unseen(n):
    """It would be that for missing values, which go where ``missing_left`` says. Sets of all codes and unseen ones, and of none, pass."""
    one = two_trees()._replace(n_categories=np.array([0, n], np.int32), set_start=np.array([0, n // 32 + 1]))
    for codes in ((), range(n + 1)):
        words = bit_set(codes, n)
        check(one._replace(set_words=words))
        for bit in range(n % 32 + 1, 32):
            stray = words.copy()
            stray[-1] |= np.uint32(1 << bit)
            with pytest.raises(InvalidEnsemble, match=rf"^tree 0, node 2: category set has a bit above {n}, which is that for unseen$"):
                check(one._replace(set_words=stray))


def test_a_cycle_is_refused():
    """Two nodes that are each other's child hang nothing."""
    ensemble = changed("left", 2, 2)
    with pytest.raises(InvalidEnsemble, match=r"node 2: has 2 parents"):
        check(ensemble)


def with_statistics(**changes):
    """The two trees with columns of statistics."""
    columns = {"n_categories": np.array([0, 40, 0, 0], np.int32), "zero_missing": np.zeros(4, bool)}
    return two_trees()._replace(**columns, statistics=STATISTICS._replace(**changes))


def test_statistics_are_looked_at_too():
    """Those that cannot be looked up are refused by what is wrong with them."""
    check(with_statistics())
    with pytest.raises(InvalidEnsemble, match=r"^sources are columns \[1, 0\], expected ascending ones of 0\.\.1$"):
        check(with_statistics(source=np.array([1, 0], np.int32)))


@pytest.mark.parametrize("iteration", [[1, 0], [0, 0, 0], [0, -1], [-1, 0]])
def test_iterations_do_not_fall(iteration):
    """One for each tree, from 0 on, of which some may have no tree; or none at all."""
    for sound in ([], [0, 1], [0, 0], [1, 1], [0, 2]):
        check(two_trees()._replace(iteration=np.array(sound, np.int32)))
    with pytest.raises(InvalidEnsemble, match=r"iterations of trees are \[.*\], expected 2 that do not fall, from 0 on"):
        check(two_trees()._replace(iteration=np.array(iteration, np.int32)))


def test_what_is_passed_over_is_nothing_that_counts():
    """Values of splits; how few categories there are; covers that are off by a hundredth of the larger, as sums in single precision may be;
    and branches that no row took."""
    check(changed("value", (0, 0), np.nan))
    check(two_trees()._replace(n_categories=np.array([0, 1], np.int32), set_start=np.array([0, 1]), set_words=bit_set([0], 1)))
    check(two_trees()._replace(cover=np.array([100, 95.005, 6, 5, 1, 10])))
    check(two_trees()._replace(cover=np.array([10.0, 4, 6, 6, 0, 10])))
    check(two_trees()._replace(cover=np.array([4.0, 4, 0, 0, 0, 10])))
