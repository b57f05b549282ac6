"""Both nights by both models: parts that add up exactly, equal to those of rows in memory; nothing is left behind, and other rows are refused."""

import lightgbm
import numpy as np
import pytest
import xgboost
from numpy.testing import assert_allclose

import leafledger
from leafledger import drift, explain
from leafledger.pipeline.drift.compare import two_models
from leafledger.pipeline.drift.compare.two_models import split_two_ways
from leafledger.pipeline.errors import NotRepeatable, UsageError
from tests.more import diagonal
from tests.pipeline.conftest import FEATURES, TRAINING, train, write_data


@pytest.fixture
def two(example, frames, tmp_path):
    """Two nights, the second by a model of its own."""
    models = example.model, str(tmp_path / "second.txt")
    train(frames[1].assign(delay=frames[1]["delay"] * 2)).save_model(models[1])
    for name, model, frame in zip("ab", models, frames, strict=True):
        explain(model, write_data(frame, tmp_path / f"data-{name}"), tmp_path / name, scheduler="serial")
    return models, tmp_path


def test_both_ways_add_up(two, frames):
    """Each feature's change, and the margin's; as by four times attributing rows in memory, by the definition."""
    models, folder = two
    found = drift(folder / "b", against=folder / "a", both_ways=True, scheduler="serial")
    rows = [frame[FEATURES].assign(month=frame["month"].astype(int)) for frame in frames]
    means = [[leafledger.attribute(model, each) for each in rows] for model in models]
    (a_a, a_b), (b_a, b_b) = [[each.phi[:, 0].mean(axis=0) for each in night] for night in means]
    data, model = (a_b - a_a + b_b - b_a) / 2, (b_a - a_a + b_b - a_b) / 2
    by_feature = {shift.feature: shift for shift in found.shifts if shift.kind == "phi"}
    for j, name in enumerate(FEATURES):
        shift = by_feature[name]
        assert_allclose((shift.data, shift.model), (data[j], model[j]), rtol=1e-5, atol=1e-5)
        assert_allclose(shift.data + shift.model, shift.change, atol=1e-12)
    (part,), (split,) = found.parts, found.outputs
    assert_allclose(part.data + part.model + split.rounding, split.change, atol=1e-9)
    assert part.base_data == 0.0
    assert_allclose(part.base_model, split.base, atol=1e-12)
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith("_")) == []


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"outputs": ("early", "late", "lost")}, ("early", "late", "lost")),
        ({"output": "1"}, ("1",)),
        ({"outputs": ("early", "late", "lost"), "output": "late"}, ("late",)),
        ({"outputs": ("1", "2", "0"), "output": "2"}, ("2",)),  # whose position is the name of the first
    ],
)
@pytest.mark.slow
def test_outputs_are_those_of_the_runs(frames, tmp_path, options, names):
    """By their own names, or the one that was explained; the parts of each add up."""
    for name, frame in zip("ab", frames, strict=True):
        train(frame, objective="multiclass", num_class=3).save_model(tmp_path / f"{name}.txt")
        explain(tmp_path / f"{name}.txt", write_data(frame, tmp_path / f"data-{name}"), tmp_path / name, scheduler="serial", **options)
    found = drift(tmp_path / "b", against=tmp_path / "a", both_ways=True, scheduler="serial")
    assert tuple(part.output for part in found.parts) == names
    for part, split in zip(found.parts, found.outputs, strict=True):
        assert_allclose(part.data + part.model + split.rounding, split.change, atol=1e-9)
    # All nights by one model, and its mean margins by the library.
    models = [lightgbm.Booster(model_file=tmp_path / f"{name}.txt") for name in "ab"]
    rows = [frame[FEATURES].assign(carrier=frame["carrier"].astype("category")) for frame in frames]
    (a_a, a_b), (b_a, b_b) = [[model.predict(each, raw_score=True).mean(axis=0) for each in rows] for model in models]
    places = [1] if "output" in options else [0, 1, 2]
    assert_allclose([part.data for part in found.parts], ((a_b - a_a + b_b - b_a) / 2)[places], atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*features by position:UserWarning")
@pytest.mark.slow
def test_columns_beside_the_features_are_none_of_them(frames, tmp_path):
    """Where a model has no names: ids, groups and predictions stand behind its features, as when the runs were made."""
    for name, frame in zip("ab", frames, strict=True):
        numbers = frame[["distance", "month"]].astype(float)
        (tmp_path / f"data-{name}").mkdir()
        model = xgboost.train({"max_depth": 3}, xgboost.DMatrix(numbers.to_numpy(), numbers["distance"] + frame["month"] * 3), 5)
        model.save_model(tmp_path / f"{name}.json")
        beside = {"flight": frame["flight"], "group": frame["month"] % 2, "score": model.predict(xgboost.DMatrix(numbers.to_numpy()))}
        numbers.assign(**beside).to_parquet(tmp_path / f"data-{name}" / "data.parquet")
        told = {"ids": "flight", "by": "group", "predictions": "score"}
        explain(tmp_path / f"{name}.json", tmp_path / f"data-{name}", tmp_path / name, scheduler="serial", **told)
    found = drift(tmp_path / "b", against=tmp_path / "a", both_ways=True, scheduler="serial")
    (part,), (split,) = found.parts, found.outputs
    assert_allclose(part.data + part.model + split.rounding, split.change, atol=1e-9)
    assert [player.player for player in part.players] == ["distance", "month"]


UNSHARED = [{"output": "predicted"}, {"output": "other:3"}, {"method": "banzhaf"}, {"method": "beta"}, {"method": "ranker"}]


@pytest.mark.parametrize(("options", "more"), diagonal(UNSHARED, [{}, {"global_only": True}]))
def test_attributions_that_do_not_add_up_to_one_margin_are_refused(frames, tmp_path, monkeypatch, options, more):
    """In one line, before anything is explained: their parts are not those of the change of the mean margin."""
    for name, frame in zip("ab", frames, strict=True):
        train(frame, objective="multiclass", num_class=3).save_model(tmp_path / f"{name}.txt")
        explain(tmp_path / f"{name}.txt", write_data(frame, tmp_path / f"data-{name}"), tmp_path / name, scheduler="serial", **options, **more)
    monkeypatch.setattr(two_models, "explain_job", None)
    with pytest.raises(UsageError, match=r"/b: both ways share out the mean margin.*; expected attributions that add up to it") as caught:
        drift(tmp_path / "b", against=tmp_path / "a", both_ways=True, scheduler="serial")
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_categories_that_the_other_model_does_not_know_are_unseen_to_it(frames, tmp_path):
    """All of them, as where their names have changed: the parts are those of rows in memory. It was refused, with an option that drift has not."""
    models, rows = [], []
    for name, frame in zip("ab", frames, strict=True):
        own, label = frame.assign(carrier=name + frame["carrier"]), frame["delay"].fillna(0) + 70 * (frame["carrier"] == "UA")
        inputs = own[FEATURES].assign(carrier=own["carrier"].astype("category"))
        lightgbm.train(TRAINING, lightgbm.Dataset(inputs, label), 8).save_model(tmp_path / f"{name}.txt")
        explain(tmp_path / f"{name}.txt", write_data(own, tmp_path / f"data-{name}"), tmp_path / name, scheduler="serial")
        models.append(tmp_path / f"{name}.txt")
        rows.append(own[FEATURES].assign(month=own["month"].astype(int)))
    (part,) = drift(tmp_path / "b", against=tmp_path / "a", both_ways=True, scheduler="serial").parts
    (a_a, a_b), (b_a, b_b) = [[leafledger.attribute(model, each, allow_unseen=True).phi.sum(axis=2).mean() for each in rows] for model in models]
    assert_allclose(part.data, (a_b - a_a + b_b - b_a) / 2, atol=1e-5)


def test_one_model_leaves_everything_to_the_data(nights):
    """And nothing is explained for it."""
    found = drift(nights[1], against=nights[0], both_ways=True)
    for shift in found.shifts:
        if shift.kind == "phi":
            assert (shift.model, shift.data) == (0.0, pytest.approx(shift.change, abs=1e-12))


@pytest.mark.parametrize(
    "told",
    [
        {"missing": 4.0},
        {"partition": {"where": ["distance", "carrier"]}},
        {"background": "DATA"},
    ],
)
@pytest.mark.slow
def test_what_one_night_was_told_goes_with_its_model(example, tmp_path, told):
    """Of the same rows explained by the same model the data did nothing, whatever differs: all of it was booked on the data."""
    given = {name: f"{example.data}/month={night}" for night, name in ((1, "a"), (2, "b"))} if "background" in told else {}
    for name in "ab":
        options = {"background": given[name]} if given else told if name == "b" else {}
        explain(example.model, example.data, tmp_path / name, scheduler="serial", **options)
    (part,) = drift(tmp_path / "b", against=tmp_path / "a", both_ways=True, scheduler="serial").parts
    assert part.base_data == 0.0
    assert_allclose([player.data for player in part.players], 0.0, atol=1e-6)  # attributions are single, and margins double
    assert any(abs(player.model) > 1e-3 for player in part.players)


@pytest.mark.slow
def test_a_background_that_is_another_now_is_refused(two, frames):
    """In one line; nothing is left behind."""
    models, folder = two
    background = write_data(frames[0].iloc[:200], folder / "background")
    for name, model in zip("ab", models, strict=True):
        explain(model, folder / f"data-{name}", folder / f"marginal-{name}", background=background, scheduler="serial")
    write_data(frames[0].iloc[:100], folder / "background")
    with pytest.raises(NotRepeatable, match=r"background: has other files than .*/marginal-a took for its background, or they have changed since"):
        drift(folder / "marginal-b", against=folder / "marginal-a", both_ways=True, scheduler="serial")
    assert not [path for path in folder.iterdir() if path.name.startswith("_drift")]


@pytest.mark.slow
def test_rows_that_are_others_now_are_refused(two, frames):
    """In one line; nothing is left behind."""
    _, folder = two
    write_data(frames[0].iloc[:1000], folder / "data-a")
    with pytest.raises(NotRepeatable, match=r"data-a: has other rows than .*/a explained, or they have changed since"):
        drift(folder / "b", against=folder / "a", both_ways=True, scheduler="serial")
    assert not [path for path in folder.iterdir() if path.name.startswith("_")]


def test_the_split_is_that_of_two_orders():
    """By hand; a feature that one model does not have contributes 0 there."""
    a_a, a_b, b_a, b_b = (
        {"": base, **phi} for base, phi in ((1.0, {"x": 1.0}), (1.0, {"x": 4.0}), (2.0, {"x": 2.0, "y": 5.0}), (2.0, {"x": 7.0, "y": 6.0}))
    )
    part = split_two_ways("0", a_a, a_b, b_a, b_b)
    found = {each.player: (each.data, each.model) for each in part.players}
    assert found == {"x": (4.0, 2.0), "y": (0.5, 5.5)}
    assert (part.base_data, part.base_model) == (0.0, 1.0)
    assert np.isclose(part.data + part.model, (2 + 7 + 6) - (1 + 1))
