"""A Pipeline is explained by the columns of the data: its last step's values in groups, and beside them what the rows held before the first step."""

import pickle

import dask.dataframe
import lightgbm
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from leafledger import attribute, encoder_groups, load_ensemble, prepare
from leafledger.pipeline.errors import SchemaMismatch, UnsupportedModel, UsageError

RNG = np.random.default_rng(14)
N = 200
FRAME = pd.DataFrame(
    {
        "age": np.where(np.arange(N) % 11 == 0, np.nan, RNG.integers(18, 80, N)),
        "income": RNG.normal(17000, 3000, N).round(),
        "job": RNG.choice(["cook", "nurse", "clerk"], N),
        "city": RNG.choice(["Oslo", "Rome"], N),
        "unused": 1,
    },
    index=[f"customer {i}" for i in range(N)],
)
TARGET = FRAME["age"].fillna(50) / 10 + 3 * (FRAME["job"] == "cook") + (FRAME["city"] == "Rome") * FRAME["income"] / 9000
NUMBERS = make_pipeline(SimpleImputer(), StandardScaler())
LASTS = {
    "forest": RandomForestRegressor(5, max_depth=4, random_state=0),
    "lightgbm": lightgbm.LGBMRegressor(n_estimators=8, verbose=-1, n_jobs=1),
    "xgboost": xgboost.XGBRegressor(n_estimators=8, max_depth=3, n_jobs=1),
}


def steps(**given):
    """Scaled numbers and encoded texts; a column is dropped."""
    return ColumnTransformer([("numbers", NUMBERS, ["age", "income"]), ("texts", OneHotEncoder(**given), ["job", "city"])])


def fit(last, target=TARGET):
    """A Pipeline with such a last step."""
    return make_pipeline(steps(), last).fit(FRAME, target)


FOREST = fit(LASTS["forest"])


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("last", LASTS)
def test_values_are_the_last_step_s_and_add_up_to_predict(last):
    """In groups by the columns of the data, to the last bit; to what the whole Pipeline predicts."""
    model = fit(LASTS[last])
    found = attribute(model, FRAME)
    by_hand = attribute(model[-1], model[:-1].transform(FRAME), partition=encoder_groups(model))
    assert_array_equal(found.phi, by_hand.phi)
    assert found.names == ("age", "income", "job", "city")
    assert_allclose(found.phi.sum(axis=2)[:, 0] + found.base[0], model.predict(FRAME), rtol=1e-5)


def test_rows_have_the_values_that_were_given():
    """Not the scaled ones, and of an encoded column its category; labels of the rows stay."""
    found = attribute(FOREST, FRAME)
    for name in found.names:
        assert_array_equal(found.values(name), FRAME[name].to_numpy())
    assert found.index.tolist() == FRAME.index.tolist()
    labels = {step.label for step in found.waterfall(3).steps}
    row = FRAME.iloc[3]
    assert labels == {f"age = {row['age']:g}", f"income = {row['income']:g}", f"job = {row['job']}", f"city = {row['city']}"}
    assert set(found[5:9].top(9)["value"].astype(str)) >= {FRAME["job"].iloc[5], FRAME["city"].iloc[6]}
    assert found.to_arrow("unused")["unused"].to_pylist() == [1] * N


@pytest.mark.parametrize(
    "given",
    [
        lambda: FRAME[:1].reset_index(drop=True),
        lambda: FRAME.iloc[0].to_dict(),
        lambda: [FRAME.iloc[0].to_dict()],
        lambda: FRAME.iloc[0],
        lambda: pa.Table.from_pandas(FRAME[:1], preserve_index=False),
        lambda: polars.from_pandas(FRAME[:1]),
        lambda: FRAME[:1][["unused", "city", "job", "income", "age"]],
    ],
    ids=["frame", "dict", "records", "Series", "Arrow", "Polars", "other order"],
)
def test_rows_come_in_every_form(given):
    assert_array_equal(attribute(FOREST, given()).phi, attribute(FOREST, FRAME[:1]).phi)


def test_groups_of_columns_are_groups_of_what_was_made_of_them():
    """By name; what they are called and have is of the data."""
    found = attribute(FOREST, FRAME, partition={"person": ["age", "job"]})
    groups = encoder_groups(FOREST)
    wanted = {"person": groups["age"] + groups["job"], "income": groups["income"], "city": groups["city"]}
    by_hand = attribute(FOREST[-1], FOREST[:-1].transform(FRAME), partition=wanted)
    assert_array_equal(found["person"], by_hand["person"])
    assert found.groups == (("person", ("age", "job")), ("income", ("income",)), ("city", ("city",)))
    with pytest.raises(UsageError, match=r"^partition: group 'g' names 'ago', which is no feature of the model; did you mean 'age'\?$"):
        attribute(FOREST, FRAME, partition={"g": ["ago"]})


def test_a_background_is_of_the_data_too():
    """And a label, or a weight, may be one of its columns."""
    found = attribute(FOREST, FRAME[:20], background=FRAME[50:90])
    made = FOREST[:-1].transform(FRAME)
    by_hand = attribute(FOREST[-1], made[:20], background=made[50:90], partition=encoder_groups(FOREST))
    assert_array_equal(found.phi, by_hand.phi)
    labelled = FRAME.assign(price=TARGET, weight=2.0)
    boosted = fit(lightgbm.LGBMRegressor(n_estimators=4, verbose=-1, n_jobs=1))
    shares = attribute(boosted, labelled, "r2", label="price", weight="weight")
    assert_allclose(shares.phi, attribute(boosted, FRAME, "r2", label=TARGET.to_numpy()).phi)
    with pytest.raises(UsageError, match=r"^label is 'prize', which is no column of the rows; did you mean 'price'\?$"):
        attribute(boosted, labelled, "r2", label="prize")


@pytest.mark.slow
def test_interactions_and_classes_are_those_of_the_columns():
    model = fit(RandomForestClassifier(5, max_depth=4, random_state=0), np.digitize(TARGET, [5, 7]))
    found = attribute(model, FRAME, interactions="all")
    assert found["job", "age"].shape == (N, 3)
    assert found.waterfall(4).title == f"row customer 4, output {model.predict(FRAME)[4]}"


def test_a_search_and_a_sparse_step_are_followed():
    search = GridSearchCV(
        make_pipeline(steps(sparse_output=True), RandomForestRegressor(3, random_state=0)), {"randomforestregressor__max_depth": [3]}
    )
    search.fit(FRAME, TARGET)
    assert_array_equal(attribute(search, FRAME).phi, attribute(search.best_estimator_, FRAME).phi)


@pytest.mark.parametrize("last", [*LASTS, "a search"])
def test_what_a_sparse_matrix_does_not_store_is_what_the_last_step_takes_it_for(last):
    """Missing to XGBoost, 0 to others; so are zeros among numbers, which it does not store either. By predictions of the Pipeline alone."""
    rows = FRAME[["job", "city"]].assign(children=np.arange(N) % 3)
    target = TARGET.fillna(0) + 4 * (rows["children"] == 0)
    model = GridSearchCV(LASTS["xgboost"], {"max_depth": [3]}, cv=2) if last == "a search" else clone(LASTS[last])
    texts = ColumnTransformer([("texts", OneHotEncoder(), ["job", "city"])], remainder="passthrough", sparse_threshold=1.0)
    model = make_pipeline(texts, model).fit(rows, target)
    assert issparse(model[:-1].transform(rows))
    found = attribute(model, rows)
    assert_allclose(found.margin[:, 0], model.predict(rows), rtol=2e-6)
    one, other = rows.iloc[[0]], rows.iloc[[7]]

    def predict(mixed):
        return model.predict(pd.DataFrame([{name: (one if name in mixed else other)[name].item() for name in rows}]))[0]

    names = set(rows)
    rest = {name: names - {name} for name in names}
    by_hand = {  # three players: alone, beside either other one, beside both
        name: (predict({name}) - predict(set())) / 3
        + sum(predict({name, beside}) - predict({beside}) for beside in rest[name]) / 6
        + (predict(names) - predict(rest[name])) / 3
        for name in names
    }
    values = attribute(model, one, background=other)
    assert_allclose(values.phi[0, 0], [by_hand[name] for name in values.names], rtol=1e-5, atol=1e-5)


def test_columns_without_names_go_by_position():
    """Of a matrix, which the first step was fitted on; a frame is taken as it stands."""
    matrix = FRAME[["age", "income"]].to_numpy()
    model = make_pipeline(SimpleImputer(), RandomForestRegressor(3, max_depth=3, random_state=0)).fit(matrix, TARGET)
    found = attribute(model, matrix)
    assert found.names == ("x0", "x1")
    assert_array_equal(found.values("x1"), matrix[:, 1])
    with pytest.warns(UserWarning, match="^rows: features by position"):
        frame = attribute(model, FRAME[["age", "income"]])
    assert_array_equal(frame.phi, found.phi)
    assert_array_equal(frame.values("x1"), matrix[:, 1])


def test_a_matrix_has_all_columns_of_the_first_step():
    """Also where one of them is dropped: values are those of the column by its place."""
    matrix = np.column_stack((np.zeros(N), FRAME["income"], FRAME["age"]))
    keep = ColumnTransformer([("same", "passthrough", [2, 1])])
    model = make_pipeline(keep, lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, n_jobs=1)).fit(matrix, TARGET)
    found = attribute(model, matrix)
    assert found.names == ("x2", "x1")
    assert_array_equal(found.values("x2"), matrix[:, 2])
    assert_array_equal(found.values("x1"), matrix[:, 1])


def test_what_cannot_be_followed_is_refused_with_the_line_to_write():
    """Steps that mix columns, methods without values of groups, rows that the steps refuse; and where no rows are given, as before."""
    mixed = make_pipeline(SimpleImputer(), PCA(2), RandomForestRegressor(2, random_state=0)).fit(FRAME[["age", "income"]], TARGET)
    line = r"leafledger\.attribute\(model\[-1\], model\[:-1\]\.transform\(rows\)\)$"
    with pytest.raises(UnsupportedModel, match=rf"^PCA may make columns of several others, .*; transform rows yourself, and .*: {line}"):
        attribute(mixed, FRAME[["age", "income"]])
    with pytest.raises(UsageError, match=rf"^method 'owen' has no values of groups, which columns of a Pipeline are: .*{line}"):
        attribute(FOREST, FRAME, "owen")
    with pytest.raises(SchemaMismatch, match=r"^rows: the Pipeline takes 'income', got age, job, city, unused$"):
        attribute(FOREST, FRAME.drop(columns="income"))
    with pytest.raises(SchemaMismatch, match=r"^rows: the Pipeline takes 'income', got age, incmoe, job, city, unused; did you mean 'incmoe'\?$"):
        attribute(FOREST, FRAME.rename(columns={"income": "incmoe"}))
    with pytest.raises(SchemaMismatch, match=r"^rows: the Pipeline cannot transform them: .*chef"):
        attribute(FOREST, FRAME.assign(job="chef"))
    with pytest.raises(SchemaMismatch, match=r"^rows of the background: the Pipeline takes 'job', got age, "):
        attribute(FOREST, FRAME, background=FRAME.drop(columns="job"))
    with pytest.raises(
        UnsupportedModel, match=r"^Pipeline is no sum of trees: leafledger\.attribute\(model, rows\) and leafledger\.prepare\(model\) take"
    ):
        load_ensemble(FOREST)


def test_a_pipeline_is_prepared_once_for_many_calls(tmp_path):
    """Each call has the bits of ``attribute``, with the data's values; also from a pickle, with the tables in it or in a folder."""
    wanted = attribute(FOREST, FRAME, background=FRAME[50:90], partition={"person": ["age", "job"]})
    prepared = prepare(FOREST, background=FRAME[50:90], partition={"person": ["age", "job"]})
    kept = prepare(FOREST, background=FRAME[50:90], partition={"person": ["age", "job"]}, tables=tmp_path)
    for explainer in (prepared, pickle.loads(pickle.dumps(prepared)), pickle.loads(pickle.dumps(kept))):
        found = explainer(FRAME)
        assert_array_equal(found.phi, wanted.phi)
        assert (found.names, found.groups, found.index.tolist()) == (wanted.names, wanted.groups, FRAME.index.tolist())
        assert_array_equal(found.values("city"), FRAME["city"])
        assert_array_equal(explainer(FRAME[3:4]).phi, wanted.phi[3:4])
    assert repr(prepare(FOREST)).startswith("Explainer(scikit-learn, 5 trees, method shapley, 4 features, ")
    boosted = fit(lightgbm.LGBMRegressor(n_estimators=4, verbose=-1, n_jobs=1))
    shares = prepare(boosted, "r2")(FRAME.assign(price=TARGET), label="price")
    assert_array_equal(shares.phi, attribute(boosted, FRAME, "r2", label=TARGET.to_numpy()).phi)


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("imputed", [False, True])
@pytest.mark.slow
def test_missing_texts_are_those_that_encoders_know(missing, imputed):
    """Whatever holds the rows: a null of Arrow is None or NaN, as the steps were fitted; predictions are those of the data frame."""
    frame = pd.DataFrame({"job": FRAME["job"].astype(object).where(FRAME["city"] == "Rome", missing), "income": FRAME["income"]}).reset_index(
        drop=True
    )
    first = [SimpleImputer(strategy="constant", fill_value="none", missing_values=missing)] * imputed
    codes = make_pipeline(*first, OneHotEncoder(handle_unknown="ignore"))
    model = make_pipeline(ColumnTransformer([("texts", codes, ["job"]), ("numbers", "passthrough", ["income"])]), LASTS["forest"]).fit(frame, TARGET)
    wanted, table, explainer = model.predict(frame), pa.Table.from_pandas(frame, preserve_index=False), prepare(model, background=frame)
    for rows in (frame, table, table.to_batches()[0], polars.from_arrow(table), table.to_pydict(), frame.to_dict("list"), frame.to_dict("records")):
        assert_allclose(explainer(rows).prediction[:, 0], wanted)
        assert_array_equal(attribute(model, frame, background=rows).phi, explainer(frame).phi)
    gap = int(frame["job"].isna().argmax())
    assert_allclose(explainer(frame.iloc[gap]).prediction[0], wanted[gap])


def test_missing_texts_that_a_pipeline_tells_apart_are_refused():
    """Outside of data frames, which say what each is; without any there is nothing to tell apart."""
    frame = pd.DataFrame({"job": pd.Series(["cook", None, np.nan, "nurse"] * 5, dtype=object)})
    model = make_pipeline(OneHotEncoder(), RandomForestRegressor(3, random_state=0)).fit(frame, np.arange(20) % 4)
    assert_allclose(attribute(model, frame).prediction[:, 0], model.predict(frame))
    line = "^rows: column 'job' has missing values, which the Pipeline knows as None and as NaN; give a data frame$"
    with pytest.raises(SchemaMismatch, match=line):
        attribute(model, pa.table({"job": ["cook", None]}))
    assert_allclose(attribute(model, pa.table({"job": ["cook", "nurse"]})).prediction[:, 0], model.predict(frame)[[0, 3]])


@pytest.mark.parametrize("name", ["label", "weight"])
def test_labels_in_another_order_than_rows_are_refused(name):
    """As without a Pipeline, though what the last step sees has no labels of rows any more."""
    boosted = fit(lightgbm.LGBMRegressor(n_estimators=4, verbose=-1, n_jobs=1))
    turned = {"label": TARGET.to_numpy(), name: TARGET.abs()[::-1]}
    line = f"^{name} is a Series with the labels of the rows in another order, expected the same order, or an array$"
    for asked in (lambda: attribute(boosted, FRAME, "r2", **turned), lambda: prepare(boosted, "r2")(FRAME, **turned)):
        with pytest.raises(UsageError, match=line):
            asked()
    assert_array_equal(attribute(boosted, FRAME, "r2", label=TARGET).phi, attribute(boosted, FRAME, "r2", label=TARGET.to_numpy()).phi)


def test_a_pipeline_that_is_fitted_anew_changes_no_explainer():
    """Pipelines fit their steps in place: a scaler of other rows would hand the trees as they were other numbers of the same rows."""
    model = make_pipeline(StandardScaler(), RandomForestRegressor(3, max_depth=3, random_state=0)).fit(FRAME[["income"]], TARGET)
    explainer, before = prepare(model), attribute(model, FRAME)
    model.fit(2 * FRAME[["income"]] + 7, TARGET)
    found = explainer(FRAME)
    assert_array_equal(found.phi, before.phi)
    assert_array_equal(found.prediction, before.prediction)


def test_engines_are_told_the_columns_of_no_rows():
    """Which transformers refuse: of Arrow's batches, and of partitions of Dask; a column that is missing is told there too."""
    named = make_pipeline(steps(sparse_output=False).set_output(transform="pandas"), LASTS["forest"]).fit(FRAME, TARGET)
    for model in (FOREST, named):
        explainer, table = prepare(model), pa.Table.from_pandas(FRAME, preserve_index=False)
        assert explainer.to_batch(table[:0], "city").schema == explainer.to_batch(table, "city").schema
        with pytest.raises(SchemaMismatch, match="the Pipeline takes 'job'"):
            explainer.to_batch(table[:0].drop_columns("job"))
        parts = explainer(dask.dataframe.from_pandas(FRAME.reset_index(drop=True), npartitions=3)).compute()
        assert_array_equal(parts.to_numpy(), explainer(FRAME).phi[:, 0])


def test_ids_of_a_batch_stay_as_they_are():
    """Of the batch's own types, though pandas has no integers beside missing ones, and rounds them beyond 2⁵³."""
    ids = pa.array([None, 2**53 + 1, 2**53 + 3], pa.int64())
    table = pa.Table.from_pandas(FRAME[:3], preserve_index=False).append_column("id", ids)
    assert prepare(FOREST).to_batch(table, "id")["id"].combine_chunks() == ids
    found = attribute(FOREST, table)
    assert found.to_arrow("id")["id"].combine_chunks() == ids
    assert found.top(1).equals(attribute(FOREST, FRAME[:3].reset_index(drop=True)).top(1))


@pytest.mark.parametrize("last", [HistGradientBoostingRegressor(max_iter=3), lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, n_jobs=1)], ids=str)
@pytest.mark.parametrize("as_frames", [False, True])
@pytest.mark.filterwarnings("error")
def test_columns_of_a_named_frame_are_no_positions(last, as_frames):
    """Nothing is said of positions, whatever the steps hand on."""
    codes = ColumnTransformer([("texts", OrdinalEncoder(), ["job", "city"])], remainder="passthrough")
    model = make_pipeline(codes.set_output(transform="pandas") if as_frames else codes, last).fit(FRAME, TARGET)
    assert set(attribute(model, FRAME, background=FRAME[:30]).names) == {*FRAME}


def test_a_frame_with_ordinal_codes_keeps_its_texts():
    """Where every column stays one, it is called as before, with its own values."""
    model = make_pipeline(OrdinalEncoder(), RandomForestRegressor(3, max_depth=3, random_state=0)).fit(FRAME[["job", "city"]], TARGET)
    found = attribute(pickle.loads(pickle.dumps(model)), FRAME)
    assert found.names == ("job", "city")
    assert found.values("job").tolist() == FRAME["job"].tolist()
