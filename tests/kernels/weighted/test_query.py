"""What weighted games ask of a background, and what they refuse."""

import numpy as np
import pytest

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_again, ask_background, measure_background
from leafledger.kernels.quotients.quantities import Quantity
from leafledger.kernels.trees.forest import make_forest
from leafledger.kernels.weighted.query import count_games
from tests import naive
from tests.kernels.weighted.carrying import PLENTY, measured
from tests.trees import grown

RNG = np.random.default_rng(1)
ENSEMBLE = grown(RNG, 3, 3, 3)
BACKGROUND = RNG.normal(size=(50, 3))


def ask(name="sigmoid", method="shapley", n_rows=50, **asked):
    """The query of a quantity."""
    return ask_background(ENSEMBLE, METHODS[method], n_rows=n_rows, budget=PLENTY, quantity=Quantity(name), **asked)


def test_the_range_of_margins_comes_first():
    """Of rows alone, not of what pads them; nodes follow, once, and nothing after them."""
    query = ask()
    ranges = measure_background(query, BACKGROUND.T[query.bins.column].copy())
    margins = naive.margins(ENSEMBLE, BACKGROUND)
    assert (ranges.low[0], ranges.high[0]) == (pytest.approx(margins.min()), pytest.approx(margins.max()))
    assert (query.reached[0, 0] <= margins.min(), query.reached[0, 1] >= margins.max()) == (True, True)
    following = ask_again(query, ranges)
    counted = measure_background(following, BACKGROUND.T[query.bins.column].copy())
    assert ask_again(following, counted) is None
    assert ask_again(ask_background(ENSEMBLE, METHODS["shapley"], n_rows=5, budget=PLENTY), counted.rows) is None
    assert (query.players.tolist(), len(query.pairs)) == (query.query.players.tolist(), 0)
    nothing = measure_background(query, np.zeros((query.bins.column.size, 0)))
    assert nothing.merge([ranges]).low == ranges.low


def test_memory_is_that_of_all_games():
    """Squares have two, others as many as margins at most."""
    plain = ask_background(ENSEMBLE, METHODS["shapley"], n_rows=50, budget=PLENTY).n_bytes[0]
    assert (ask("squared").n_bytes[0], ask("log").n_bytes[0]) == (3 * plain, 33 * plain)
    assert (count_games(Quantity("squared"), 3), count_games(Quantity("exp"), 1)) == (6, 32)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda found: found._replace(n_rows=np.array([51])), "50 rows"),
        (lambda found: found._replace(rises=found.rises[:, :0]), "rises of shape"),
        (lambda found: found._replace(nodes=found.nodes._replace(margin=found.nodes.margin[0])), "at most 32 margins"),
        (lambda found: found._replace(nodes=found.nodes._replace(margin=np.full_like(found.nodes.margin, np.nan))), "finite margins"),
        (lambda found: found._replace(nodes=found.nodes._replace(term=found.nodes.term + 7)), "conditions of terms"),
        (lambda found: found._replace(nodes=found.nodes._replace(size=found.nodes.size + 90)), "margins of every output"),
        (lambda found: found._replace(counted=found.counted._replace(counts=found.counted.counts[:, 1:])), "counts of shape"),
        (lambda found: found._replace(counted=found.counted._replace(counts=found.counted.counts + 1)), "rows at every subtree"),
        (lambda found: found.rows, "expects WeightedCounts"),
    ],
)
def test_sums_that_no_rows_have_are_refused(change, expected):
    """They may come from a file that anybody wrote."""
    query = ask()
    counted = measured(query, BACKGROUND)
    query.check(counted, 50)
    with pytest.raises(InvalidParameters, match=expected):
        query.check(change(counted), 50)


def test_what_cannot_be_carried_is_refused():
    """Methods without the marginal game, and a background without rows."""
    with pytest.raises(InvalidParameters, match="'gap' finds is not carried"):
        ask(method="gap")
    with pytest.raises(InvalidParameters, match="have no rows"):
        ask().weigh_leaves(make_forest(ENSEMBLE, None)[1])
    with pytest.raises(InvalidParameters, match="infinite or NaN"):
        ask_again(query := ask(), measure_background(query, np.zeros((query.bins.column.size, 0))))
