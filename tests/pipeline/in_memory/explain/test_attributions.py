"""What a person holds of attributions: a frame, the largest ones, one row's way, shap's plots, some of the rows; and how they print."""

import sys

import lightgbm
import matplotlib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shap
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from sklearn.ensemble import RandomForestClassifier

from leafledger import attribute, load_ensemble
from leafledger.pipeline.errors import UsageError
from tests.pipeline.conftest import FEATURES
from tests.pipeline.running import as_model
from tests.trees import one_tree

matplotlib.use("Agg")
DISTANCE = np.linspace(0, 3000, 100)[:, None]
CLASSIFIER = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1, n_jobs=1).fit(DISTANCE, DISTANCE[:, 0] > 900)
RNG = np.random.default_rng(4)
ROWS = RNG.normal(size=(60, 4)).round(1)
LABELS = np.digitize(ROWS[:, 0] + ROWS[:, 1], [-0.5, 0.5])
FOREST = RandomForestClassifier(4, max_depth=3, random_state=0).fit(ROWS, LABELS)
FRAME = pd.DataFrame(ROWS, columns=list("abcd"), index=[f"customer {i}" for i in range(60)])
NAMED = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1).fit(FRAME, FRAME["a"] * FRAME["b"])


def test_a_frame_keeps_the_index_and_names_the_players():
    """Several outputs are a level of the columns."""
    found = attribute(NAMED, FRAME)
    assert_frame_equal(found.to_frame(), pd.DataFrame(found.phi[:, 0], FRAME.index, list("abcd")))
    several = attribute(FOREST, ROWS).to_frame()
    assert several.columns.tolist() == [(str(k), str(j)) for k in range(3) for j in range(4)]
    assert_array_equal(several["1"].to_numpy(), attribute(FOREST, ROWS).phi[:, 1])
    assert several.index.tolist() == list(range(60))


@pytest.mark.parametrize("some", [slice(5, 9), np.array([3, 1, 40]), ROWS[:, 0] > 0.5, -1], ids=["slice", "positions", "mask", "one"])
@pytest.mark.parametrize("given", ["frame", "matrix", "table", "columns"])
def test_some_rows_are_those_of_all(some, given):
    """Their values and labels come along, however rows were given, and twice over; what was summed up of all rows does not."""
    rows = {
        "frame": FRAME,
        "matrix": ROWS,
        "table": pa.table(FRAME.reset_index(drop=True)),
        "columns": {name: FRAME[name].to_numpy() for name in FRAME},
    }
    found = attribute(NAMED, rows[given])
    few, positions = found[some], np.atleast_1d(np.arange(60)[some])
    assert len(few) == len(positions)
    for name in ("phi", "margin", "prediction"):
        assert_array_equal(getattr(few, name), getattr(found, name)[positions])
    assert_array_equal(few.base, found.base)
    assert few.index.tolist() == (FRAME.index[positions] if given == "frame" else positions).tolist()
    assert few.summaries == {}
    assert few.totals == {}
    for j, name in enumerate("abcd"):
        assert_array_equal(found.values(name), ROWS[:, j])
        assert_array_equal(few.values(name), ROWS[positions, j])
    assert_array_equal(few[::-1].values("b"), ROWS[positions[::-1], 1])
    assert few[::-1].index.tolist() == few.index.tolist()[::-1]


def test_to_numpy_they_are_phi():
    found = attribute(FOREST, ROWS)
    assert_array_equal(np.asarray(found), found.phi)
    assert np.array(found, np.float32).dtype == np.float32
    assert np.array(found, copy=True) is not found.phi


def test_rows_with_an_output_of_their_own_keep_its_base_value():
    found = attribute(FOREST, ROWS, output="predicted")
    few = found[10:20]
    assert_array_equal(few.base, found.base[10:20])
    assert_array_equal(few.output, found.output[10:20])
    assert_allclose(few.phi.sum(axis=2) + few.base, few.prediction, atol=1e-12)


def test_a_player_s_attributions_go_by_its_name():
    """A line of numbers, or one for every output; of groups and of what a method writes behind them too."""
    found = attribute(NAMED, FRAME)
    assert_array_equal(found["b"], found.phi[:, 0, 1])
    assert_array_equal(found[10:20]["b"], found.phi[10:20, 0, 1])
    grouped = attribute(NAMED, FRAME, partition={"both": ["a", "b"]})
    assert_array_equal(grouped["both"], grouped.phi[:, 0, 0])
    several = attribute(FOREST, ROWS)
    assert len(several.outputs) > 1
    assert_array_equal(several[several.names[2]], several.phi[:, :, 2])


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda found: found.values("delai"), "there is no feature 'delai', expected one of delay, b, c, d; did you mean 'delay'?"),
        (lambda found: found.values("nowhere"), "there is no feature 'nowhere', expected one of delay, b, c, d"),
        (lambda found: found.values(None), "there is no feature None, expected one of delay, b, c, d"),
        (lambda found: found["delai"], "there is no feature 'delai', expected one of delay, b, c, d; did you mean 'delay'?"),
        (
            lambda found: found[["delay", "b"]],
            "what is asked for is ['delay', 'b'], expected positions of 60 rows, a slice, a mask of them, or the name of a feature",
        ),
        (
            lambda found: found[np.ones(59, bool)],
            "what is asked for is a ndarray, expected positions of 60 rows, a slice, a mask of them, or the name of a feature",
        ),
        (lambda found: found[1.5], "what is asked for is 1.5, expected positions of 60 rows, a slice, a mask of them, or the name of a feature"),
    ],
)
def test_a_name_that_is_none_is_refused(call, line):
    """In our words: neither None nor what NumPy says of indices."""
    frame = FRAME.rename(columns={"a": "delay"})
    found = attribute(lightgbm.LGBMRegressor(n_estimators=2, verbose=-1, n_jobs=1).fit(frame, frame["delay"]), frame)
    with pytest.raises(UsageError) as refusal:
        call(found)
    assert str(refusal.value) == line


def test_iterating_ends():
    """A number beyond the rows is an IndexError, as Python's iteration wants it."""
    found = attribute(FOREST, ROWS)
    assert [len(row) for row in found] == [1] * 60
    with pytest.raises(IndexError):
        found[60]


def test_values_are_there_of_features_alone():
    """A group of one is its feature; of several there is no value."""
    found = attribute(NAMED, FRAME, partition={"both": ["a", "b"]})
    assert found.values("both") is None
    assert_array_equal(found.values("c"), ROWS[:, 2])
    assert found.top(9)["feature"].isin(["both", "c", "d"]).all()


def naive_top(found, k, sign):
    """By sorting every row's own list."""
    listed = []
    for row in range(len(found)):
        for output in range(len(found.outputs)):
            phi = [(name, value) for name, value in zip(found.players, found.phi[row, output].tolist(), strict=True)]
            kept = [(name, value) for name, value in phi if value != 0 and (sign == "both" or (value > 0) == (sign == "raises"))]
            kept.sort(key=lambda pair: -abs(pair[1]))  # which keeps the order of features that are equal
            listed += [(row, found.outputs[output], place, *pair) for place, pair in enumerate(kept[:k], 1)]
    return listed


@pytest.mark.parametrize("sign", ["both", "raises", "lowers"])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_the_largest_are_those_of_a_sorted_list(k, sign):
    found = attribute(FOREST, np.vstack((ROWS, ROWS[:1] * 0)))
    table = found.top(k, sign)
    assert list(zip(table.index, table["output"], table["rank"], table["feature"], table["phi"], strict=True)) == naive_top(found, k, sign)
    assert table["value"].tolist() == [found.values(name)[row] for row, name in zip(table.index, table["feature"], strict=True)]


def test_what_there_is_no_such_thing_of_is_refused():
    found, ranked = attribute(FOREST, ROWS[:5]), attribute(NAMED, FRAME[:5], "curves")
    for k in (0, -1, 1.5, True):
        with pytest.raises(UsageError, match=r"^k is .*, expected a number of at least 1$"):
            found.top(k)
    with pytest.raises(UsageError, match=r"^sign is 'up', expected 'both' or 'raises' or 'lowers'$"):
        found.top(2, "up")
    for row in (5, -6, 1.0, True):
        with pytest.raises(UsageError, match=r"^row is .*, expected a position of 5 rows, or a label of one$"):
            found.waterfall(row, 0)
    for output in ("3", 3, -1, True):
        with pytest.raises(UsageError, match=r"^output is .*, expected one of 0, 1, 2, or a position$"):
            found.waterfall(0, output)
    for call in (lambda: ranked.top(2), ranked.waterfall, ranked.to_shap):
        with pytest.raises(UsageError, match="is of attributions, but method 'curves' ranks features"):
            call()
    with pytest.raises(UsageError, match=r"^a waterfall adds up to margin - base value, but what method 'banzhaf' finds does not$"):
        attribute(FOREST, ROWS, "banzhaf", parameters={"p": 0.3}).waterfall(0, 0)


def test_a_waterfall_goes_from_base_value_to_prediction():
    """With the row's label, its values, and the class where there are several."""
    found = attribute(NAMED, FRAME)
    way = found.waterfall(3, top=2)
    assert way.title == "row customer 3"
    assert way.base + sum(step.phi for step in way.steps) == pytest.approx(way.total)
    assert way.total == found.margin[3, 0]
    assert [step.player for step in way.steps[:2]] == found.top(2).loc["customer 3", "feature"].tolist()
    assert way.steps[0].value == FRAME.loc["customer 3", way.steps[0].player]
    odds = attribute(FOREST, ROWS, space="probability").waterfall(-1, "2")
    assert (odds.title, odds.total_name) == ("row 59, output 2", "prediction")


def test_a_waterfall_of_nothing_adds_up_to_nothing():
    """Of a model that says 0 of every row: there is no way to go, and none that is missing."""
    zero = as_model(one_tree([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 0], [2, 1, 1], 1))
    way = attribute(zero, np.array([[0.0]])).waterfall()
    assert (way.base, [step.phi for step in way.steps], way.total) == (0.0, [0.0], 0.0)


@pytest.mark.filterwarnings("ignore")  # of shap's plots
@pytest.mark.parametrize("plot", ["beeswarm", "bar", "waterfall", "scatter"])
def test_shap_draws_them(plot):
    """Every point that shap shows is one of ours."""
    found = attribute(NAMED, FRAME)
    given = found.to_shap()
    assert given.values.shape == (60, 4)
    assert_array_equal(given.data, ROWS)
    assert_allclose(given.values.sum(axis=1) + given.base_values, found.margin[:, 0], atol=1e-12)
    one = {"waterfall": given[0], "scatter": given[:, "a"]}.get(plot, given)
    getattr(shap.plots, plot)(one, show=False)
    figure = matplotlib.pyplot.gcf()
    labels = " ".join(text.get_text() for axis in figure.axes for text in (*axis.get_yticklabels(), *axis.get_xticklabels(), axis.xaxis.label))
    assert "a" in labels
    if plot == "scatter":
        drawn = np.vstack([points.get_offsets() for points in figure.axes[0].collections if len(points.get_offsets()) == 60])
        assert_allclose(np.sort(drawn[:, 1]), np.sort(found.phi[:, 0, 0]))
    matplotlib.pyplot.close(figure)


def test_of_several_outputs_shap_gets_all_or_one():
    found = attribute(FOREST, ROWS)
    given = found.to_shap()
    assert given.shape == (60, 4, 3)
    assert given.output_names == ["0", "1", "2"]
    assert_array_equal(given[:, :, "1"].values, found.to_shap("1").values)
    assert_array_equal(found.to_shap(1).base_values, np.full(60, found.base[1]))
    texts = attribute(NAMED, FRAME.assign(c=1.0), partition={"both": ["a", "b"]}).to_shap()
    assert np.isnan(texts.data[:, 0].astype(float)).all()


def test_without_shap_the_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(UsageError, match=r"^to_shap needs shap: pip install 'leafledger\[shap\]'$"):
        attribute(NAMED, FRAME).to_shap()


@pytest.mark.filterwarnings("ignore:.*features by position")
def test_results_print_as_one_line(example):
    """A line that counts, and in a notebook a table of the first rows: a million numbers are never shown."""
    rows = example.frame[FEATURES]
    found = attribute(example.model, rows)
    assert repr(found) == "Attributions(3,000 rows, 1 output, 4 features, method shapley)"
    assert repr(attribute(example.model, rows[:1], partition={"<b>": FEATURES[:2]})) == "Attributions(1 row, 1 output, 3 groups, method shapley)"
    assert (
        repr(attribute(example.model, rows[:2], "owen", partition={"b": FEATURES[:2]})) == "Attributions(2 rows, 1 output, 4 features, method owen)"
    )
    assert repr(attribute(example.model, rows[:2], "curves")) == "Attributions(2 rows, 1 output, 4 features, method curves)"
    assert repr(attribute(example.model, rows[:0])) == "Attributions(0 rows, 1 output, 4 features, method shapley)"
    html = found._repr_html_()
    assert html.count("<tr>") == 1 + 5
    assert f"<td>{found.margin[4, 0]:.4g}</td></tr></tbody>" in html
    assert "<b>" not in attribute(example.model, rows[:1], partition={"<b>": FEATURES[:2]})._repr_html_()
    odds = attribute(CLASSIFIER, rows[["distance"]][:2], space="probability")
    assert repr(odds) == "Attributions(2 rows, 1 output, 1 feature, method shapley, space probability)"
    assert "<th>prediction</th>" in odds._repr_html_()
    assert repr(load_ensemble(example.model)) == "Model(lightgbm, 8 trees, 4 features, 1 output)"
    assert "<td>carrier</td><td>4 categories</td>" in load_ensemble(example.model)._repr_html_()
