"""Standard errors of values against a background, from the definition of the jackknife."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.method.jackknife import BACKGROUND_ERRORS, N_GROUPS, JackknifeGroups, assign_groups, find_errors, standard_errors
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, measure_background, merge_statistics, prepare, weigh_leaves
from leafledger.kernels.reductions.summary import Subject
from leafledger.kernels.slices.buffers import make_buffers
from tests.hypercubes import full_tree
from tests.kernels.attributing import run
from tests.kernels.marginal.against import PARAMETERS, against

TREE = full_tree([0.0, 1.0, 2.0, 4.0, -3.0, 2.5, 1.0, 7.0], [0, 1, 2])
RNG = np.random.default_rng(12)
BACKGROUND = RNG.integers(0, 2, (53, 3)).astype(float)
ROWS = RNG.integers(0, 2, (9, 3)).astype(float)
PLENTY = 1 << 40


def ask(name="shapley", n_rows=53, group=None):
    return ask_background(TREE, METHODS[name], group, n_rows=n_rows, budget=PLENTY, errors=True)


def measured(query, rows=BACKGROUND, first_row=0):
    return measure_background(query, rows.T[query.bins.column].copy(), first_row)


def prepared_with_errors(name="shapley", group=None):
    query = ask(name, group=group)
    return prepare(TREE, METHODS[name], PARAMETERS[name], group, background=(query, measured(query)))


def attributed(prepared, name, rows=ROWS):
    buffers = make_buffers(prepared, len(rows))
    buffers.values[:, : len(rows)] = rows.T[prepared.bins.column]
    attribute_batch(METHODS[name], prepared, buffers)
    return buffers


def lot_of(rows=BACKGROUND):
    return assign_groups(0, len(rows), len(rows))


@pytest.mark.again
@pytest.mark.parametrize(("name", "group"), [("shapley", None), ("banzhaf", None), ("probabilistic", None), ("owen", np.array([0, 0, 1]))])
def test_errors_are_those_of_the_jackknife(name, group):
    """Values against all rows but a lot's, one lot after the other; against all rows they are what they are without errors, bit for bit."""
    given = PARAMETERS[name] | ({"sizes": (0.5, 0.25, 0.25)} if name == "probabilistic" else {})
    query = ask(name, group=group)
    prepared = prepare(TREE, METHODS[name], given, group, background=(query, measured(query)))
    phi, _, _ = run(name, against(name, TREE, BACKGROUND, given, group), ROWS, 3)
    without = [run(name, against(name, TREE, BACKGROUND[lot_of() != lot], given, group), ROWS, 3)[0] for lot in range(N_GROUPS)]
    wanted = np.sqrt(sum((each - phi) ** 2 for each in without) * (N_GROUPS - 1) / N_GROUPS)
    buffers = attributed(prepared, name)
    assert_array_equal(buffers.phi[:, :, : len(ROWS)].transpose(2, 0, 1), phi)
    assert_allclose(find_errors(buffers)[:, :, : len(ROWS)].transpose(2, 0, 1), wanted, rtol=1e-9, atol=1e-14)
    assert wanted.max() > 0.01


def test_rows_are_dealt_out_by_their_numbers_however_they_come():
    query = ask()
    whole = measured(query)
    assert query.players.tolist() == [0, 1, 2]
    assert whole.n_rows.tolist() == [3 if lot < 53 % N_GROUPS else 2 for lot in range(N_GROUPS)] == np.bincount(lot_of()).tolist()
    parts = [measured(query, BACKGROUND[start:stop], start) for start, stop in ((0, 7), (7, 8), (8, 8), (8, 53))]
    merged = merge_statistics(parts)
    plain = measured(ask_background(TREE, METHODS["shapley"], n_rows=53, budget=PLENTY))
    assert_array_equal(merged.n_rows, whole.n_rows)
    for lots in (whole, merged):
        for field in plain._fields:
            assert_array_equal(getattr(lots.together(), field), getattr(plain, field))
    for mine, other in zip(merged.parts, whole.parts, strict=True):
        for field in plain._fields:
            assert_array_equal(getattr(mine, field), getattr(other, field))


@pytest.mark.parametrize("n_rows", [40, 200, 5000])
@pytest.mark.parametrize(
    "order",
    [lambda n: np.arange(n), lambda n: np.arange(n) % 2, lambda n: np.arange(n) % N_GROUPS, lambda n: 10 * np.arange(n) // n],
    ids=["sorted", "alternating", "as many kinds as lots", "kinds one after another"],
)
def test_errors_are_those_of_independent_draws_however_rows_are_sorted(n_rows, order):
    """Of a mean SciPy's: squares of the jackknife's errors are about chi² of 19 degrees of freedom, and right on the average over numbers of rows."""
    found = []
    for n in range(n_rows, n_rows + 40):
        rows, lots = order(n).astype(float), assign_groups(0, n, n)
        without = np.array([rows[lots != lot].mean() for lot in range(N_GROUPS)])
        found.append((standard_errors(without, rows.mean()) / stats.sem(rows)) ** 2 * (N_GROUPS - 1))
    assert stats.chi2.cdf(min(found), N_GROUPS - 1) > 1e-5
    assert stats.chi2.sf(max(found), N_GROUPS - 1) > 1e-5
    assert np.mean(found) == pytest.approx(N_GROUPS - 1, rel=0.2)  # four standard errors


def test_means_of_values_have_errors_of_their_own():
    """What a mean is without a lot is the mean of the values without it, over all rows that were explained, in slices."""
    prepared = prepared_with_errors()
    buffers = attributed(prepared, "shapley")
    values = np.stack([*buffers.without, buffers.phi])[..., : len(ROWS)]
    state = BACKGROUND_ERRORS.init(buffers)
    for some in (ROWS[:4], ROWS[4:]):
        state = BACKGROUND_ERRORS.update(state, attributed(prepared, "shapley", some), len(some))
    subject = Subject(("0",), ("a", "b", "c", "never asked"), np.arange(3), np.zeros((0, 2), np.int32), 0)
    columns = BACKGROUND_ERRORS.tabulate(state, subject)["background_errors"].columns
    assert tuple(columns) == BACKGROUND_ERRORS.columns
    assert columns["feature"] == ["a", "b", "c", "never asked"]
    for name, of_rows in (("mean_abs", np.abs(values)), ("mean", values)):
        means = of_rows.mean(axis=-1)
        assert_allclose(columns[name], [*means[-1, 0], 0.0], atol=1e-14)
        wanted = np.sqrt(((means[:-1] - means[-1]) ** 2).sum(axis=0) * (N_GROUPS - 1) / N_GROUPS)
        assert_allclose(columns[f"{name}_error"], [*wanted[0], 0.0], atol=1e-14)
    assert_allclose(columns["error"], [*find_errors(buffers)[0, :, : len(ROWS)].mean(axis=1), 0.0], atol=1e-14)


def test_equal_lots_have_the_usual_error_of_a_mean():
    """Of a mean the jackknife is the standard deviation of the lots' own means, over the root of their number."""
    lots = RNG.normal(size=(N_GROUPS, 5))
    without = (lots.sum(axis=0) - lots) / (N_GROUPS - 1)
    assert_allclose(standard_errors(without, lots.mean(axis=0)), lots.std(axis=0, ddof=1) / np.sqrt(N_GROUPS), rtol=1e-12)


def test_without_lots_nothing_differs():
    """As where kernels are compiled before a run."""
    assert_array_equal(standard_errors(np.zeros((0, 5)), np.ones(5)), np.zeros(5))


def test_what_has_no_errors_is_refused():
    for name in ("ranker", "gap"):
        with pytest.raises(InvalidParameters, match=f"what method '{name}' finds has no standard errors"):
            ask(name)
    with pytest.raises(InvalidParameters, match="standard errors need a background of at least 40 rows, got 39 rows"):
        ask(n_rows=39)
    with pytest.raises(InvalidParameters, match="at least 40 rows, got the model's own leaf weights"):
        ask(n_rows=None)
    with pytest.raises(InvalidParameters, match="the model's own leaf weights are no rows"):
        weigh_leaves(TREE, METHODS["shapley"], None, ask())
    with pytest.raises(InvalidParameters, match="the background is known as Background, the method expects JackknifeGroups"):
        prepare(TREE, METHODS["shapley"], {}, background=(ask(), measured(ask()).together()))


def test_lots_that_cannot_be_are_refused():
    """They may come from a file."""
    query = ask()
    lots = measured(query)
    query.check(lots, 53)
    wrong = {
        "20 groups": [lots.parts[0], JackknifeGroups(lots.parts[1:], lots.n_rows), lots._replace(parts=lots.n_rows)],
        "n_rows of": [lots._replace(n_rows=lots.n_rows.astype(float)), lots._replace(n_rows=lots.n_rows[1:])],
        "numbers of rows": [lots._replace(n_rows=lots.n_rows - 3)],
        "53 rows in all groups": [lots._replace(n_rows=lots.n_rows + 1)],
        "rows at every": [lots._replace(n_rows=np.roll(lots.n_rows, 1))],
    }
    for what, several in wrong.items():
        for each in several:
            with pytest.raises(InvalidParameters, match=f"those of no rows, expected .*{what}"):
                query.check(each, 53)


def test_interactions_are_those_without_errors():
    """Of all rows of the background; errors beside are of attributions."""
    shapley = METHODS["shapley"]
    asked = ask_background(TREE, shapley, n_rows=53, budget=PLENTY, errors=True, interactions=True)
    alone = ask_background(TREE, shapley, n_rows=53, budget=PLENTY, interactions=True)
    assert_array_equal(asked.pairs, alone.pairs)
    assert len(asked.pairs) == 3
    found, expected = (
        attributed(prepare(TREE, shapley, {}, interactions=True, background=(query, measured(query))), "shapley") for query in (asked, alone)
    )
    assert_allclose(found.pairs, expected.pairs, rtol=0, atol=1e-15)
    assert np.abs(found.pairs).max() > 0.1
    assert len(found.without) == N_GROUPS
