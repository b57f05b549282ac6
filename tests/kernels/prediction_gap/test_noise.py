"""How features are perturbed: the distributions are SciPy's, those of bins follow from them, and what is measured of parts of data adds up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prediction_gap.noise import (
    NOISES,
    Noise,
    atoms_of,
    deviations,
    measure,
    perturb_rows,
    resampled_units,
)
from leafledger.kernels.prediction_gap.row_state import take_row
from leafledger.kernels.prediction_gap.tables import gap_rows, prepare_gap
from leafledger.kernels.prepare import ask_background, measure_background, merge_statistics
from leafledger.kernels.trees.ensemble import bit_set
from leafledger.kernels.trees.forest import make_forest
from tests.kernels.prediction_gap.gaps import NORMAL, binned, drawn, forest_and_rows, noisy, together
from tests.kernels.prediction_gap.regions import masses
from tests.strategies import batches, forests, partitions
from tests.trees import one_tree, stumps

SCIPY = {"normal": stats.norm(), "uniform": stats.uniform(-(3**0.5), 2 * 3**0.5), "laplace": stats.laplace(scale=0.5**0.5)}


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_distributions_are_those_of_scipy(noise):
    """On both sides of the middle and far from it, where a tail keeps its digits; their standard deviation is 1."""
    z = np.append(np.linspace(-4.0, 4.0, 81), (-37.0, -20.0, 20.0, 37.0, -np.inf, np.inf))
    expected = SCIPY[noise.name]
    assert_allclose(expected.std(), 1.0, rtol=1e-14)
    assert_allclose(noise.lower(z), expected.cdf(z), rtol=1e-12, atol=1e-16 if noise.name == "uniform" else 0)
    assert_allclose(noise.upper(z), expected.sf(z), rtol=1e-12, atol=1e-16 if noise.name == "uniform" else 0)


@given(data=st.data(), ensemble=forests(), empirical=st.booleans(), resample=st.booleans())
def test_units_are_drawn_by_what_they_are(data, ensemble, empirical, resample):
    """Numeric features by themselves, or categories and groups, or both, or none."""
    groups = data.draw(partitions(ensemble))
    forest = make_forest(ensemble, groups)[1]
    numeric = [(groups == g).sum() == 1 and not ensemble.n_categories[groups == g].any() for g in forest.players]
    found = resampled_units(forest, np.full(ensemble.n_features, empirical), resample)
    assert found.tolist() == [empirical if alone else resample for alone in numeric]


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
@given(data=st.data(), ensemble=forests(max_features=3), scale=st.sampled_from((0.3, 2.0)))
def test_bins_are_distributed_as_values_are(noise, data, ensemble, scale):
    """A bin has what SciPy's distribution has between its thresholds; a missing value stays missing, an infinite one where it is."""
    tables, values, bins = noisy(ensemble, data.draw(batches(ensemble)), scale)
    units, found = tables.regions.units, perturb_rows(values, tables.noise, noise)
    for m, u in enumerate(tables.noise.unit):
        t = tables.noise.threshold[tables.noise.start[m] : tables.noise.start[m + 1]]
        for i, x in enumerate(values[tables.noise.feature[m]]):
            if np.isfinite(x):
                below = SCIPY[noise.name].cdf((np.concatenate(([-np.inf], t, [np.inf])) - x) / scale)
                expected = np.append(np.diff(below), 0.0)
            elif np.isnan(x):
                expected = np.append(np.zeros(t.size + 1), 1.0)
            else:
                expected = np.arange(t.size + 2) == bins[tables.noise.feature[m], i]
            assert_allclose(masses(take_row(found, i), units, u), expected, rtol=0, atol=1e-15)


@given(data=st.data(), ensemble=forests(max_features=3))
def test_without_noise_a_value_stays_in_its_bin(data, ensemble):
    """A scale of 0, also at thresholds, where a value less the threshold is no number of scales."""
    tables, values, bins = noisy(ensemble, data.draw(batches(ensemble)), 0.0)
    units, found = tables.regions.units, perturb_rows(values, tables.noise, NORMAL)
    for m, u in enumerate(tables.noise.unit):
        for i, bin_ in enumerate(bins[tables.noise.feature[m]]):
            mass = masses(take_row(found, i), units, u)
            assert_array_equal(mass, np.arange(mass.size) == min(bin_, mass.size - 1))


@given(data=st.data(), ensemble=forests(max_features=3))
def test_drawn_bins_are_distributed_as_in_the_data(data, ensemble):
    """Of numbers by themselves, by counting; the row does not matter."""
    rows, seen = data.draw(batches(ensemble)), data.draw(batches(ensemble))
    tables, values, _ = drawn(ensemble, rows, seen)
    units, found, of_seen = tables.regions.units, perturb_rows(values, tables.noise, NORMAL), binned(ensemble, seen)[1]
    for u in tables.noise.unit:
        mine = of_seen[np.flatnonzero(tables.unit_of == u)[0]].astype(int)
        for i in range(len(rows)):
            mass = masses(take_row(found, i), units, u)
            expected = np.bincount(np.minimum(mine, mass.size - 1), minlength=mass.size) / len(seen)
            assert_allclose(mass, expected, rtol=0, atol=1e-15)


@given(data=st.data(), ensemble=forests(max_features=4))
def test_atoms_are_the_combinations_in_the_data(data, ensemble):
    """Each once, with its share of the rows."""
    seen, groups = data.draw(batches(ensemble)), data.draw(partitions(ensemble))
    values, bins, forest = binned(ensemble, seen, groups)
    everything = np.ones(forest.n_players, bool)
    found = atoms_of(measure(values, bins, forest.player, everything), forest, range(forest.n_players))
    for u, atoms in found.items():
        rows = [tuple(row) for row in bins[forest.player == u].T.tolist()]
        assert dict(zip(map(tuple, atoms.bins.tolist()), atoms.weight, strict=True)) == {row: rows.count(row) / len(rows) for row in rows}


def test_every_row_has_its_own_distributions():
    """Of every noised unit the numbers of its cells, and whether the value is there."""
    tables, values, _ = noisy(*forest_and_rows(), 1.0)
    found, units = perturb_rows(values, tables.noise, NORMAL), tables.regions.units
    assert [array.shape for array in found] == [(3, units.cell[-1]), (3, units.noised.size), (3, units.noised.size)]


def test_rounding_of_a_distribution_function_does_no_harm():
    """One that falls by a rounding between two thresholds, above the middle and below: nothing is between them."""

    def lower(z):
        return np.where(z < 0, np.where(z <= -1.0, 0.2, np.nextafter(0.2, 0.0)), 0.8)

    falling = Noise("falling", lower, lambda z: lower(-z))
    ensemble = one_tree([0, 0, -1, -1, -1], [-0.25, 0.25, 0, 0, 0], [2, 3, -1, -1, -1], [1, 4, -1, -1, -1], [0, 0, 0, 5, 1], [3, 2, 1, 1, 1], 1)
    for x in (-0.75, 0.75):  # one deviation, and a half, from the thresholds
        tables, values, bins = noisy(ensemble, np.array([[x]]), 1.0)
        assert_allclose(gap_rows(tables, falling, values, bins, together(tables, 1, 1, [0])), [[0.2]], rtol=1e-12)


@given(data=st.data(), ensemble=forests())
def test_measures_of_parts_add_up(data, ensemble):
    """Deviations and what units are drawn from, of two parts and of the whole."""
    parts = [data.draw(batches(ensemble, 3)) for _ in range(2)]
    finite = [np.where(np.isfinite(part) & (np.abs(part) < 100), part, np.nan) for part in parts]
    _, _, forest = binned(ensemble, finite[0])
    everything = np.ones(forest.n_players, bool)
    some = np.arange(forest.n_players) % 2 == 0
    for chosen in (everything, some):
        one, two, whole = (measure(*binned(ensemble, rows)[:2], forest.player, chosen) for rows in (*finite, np.concatenate(finite)))
        merged = merge_statistics([one, two])
        assert_allclose(deviations(merged), deviations(whole), rtol=1e-12, atol=1e-12)
        for name in ("n", "start", "seen", "times"):
            assert_array_equal(getattr(merged, name), getattr(whole, name))


def test_scales_are_multiples_of_deviations():
    """Of the values that are finite, each feature's own."""
    ensemble, rows = forest_and_rows()
    seen = np.random.default_rng(3).normal(size=(50, 4)) * [1.0, 2.0, 0.5, 3.0]
    holes = seen.copy()
    holes[::7, 1], holes[::5, 2], holes[3, 3] = np.nan, np.inf, -np.inf
    forest = make_forest(ensemble)[1]
    nothing, wanted = np.zeros(4, bool), [np.std(column[np.isfinite(column)]) for column in holes.T]
    measured = measure(*binned(ensemble, holes)[:2], forest.player, nothing)
    assert_allclose(deviations(measured), wanted, rtol=1e-12)
    tables = prepare_gap(forest, np.full(4, 0.5), measured, relative=True)
    expected, values, bins = noisy(ensemble, rows, 0.5 * np.array(wanted))
    all_of_them = together(tables, 3, 1, range(4))
    assert_allclose(gap_rows(tables, NORMAL, values, bins, all_of_them), gap_rows(expected, NORMAL, values, bins, all_of_them), rtol=1e-10)


FORGED = {
    "another type": lambda it: it._replace(times=it.times.astype(int)),
    "more features": lambda it: it._replace(mean=np.append(it.mean, 0.0)),
    "combinations of another group": lambda it: it._replace(start=it.start + 1),
    "combinations before the first group": lambda it: it._replace(
        start=it.start + 1, seen=np.concatenate((it.seen[:1] + 100, it.seen)), times=np.append(1.0, it.times)
    ),
    "a combination beyond the last group": lambda it: it._replace(
        start=it.start - (np.arange(it.start.size) == it.start.size - 1), seen=np.concatenate((it.seen[:-1], it.seen[-1:] + 100))
    ),
    "a group without any": lambda it: it._replace(start=np.array([0, 0, it.start[-1]])),
    "more values than rows": lambda it: it._replace(n=it.n + 9),
    "never": lambda it: it._replace(times=np.where(np.arange(it.times.size) == 0, 0.0, it.times)),
    "more often than there are rows": lambda it: it._replace(times=it.times + 1),
    "a bin that is none": lambda it: it._replace(seen=it.seen + 100),
    "a negative bin": lambda it: it._replace(seen=it.seen - 100),
    "a feature more": lambda it: it._replace(seen=np.abs(it.seen)),
}


@pytest.mark.parametrize("forged", FORGED)
def test_what_no_rows_give_is_refused(forged):
    """What was measured may come from a file: its bins are read by kernels that check nothing."""
    ensemble = stumps(((0, 0.0, 0.0, 1.0), (1, 0.0, 0.0, 1.0), (2, 1.0, 0.0, 1.0)), 3)
    query = ask_background(ensemble, METHODS["gap"], np.array([0, 1, 1]), n_rows=5, budget=1 << 30)
    honest = measure_background(query, np.random.default_rng(1).normal(size=(3, 5)))
    query.check(honest, 5)
    with pytest.raises(InvalidParameters, match="the background's statistics are those of no rows, expected"):
        query.check(FORGED[forged](honest), 5)


@given(data=st.data(), ensemble=forests(max_features=4))
def test_what_is_measured_is_accepted(data, ensemble):
    """Of any rows of any model, missing values and unseen categories among them; of fewer rows than there are, it is not."""
    rows, groups = data.draw(batches(ensemble)), data.draw(partitions(ensemble))
    query = ask_background(ensemble, METHODS["gap"], groups, n_rows=len(rows), budget=1 << 30)
    with np.errstate(over="ignore", invalid="ignore"):
        measured = measure_background(query, rows.T[query.bins.column])
    query.check(measured, len(rows))
    if query.bins.column.size:
        with pytest.raises(InvalidParameters, match="expected"):
            query.check(measured, len(rows) + 1)


def test_a_category_alone_is_accepted_too():
    """Of a feature with one category a value is it, another or missing, and no more."""
    ensemble = one_tree([0, -1, -1], [0.0, 0, 0], [1, -1, -1], [2, -1, -1], [0, 1, 2], [2, 1, 1], 1)._replace(
        category_set=np.array([0, -1, -1], np.int32), n_categories=np.array([1], np.int32), set_start=np.array([0, 1]), set_words=bit_set([0], 1)
    )
    query = ask_background(ensemble, METHODS["gap"], np.zeros(1, int), n_rows=3, budget=1 << 30)
    measured = measure_background(query, np.array([[0.0, 5.0, np.nan]]))
    query.check(measured, 3)
    assert len(measured.seen) == 3
    with pytest.raises(InvalidParameters, match="bins that values have"):
        query.check(measured._replace(seen=measured.seen + (measured.seen == measured.seen.max())), 3)
