"""Columns side by side, judged: false alarms stay at the rate promised, a small shift is found, and what is small or unsure is none."""

import dataclasses
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from leafledger import explain
from leafledger.kernels.distributions.histogram import Histogram, find_cells
from leafledger.pipeline.drift.compare.alarm_thresholds import Thresholds
from leafledger.pipeline.drift.compare.shifts import (
    _compare,
    _fold,
    _shift,
    judge,
    set_parts,
    shift_groups,
    shift_mean,
    shift_phi,
    shift_total,
    shift_values,
)
from leafledger.pipeline.drift.compare.split import Night, take_night
from leafledger.pipeline.drift.compare.statistics import Apart, compare_categories, compare_numbers
from leafledger.pipeline.drift.measure.distribution import Categories, Distribution
from leafledger.pipeline.drift.measure.means import find_means, means_of, nothing
from leafledger.pipeline.drift.measure.measured_run import measure_run
from tests.more import more
from tests.pipeline.conftest import train, write_data
from tests.pipeline.running import attributions

FEATURES, PLACES = 10, np.linspace(-4.0, 4.0, 81)


@cache
def chances(shift):
    """Of a value at each of the places, of a normal distribution that is moved so far."""
    return np.diff(np.concatenate(([0.0], stats.norm.cdf(PLACES[:-1] - shift), [1.0])))


def draw(rng, n_rows, shift=0.0):
    """A night of one column, drawn by its counts in places, which is drawing its rows."""
    counts, places = rng.multinomial(n_rows, chances(shift)), PLACES
    there = counts > 0
    mean = (counts * places).sum() / n_rows
    size = (counts * np.abs(places)).sum() / n_rows
    spreads = (counts * (places - mean) ** 2).sum(), (counts * (np.abs(places) - size) ** 2).sum()
    found = Histogram(0, find_cells(places[there], 0), counts[there])
    return Distribution(n_rows, 0, 0, mean, spreads[0], size, spreads[1], places[there][0], places[there][-1], found)


def night_pair(rng, n_rows, shift=0.0):
    """Shifts of all features' values between two nights; of one of them by so many deviations."""
    pairs = [(draw(rng, n_rows), draw(rng, n_rows, shift if j == 7 else 0.0)) for j in range(FEATURES)]
    return [_shift("value", "", f"f{j}", means_of(a), means_of(b), compare_numbers(a, b)) for j, (a, b) in enumerate(pairs)]


@pytest.mark.slow
def test_false_alarms_stay_at_the_rate_promised():
    """Of 500 pairs of nights without drift at most 1 % have an alarm; by the tests alone as well, without asking how large a change is."""
    rng, alarms, unsized = np.random.default_rng(0), 0, 0
    alone = Thresholds(distance=0.0)
    for n_rows in [200] * 450 + [5000] * 50:
        shifts = night_pair(rng, n_rows)
        alarms += any(shift.drifted for shift in judge(shifts, Thresholds()))
        unsized += any(shift.drifted for shift in judge(shifts, alone))
    assert alarms <= 5
    assert unsized <= 5 + 3 * np.sqrt(5)


@pytest.mark.parametrize("n_rows", [*more(1, 2), 3, *more(5, 8, 20)])
@pytest.mark.slow
def test_nights_of_a_few_rows_raise_no_false_alarms(n_rows):
    """At most 1 % of 300 pairs of nights without drift, and but for chance, by the tests alone; no two nights of 3 rows are far enough apart."""
    rng, alone = np.random.default_rng(n_rows), Thresholds(distance=0.0)
    unsized = sum(any(shift.drifted for shift in judge(night_pair(rng, n_rows), alone)) for _ in range(300))
    assert unsized <= (3 + 3 * np.sqrt(3) if n_rows > 3 else 0)


@pytest.mark.slow
def test_a_shift_of_a_fifth_of_a_deviation_is_found():
    """In one of ten features, at 5,000 rows: nearly always, and that feature alone."""
    rng, found, others = np.random.default_rng(1), 0, 0
    for _ in range(100):
        drifted = [shift.feature for shift in judge(night_pair(rng, 5000, 0.2), Thresholds()) if shift.drifted]
        found += "f7" in drifted
        others += len(set(drifted) - {"f7"})
    assert found >= 99
    assert others <= 5


def test_what_is_sure_but_small_is_no_drift():
    """Millions of rows make every change sure; a threshold of PSI is one of its own."""
    rng = np.random.default_rng(2)
    small = [_shift("value", "", "f", means_of(a), means_of(b), compare_numbers(a, b)) for a, b in [(draw(rng, 10**7), draw(rng, 10**7, 0.1))]]
    (judged,) = judge(small, Thresholds())
    assert judged.corrected < 1e-9
    assert not judged.drifted
    assert judge(small, Thresholds(psi=0.005))[0].drifted
    assert not judge(small, Thresholds(psi=0.5))[0].drifted


def test_a_threshold_is_crossed_where_it_is_reached():
    """As help says: at least so far, and at most so likely by chance."""
    night = nothing(100)
    at = _shift("value", "", "f", night, night, Apart(distance=0.05, p=0.01))
    given = Thresholds(false_discovery_rate=0.01, distance=0.05)
    assert judge([at], given)[0].drifted
    assert not judge([dataclasses.replace(at, distance=np.nextafter(0.05, 0))], given)[0].drifted
    assert not judge([dataclasses.replace(at, p=np.nextafter(0.01, 1))], given)[0].drifted


def test_numbers_and_categories_are_not_compared():
    """A column that was one and is the other has no distance, and no chance."""
    numbers, texts = draw(np.random.default_rng(0), 9), Categories(9, 0, None, (("a", 9),))
    for pair in ((numbers, texts), (texts, numbers), (None, texts), (numbers, None)):
        assert repr(_compare(*pair)) == repr(Apart())
    assert _compare(texts, texts).distance == 0.0


def test_groups_have_the_rows_of_their_nights():
    """And total variation as their distance: of 1/4 and 3/4 against halves, 1/4."""
    found = shift_groups("carrier", {"a": 10, "b": 30}, {"a": 25, "b": 25})
    assert (found.reference_rows, found.rows, found.distance) == (40, 50, 0.25)


def test_missing_values_of_a_group_are_those_of_its_rows(nights, frames):
    """Summaries are of all rows: of a group its columns of values alone tell."""
    reference, current = (dataclasses.replace(measure_run(night), group='["x"]') for night in nights)
    found = {(shift.kind, shift.feature): shift for shift in shift_values(current, reference)}
    for (kind, feature), shift in found.items():
        if kind == "missing":
            assert_allclose((shift.reference_mean, shift.mean), [frame[feature].isna().mean() for frame in frames])
    assert {name for kind, name in found if kind == "missing"} == {"distance", "delay", "carrier", "month"}


def test_shifts_are_those_of_the_columns(nights):
    """Means, their standard errors, shares and ranks as NumPy has them on the rows of both nights."""
    reference, current = map(measure_run, nights)
    pair = [take_night(each, find_means(each, "0"), "0") for each in (reference, current)]
    before, now = (attributions(night).to_pandas().filter(regex="^phi_").astype(float) for night in nights)
    found = shift_phi("0", current, reference, tuple(pair))
    for shift in found:
        a, b = (frame[f"phi_{shift.feature}"] for frame in (before, now))
        assert_allclose(shift.change, b.mean() - a.mean(), rtol=1e-8, atol=1e-12)
        assert_allclose(shift.standard_error, np.hypot(a.sem(), b.sem()), rtol=1e-8)
        assert_allclose(shift.change_abs, b.abs().mean() - a.abs().mean(), rtol=1e-8, atol=1e-12)
        assert_allclose(shift.standard_error_abs, np.hypot(a.abs().sem(), b.abs().sem()), rtol=1e-8)
        assert_allclose(
            (shift.reference_share, shift.share), [frame[f"phi_{shift.feature}"].abs().mean() / frame.abs().mean().sum() for frame in (before, now)]
        )
        assert shift.rank == now.abs().mean().rank(method="first", ascending=False)[f"phi_{shift.feature}"]
    total = shift_total("margin", "0", current, reference, tuple(pair))
    assert_allclose(total.change, sum(shift.change for shift in found), rtol=1e-6)


def test_shares_of_nothing_are_0(nights):
    """Where no feature moves any prediction."""
    reference, current = map(measure_run, nights)
    night = take_night(current, find_means(current, "0"), "0")
    still = dataclasses.replace(night, phi=dict.fromkeys(night.phi, nothing(night.total.rows)))
    for shift in shift_phi("0", current, reference, (still, still)):
        assert (shift.reference_share, shift.share, shift.change_abs) == (0.0, 0.0, 0.0)


def test_missing_and_unseen_values_are_compared(nights, frames):
    """As shares of the rows, by the features that a split asks for, and by the columns of values where there are some."""
    reference, current = map(measure_run, nights)
    found = {(shift.kind, shift.feature): shift for shift in shift_values(current, reference)}
    a, b = frames
    missing, unseen = found["missing", "carrier"], found["unseen", "carrier"]
    assert_allclose((missing.reference_mean, missing.mean), [frame["carrier"].isna().mean() for frame in (a, b)])
    assert_allclose((unseen.reference_mean, unseen.mean), [0.0, (b["carrier"] == "<b>").mean()])
    assert ("unseen", "delay") not in found
    assert {name for kind, name in found if kind == "value"} == {"distance", "delay", "carrier", "month"}
    drifted = {(shift.kind, shift.feature) for shift in judge(list(found.values()), Thresholds()) if shift.drifted}
    assert drifted >= {("value", "delay"), ("unseen", "carrier"), ("missing", "carrier")}
    assert not drifted & {("value", "distance"), ("missing", "distance"), ("missing", "delay")}


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_values_do_not_move_with_the_list_of_categories(frames, tmp_path, order):
    """The same rows, by a model that lists a category of a tenth of them and one that does not: their values stay, what is unseen falls or rises."""
    frame = frames[0].assign(carrier=np.array(["UA"] * 5 + ["AA"] * 4 + ["DL"])[np.arange(len(frames[0])) % 10])
    data = write_data(frame, tmp_path / "data")
    for name, rows in zip(order, (frame[frame["carrier"] != "DL"], frame), strict=True):
        train(rows).save_model(tmp_path / f"{name}.txt")
        explain(tmp_path / f"{name}.txt", data, tmp_path / name, values=True, scheduler="serial")
    found = {(shift.kind, shift.feature): shift for shift in shift_values(measure_run(tmp_path / "b"), measure_run(tmp_path / "a"))}
    value, unseen = found["value", "carrier"], found["unseen", "carrier"]
    assert (value.distance, value.psi) == (0.0, 0.0)
    assert value.p == 1.0
    assert {unseen.reference_mean, unseen.mean} == {0.1, 0.0}
    assert unseen.distance == 0.1


def test_names_that_one_model_does_not_list_are_one_with_the_unseen():
    """Also where the other model lists none; what was too many to count stays so."""
    listed = Categories(100, 0, 10, (("a", 50), ("b", 40)))
    codes = Categories(100, 0, None, (("a", 50), ("b", 40), ("d", 6), ("e", 4)))
    assert compare_categories(*(_fold(each, {"a", "b"}) for each in (listed, codes))).distance == 0.0
    many = Categories(9000, 0, None, None)
    assert _fold(many, {"a"}) is many


def test_parts_of_two_models_are_set():
    """Of attributions alone."""
    (shift,) = [
        _shift("phi", "0", "a", *[means_of(draw(np.random.default_rng(0), 9))] * 2, compare_numbers(*[draw(np.random.default_rng(0), 9)] * 2))
    ]
    found = set_parts([shift, dataclasses.replace(shift, kind="value", output="")], {("0", "a"): (1.0, 2.0)})
    assert (found[0].data, found[0].model) == (1.0, 2.0)
    assert np.isnan(found[1].data)


@pytest.mark.parametrize(("moved", "alarms"), [(0.05, False), (0.15, True), (0.3, True)])
def test_the_mean_alarms_where_its_rows_do(moved, alarms):
    """Predictions that all move by so many deviations: one verdict of the mean and of the share of rows that are elsewhere."""
    rng = np.random.default_rng(5)
    nights = tuple(draw(rng, 10**6, shift) for shift in (0.0, moved))
    means = tuple(Night(means_of(night), 0.0, {}, 0.0) for night in nights)
    shifts = [*shift_mean("prediction", "0", means), _shift("prediction", "0", "", *map(means_of, nights), compare_numbers(*nights))]
    assert_allclose(shifts[0].distance, moved, atol=0.01)
    assert [shift.drifted for shift in judge(shifts, Thresholds())] == [alarms, alarms]
