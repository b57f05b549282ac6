"""Nearest changes of rows in memory: against each library's own predictions of every value that could be the nearest."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import leafledger
from leafledger.pipeline.errors import UnsupportedModel, UsageError
from tests.pipeline.in_memory.changes.libraries import CARRIERS, NUMBERS, TRAIN, coded, make_frame, train_lightgbm, train_xgboost

CLEAR = {np.float32: 1e-5, np.float64: 1e-12}  # from the threshold, in probabilities: libraries of single precision add up with such errors
THRESHOLD = 0.4
LARGEST = float(np.finfo(np.float32).max)  # CatBoost's place of missing values, which is no suggestion either
ZERO = float(np.float32(1e-35))  # what LightGBM takes for zero


def candidates(model, name, kind, whole):
    """All numbers that may be the nearest beyond some threshold of the feature: beside each on both sides, as the column holds them."""
    column = [feature.name for feature in model.features].index(name)
    edges = model.ensemble.threshold[(model.ensemble.feature == column)]
    edges = np.append(edges[np.abs(edges) < LARGEST], [ZERO, -ZERO])
    if whole:
        return np.unique([np.floor(edges), np.floor(edges) + 1])
    held = edges.astype(kind)
    return np.unique([held, np.nextafter(held, kind(np.inf)), np.nextafter(held, kind(-np.inf))]).astype(float)


@pytest.mark.parametrize("library", TRAIN)
def test_none_is_nearer_and_every_one_crosses(library):
    """300 rows, all features: the suggestion crosses by the library's own prediction, and nothing nearer does, of all thresholds' neighbours."""
    train, kind = TRAIN[library]
    trained, predict = train(make_frame(1))
    rows = make_frame(2)[:300]
    rows = coded(rows) if library in ("forest", "boosted") else rows
    model = leafledger.load_ensemble(trained)
    to = {} if library != "catboost" else {"carrier": {"to": CARRIERS}}
    given = {"output": 1} if library == "forest" else {"space": "probability"}
    found = leafledger.nearest_changes(trained, rows, threshold=THRESHOLD, features={name: to.get(name, {}) for name in rows}, **given)
    now = predict(rows)
    np.testing.assert_allclose(found.prediction, now, rtol=0, atol=CLEAR[kind] if library == "xgboost" else 1e-12)
    assert (np.abs(now - THRESHOLD) > 1e-5).all(), "no row at the threshold itself, or sides could not be told"
    n_told = 0
    for k, name in enumerate(rows):
        told = np.isfinite(found.value[:, k])
        n_told += told.sum()
        changed = rows.copy()
        values = [found.at(i, name) if told[i] else rows[name].iloc[i] for i in range(len(rows))]
        changed[name] = pd.Series(values, rows.index, rows[name].dtype)
        then = predict(changed)
        assert ((then >= THRESHOLD) != (now >= THRESHOLD))[told].all()
        np.testing.assert_allclose(then[told], found.changed[told, k], rtol=0, atol=1e-5 if library == "xgboost" else 1e-12)
        if rows[name].dtype == "category":
            every = [*CARRIERS]
        else:
            every = candidates(model, name, kind, rows[name].dtype.kind == "i")
            x = rows[name].to_numpy(float)
            x = x.astype(kind).astype(float)
        other = rows.iloc[np.tile(np.arange(len(rows)), len(every))].reset_index(drop=True)
        other[name] = pd.Series(np.repeat(every, len(rows)), other.index, rows[name].dtype)
        there = predict(other).reshape(len(every), len(rows))
        margin = 1e-4 if library == "xgboost" else 0.0
        crossing = np.where(now >= THRESHOLD, there < THRESHOLD - margin, there >= THRESHOLD + margin)
        if rows[name].dtype == "category":
            assert np.array_equal(crossing.any(axis=0), told)
            continue
        away = np.where(crossing, np.abs(np.array(every)[:, None] - x), np.inf)
        zeros = (np.abs(every) <= ZERO)[:, None] & ("zeros" in library)
        away = np.where(zeros, np.inf, away)  # a zero is a missing value there, which is no suggestion
        missing = np.isnan(x) | (("zeros" in library) & (x == 0))
        nearest = np.where(missing, np.inf, away.min(axis=0))
        mine = np.where(told, np.abs(found.value[:, k] - x), np.inf)
        assert (mine <= nearest).all()
        assert not told[missing].any()
    assert n_told > 150


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.slow
def test_directions_bounds_and_steps_are_kept(library):
    """Of the numbers that are allowed the nearest that crosses, of all multiples of the step within bounds, by the library's own predictions."""
    trained, predict = TRAIN[library][0](make_frame(1))
    rows = make_frame(2)[:200]
    asked = {"delay": {"step": 0.25, "at_least": -1.0, "at_most": 1.5}, "share": {"direction": "down", "step": 0.05}, "hour": {"step": 2}}
    grids = {"delay": np.arange(-4, 7) / 4, "share": np.arange(-40, 40) / 20, "hour": np.arange(-20, 40, 2)}
    found = leafledger.nearest_changes(trained, rows, threshold=THRESHOLD, space="probability", features=asked)
    now = predict(rows)
    for k, name in enumerate(asked):
        there = np.array([predict(rows.assign(**{name: value})) for value in grids[name]])
        crossing = np.where(now >= THRESHOLD, there < THRESHOLD - 1e-5, there >= THRESHOLD + 1e-5)
        x = rows[name].to_numpy(float)
        crossing &= (grids[name][:, None] < x) if name == "share" else ~np.isnan(x)
        expected = np.where(crossing, np.abs(grids[name][:, None] - x), np.inf).min(axis=0)
        value = found.value[:, k]
        assert np.isin(value[np.isfinite(value)], grids[name]).all()
        np.testing.assert_allclose(np.where(np.isfinite(value), np.abs(value - x), np.inf), expected, rtol=0, atol=1e-6)
        assert np.isfinite(value).sum() > 10


def test_categories_may_be_listed():
    """Those that are listed, in their order; a missing one may become one of them too."""
    trained, predict = train_lightgbm(make_frame(1))
    rows = make_frame(2)
    rows.loc[rows.index[:500], "carrier"] = np.nan
    found = leafledger.nearest_changes(trained, rows, threshold=THRESHOLD, space="probability", features={"carrier": {"to": ["WN", "AA"]}})
    now = predict(rows) >= THRESHOLD
    there = {name: predict(rows.assign(carrier=pd.Categorical([name] * 1000, CARRIERS))) >= THRESHOLD for name in ("WN", "AA")}
    expected = [next((name for name in there if there[name][i] != now[i]), None) for i in range(1000)]
    assert [found.at(i, "carrier") for i in range(1000)] == expected
    assert {"WN", None} <= {*expected}
    assert found.to_frame()["carrier"][:500].notna().any()
    frame = found.to_frame()["carrier"]
    assert [None if pd.isna(each) else each for each in frame] == expected


def test_values_are_of_the_columns_types():
    """Whole numbers of a column of integers, truths of one of booleans, floats that a narrow column holds."""
    frame = make_frame(1).assign(late=lambda rows: rows["delay"] > 0, share=lambda rows: rows["share"].astype(np.float32))
    trained, predict = train_lightgbm(frame)
    rows = frame[:300]
    found = leafledger.nearest_changes(trained, rows, threshold=0.5, space="probability")
    now = predict(rows) >= 0.5
    kinds = {"hour": int, "late": bool, "share": float, "seats": float}
    for name, kind in kinds.items():
        told = {i: found.at(i, name) for i in range(300) if found.at(i, name) is not None}
        assert {type(value) for value in told.values()} <= {kind}
        changed = rows.copy()
        changed[name] = pd.Series([told.get(i, rows[name].iloc[i]) for i in range(300)], rows.index, rows[name].dtype)
        assert ((predict(changed) >= 0.5) != now)[[*told]].all()
        assert told or name == "late"


def test_rows_at_the_threshold_are_above_it():
    """As ``>=`` says: where leaves are whole shares, and the threshold is one of them."""
    rows = coded(make_frame(1))[list(NUMBERS)]
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(rows, make_frame(1)["hour"] > rows["delay"] * 10 + 8)
    shares = tree.predict_proba(rows)[:, 1]
    threshold = np.unique(shares)[1]
    found = leafledger.nearest_changes(tree, rows, threshold=threshold, output=1)
    for k, name in enumerate(found.features):
        told = np.isfinite(found.value[:, k])
        changed = rows.assign(**{name: np.where(told, found.value[:, k], rows[name])})
        assert ((tree.predict_proba(changed)[:, 1] >= threshold) != (shares >= threshold))[told].all()
    assert (shares == threshold).any()
    assert np.isfinite(found.value[shares == threshold]).any()


def test_a_row_that_single_precision_cannot_tell_has_none():
    """The threshold is the row's own prediction, of a library whose sums round."""
    trained, predict = train_xgboost(make_frame(1))
    rows = make_frame(2)[:50]
    own = float(predict(rows)[7])
    assert leafledger.nearest_changes(trained, rows, threshold=own, space="probability").to_frame().iloc[7].isna().all()


def test_a_feature_that_no_split_asks_for_changes_nothing():
    """It is there, without a value."""
    frame = make_frame(1)
    trained, _ = train_lightgbm(frame.assign(constant=1.0))
    rows = frame.assign(constant=1.0)[:20]
    found = leafledger.nearest_changes(trained, rows, threshold=0.0, features=["constant", "hour"])
    assert found.features == ("constant", "hour")
    assert found.to_frame()["constant"].isna().all()
    assert found.to_frame()["hour"].notna().any()


def test_words_say_up_to_where():
    """One threshold at 1.5: below it at most, above it at least; from both sides between two of them."""
    frame = pd.DataFrame({"x": np.repeat([1, 2, 3, 4], 10)})
    trained = DecisionTreeClassifier().fit(frame, frame["x"] >= 3)
    found = leafledger.nearest_changes(trained, frame[::10], threshold=0.5, output=1)
    assert [found.words(i) for i in (0, 3)] == [[f"would cross the threshold if x were at {words}"] for words in ("least 3", "most 2")]
    trained = DecisionTreeClassifier().fit(frame, (frame["x"] == 2) | (frame["x"] == 3))
    found = leafledger.nearest_changes(trained, frame[::10], threshold=0.5, output=1)
    assert found.words(0) == ["would cross the threshold if x were from 2 to 3"]
    assert found.words(3) == found.words(0)
    assert repr(found) == "NearestChanges(4 rows, 1 feature, 4 can cross 0.5)"
    assert len(found) == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"threshold": 50.0}, "threshold is 50, but all that the model can say is below it: from -"),
        ({"threshold": -50.0}, "threshold is -50, but all that the model can say is above it"),
        ({"threshold": 1.0, "space": "probability"}, "threshold is 1, expected one between 0 and 1 in space 'probability'"),
        ({"threshold": 0.9999999, "space": "probability"}, "is below it: from 0."),
        ({"threshold": "0"}, "threshold is '0', expected a number"),
        ({"threshold": 0.0, "space": "odds"}, "space is 'odds', expected 'margin'"),
        ({"features": ["our"]}, "features has 'our', which is no feature of the model; did you mean 'hour'?"),
        ({"features": [17]}, "features names position 17, expected 0 to 4"),
        ({"features": {"hour": {"at_least": 5, "at_most": 4}}}, "features: 'hour': at_least is 5, above at_most, 4; expected the smaller one first"),
        ({"features": {"hour": {"step": 0}}}, "features: 'hour': step is 0, expected a number above 0"),
        ({"features": {"hour": {"stepp": 1}}}, "'hour': has 'stepp', expected direction, at_least, at_most, step, to; did you mean 'step'?"),
        ({"features": {"hour": {"direction": "dwn"}}}, "direction is 'dwn', expected 'up' or 'down' or 'both'; did you mean 'down'?"),
        ({"features": {"hour": {"to": [1]}}}, "features: 'hour': has to, but it is a feature of numbers"),
        ({"features": {"carrier": {"step": 1}}}, "features: 'carrier': has step, but it is a feature of categories, which have no order"),
        ({"features": {"carrier": {"to": ["ZZ"]}}}, "features: 'carrier': to has 'ZZ', expected a category that the model knows"),
        ({"features": {"carrier": {"to": ["aa"]}}}, "expected a category that the model knows; did you mean 'AA'?"),
        ({"features": {"carrier": {"to": []}}}, "features: 'carrier': to is [], expected one category or several, each once"),
        ({"features": {"hour": 3}}, "features: 'hour': is 3, expected direction, at_least, at_most, step, to by name"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    """In one line."""
    trained, _ = train_lightgbm(make_frame(1))
    with pytest.raises(UsageError, match=r"^[^\n]*$") as refused:
        leafledger.nearest_changes(trained, make_frame(2)[:10], **{"threshold": 0.0} | given)
    assert message in str(refused.value)


def test_several_outputs_need_one():
    """The message names them; with one of them its margins count."""
    rows = coded(make_frame(1))
    tree = DecisionTreeClassifier(max_depth=4).fit(rows, make_frame(1)["hour"] // 9)
    with pytest.raises(UsageError, match="a threshold is of one output, but the model has 0, 1, 2; expected one of them as output"):
        leafledger.nearest_changes(tree, rows, threshold=0.5)
    found = leafledger.nearest_changes(tree, rows, threshold=0.5, output=1)
    assert np.isfinite(found.value).any()
    with pytest.raises(UsageError, match="feature is 'houre', which is not among those to be changed; did you mean 'hour'"):
        found.at(0, "houre")
    for row in (len(rows), -len(rows) - 1, "a"):
        with pytest.raises(UsageError, match=rf"^row is {row!r}, expected a position of {len(rows):,} rows$"):
            found.at(row, "hour")
        with pytest.raises(UsageError, match=r"^row is "):
            found.words(row)


def test_hashes_need_names():
    """CatBoost's file has no names of categories."""
    trained, _ = TRAIN["catboost"][0](make_frame(1))
    with pytest.raises(UnsupportedModel, match="'carrier': the model knows its categories by hashes alone; list those it may become with to"):
        leafledger.nearest_changes(trained, make_frame(2)[:10], threshold=0.0)


def test_no_rows_and_no_features_are_none():
    """Nothing is found of nothing; a single feature is one, a single row is one, and a frame's index stays."""
    frame = make_frame(1)
    trained, _ = train_lightgbm(frame)
    assert leafledger.nearest_changes(trained, frame[:0], threshold=0.0).to_frame().shape == (0, 5)
    assert leafledger.nearest_changes(trained, frame[:3], threshold=0.0, features=[]).to_frame().shape == (3, 0)
    found = leafledger.nearest_changes(trained, frame[:20], threshold=0.0, features="hour")
    named = leafledger.nearest_changes(trained, frame[:20].set_index(pd.Index([*"abcdefghijklmnopqrst"])), threshold=0.0, features="hour")
    assert named.to_frame().index.tolist() == [*"abcdefghijklmnopqrst"]
    np.testing.assert_array_equal(named.value, found.value)
    assert [leafledger.nearest_changes(trained, frame.iloc[i], threshold=0.0).at(0, "hour") for i in range(5)] == [found.at(i, 0) for i in range(5)]
