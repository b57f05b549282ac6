"""The share that small sets explain: that of the definition in exact fractions, within its error, whatever is asked of it; and what is refused."""

from fractions import Fraction

import lightgbm
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import leafledger
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.in_memory.rankings import played_rows
from tests import naive_sets
from tests.more import more

FEATURES = ["a", "b", "c", "d", "e"]
GROUPS = {"first": ["a", "b"], "second": ["c", "d", "e"]}
AGAIN, ORDERINGS = 12, 40  # independent estimates, and orders of each


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    drawn = rng.normal(size=(3000, 6))
    drawn[rng.random(drawn.shape) < 0.05] = np.nan
    return pd.DataFrame(drawn, columns=[*FEATURES, "unused"])


@pytest.fixture(scope="module")
def model(rows):
    """Trees of products of two and three features, and one feature in no split."""
    a, b, c, d, e = rows[FEATURES].fillna(0).to_numpy().T
    settings = {"verbosity": -1, "num_threads": 1, "deterministic": True, "seed": 1, "num_leaves": 12, "learning_rate": 0.3}
    labelled = lightgbm.Dataset(rows.assign(unused=0.0), a + a * b + 2 * b * c * d + e)
    return leafledger.load_ensemble(lightgbm.train(settings, labelled, 12))


def exact_share(model, matrix, order, background=None):
    """Of all rows together: over all coalitions of features in splits but nobody and everybody, by Shapley's weights, in exact fractions."""
    n, missed, varied = len(FEATURES), Fraction(0), Fraction(0)
    everyone = frozenset(range(n))
    coalitions = [S for S in naive_sets.subsets(everyone) if 0 < len(S) < n]
    for row in matrix:
        v = naive_sets.play(model.ensemble, row, 0, background)
        found = naive_sets.by_index(v, n, "FSII", order)
        weights = [Fraction(1, len(S) * (n - len(S)) * len([U for U in coalitions if len(U) == len(S)])) for S in coalitions]
        mean = sum(w * v(S) for w, S in zip(weights, coalitions, strict=True)) / sum(weights)
        fitted = [v(frozenset()) + sum(each for T, each in found.items() if T <= S) for S in coalitions]
        missed += sum(w * (v(S) - near) ** 2 for w, S, near in zip(weights, coalitions, fitted, strict=True))
        varied += sum(w * (v(S) - mean) ** 2 for w, S in zip(weights, coalitions, strict=True))
    return float(1 - missed / varied)


@pytest.mark.parametrize("order", [*more(1), 2, *more(3)])
@pytest.mark.parametrize("against", [False, True], ids=["path-dependent", "marginal"])
@pytest.mark.slow
def test_it_is_that_of_the_definition(model, rows, order, against):
    """The mean of independent estimates is within four of its standard errors of the exact share: six rows, missing values."""
    some, background = rows[::500], rows[3:9] if against else None
    expected = exact_share(model, some.to_numpy(), order, background.to_numpy() if against else None)
    found = [
        leafledger.explained_share(model, some, order, n_orderings=ORDERINGS, seed=seed, background=background).share[0] for seed in range(AGAIN)
    ]
    assert 0.2 < expected < 0.9999
    assert abs(np.mean(found) - expected) <= 4 * np.std(found, ddof=1) / np.sqrt(AGAIN)
    assert np.std(found, ddof=1) < 0.2 * (1 - expected)


@pytest.mark.slow
def test_errors_are_those_of_other_rows(model, rows):
    """As far as estimates from other rows lie from one another."""
    found = [leafledger.explained_share(model, rows[k::60], 1, n_orderings=16) for k in range(0, 60, 2)]
    spread = np.std([each.share[0] for each in found], ddof=1)
    assert 0.6 < np.mean([each.error[0] for each in found]) / spread < 1.6


@pytest.mark.slow
def test_as_many_features_as_paths_have_explain_all(model, rows):
    """And more orders never explain less, of the same coalitions nearly."""
    found = [leafledger.explained_share(model, rows[:50], order) for order in (1, 2, 3, 5)]
    assert np.all(np.diff([each.share[0] for each in found]) > 0)
    assert abs(found[3].share[0] - 1) < 1e-12
    assert found[3].error[0] < 1e-12


def test_of_groups(model, rows):
    """Two groups are explained by sets of two; a feature in no group is its own."""
    two, one = (leafledger.explained_share(model, rows[:20], order, partition=GROUPS) for order in (2, 1))
    assert_allclose(two.share, [1.0], rtol=0, atol=1e-12)
    assert 0 < one.share[0] < 1


def test_every_output_has_a_share_or_each_rows_own_class(rows):
    """That of the rows of one class is that output's."""
    settings = {"objective": "multiclass", "num_class": 3, "verbosity": -1, "num_threads": 1, "num_leaves": 8}
    label = np.searchsorted([-0.5, 0.5], rows["a"].fillna(0) * rows["b"].fillna(0))
    model = leafledger.load_ensemble(lightgbm.train(settings, lightgbm.Dataset(rows, label), 3))
    margins = leafledger.attribute(model, rows[:100]).margin
    chosen = rows[:100][margins.argmax(axis=1) == 2]
    all_outputs, own = (leafledger.explained_share(model, chosen, 1, output=output) for output in (None, "predicted"))
    assert all_outputs.share.shape == all_outputs.error.shape == (3,)
    assert len(chosen) > 5
    assert_array_equal(own.share, all_outputs.share[2:])
    assert_array_equal(own.error, all_outputs.error[2:])


def test_the_same_seed_has_the_same_numbers_however_rows_are_cut(model, rows, monkeypatch):
    """To the last digits, which sums of other lengths round."""
    whole = leafledger.explained_share(model, rows[:300], 1, n_orderings=4, seed=5)
    monkeypatch.setattr(played_rows, "max_slice_rows", lambda cells: 128)
    cut = leafledger.explained_share(model, rows[:300], 1, n_orderings=4, seed=5)
    assert_allclose(cut.share, whole.share, rtol=1e-12)
    other = leafledger.explained_share(model, rows[:300], 1, n_orderings=4, seed=6)
    assert abs(other.share[0] - whole.share[0]) > 1e-6


def test_a_game_that_does_not_vary_has_no_share(model, rows):
    """All features are one group: there is no coalition between nobody and everybody."""
    found = leafledger.explained_share(model, rows[:5], 1, partition={"all": [*FEATURES, "unused"]})
    assert_array_equal(found.share, [np.nan])


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"order": 0}, r"order is 0, expected a number of at least 1"),
        ({"order": 7}, r"order is 7, expected at most 6, as there are 6 features"),
        ({"n_orderings": 1}, r"n_orderings is 1, expected a number of at least 2"),
        ({"seed": -1}, r"seed is -1, expected a number of at least 0"),
        ({"n_rows": 1}, r"rows are 1, expected at least 2, from which the error of the share is measured"),
    ],
)
def test_what_cannot_be_estimated_is_refused(model, rows, changed, says):
    """In one line."""
    asked = {"order": 2, "n_rows": 3} | changed
    with pytest.raises(UsageError, match=f"^{says}$"):
        leafledger.explained_share(model, rows[: asked.pop("n_rows")], **asked)
