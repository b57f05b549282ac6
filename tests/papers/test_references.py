"""The published algorithms are right where trees are small: what becomes of them on deep ones is theirs. The figures show it at a few depths."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests import naive
from tests.papers import figures, references
from tests.papers.decimals import banzhaf_decimal, shapley_decimal
from tests.papers.exact import enumerated, shapley_fractions
from tests.papers.states import coalition_sums
from tests.papers.trees import bushy, depth_of, distinct_features, lay_out, ours, synthetic_dense, synthetic_sparse, trained, training_rows, wide

N_FEATURES, LEVELS = 4, 5
SHAPLEY = (
    references.LINEAR_TREESHAP,
    references.LINEAR_TREESHAP_V1,
    references.TREESHAP_K,
    references.TREEPROB,
    references.TREEPROB_MODIFIED,
    references.TREEGRAD_SHAP,
    references.ALGORITHM_2,
    references.ALGORITHM_3,
)
# Ratios of covers reach some tens, and are multiplied and divided by on four levels: that many digits go in the least stable.
RTOL = 1e-8


def small(seed):
    """A tree of four features, most of them asked again below, with leaves of either sign; and every row of zeros and ones."""
    draw = np.random.default_rng(seed)

    def grow(levels):
        if levels == 0 or (levels < LEVELS - 1 and draw.random() < 0.3):
            return draw.normal(), draw.uniform(1, 5)
        return int(draw.integers(N_FEATURES)), grow(levels - 1), grow(levels - 1)

    tree = lay_out(grow(LEVELS), N_FEATURES)
    # Thresholds other than 0.5 make some splits let every row pass, and repeated ones agree as well as contradict each other.
    tree = tree._replace(threshold=np.where(tree.feature >= 0, draw.choice((-0.5, 0.5, 1.5), tree.feature.size, p=(0.1, 0.8, 0.1)), 0.0))
    return tree, np.array(list(np.ndindex((2,) * N_FEATURES)), float)


def definition(tree, rows, weight=naive.shapley_weight):
    return np.array([naive.semivalue(tree, row, weight)[0] for row in rows])


@pytest.mark.parametrize("seed", range(4))
def test_references_are_right_on_small_trees(seed):
    """Every published algorithm equals the enumeration of all coalitions, with the nodes a tree needs and with more."""
    tree, rows = small(seed)
    exact = definition(tree, rows)
    features = distinct_features(tree)
    assert features < depth_of(tree)
    for reference in SHAPLEY:
        for size in (features, depth_of(tree)):
            found = reference.explain(tree, rows, size)
            assert_allclose(found, exact, rtol=0, atol=RTOL * np.abs(exact).max(), err_msg=f"{reference.name}, {size}")
    exact = definition(tree, rows, naive.banzhaf_weight)
    for reference in (references.ALGORITHM_2_BANZHAF, references.ALGORITHM_3_BANZHAF):
        assert_allclose(reference.explain(tree, rows, features), exact, rtol=0, atol=1e-14, err_msg=reference.name)


@pytest.mark.parametrize("seed", range(4))
def test_what_references_are_measured_against_is_exact(seed):
    """Extended precision and whole numbers both equal the definition in fractions, and so do the kernels."""
    tree, rows = small(seed)
    exact = definition(tree, rows)
    assert_allclose(enumerated(tree, rows, naive.shapley_weight).astype(float), exact, rtol=0, atol=1e-15)
    for found in (shapley_fractions(tree, rows), shapley_decimal(tree, rows)):
        assert_allclose(found, exact, rtol=0, atol=1e-15)
    assert_allclose(banzhaf_decimal(tree, rows), definition(tree, rows, naive.banzhaf_weight), rtol=0, atol=1e-15)
    assert_allclose(ours("shapley", tree, rows), exact, rtol=0, atol=1e-14)


def test_enumeration_and_whole_numbers_agree_on_a_trained_tree():
    """Two ways that share nothing but the tree, on eleven features: the rounding of the one is far below what is told of any algorithm."""
    tree, rows = trained(20), training_rows()[0][:1]
    assert_allclose(enumerated(tree, rows, naive.shapley_weight).astype(float), shapley_fractions(tree, rows), rtol=1e-15, atol=1e-17)


def test_algorithm_3_sums_its_state():
    """Line 19 of Karczmarz et al. 2022, Alg. 3, takes the 1-norm; that is something else as soon as a leaf is negative."""
    tree, rows = small(0)
    exact, size = definition(tree, rows), distinct_features(tree)
    norm = replace(coalition_sums(size), read=lambda state: np.abs(state).sum(axis=1, keepdims=True))
    assert np.abs(references.traverse_fast(tree, rows, norm) - exact).max() > 1e-2
    assert_allclose(references.traverse_fast(tree, rows, coalition_sums(size)), exact, rtol=0, atol=RTOL)


@pytest.mark.parametrize("make_tree", [synthetic_sparse, synthetic_dense])
def test_synthetic_instances_have_the_closed_form(make_tree):
    """Half of 777 for the feature of the root and nothing for the others, in exact fractions (Karczmarz et al. 2022, Section 5.1)."""
    exact = definition(make_tree(5), np.ones((1, 5)))
    assert exact.tolist() == [[0, 0, 0, 0, 388.5]]
    assert_allclose(shapley_fractions(make_tree(5), np.ones((1, 5))), exact, rtol=0, atol=0)


def test_decimals_agree_with_whole_numbers_on_deep_trees():
    """Of chains with full trees for leaves, where most features are asked again."""
    tree, rows = bushy(25, seed=4), np.random.default_rng(1).integers(0, 2, (2, 25)).astype(float)
    assert depth_of(tree) > distinct_features(tree)
    assert_allclose(shapley_decimal(tree, rows), shapley_fractions(tree, rows), rtol=0, atol=1e-15)


def test_wide_trees_have_a_new_feature_at_every_level():
    assert depth_of(wide(30, seed=1)) == distinct_features(wide(30, seed=1)) == 30


def hold(claims):
    assert [claim.text for claim in claims if not claim.holds] == []


def test_condition_numbers():
    """Above 100,000 at D = 20 for both matrices of Li, Yu and Low 2026, Figure 2; those of small ones are NumPy's."""
    figure = figures.condition_numbers((8, 20))
    hold(figures.condition_claims(figure))
    nodes = -np.polynomial.chebyshev.chebpts2(8)[::-1]
    assert_allclose(next(iter(figure.lines[0].numbers.values())), np.linalg.cond(np.vander(nodes)), rtol=1e-9)
