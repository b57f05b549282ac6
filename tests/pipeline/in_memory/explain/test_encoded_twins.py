"""A Pipeline beside a twin: rows transformed by scikit-learn, step by step, and the last step's game played by its definition on groups of columns
that are written out by hand."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold, f_regression
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder

from leafledger import attribute, encoder_groups, load_ensemble, prepare
from leafledger.pipeline.errors import InvalidModel, SchemaMismatch, UnsupportedModel, UsageError
from tests import naive
from tests.more import diagonal

RNG = np.random.default_rng(3)
N = 120
MATRIX = np.column_stack((*RNG.normal(size=(2, N)), RNG.permutation(N) % 4, RNG.normal(size=N), RNG.permutation(N) % 3)).round(2)
TARGET = 2 * MATRIX[:, 0] + 5 * MATRIX[:, 1] + 4 * MATRIX[:, 2]  # of which selections keep columns 1 and 2, and then 0
HOLED = np.where((np.arange(N)[:, None] + np.arange(5)) % 7 == np.array([9, 0, 9, 1, 9]), np.nan, MATRIX)  # in columns 1 and 3
FLAT = np.column_stack((MATRIX[:, :3], np.ones(N), MATRIX[:, 4]))
TEXTS = np.column_stack((RNG.choice(["cook", "nurse", "clerk"], N), RNG.choice(["Oslo", "Rome"], N))).astype(object)
PASSED = ("passthrough", None)
ALL = {j: [j] for j in range(5)}
BEST, THREE = (SelectKBest(f_regression, k=k) for k in (2, 3))
HOT = OneHotEncoder(sparse_output=False)


def named(step):
    """A step that hands on a data frame."""
    return clone(step).set_output(transform="pandas")


def columns(*steps, **given):
    """Steps of some columns each."""
    return ColumnTransformer([(str(number), *step) for number, step in enumerate(steps)], **given)


CASES = {  # steps, rows, and by column of these the columns that they become
    "scaled": ([StandardScaler()], MATRIX, ALL),
    "selected": ([BEST], MATRIX, {1: [0], 2: [1]}),
    "scaled and selected": ([StandardScaler(), BEST], MATRIX, {1: [0], 2: [1]}),
    "selected and scaled": ([BEST, StandardScaler()], MATRIX, {1: [0], 2: [1]}),
    "selected twice": ([THREE, BEST], MATRIX, {1: [0], 2: [1]}),
    "selected by a model": ([SelectFromModel(RandomForestRegressor(5, random_state=0), max_features=2)], MATRIX, {1: [0], 2: [1]}),
    "of some variance": ([VarianceThreshold()], FLAT, {0: [0], 1: [1], 2: [2], 4: [3]}),
    "all in categories": ([HOT], MATRIX[:, [2, 4]], {0: [0, 1, 2, 3], 1: [4, 5, 6]}),
    "sparse categories": ([OneHotEncoder()], MATRIX[:, [2, 4]], {0: [0, 1, 2, 3], 1: [4, 5, 6]}),
    "categories but the first": ([OneHotEncoder(drop="first")], MATRIX[:, [2, 4]], {0: [0, 1, 2], 1: [3, 4]}),
    "texts": ([HOT], TEXTS, {0: [0, 1, 2], 1: [3, 4]}),
    "numbered texts": ([OrdinalEncoder()], TEXTS, {0: [0], 1: [1]}),
    "by position": ([columns((HOT, [4, 2]), remainder="passthrough")], MATRIX, {4: [0, 1, 2], 2: [3, 4, 5, 6], 0: [7], 1: [8], 3: [9]}),
    "remainder scaled": ([columns((HOT, [2]), remainder=StandardScaler())], MATRIX, {2: [0, 1, 2, 3], 0: [4], 1: [5], 3: [6], 4: [7]}),
    "dropped": ([columns((StandardScaler(), [3, 0]), ("drop", [1]))], MATRIX, {3: [0], 0: [1]}),
    "slices and masks": (
        [columns(("passthrough", [-1]), (MinMaxScaler(), [True, False, False, True, False]), (StandardScaler(), slice(1, 3)))],
        MATRIX,
        {4: [0], 0: [1], 3: [2], 1: [3], 2: [4]},
    ),
    "twice": ([columns((StandardScaler(), [2, 0]), (HOT, [2]))], MATRIX, {2: [0, 2, 3, 4, 5], 0: [1]}),
    "of selected": ([BEST, columns((HOT, [1]), (StandardScaler(), [0]))], MATRIX, {2: [0, 1, 2, 3], 1: [4]}),
    "in Pipelines": ([make_pipeline(StandardScaler(), THREE), make_pipeline("passthrough", make_pipeline(BEST))], MATRIX, {1: [0], 2: [1]}),
    "in a ColumnTransformer": (
        [columns((make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), [3, 2, 1]), (HOT, [4]))],
        HOLED,
        {3: [0, 3], 2: [1], 1: [2, 4], 4: [5, 6, 7]},
    ),
    "as frames": ([named(StandardScaler()), named(BEST)], MATRIX, {1: [0], 2: [1]}),
    "as frames that count anew": ([BEST, named(StandardScaler())], MATRIX, {1: [0], 2: [1]}),  # x1 is called x0, and x2 x1
    "as frames by position": ([named(columns((HOT, [2]), (StandardScaler(), [1])))], MATRIX, {2: [0, 1, 2, 3], 1: [4]}),
    "as frames without prefixes": ([named(columns((StandardScaler(), [2, 1]), verbose_feature_names_out=False))], MATRIX, {2: [0], 1: [1]}),
    "a function": ([FunctionTransformer(np.exp), BEST], MATRIX, {1: [0], 2: [1]}),
    "no function": ([FunctionTransformer(), THREE], MATRIX, {0: [0], 1: [1], 2: [2]}),
    "passed": (["passthrough", BEST, None], MATRIX, {1: [0], 2: [1]}),
    "only passed": (["passthrough"], MATRIX, ALL),
    "no steps": ([], MATRIX, ALL),
    "filled": ([SimpleImputer(add_indicator=True)], HOLED, {0: [0], 1: [1, 5], 2: [2], 3: [3, 6], 4: [4]}),
    "filled and selected": ([SimpleImputer(), BEST], HOLED, {1: [0], 2: [1]}),
    "bins": (
        [columns((KBinsDiscretizer(3, strategy="uniform"), [3, 0]), remainder="passthrough")],
        MATRIX,
        {3: [0, 1, 2], 0: [3, 4, 5], 1: [6], 2: [7], 4: [8]},
    ),
    "by the target": ([columns((TargetEncoder(target_type="continuous"), [4, 2]), ("passthrough", [0]))], MATRIX, {4: [0], 2: [1], 0: [2]}),
}
KINDS = {  # how rows are given, what their columns are called then, and in Leafledger
    "matrix": lambda matrix: (matrix, [f"x{j}" for j in range(matrix.shape[1])]),
    "frame": lambda matrix: (frame_of(matrix), list("abcde")),
    "numbered frame": lambda matrix: (pd.DataFrame(matrix), [f"x{j}" for j in range(matrix.shape[1])]),
}


def frame_of(matrix):
    """With names."""
    return pd.DataFrame(matrix, columns=list("abcde")[: matrix.shape[1]])


def fit(steps, rows, last=None, target=TARGET):
    """A Pipeline of these steps and a small forest."""
    last = RandomForestRegressor(3, max_depth=3, random_state=0) if last is None else last
    named_steps = [(str(number), step if step in PASSED else clone(step)) for number, step in enumerate(steps)]
    return Pipeline([*named_steps, ("last", last)]).fit(rows, target)


def transform(model, rows):
    """By hand, one step after the other."""
    for _, step in model.steps[:-1]:
        rows = rows if step in PASSED else step.transform(rows)
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, float)


def number(owners, n_columns):
    """The player of every column, players in the order of their first columns."""
    players = sorted(owners, key=lambda j: owners[j][0])
    assert sorted(place for places in owners.values() for place in places) == list(range(n_columns))
    return players, [next(k for k, j in enumerate(players) if place in owners[j]) for place in range(n_columns)]


@pytest.mark.parametrize(("case", "kind"), diagonal(CASES, KINDS))
def test_values_are_those_of_the_twin(case, kind):
    """Exact values of groups in the path-dependent game and against a background, with the values that were given, and predictions of the whole."""
    steps, matrix, owners = CASES[case]
    rows, names = KINDS[kind](matrix)
    model = fit(steps, rows)
    made = transform(model, rows)
    players, group = number(owners, made.shape[1])
    ensemble = load_ensemble(model[-1]).ensemble
    found, against, prepared = attribute(model, rows), attribute(model, rows[:2], background=rows[5:9]), prepare(model)(rows[:2])
    assert found.names == tuple(names[j] for j in players)
    for i in range(2):
        wanted = naive.quotient_semivalue(ensemble, made[i], group, len(players), naive.shapley_weight)
        assert_allclose(found.phi[i], wanted, rtol=0, atol=1e-12)
        wanted = naive.quotient_semivalue(ensemble, made[i], group, len(players), naive.shapley_weight, made[5:9])
        assert_allclose(against.phi[i], wanted, rtol=0, atol=1e-12)
    assert_array_equal(prepared.phi, found.phi[:2])
    assert_allclose(found.phi.sum(axis=2)[:, 0] + found.base[0], model.predict(rows))
    for j in players:
        assert_array_equal(found.values(names[j]), matrix[:, j])


@pytest.mark.parametrize("case", ["selected", "as frames that count anew", "twice", "texts"])
def test_groups_of_columns_are_those_of_the_twin(case):
    """Of two columns by name and by position; other columns are their own."""
    steps, matrix, owners = CASES[case]
    model = fit(steps, matrix)
    made, (first, second, *_) = transform(model, matrix), sorted(owners)
    joined = {first: sorted(owners[first] + owners[second]), **{j: owners[j] for j in owners if j not in (first, second)}}
    players, group = number(joined, made.shape[1])
    ensemble = load_ensemble(model[-1]).ensemble
    for members in ([f"x{first}", f"x{second}"], [first, second]):
        found = attribute(model, matrix[:2], partition={"both": members})
        assert found.names == tuple("both" if j == first else f"x{j}" for j in players)
        for i in range(2):
            wanted = naive.quotient_semivalue(ensemble, made[i], group, len(players), naive.shapley_weight)
            assert_allclose(found.phi[i], wanted, rtol=0, atol=1e-12)


def test_positions_in_a_partition_are_those_of_the_data():
    """Whatever the steps drop before them; columns that are dropped are in no group."""
    for rows, first, second in ((MATRIX, "x1", "x2"), (frame_of(MATRIX), "b", "c")):
        model = fit([BEST], rows)
        found = attribute(model, rows, partition={"one": [1]})
        assert found.groups == (("one", (first,)), (second, (second,)))
        assert_array_equal(found["one"], attribute(model, rows)[first])
        with pytest.raises(UsageError, match=r"^partition: group 'g' names '(x0|a)', a column that the steps of the Pipeline drop, expected others$"):
            attribute(model, rows, partition={"g": [0, 1]})


LASTS = {
    "lightgbm": lightgbm.LGBMRegressor(n_estimators=4, verbose=-1, n_jobs=1),
    "xgboost": xgboost.XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1),
    "histogram": HistGradientBoostingRegressor(max_iter=4),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("last", LASTS)
@pytest.mark.parametrize("case", ["selected", "by position", "as frames that count anew", "bins"])
def test_other_models_are_last_steps_too(case, last):
    """As their values of the same groups on rows that were transformed by hand."""
    steps, matrix, owners = CASES[case]
    model = fit(steps, matrix, LASTS[last])
    made = model[:-1].transform(matrix) if "frames" in case else transform(model, matrix)
    seen = list(made.columns) if "frames" in case else list(range(made.shape[1]))
    found = attribute(model, matrix, interactions="all")
    by_hand = attribute(model[-1], made, interactions="all", partition={f"of {j}": [seen[place] for place in places] for j, places in owners.items()})
    assert_array_equal(found.phi, by_hand.phi)
    assert_array_equal(found.interactions, by_hand.interactions)
    assert [name.replace("x", "of ") for name in found.names] == list(by_hand.names)
    assert_allclose(found.phi.sum(axis=2)[:, 0] + found.base[0], model.predict(matrix), rtol=1e-5)


def test_classes_and_a_last_step_that_is_a_pipeline():
    """Its steps follow the others, as they do where it is written flat."""
    classes = np.digitize(TARGET, [0, 4])
    steps = [columns((TargetEncoder(), [4, 2]), (StandardScaler(), [1]))]
    flat = fit([*steps, SelectKBest(k=5)], MATRIX, RandomForestClassifier(3, max_depth=3, random_state=0), classes)
    nested = Pipeline([("columns", flat[0]), ("rest", Pipeline(flat.steps[1:]))])
    assert encoder_groups(nested) == encoder_groups(flat)
    found, wanted = attribute(nested, MATRIX), attribute(flat, MATRIX)
    assert (found.names, found.outputs) == (wanted.names, ("0", "1", "2"))
    assert_array_equal(found.phi, wanted.phi)
    assert_allclose(found.phi.sum(axis=2) + found.base, nested.predict_proba(MATRIX), atol=1e-12)


def test_a_partition_of_columns_without_names_is_one_of_the_last_step():
    """Its groups are called as no feature that is outside of them."""
    steps, matrix, _ = CASES["twice"]
    model = fit(steps, matrix)
    found = attribute(model[-1], transform(model, matrix), partition=encoder_groups(model))
    assert encoder_groups(model) == {"x0": [1], "x2": [0, 2, 3, 4, 5]}
    assert_array_equal(found.phi, attribute(model, matrix).phi)


def test_a_frame_goes_by_position_where_the_pipeline_has_no_names():
    """With a word of it, as everywhere; columns that are called so are taken by name, and others in their places are refused."""
    model = fit([StandardScaler(), BEST], MATRIX)
    wanted = attribute(model, MATRIX)
    frame = frame_of(MATRIX).assign(price=TARGET)
    with pytest.warns(UserWarning, match=r"^rows: features by position, since the Pipeline has no names: a, b, c, d, e$"):
        assert_array_equal(attribute(model, frame.drop(columns="price")).phi, wanted.phi)
    called = frame.set_axis(["x0", "x1", "x2", "x3", "x4", "price"], axis=1)
    assert_array_equal(attribute(model, called).phi, wanted.phi)
    boosted = fit([StandardScaler(), BEST], MATRIX, LASTS["lightgbm"])
    with pytest.warns(UserWarning, match=r"^rows: features by position"):
        shares = attribute(boosted, frame, "r2", label="price")
    assert_array_equal(shares.phi, attribute(boosted, MATRIX, "r2", label=TARGET).phi)
    with pytest.raises(SchemaMismatch, match=r"^rows: column 'x1' stands where the model, which has no names, takes 'x0'"):
        attribute(model, called[["x1", "x0", "x2", "x3", "x4"]])
    with pytest.raises(SchemaMismatch, match=r"^rows: the model has no names for its 5 features; .* the data have 6 columns"):
        attribute(model, frame)


def test_an_array_is_taken_where_steps_know_names():
    """With scikit-learn's own warning; steps of named columns refuse it."""
    frame = frame_of(MATRIX)
    model = fit([StandardScaler(), BEST], frame)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        found = attribute(model, MATRIX)
    assert (found.names, found.values("c").tolist()) == (("b", "c"), MATRIX[:, 2].tolist())
    assert_array_equal(found.phi, attribute(model, frame).phi)
    by_name = fit([columns((StandardScaler(), ["b", "c"]))], frame)
    with pytest.raises(SchemaMismatch, match=r"^rows: the Pipeline cannot transform them: .*only supported for data ?frames"):
        attribute(by_name, MATRIX)


LINE = r"transform rows yourself, and explain what the last step sees: leafledger\.attribute\(model\[-1\], model\[:-1\]\.transform\(rows\)\)$"


def test_what_cannot_be_followed_is_refused_in_a_line():
    """Of a matrix, of texts, of columns with one name; parameters by feature, which the last step does not know."""
    with pytest.raises(UnsupportedModel, match=rf"^PCA may make columns of several others, .*; {LINE}"):
        attribute(fit([StandardScaler(), PCA(2)], MATRIX), MATRIX)
    words = fit([TfidfVectorizer()], ["late flight", "early flight"] * (N // 2))
    with pytest.raises(UnsupportedModel, match=rf"^TfidfVectorizer may make columns of several others, .*; {LINE}"):
        attribute(words, MATRIX)
    doubled = fit([StandardScaler()], MATRIX)
    doubled[0].feature_names_in_ = np.array(["a", "b", "c", "d", "a"], object)  # as scikit-learn before 1.9 takes them
    with pytest.raises(UnsupportedModel, match=rf"^Pipeline was fitted on 2 columns called 'a', expected a name for each; {LINE}"):
        attribute(doubled, MATRIX)
    for name, given in (("noise", {"x1": "normal", "*": "laplace"}), ("scale", [0.1, 0.2]), ("scale", '{"x1": 0.1, "*": 1}')):
        with pytest.raises(UsageError, match=rf"^parameter '{name}' is by feature, of which .*, or {LINE}"):
            attribute(fit([BEST], MATRIX), MATRIX, "gap", parameters={name: given}, background=MATRIX)
    with pytest.raises(InvalidModel, match=r"^Pipeline object: not fitted \("):
        attribute(make_pipeline(StandardScaler(), RandomForestRegressor()), MATRIX)
