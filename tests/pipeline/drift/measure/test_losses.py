"""The change of the mean loss is shared out exactly: against averages that pandas makes of the parts' columns and the data's weights."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from leafledger import drift
from leafledger.pipeline.drift.compare.alarm_thresholds import Thresholds
from leafledger.pipeline.drift.compare.shifts import FEW, judge, shift_loss
from leafledger.pipeline.drift.compare.split import Night
from leafledger.pipeline.drift.measure.means import Means
from leafledger.pipeline.errors import UnlikeRuns, UsageError
from tests.pipeline.drift.loss_nights import FEATURES, WEIGHTED, explain_losses, make_inputs, read_labelled

EXACT = 1e-12
STORED = 1e-7  # summaries are of numbers before they are rounded to single precision, averages of the columns after


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    make_inputs(folder)
    return folder


@pytest.fixture(scope="module", params=[{}, WEIGHTED], ids=["alike", "weighted"])
def nights(request, inputs, tmp_path_factory):
    """Both runs, the first one first, and their rows with what each counts."""
    folder = tmp_path_factory.mktemp("runs")
    runs = [explain_losses(inputs, name, folder / name, by=["region"], **request.param) for name in ("before", "now")]
    rows = [read_labelled(inputs, name, run) for name, run in zip(("before", "now"), runs, strict=True)]
    return runs, [each.assign(counts=each.weight if request.param else 1.0) for each in rows]


def average(rows, name):
    return np.average(rows[name], weights=rows["counts"])


def change(rows, name):
    return average(rows[1], name) - average(rows[0], name)


def test_the_change_of_the_mean_loss_is_that_of_features_and_base_values(nights):
    """To rounding; and each part is the change of its column's mean over the rows that have a label."""
    (before, now), rows = nights
    found = drift(now, against=before, scheduler="serial")
    (split,) = found.outputs
    assert_allclose([split.reference_mean, split.mean], [average(each, "loss") for each in rows], rtol=0, atol=STORED)
    parts = {shift.feature: shift.change for shift in found.shifts if shift.kind == "phi"}
    assert_allclose(split.base + sum(parts.values()) + split.rounding, split.change, rtol=0, atol=EXACT)
    assert_allclose([parts[name] for name in FEATURES], [change(rows, f"phi_{name}") for name in FEATURES], rtol=0, atol=STORED)
    assert_allclose(split.base, change(rows, "base"), rtol=0, atol=STORED)
    assert abs(split.rounding) < STORED < abs(split.base)
    errors = []
    for each in rows:
        apart = each["counts"] * (each["loss"] - average(each, "loss"))
        errors.append((apart**2).sum() / each["counts"].sum() ** 2 * len(each) / (len(each) - 1))
    assert_allclose(split.standard_error, np.sqrt(sum(errors)), rtol=1e-6)


def test_the_change_is_split_by_group_of_rows(nights):
    """Mix and within add up to it, with the groups' shares of rows or weights; within a group features and base values add up again."""
    (before, now), rows = nights
    found = drift(now, against=before, by=["region"], scheduler="serial")
    (mix,), sums = found.mix, [each["counts"].sum() for each in rows]
    center, expected = sum(average(each, "loss") for each in rows) / 2, {}
    for region in ("n", "s"):
        some = [each[each.region == region] for each in rows]
        shares = [each["counts"].sum() / total for each, total in zip(some, sums, strict=True)]
        means = [average(each, "loss") for each in some]
        expected[region,] = ((shares[1] - shares[0]) * (sum(means) / 2 - center), sum(shares) / 2 * (means[1] - means[0]))
    expected["unlabelled",] = (0.0, 0.0)
    assert {group.values: (group.mix, group.within) for group in mix.groups} == {
        name: pytest.approx(numbers, abs=STORED) for name, numbers in expected.items()
    }
    assert_allclose(mix.mix + mix.within, found.outputs[0].change, rtol=0, atol=STORED)
    for group in found.groups:
        some = [each[each.region == group.values[0]] for each in rows]
        (split,) = group.outputs
        if group.values == ("unlabelled",):
            assert (split.features, group.rows) == (None, 20)
            continue
        assert_allclose(split.change, change(some, "loss"), rtol=0, atol=STORED)
        assert_allclose(split.base, change(some, "base"), rtol=0, atol=STORED)
        assert_allclose(split.base + split.features + split.rounding, split.change, rtol=0, atol=EXACT)
        parts = {shift.feature: shift.change for shift in group.shifts if shift.kind == "phi"}
        assert_allclose([parts[name] for name in FEATURES], [change(some, f"phi_{name}") for name in FEATURES], rtol=0, atol=STORED)


def test_what_made_predictions_worse_is_said(nights):
    """By name, in the sentence and in the alarm, of all rows and of a group; and written."""
    (before, now), rows = nights
    found = drift(now, against=before, by=["region"], scheduler="serial")
    (said,) = found.worse
    means = [average(each, "loss") for each in rows]
    assert said.startswith(f"the mean loss rose from {means[0]:.4g} to {means[1]:.4g}, +{means[1] - means[0]:.4g} (standard error ")
    assert f"{change(rows, 'phi_c'):+.4g} (" in said
    rest = sum(change(rows, f"phi_{name}") for name in FEATURES if name != "c")
    labels = change(rows, "base")
    assert ") by c" in said
    assert f"{labels:+.4g} by labels {'harder' if labels > 0 else 'easier'} to predict" in said
    assert f"{rest:+.4g} by the other features" in said
    assert said in found.alarms
    assert any(line.startswith("region=n: the mean loss rose from ") and ") by c" in line for line in found.alarms)
    assert json.loads((now / "after" / "drift.json").read_text())["worse"] == [said]
    back = drift(before, against=now, scheduler="serial")
    assert back.worse[0].startswith("the mean loss fell from ")
    assert " by c" in back.worse[0]
    assert not any("mean loss" in line for line in back.alarms)


def test_a_rise_of_the_mean_loss_is_an_alarm(nights):
    """Where it is sure and as large as the threshold says, which the table has as it has those of columns."""
    (before, now), _ = nights
    found = drift(now, against=before, scheduler="serial")
    (split,) = found.outputs
    rise, table = split.change / split.reference_mean, found.table.to_pandas().set_index("kind").loc["mean loss"]
    assert_allclose(table[["distance", "change"]].astype(float), [rise, split.change])
    assert_allclose(table["p"], stats.norm.sf(split.change / split.standard_error), rtol=1e-9)
    for most, crossed in ((rise * 0.99, True), (rise * 1.01, False)):
        lines = drift(now, against=before, thresholds={"loss": most}, scheduler="serial").alarms
        assert any(line.startswith("the mean loss rose") for line in lines) == crossed


NOTHING = Night(Means(0, np.nan, np.nan, np.nan, np.nan), 0.0, {}, 0.0)


def make_rise(before, now):
    """The shift of the mean loss of rows with these losses."""
    means = [Means(each.size, each.mean(), each.std(ddof=1) / each.size**0.5, np.nan, np.nan) for each in (before, now)]
    (shift,) = shift_loss("loss", "0", tuple(Night(each, 0.0, {}, 0.0) for each in means))
    return shift


@pytest.mark.slow
def test_nights_without_drift_have_few_alarms():
    """Of skewed losses a hundredth, as far as chance goes; nights of few labels are not tested, nor are margins."""
    rng = np.random.default_rng(7)
    rises = [make_rise(rng.gamma(0.5, size=n), rng.gamma(0.5, size=n)) for n in (60, 500) for _ in range(1000)]
    assert sum(judge([each], Thresholds())[0].drifted for each in rises) <= stats.binom.ppf(0.999, len(rises), 0.01)
    assert np.isnan(make_rise(rng.gamma(0.5, size=FEW - 1), rng.gamma(9.0, size=5000)).p)
    assert judge([make_rise(rng.gamma(0.5, size=FEW), rng.gamma(1.0, size=500))], Thresholds())[0].drifted
    assert shift_loss("margin", "0", (NOTHING, NOTHING)) == []


@pytest.mark.slow
def test_runs_without_columns_are_compared_by_their_summaries(inputs, nights, tmp_path):
    """With summaries alone, and with the largest attributions alone: the same means as those of columns."""
    (before, now), rows = nights
    weight = WEIGHTED if rows[0]["counts"].nunique() > 1 else {}
    (expected,) = drift(now, against=before, scheduler="serial").outputs
    for name, options in (("summaries", {"global_only": True, "ids": []}), ("largest", {"top": 2, "columns": "top"})):
        runs = [explain_losses(inputs, night, tmp_path / f"{name}-{night}", **options, **weight) for night in ("before", "now")]
        found = drift(runs[1], against=runs[0], scheduler="serial")
        (split,) = found.outputs
        for field in ("reference_mean", "mean", "standard_error", "base", "features"):
            assert getattr(split, field) == pytest.approx(getattr(expected, field), abs=STORED)
        assert any(line.startswith("the mean loss rose") for line in found.alarms)


def test_losses_that_count_rows_otherwise_are_refused(inputs, nights, tmp_path):
    """By weights or not; and by groups of which a weighted run has no sums, in one line that says which it has."""
    (before, now), rows = nights
    weighted = rows[0]["counts"].nunique() > 1
    other = explain_losses(inputs, "before", tmp_path / "other", **({} if weighted else WEIGHTED))
    with pytest.raises(UnlikeRuns, match=r"weight is (weight|none), .* has (weight|none); expected the same of both"):
        drift(now, against=other)
    if weighted:
        with pytest.raises(UsageError, match="its rows have weights, and it knows mean losses by region, got id; explain it with that --by"):
            drift(now, against=before, by=["id"])
