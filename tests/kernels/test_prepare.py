"""What is made once per model: a background is used as its method asks for it, and every other combination is an error."""

import numpy as np
import pytest

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, measure_background, merge_statistics, prepare, weigh_leaves
from tests.hypercubes import full_tree, hypercube

TREE = full_tree([0.0, 1.0, 2.0, 4.0], [0, 1])
ROWS = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
PLENTY = 1 << 30


def known(name):
    """What a method asks of a background, and what is known of it."""
    query = ask_background(TREE, METHODS[name], n_rows=len(ROWS), budget=PLENTY)
    return query, measure_background(query, ROWS.T[query.bins.column].copy())


def defaults(name):
    return {parameter.name: parameter.default for parameter in METHODS[name].parameters}


@pytest.mark.parametrize(
    ("name", "asked", "measured"),
    [
        ("shapley", "gap", "gap"),
        ("gap", "shapley", "shapley"),
        ("shapley", "shapley", "gap"),
        ("gap", "gap", "shapley"),
    ],
)
def test_a_background_of_another_kind_is_refused(name, asked, measured):
    """Counts of subtrees are no moments of features, and the other way round; nothing falls back to the path-dependent game."""
    with pytest.raises(InvalidParameters, match=r"the background is known as \w+, the method expects \w+"):
        prepare(TREE, METHODS[name], defaults(name), background=(known(asked)[0], known(measured)[1]))


@pytest.mark.parametrize("name", [method.name for method in METHODS.values() if method.games.background is None])
def test_a_method_without_a_marginal_game_takes_no_background(name):
    """It is refused when the background is asked for, and when tables are made."""
    with pytest.raises(InvalidParameters, match=f"method '{name}' has no marginal game"):
        ask_background(TREE, METHODS[name], n_rows=3, budget=PLENTY)
    with pytest.raises(InvalidParameters, match=f"method '{name}' has no marginal game"):
        prepare(TREE, METHODS[name], defaults(name) | {"sizes": (0.5, 0.5)}, background=known("shapley"))


def test_a_background_that_was_asked_for_without_interactions_has_none():
    """Tables of pairs were not part of its budget."""
    with pytest.raises(InvalidParameters, match="the background was asked for without interactions"):
        prepare(TREE, METHODS["shapley"], {}, interactions=True, background=known("shapley"))


@pytest.mark.parametrize("name", ["shapley", "gap"])
def test_parts_of_a_background_add_up(name):
    """What is known of all rows is what is known of parts of them, added up in their order."""
    query, whole = known(name)
    parts = [measure_background(query, some.T[query.bins.column].copy()) for some in np.split(ROWS, [1, 2])]
    for found, expected in zip(merge_statistics(parts), whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-15)


def test_leaf_weights_are_what_rows_tell_that_reach_every_leaf():
    """One row at every leaf of a tree whose leaves have cover 1."""
    query = known("shapley")[0]
    corners = hypercube(2)
    expected = measure_background(query, corners.T[query.bins.column].copy())
    for found, counted in zip(weigh_leaves(TREE, METHODS["shapley"], None, query), expected, strict=True):
        np.testing.assert_allclose(found, counted, rtol=1e-15, atol=0)


def test_leaf_weights_do_not_tell_how_features_are_spread():
    """A method that perturbs rows needs rows."""
    with pytest.raises(InvalidParameters, match="expected rows, got the model"):
        weigh_leaves(TREE, METHODS["gap"], None, known("gap")[0])
