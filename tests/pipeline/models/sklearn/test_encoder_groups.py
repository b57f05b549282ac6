"""Columns of a Pipeline's last step by the columns of the data: as the encoders' own names say, and as what changes with a column says."""

import itertools

import numba
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
    normalize,
)

from leafledger import attribute, encoder_groups, load_ensemble
from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from tests import naive

DRAW = np.random.default_rng(0)
N = 300
FRAME = pd.DataFrame(
    {
        "size": DRAW.normal(size=N).round(2),
        "kind": DRAW.choice(["a", "b", "c", "d_e", "f"], N, p=[0.4, 0.3, 0.2, 0.06, 0.04]),
        "kind_d": DRAW.choice(["e", "x"], N),  # whose columns' names could be those of the other's
        "weight": DRAW.normal(size=N).round(2),
        "id": np.arange(N),
        "hole": np.where(DRAW.random(N) < 0.2, np.nan, DRAW.normal(size=N)),
    }
)
TARGET = FRAME["size"] + (FRAME["kind"] == "b") * FRAME["weight"] + (FRAME["kind_d"] == "x") + FRAME["hole"].fillna(0)
TEXTS, NUMBERS = ["kind", "kind_d"], ["size", "weight"]


def columns(encoder, **given):
    """Encoded, passed through, scaled, and one dropped."""
    steps = [("cat", encoder, TEXTS), ("same", "passthrough", ["size"]), ("scale", StandardScaler(), ["weight"]), ("none", "drop", ["id"])]
    return ColumnTransformer(steps, sparse_threshold=0, **given)


ENCODERS = {
    "all": OneHotEncoder(sparse_output=False),
    "frequent": OneHotEncoder(sparse_output=False, min_frequency=0.1),
    "few": OneHotEncoder(sparse_output=False, max_categories=3),
    "without the first": OneHotEncoder(sparse_output=False, drop="first"),
    "without one of two": OneHotEncoder(sparse_output=False, drop="if_binary"),
    "frequent, without the first": OneHotEncoder(sparse_output=False, min_frequency=0.1, drop="first"),
    "a list dropped": OneHotEncoder(sparse_output=False, drop=["f", "x"]),
    "after an imputer": make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(sparse_output=False)),
    "numbered": OrdinalEncoder(),
    "by the target": TargetEncoder(target_type="continuous"),
}


def owners_by_change(steps, frame):
    """Of every column that steps make, the columns of the data with which it changes, each shuffled alone."""
    before, found = np.asarray(steps.transform(frame), float), []
    for name in frame.columns:
        changed = frame.copy()
        changed[name] = changed[name].to_numpy()[np.random.default_rng(1).permutation(len(frame))]
        after = np.asarray(steps.transform(changed), float)
        differs = ~((before == after) | (np.isnan(before) & np.isnan(after))).all(axis=0)
        found.append(differs)
    return {name: np.flatnonzero(differs).tolist() for name, differs in zip(frame.columns, found, strict=True) if differs.any()}


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("verbose", [True, False])
@pytest.mark.parametrize("pandas", [True, False])
def test_groups_are_the_columns_that_were_encoded(kind, verbose, pandas):
    """By name where the last step knows names, else by position; as the encoder's own names begin, and as its output changes."""
    encoder = ENCODERS[kind]
    model = make_pipeline(columns(encoder, verbose_feature_names_out=verbose), RandomForestRegressor(2, max_depth=2))
    if pandas:
        model[:-1].set_output(transform="pandas")
    frame = FRAME.replace({"kind": {"d_e": "d"}})  # or two columns would have one name, which encoders refuse
    model.fit(frame, TARGET)
    groups, names = encoder_groups(model), [str(name) for name in model[:-1].get_feature_names_out()]
    positions = {name: [names.index(each) if pandas else each for each in members] for name, members in groups.items()}
    assert positions == owners_by_change(model[:-1], frame)
    assert sorted(itertools.chain(*positions.values())) == list(range(len(names)))
    for name, members in positions.items():
        assert all(names[j].removeprefix("cat__").startswith(name) or not names[j].startswith("cat__") for j in members)


EACH = (
    *(MinMaxScaler(), MaxAbsScaler(), RobustScaler(), Binarizer(), OrdinalEncoder(), QuantileTransformer(n_quantiles=9), PowerTransformer()),
    *(FunctionTransformer(), FunctionTransformer(np.exp, feature_names_out="one-to-one"), FunctionTransformer(np.abs)),
)
STEPS = {
    "selectors": ColumnTransformer([("cat", OneHotEncoder(), make_column_selector(dtype_include=[object, "string"]))], remainder=StandardScaler()),
    "masks and slices": ColumnTransformer(
        [("cat", OneHotEncoder(), [False, True, False, False, False, False]), ("number", "passthrough", slice(3, 5))], sparse_threshold=0
    ),
    "twice": ColumnTransformer([("one", StandardScaler(), NUMBERS), ("two", KBinsDiscretizer(3, encode="onehot-dense"), ["size", "weight"])]),
    "holes": ColumnTransformer([("fill", SimpleImputer(add_indicator=True), ["size", "hole"])], remainder="drop"),
    "bins": ColumnTransformer([("bins", KBinsDiscretizer(4, encode="ordinal"), NUMBERS)]),
    "chosen": Pipeline(
        [("columns", columns(OneHotEncoder(sparse_output=False))), ("best", SelectKBest(f_regression, k=4)), ("scale", StandardScaler())]
    ),
    "one column": ColumnTransformer([("parts", PCA(1), ["size"]), ("norm", Normalizer(), ["id"]), ("same", "passthrough", ["weight"])]),
    "numbers": ColumnTransformer([(str(number), step, ["size", "weight"]) for number, step in enumerate(EACH)]),
}


@pytest.mark.parametrize("kind", STEPS)
def test_other_steps_are_followed_too(kind):
    """As the output changes with the columns of the data."""
    model = make_pipeline(STEPS[kind], RandomForestRegressor(2, max_depth=2)).fit(FRAME, TARGET)
    made = model[:-1].transform(FRAME.head(1))
    sparse = hasattr(made, "toarray")
    steps = model[:-1] if not sparse else type("", (), {"transform": staticmethod(lambda frame: model[:-1].transform(frame).toarray())})
    expected = owners_by_change(steps, FRAME)
    found = encoder_groups(model)
    assert {name: sorted(members) for name, members in found.items()} == expected


@pytest.mark.filterwarnings("ignore:Skipping features")
@pytest.mark.parametrize("kept", [True, False])
def test_an_indicator_is_of_the_column_that_it_was_made_of(kept):
    """Not of a column of the data that has its name; columns without any value are dropped, or kept."""
    rows = pd.DataFrame({"a": [1.0, np.nan, 3.0, 4.0], "empty": [np.nan] * 4, "missingindicator_a": [0.0, 1.0, 1.0, 0.0]})
    model = make_pipeline(SimpleImputer(add_indicator=True, keep_empty_features=kept), RandomForestRegressor(2)).fit(rows, [1, 2, 3, 4])
    flags = [3, 4] if kept else [2, 3]
    filled = {"a": [0, flags[0]], "empty": [1, flags[1]] if kept else [flags[1]], "missingindicator_a": [flags[0] - 1]}
    assert encoder_groups(model) == filled


def test_classes_of_a_target_have_a_column_each():
    """Of an encoder by a target of several classes."""
    classes = np.digitize(TARGET, [-1, 1])
    model = make_pipeline(TargetEncoder(), GradientBoostingRegressor(n_estimators=1)).fit(FRAME[TEXTS], classes)
    assert encoder_groups(model) == {"kind": [0, 1, 2], "kind_d": [3, 4, 5]}


def test_columns_without_names_are_called_as_scikit_learn_calls_them():
    """Of an array: as the names of what is made of them begin."""
    model = make_pipeline(OneHotEncoder(sparse_output=False), RandomForestRegressor(2)).fit(np.array([[1, 5], [2, 5], [3, 6]]), [1, 2, 3])
    assert encoder_groups(model) == {"x0": [0, 1, 2], "x1": [3, 4]}
    assert model[:-1].get_feature_names_out().tolist() == ["x0_1", "x0_2", "x0_3", "x1_5", "x1_6"]


@pytest.mark.parametrize("pandas", [True, False])
def test_the_groups_are_players(pandas):
    """Their values are those of the definition, by enumeration of groups; of a search too, and on frames and arrays."""
    steps = columns(OneHotEncoder(sparse_output=False, min_frequency=0.1))
    model = make_pipeline(steps, GradientBoostingRegressor(n_estimators=5, max_depth=3, random_state=0))
    model = GridSearchCV(model, {"gradientboostingregressor__max_depth": [3]}, cv=2)
    if pandas:
        steps.set_output(transform="pandas")
    model.fit(FRAME, TARGET)
    best, groups = model.best_estimator_, encoder_groups(model)
    rows = best[:-1].transform(FRAME.head(3))
    found = attribute(best[-1], rows, partition=groups)
    assert found.players == ("kind", "kind_d", "size", "weight")
    assert_allclose(found.phi.sum(axis=2) + found.base, found.margin, rtol=0, atol=1e-12)
    loaded = load_ensemble(best[-1])
    numbers = np.zeros(len(loaded.features), int)
    for group, name in enumerate(found.players):
        for member in groups[name]:
            numbers[[feature.name for feature in loaded.features].index(member) if pandas else member] = group
    for i, row in enumerate(np.asarray(rows, float)):
        expected = naive.quotient_semivalue(loaded.ensemble, row, numbers, len(groups), naive.shapley_weight)
        assert_allclose(found.phi[i], expected, rtol=0, atol=1e-12)


class Summing(StandardScaler):
    """Transforms in its own way."""

    def transform(self, rows):
        return np.cumsum(super().transform(rows), axis=1)


class Named(StandardScaler):
    """Transforms as its base class does."""


def test_what_mixes_columns_is_refused():
    """And what is no Pipeline, or not fitted."""
    mixed = make_pipeline(StandardScaler(), PCA(2), RandomForestRegressor(2)).fit(FRAME[NUMBERS], TARGET)
    with pytest.raises(UnsupportedModel, match=r"^PCA may make columns of several others, expected encoders, scalers, simple imputers"):
        encoder_groups(mixed)
    summed = make_pipeline(Summing(), RandomForestRegressor(2)).fit(FRAME[NUMBERS], TARGET)
    with pytest.raises(UnsupportedModel, match=r"^Summing may make columns of several others"):
        encoder_groups(summed)
    inherited = make_pipeline(Named(), RandomForestRegressor(2)).fit(FRAME[NUMBERS], TARGET)
    assert encoder_groups(inherited) == {name: [j] for j, name in enumerate(NUMBERS)}
    with pytest.raises(UnsupportedModel, match=r"^RandomForestRegressor is no Pipeline, expected one whose last step is an ensemble of trees$"):
        encoder_groups(RandomForestRegressor())
    with pytest.raises(InvalidModel, match=r"^Pipeline object: not fitted \("):
        encoder_groups(make_pipeline(StandardScaler(), RandomForestRegressor()))
    with pytest.raises(UnsupportedModel, match=r"^Pipeline is no sum of trees: .*leafledger\.encoder_groups\(model\) is the partition"):
        load_ensemble(mixed)


@numba.guvectorize(["void(float64[:], float64[:])"], "(n)->(n)", target="parallel")  # of this target, a ufunc of NumPy
def spread(row, out):
    """A row's numbers beside their mean."""
    mean = row.mean()
    for j in range(row.size):
        out[j] = row[j] - mean


@pytest.mark.parametrize(
    "step",
    [
        *(Normalizer(), TfidfTransformer(), KNNImputer(n_neighbors=2), FunctionTransformer(normalize, feature_names_out="one-to-one")),
        FunctionTransformer(spread, validate=True, feature_names_out="one-to-one"),
    ],
    ids=lambda step: f"{type(step).__name__} {getattr(getattr(step, 'func', None), '__name__', '')}".rstrip(),
)
def test_columns_that_keep_their_names_may_be_made_of_others(step):
    """They change with columns of other names; steps that are not known are refused."""
    rows = FRAME[["id", "hole"]] if isinstance(step, KNNImputer) else FRAME[["id", "weight"]].abs()
    model = make_pipeline(step, RandomForestRegressor(2, max_depth=2)).fit(rows, TARGET)
    sparse = hasattr(model[:-1].transform(rows), "toarray")
    steps = type("", (), {"transform": staticmethod(lambda frame: model[:-1].transform(frame).toarray())}) if sparse else model[:-1]
    assert [0, 1] in owners_by_change(steps, rows).values()
    with pytest.raises(UnsupportedModel, match=rf"^{type(step).__name__} may make columns of several others"):
        encoder_groups(model)


def test_positions_are_those_of_the_transformed_rows():
    """What the test compares with is right: a column that is passed through is where it was put."""
    steps = columns(OneHotEncoder(sparse_output=False)).fit(FRAME)
    assert_array_equal(steps.transform(FRAME)[:, owners_by_change(steps, FRAME)["size"][0]], FRAME["size"])
