"""Feature effects in memory: bands, accumulated local effects and Friedman's H, against brute force through the libraries."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import HistGradientBoostingRegressor

import leafledger
from leafledger.pipeline.errors import LeafledgerError, UnsupportedModel, UsageError
from tests.pipeline.effects.trained import ATOL, COLOURS, NUMBERS, brute, make_rows, train, train_classes

LIBRARIES = ["xgboost", "lightgbm", "catboost", "sklearn"]
SINGLE = 5e-6  # where a library adds up in float32


def inside(frame):
    """A value of every interval, and NaN for the missing one."""
    low, high = frame["lower"].to_numpy(), frame["upper"].to_numpy()
    return np.where(np.isfinite(low) & np.isfinite(high), (low + high) / 2, np.where(np.isfinite(low), low + 1, high - 1))


@pytest.fixture(scope="module", params=LIBRARIES)
def found(request):
    """Effects of a library's model on a background, and its predictions."""
    rows = make_rows(300)
    model, predict = train(request.param, rows)
    return leafledger.feature_effects(model, rows[:90], pairs=[("x", "y"), ("z", "colour")]), predict, rows[:90], request.param


def test_local_effects_are_brute_force(found):
    """Each row is predicted at both edges of the interval that its own value lies in."""
    effects, predict, rows, library = found
    atol = SINGLE if library == "xgboost" else ATOL
    for name in NUMBERS:
        frame = effects.local_effects(name)
        values, own = inside(frame), rows[name].to_numpy()
        at_edge = brute(predict, rows, {name: values})
        ends = frame["upper"].to_numpy()
        interval = np.maximum(np.searchsorted(ends, own), 1) - 1
        expected = [0.0]
        for m in range(len(frame) - 1):
            some = (interval == m) & ~np.isnan(own)
            assert frame["rows"][m + 1] == some.sum()
            rise = (at_edge[m + 1] - at_edge[m])[some]
            assert_allclose(frame["rise"][m + 1], rise.mean(), rtol=0, atol=atol)
            assert_allclose(frame["standard_error"][m + 1], rise.std(ddof=1) / np.sqrt(some.sum()) if some.sum() > 1 else np.nan, rtol=0, atol=atol)
            expected.append(expected[-1] + rise.mean())
        counts, expected = frame["rows"].to_numpy()[1:], np.array(expected)
        assert counts.sum() == (~np.isnan(own)).sum()
        expected -= counts @ (expected[1:] + expected[:-1]) / 2 / counts.sum()
        assert_allclose(frame["value"], expected, rtol=0, atol=atol)
    with pytest.raises(UsageError, match="'colour' has no numbers that a split asks for"):
        effects.local_effects("colour")


def test_bands_hold_the_quantiles_of_centred_curves(found):
    """Each row's curve less its mean over the background's own values."""
    effects, predict, rows, library = found
    for name in ("x", "colour"):
        frame, curve = effects.bands(name, [0.1, 0.5, 0.9]), effects.partial_dependence.to_frame(name)
        if name == "colour" and library == "catboost":
            continue  # its other category is none of the background's
        values = inside(curve) if name == "x" else curve["category"].tolist()
        each = brute(predict, rows, {name: [None if value is np.nan or value is None else value for value in values]})
        known = np.array([value == value or kind == "missing" for value, kind in zip(values, curve["kind"], strict=True)])
        share = curve["share"].to_numpy()
        assert_allclose(share.sum(), 1.0)
        centred = each - (share[:, None] * np.where(known[:, None], each, 0)).sum(axis=0)
        exact = np.quantile(centred, [0.1, 0.5, 0.9], axis=1, method="inverted_cdf").T
        low, high = (frame[side].to_numpy().reshape(-1, 3) for side in ("at_least", "at_most"))
        slack = SINGLE if library == "xgboost" else ATOL
        assert (low[known] <= exact[known] + slack).all()
        assert (exact[known] <= high[known] + slack).all()
        assert ((high - low) <= np.abs(frame["value"].to_numpy().reshape(-1, 3)) / 12 + effects.reach[0].max() / 12_000).all()


def test_h_is_by_its_definition(found):
    """Of a pair, from partial dependences at the rows; of a feature and all others, from every row with the others' values too."""
    effects, predict, rows, library = found
    atol = 1e-4 if library == "xgboost" else ATOL
    table, shown = effects.interactions(), effects.margins
    single = table[table["other"].isna()].set_index("feature")["h_squared"]
    margin = np.asarray(predict(rows), float)
    for name in ("x", "y", "colour"):
        own = [None if value != value else value for value in rows[name].tolist()]
        values = [*set(own)]
        at_own = dict(zip(values, brute(predict, rows, {name: values}), strict=True))
        alone = np.array([at_own[value].mean() for value in own])
        others = np.mean([at_own[value] for value in own], axis=0)
        part = (margin - margin.mean()) - (alone - alone.mean()) - (others - others.mean())
        assert_allclose(single[name], (part**2).sum() / ((margin - margin.mean()) ** 2).sum(), rtol=0, atol=atol)
    pair = table[(table["feature"] == "x") & (table["other"] == "y")].iloc[0]
    a, b = rows["x"].tolist(), rows["y"].tolist()
    joint = shown.at(("x", "y"), (a, b))[:, 0]
    first, second = shown.at("x", a)[:, 0], shown.at("y", b)[:, 0]
    part = (joint - joint.mean()) - (first - first.mean()) - (second - second.mean())
    assert_allclose(pair["h_squared"], (part**2).sum() / ((joint - joint.mean()) ** 2).sum(), rtol=0, atol=ATOL)
    assert_allclose(pair["h"] ** 2, pair["h_squared"])


def test_features_that_never_meet_have_no_h(additive):
    """What adds up has no joint effect; a feature in no split none at all."""
    model, rows = additive
    found = leafledger.feature_effects(model, rows, pairs=[("x", "y"), ("x", "z")]).interactions()
    assert (found["h_squared"] == 0).all()
    flat = HistGradientBoostingRegressor(max_iter=2).fit(rows, np.zeros(len(rows)))
    assert leafledger.feature_effects(flat, rows).interactions()["h"].isna().all()


@pytest.mark.parametrize(("kind", "space"), [("binary", "probability"), ("multiclass", "probability"), ("poisson", "response")])
def test_predictions_are_means_of_rows(kind, space):
    """Each row is carried through the link; standard errors are those of means, two features together too."""
    rows = make_rows(300)
    model = train_classes(kind, rows)
    background = rows[:70]
    found = leafledger.partial_dependence(model, background, features=["x", "colour"], pairs=[("x", "colour")], space=space)

    def means(settings):
        """The mean prediction of every output that the model has: of two classes the second."""
        return np.atleast_1d(brute(model.predict, background, settings).mean(axis=0))

    for name, values in (("x", [-1.0, 0.1, 2.0]), ("colour", list(COLOURS))):
        expected = np.array([means({name: value}) for value in values])
        assert_allclose(found.at(name, values)[:, -expected.shape[1] :], expected, rtol=0, atol=ATOL)
    expected = means({"x": 0.1, "colour": "blue"})
    assert_allclose(found.at(("x", "colour"), ([0.1], ["blue"]))[0, -expected.size :], expected, rtol=0, atol=ATOL)
    effects = leafledger.feature_effects(model, background, features=["x"], space=space)
    frame = effects.partial_dependence.to_frame("x")
    one = brute(model.predict, background, {"x": inside(frame)[0]})
    one = one[:, 0] if kind == "multiclass" else one
    assert_allclose(frame["standard_error"][0], one.std(ddof=1) / np.sqrt(len(background)), rtol=0, atol=ATOL)
    assert (effects.bands("x")["at_least"] <= effects.bands("x")["at_most"]).all()


def test_what_cannot_be_asked(additive):
    """A background without rows of its own, wrong numbers, pairs where one feature is meant."""
    model, rows = additive
    with pytest.raises(UsageError, match="the background is no rows"):
        leafledger.feature_effects(model, "model")
    with pytest.raises(UnsupportedModel, match="space 'probability' is of classifiers"):
        leafledger.feature_effects(model, rows, space="probability")
    with pytest.raises(LeafledgerError, match="intervals"):
        leafledger.feature_effects(model, rows, intervals=0)
    found = leafledger.feature_effects(model, rows, pairs=[("x", "y")])
    assert repr(found).startswith("FeatureEffects(3 features, 1 pair, 1 output, margin, background of 300 rows)")
    with pytest.raises(UsageError, match="is a pair, expected one feature or group"):
        found.bands(("x", "y"))
    with pytest.raises(UsageError, match=r"quantiles is .*, expected numbers from 0 to 1"):
        found.bands("x", [2.0])
    classes = train_classes("binary", make_rows(300))
    with pytest.raises(UsageError, match="space 'probability' takes a background of rows"):
        leafledger.partial_dependence(classes, space="probability")
