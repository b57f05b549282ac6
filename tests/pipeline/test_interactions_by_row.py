"""Interactions of probabilities and losses, background row by background row: against each row of it alone, in memory and in runs."""

import numpy as np
import pandas as pd
import pytest
import xgboost

from leafledger import attribute, check_run, explain, save_model
from leafledger.pipeline.errors import AdditivityBreach, UsageError
from tests.pipeline.running import attributions

FEATURES = list("abcd")
RNG = np.random.default_rng(4)
ROWS = pd.DataFrame(RNG.normal(size=(400, 4)), columns=FEATURES)
LABEL = (ROWS.eval("a * b + c * d") + RNG.normal(size=400) > 0).astype(float)
PROBE, OTHERS = ROWS[:6], ROWS[100:105]
ROUNDED = 1e-9  # of a row's largest interaction
SPACES = {
    "probability": lambda m, y: 1 / (1 + np.exp(-m)),
    "loss": lambda m, y: np.where(y == 1, np.log1p(np.exp(-m)), np.log1p(np.exp(m))),
}


@pytest.fixture(scope="module")
def model():
    return xgboost.XGBClassifier(max_depth=3, n_estimators=12, n_jobs=1).fit(ROWS, LABEL)


def label_of(space, label):
    """What a loss needs."""
    return {"label": label} if space == "loss" else {}


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("asked", [{}, {"order": 3}, {"order": 2, "index": "SII"}, {"order": 2, "partition": {"both": ["a", "c"]}}], ids=str)
def test_they_are_those_of_each_background_row_times_its_quotient(model, space, asked):
    """And averaged: of pairs, of sets by two indices, and of groups."""
    found = attribute(model, PROBE, background=OTHERS, interactions="all", space=space, **label_of(space, LABEL[:6]), **asked)
    expected, of, y = np.zeros_like(found.interactions), SPACES[space], LABEL[:6].to_numpy()
    for b in range(len(OTHERS)):
        alone = attribute(model, PROBE, background=OTHERS[b : b + 1], interactions="all", **asked)
        u, w = alone.margin[:, 0], np.broadcast_to(alone.base, alone.margin.shape)[:, 0]
        expected[:, 0] += ((of(u, y) - of(w, y)) / (u - w))[:, None] * alone.interactions[:, 0] / len(OTHERS)
    assert found.sets == alone.sets
    assert np.abs(found.interactions - expected).max() <= ROUNDED * np.abs(expected).max()
    if asked.get("order") == 3:
        total = found.prediction - found.base if space == "probability" else found.prediction[:, 0] - found.base.reshape(-1)
        assert np.abs(found.interactions.sum(axis=2).reshape(-1) - total.reshape(-1)).max() <= ROUNDED * np.abs(expected).max()


def test_matrices_have_lines_that_add_up_to_attributions(model):
    """Of probabilities as of margins."""
    found = attribute(model, PROBE, background=OTHERS, interactions="all", space="probability")
    assert np.abs(found.interaction_matrix().sum(axis=3) - found.phi).max() < 1e-12
    assert np.abs(found.interaction_matrix(halves=False)[:, 0, 0, 1] - found.interactions[:, 0, found.pairs.index(("a", "b"))]).max() == 0


def test_rows_without_a_label_have_none(model):
    """As they have no attributions."""
    label = LABEL[:6].copy()
    label.iloc[2] = np.nan
    found = attribute(model, PROBE, background=OTHERS, interactions="all", order=2, space="loss", label=label)
    assert np.isnan(found.interactions).all(axis=(1, 2)).tolist() == [False, False, True, False, False, False]
    assert np.isfinite(np.delete(found.interactions, 2, axis=0)).all()


@pytest.mark.slow
def test_summaries_count_rows_by_their_weights(model, tmp_path):
    """And none without a label, in memory and in a run, as the losses' own."""
    label, weight = LABEL[:40].copy(), RNG.uniform(0.5, 2.0, 40)
    label[::3] = np.nan
    data = ROWS[:40].assign(label=label, weight=weight)
    data.to_parquet(tmp_path / "data.parquet")
    OTHERS.to_parquet(tmp_path / "others.parquet")
    model.save_model(tmp_path / "model.json")
    asked = {"space": "loss", "background": tmp_path / "others.parquet", "label": "label", "weight": "weight", "interactions": "all", "order": 2}
    found = attribute(model, data, **asked | {"background": OTHERS})
    explain(tmp_path / "model.json", tmp_path / "data.parquet", tmp_path / "run", scheduler="serial", missing_labels="count", **asked)
    known = label.notna().to_numpy()
    values = found.interactions[known, 0]
    mean = np.average(values, axis=0, weights=weight[known])
    for table in (found.summaries["interactions"].to_pandas(), pd.read_parquet(tmp_path / "run/summary/interactions.parquet")):
        by_set = table.assign(features=[tuple(each) for each in table["features"]]).set_index("features").loc[list(found.sets)]
        np.testing.assert_allclose(by_set["mean"], mean, rtol=1e-5, atol=1e-12)
        np.testing.assert_allclose(by_set["mean_abs"], np.average(np.abs(values), axis=0, weights=weight[known]), rtol=1e-5)
        np.testing.assert_allclose(by_set["std"], np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weight[known])), rtol=1e-5)


def test_responses_without_a_link_are_margins():
    """The identity carries nothing, so that interactions need no background."""
    model = xgboost.XGBRegressor(max_depth=3, n_estimators=4, n_jobs=1).fit(ROWS, LABEL)
    margin, response = (attribute(model, PROBE, interactions="all", order=2, space=space) for space in ("margin", "response"))
    assert np.array_equal(margin.interactions, response.interactions)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.slow
def test_runs_have_them(model, space, tmp_path):
    """The largest of every row, sound and made again."""
    save_model(model, tmp_path / "model.trees")
    ROWS.assign(late=LABEL).to_parquet(tmp_path / "rows.parquet")
    OTHERS.to_parquet(tmp_path / "others.parquet")
    given = {"interactions": 3, "order": 2, "space": space, "background": tmp_path / "others.parquet", "precision": "float64"}
    explain(tmp_path / "model.trees", tmp_path / "rows.parquet", tmp_path / "run", scheduler="serial", **given, **label_of(space, "late"))
    found = attribute(model, ROWS, background=OTHERS, interactions=3, order=2, space=space, **label_of(space, LABEL))
    column = next(name for name in attributions(tmp_path / "run").column_names if name.startswith("interactions"))
    for i, kept in enumerate(attributions(tmp_path / "run")[column].to_pylist()):
        mine = {members: value for members, value in zip(found.sets, found.interactions[i, 0], strict=True) if value}
        assert {tuple(each["features"]): each["value"] for each in kept} == pytest.approx(mine, rel=1e-12)
    report = check_run(tmp_path / "run", all_rows=True)
    assert report.sound
    assert report.n_again == 400


def test_a_row_s_sums_are_checked(model, monkeypatch):
    """A set that is wrong in one of the weighted games is found where it is computed."""
    from leafledger.kernels.semivalues.set_tables import SetTables

    add = SetTables.add

    def wrong(self, bins, out, n_rows):
        add(self, bins, out, n_rows)
        out[0, 0, 3] += 1e-3

    monkeypatch.setattr(SetTables, "add", wrong)
    with pytest.raises(
        AdditivityBreach, match=r"row 3: interactions miss prediction - base value by .* of the row's own bound, expected at most 1e-09"
    ):
        attribute(model, PROBE, background=OTHERS, interactions="all", order=2, space="probability")


def test_what_is_not_carried_row_by_row_is_refused(model):
    """Without rows of a background, and where a prediction is a function of several margins."""
    several = xgboost.XGBClassifier(max_depth=2, n_estimators=2, n_jobs=1).fit(ROWS, np.arange(400) % 3)
    says = "space 'probability' has interactions only background row by background row: expected rows of a background and a prediction that is a"
    for asked, background, got in ((model, None, "link 'sigmoid' without"), (several, OTHERS, "several classes with")):
        with pytest.raises(UsageError, match=f"^{says} function of one margin, got {got} such rows$"):
            attribute(asked, PROBE, background=background, interactions="all", space="probability")
