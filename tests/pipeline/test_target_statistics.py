"""CatBoost models with categorical features as CatBoost trains them by default: its own values, enumeration, and what is said of them."""

import catboost
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from leafledger import attribute, check_run, compare, explain, inspect_model, load_ensemble, prediction_gap, rank_by_gap
from leafledger import curves as measure_curves
from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.trees.statistics import look_up
from leafledger.pipeline.dataset.columns.categories import hash_values
from leafledger.pipeline.dataset.columns.players import number_players
from leafledger.pipeline.dataset.columns.schema import column_values
from leafledger.pipeline.errors import InvalidColumn, SchemaMismatch, UnsupportedModel, UsageError
from tests import naive, naive_sets
from tests.more import diagonal
from tests.pipeline.running import attributions

CATEGORIES = ["city", "job", "code"]
COMMON = {"verbose": 0, "allow_writing_files": False, "random_seed": 1, "thread_count": 1}


def make_rows(n, seed):
    """Texts, integers and numbers, a tenth of these missing."""
    rng = np.random.default_rng(seed)
    pay = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    return pd.DataFrame(
        {
            "city": rng.choice(list("abcdefgh"), n),
            "pay": pay,
            "job": rng.choice(["cook", "clerk", "pilot", "Ärztin"], n),
            "code": rng.integers(-3, 30, n),
            "age": rng.normal(size=n),
        }
    )


def make_target(rows, n_classes=0):
    city, pay = rows["city"].str[0].map(ord) % 5, rows["pay"].fillna(0.0)
    target = city + pay * (rows["job"] == "cook") + rows["age"] * (rows["code"] % 3)
    return pd.qcut(target, n_classes, labels=False) if n_classes else target


TRAIN, PROBE, BACKGROUND = make_rows(500, 0), make_rows(60, 1), make_rows(25, 2)
PROBE.loc[::4, "city"] = "never seen"


def train(n_classes=0, **parameters):
    kind = catboost.CatBoostClassifier if n_classes else catboost.CatBoostRegressor
    return kind(**COMMON, **parameters).fit(TRAIN, make_target(TRAIN, n_classes), cat_features=CATEGORIES)


def pool(rows):
    return catboost.Pool(rows, np.arange(len(rows)) % 2, cat_features=CATEGORIES)  # labels are asked for and never looked at


@pytest.fixture(scope="module")
def regressor():
    """Combinations of up to four features, with bits of numbers among them."""
    return train(iterations=40, max_ctr_complexity=4, model_size_reg=0)


MODELS = {
    "few trees, so no combinations": {"iterations": 20},
    "two classes, default trees": {"iterations": 200, "n_classes": 2},
    "three classes": {"iterations": 20, "n_classes": 3, "max_ctr_complexity": 3},
    "one-hot splits beside statistics": {"iterations": 30, "max_ctr_complexity": 3, "one_hot_max_size": 5},
}


@pytest.mark.parametrize("parameters", MODELS.values(), ids=MODELS)
@pytest.mark.slow
def test_values_are_catboosts_own(parameters):
    """Path-dependent, against a background and against the leaf weights: its Regular, Independent and Exact values, and its predictions."""
    model = train(**parameters)
    games = {None: {}, "model": {"shap_calc_type": "Exact"}, "rows": {"reference_data": pool(BACKGROUND)}}
    for background, asked in games.items():
        if background == "rows" and parameters.get("n_classes") == 3:
            continue  # CatBoost has no such values of several classes
        found = attribute(model, PROBE, background=BACKGROUND if background == "rows" else background)
        theirs = model.get_feature_importance(pool(PROBE), type="ShapValues", **asked).reshape(len(PROBE), -1, 6)
        assert_allclose(found.phi, theirs[:, :, :5], rtol=0, atol=1e-12)
        margin = model.predict(PROBE, prediction_type="RawFormulaVal").reshape(len(PROBE), -1)
        assert_allclose(found.margin, margin, rtol=0, atol=1e-12)


def columns_of(model):
    """The values of all columns of the probe's first rows, codes of statistics among them, by column of the ensemble."""
    statistics, batch, rows = model.ensemble.statistics, pa.RecordBatch.from_pandas(PROBE.head(6)), np.zeros((model.ensemble.n_features, 6))
    for j, feature in enumerate(model.features):
        rows[j] = hash_values(batch.column(j)) if feature.hashed else column_values(feature, batch.column(j), single_precision=True)
    look_up(rows[statistics.source], frozen(statistics), rows[statistics.column[0] :], np.zeros((statistics.source.size, 6), bool))
    return rows.T


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise", "Lossguide"])
@pytest.mark.parametrize(("name", "weight"), [("shapley", naive.shapley_weight), ("banzhaf", naive.banzhaf_weight)])
def test_values_of_players_are_those_of_enumeration(policy, name, weight):
    """In exact fractions over all players, features and combinations; shared equally, and on their own."""
    model = load_ensemble(train(iterations=4, max_ctr_complexity=3, model_size_reg=0, depth=3, grow_policy=policy))
    players, own = number_players(model, ()), attribute(model, PROBE.head(6), name, combinations="own")
    assert len(own.players) == 5 + len(players.combinations)
    shared = attribute(model, PROBE.head(6), name)
    assert shared.players == tuple(PROBE)
    for i, row in enumerate(columns_of(model)):
        phi = naive.quotient_semivalue(model.ensemble, row, players.numbers.tolist(), len(own.players), weight)
        assert_allclose(own.phi[i], phi, rtol=0, atol=1e-12)
        expected = phi[:, :5].copy()
        for player, members in players.combinations.items():
            expected[:, list(members)] += phi[:, [player]] / len(members)
        assert_allclose(shared.phi[i], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise"])
def test_interactions_of_sets_of_players_are_those_of_enumeration(policy):
    """In exact fractions over all players, features and combinations; and of a background too they add up."""
    fitted = train(iterations=4, max_ctr_complexity=2, model_size_reg=0, depth=3, grow_policy=policy)
    model, rows = load_ensemble(fitted), PROBE.head(1)
    players, found = number_players(model, ()), attribute(model, rows, interactions="all", order=2, combinations="own")
    assert len(found.players) == 5 + len(players.combinations)
    for i, row in enumerate(columns_of(model)[:1]):
        v = naive_sets.play(model.ensemble, row, 0, group=players.numbers.tolist())
        expected = naive_sets.by_index(v, len(found.players), "k-SII", 2)
        for members, value in zip(found.sets, found.interactions[i, 0], strict=True):
            assert abs(value - float(expected.pop(frozenset(map(found.players.index, members))))) < 1e-12
        assert not any(expected.values())
    against = attribute(model, rows, interactions="all", order=3, index="STII", combinations="own", background=BACKGROUND)
    assert_allclose(against.interactions.sum(axis=2) + against.base, against.margin, rtol=0, atol=1e-12)


def test_a_category_that_a_path_writes_with_zeros_is_refused(tmp_path):
    """All of its rows would have the prediction of a category that was never seen."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"month": rng.integers(1, 13, 240), "x": rng.normal(size=240)})
    target = 5.0 * rng.permutation(12)[rows["month"] - 1] + rows["x"]
    model = catboost.CatBoostRegressor(iterations=20, **COMMON).fit(rows, target, cat_features=["month"])
    model.save_model(str(tmp_path / "model.cbm"))
    for width in (1, 2):
        for month, those in rows.groupby("month"):
            folder = tmp_path / f"data{width}" / f"month={month:0{width}}"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"row": those.index, "x": those["x"]}), folder / "rows.parquet")
    given = {"ids": ["row"], "scheduler": "serial", "precision": "float64"}
    explain(tmp_path / "model.cbm", tmp_path / "data1", tmp_path / "run", **given)
    found = attributions(tmp_path / "run").to_pandas().set_index("row").sort_index()
    assert_allclose(found["margin"], model.predict(rows), rtol=0, atol=1e-12)
    with pytest.raises(SchemaMismatch, match=r"month=01/.*column 'month' is '01', the model has category '1'; name the folder so"):
        explain(tmp_path / "model.cbm", tmp_path / "data2", tmp_path / "none", **given)


TRUTHS = np.random.default_rng(0).random(300) < 0.5
MISSING = np.arange(300) % 10 == 0


TRAINED_ON = [TRUTHS, TRUTHS.astype(object), TRUTHS.astype(str), np.where(MISSING, "missing", TRUTHS.astype(str))]
ONE_HOT = [1, 2, 30]  # statistics of booleans, one-hot beside statistics, one-hot alone


@pytest.mark.parametrize(("trained_on", "one_hot"), diagonal(TRAINED_ON, ONE_HOT))
def test_booleans_are_the_categories_that_training_had(trained_on, one_hot, tmp_path):
    """As texts too, which CatBoost hashes otherwise; few rows of them were taken for categories that were never seen."""
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"truth": trained_on, "code": rng.integers(0, 20, 300), "x": rng.normal(size=300)})
    target = 4.0 * TRUTHS + rows["code"] + rows["x"]
    given = COMMON | {"iterations": 20, "one_hot_max_size": one_hot}
    model = catboost.CatBoostRegressor(**given).fit(rows, target, cat_features=["truth", "code"])
    asked = np.flatnonzero(~MISSING)[:40]
    booleans = pa.table({"truth": TRUTHS[asked], "code": rows["code"][asked], "x": rows["x"][asked]})
    found, expected = attribute(model, booleans), model.predict(rows.iloc[asked])
    assert_allclose(found.margin[:, 0], expected, rtol=0, atol=1e-12)
    for form in ("cbm", "json"):
        model.save_model(str(tmp_path / form), format=form)
        pq.write_table(booleans, tmp_path / "rows.parquet")
        explain(tmp_path / form, tmp_path / "rows.parquet", tmp_path / f"run-{form}", scheduler="serial", precision="float64")
        assert_allclose(attributions(tmp_path / f"run-{form}")["margin"], expected, rtol=0, atol=1e-12)
        assert check_run(tmp_path / f"run-{form}", all_rows=True).sound


@pytest.mark.parametrize(("words", "one_hot"), [(("yes", "no"), 1), (("yes", "no"), 2), (("True", "1"), 1)])
def test_booleans_are_refused_where_training_had_none(words, one_hot):
    """Or had both ways to write them."""
    rows = pd.DataFrame({"truth": np.where(TRUTHS, *words), "x": np.arange(300.0)})
    model = catboost.CatBoostRegressor(iterations=5, one_hot_max_size=one_hot, **COMMON).fit(rows, 4.0 * TRUTHS, cat_features=["truth"])
    with pytest.raises(SchemaMismatch, match=r"column 'truth' is bool, .* and does not tell how it wrote booleans: give them as texts$"):
        attribute(model, pa.table({"truth": TRUTHS, "x": rows["x"]}))


@pytest.mark.parametrize("policy", ["Depthwise", "Lossguide"])
def test_values_of_free_trees_add_up(policy):
    """CatBoost's own do not: they miss its prediction by far more than rounding."""
    model = train(iterations=40, grow_policy=policy)
    margin, theirs = model.predict(PROBE, prediction_type="RawFormulaVal"), model.get_feature_importance(pool(PROBE), type="ShapValues")
    assert np.abs(theirs.sum(axis=1) - margin).max() > 0.1
    found = attribute(model, PROBE)
    assert_allclose(found.phi[:, 0].sum(axis=1) + found.base, margin, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_the_first_trees_alone_are_ranked():
    """They ask for a category and some statistics, not for the last: one step finds Banzhaf values, and curves go from the base value to margins."""
    trained = train(iterations=3, max_ctr_complexity=1, one_hot_max_size=5, grow_policy="Lossguide")
    first = load_ensemble(trained, trees=(0, 1))
    assert (first.ensemble.category_set >= 0).any()
    assert first.ensemble.feature.max() + 1 < first.ensemble.n_features
    values, n = attribute(first, PROBE, "banzhaf"), len(PROBE.columns)
    assert_allclose(values.margin[:, 0], trained.predict(PROBE, ntree_end=1), rtol=0, atol=1e-12)
    assert_allclose(attribute(first, PROBE, "ranker", parameters={"steps": 1}).phi, values.phi, rtol=0, atol=1e-12)
    path, by_scores = attribute(first, PROBE, "curves").path[:, 0].reshape(-1, 2, n + 1), measure_curves(first, PROBE, 0.0)
    for curve in (path[:, 0], path[:, 1], by_scores.insertion[:, 0], by_scores.deletion[:, 0]):
        assert_allclose(curve[:, 0], np.full(len(PROBE), values.base), rtol=0, atol=1e-12)
        assert_allclose(curve[:, -1], values.margin[:, 0], rtol=0, atol=1e-12)


@pytest.mark.slow
def test_interactions_of_players_are_catboosts_shared(regressor):
    """CatBoost shares Φ(T, U) among the pairs of their features, T and U apart; ours are the players' own."""
    found = attribute(regressor, PROBE.head(10), interactions="all", combinations="own")
    theirs = regressor.get_feature_importance(pool(PROBE.head(10)), type="ShapInteractionValues")[:, :5, :5]
    members = {name: [list(PROBE).index(feature) for feature in name.split("×")] for name in found.players}
    expected = np.zeros((10, 5, 5))
    for pair, (one, other) in enumerate(found.pairs):
        for f in members[one]:
            for g in members[other]:
                share = found.interactions[:, 0, pair] / (len(members[one]) * len(members[other]))
                expected[:, f, g] += share * (f != g) / 2
                expected[:, g, f] += share * (f != g) / 2
    off = ~np.eye(5, dtype=bool)
    assert_allclose(expected[:, off], theirs[:, off], rtol=0, atol=1e-12)


def test_groups_share_what_their_features_have_together(regressor):
    """A group's value is that of the game of groups; a combination within it is its own."""
    groups = {"where": ["city", "job"], "rest": ["pay", "age", "code"]}
    found, own = (attribute(regressor, PROBE.head(5), partition=groups, combinations=how) for how in ("shared", "own"))
    assert own.players == ("where", "rest", "where×rest")
    assert_allclose(found.phi, own.phi[:, :, :2] + own.phi[:, :, 2:] / 2, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_runs_are_what_is_found_in_memory(regressor, tmp_path):
    """From files, in two slices of parts, against a background; checked again; own combinations have columns."""
    regressor.save_model(str(tmp_path / "m.cbm"))
    PROBE.to_parquet(tmp_path / "rows.parquet", row_group_size=25)
    BACKGROUND.astype({"city": "category"}).to_parquet(tmp_path / "background.parquet")
    for name, options in {"shared": {}, "own": {"combinations": "own"}, "marginal": {"background": tmp_path / "background.parquet"}}.items():
        explain(tmp_path / "m.cbm", tmp_path / "rows.parquet", tmp_path / name, precision="float64", scheduler="serial", **options)
        given = options | ({"background": BACKGROUND} if name == "marginal" else {})
        found, stored = attribute(regressor, PROBE, **given), attributions(tmp_path / name)
        assert [column for column in stored.column_names if column.startswith("phi_")] == [f"phi_{player}" for player in found.players]
        assert_allclose(np.transpose([stored[f"phi_{player}"].to_numpy() for player in found.players]), found.phi[:, 0], rtol=0, atol=0)
        assert check_run(tmp_path / name, deep=True).n_again
    inputs = attribute(regressor, PROBE).summaries["inputs"].to_pydict()
    assert dict(zip(inputs["feature"], inputs["unseen"], strict=True)) == {"city": 15, "pay": 0, "job": 0, "code": 0, "age": 0}


def test_losses_are_those_of_the_margins(regressor):
    """What trees take off a squared error is shared as values are: it adds up to R²."""
    label = make_target(PROBE)
    found = attribute(regressor, PROBE, "r2", label=label)
    residual = ((label - found.margin[:, 0]) ** 2).sum() / ((label - label.mean()) ** 2).sum()
    assert_allclose(found.totals["r2"]["total_r2"], 1 - residual, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_missing_and_foreign_categories(regressor):
    """A missing category is refused, as CatBoost does; those of another type are looked up by their text; numbers and arrays are refused."""
    rows = PROBE.head(8)
    lacking = rows.astype({"city": object}).assign(city=rows["city"].where(rows.index % 2 == 1, None))
    with pytest.raises(catboost.CatBoostError):
        regressor.predict(lacking.astype({"city": "category"}))
    says = "column 'city' has 4 missing values, expected none: the model's library predicts no such row; write what stood for them in training"
    with pytest.raises(InvalidColumn, match=f"^{says}$"):
        attribute(regressor, lacking)
    filled = rows.assign(city=lacking["city"].fillna("never seen"))
    assert_allclose(attribute(regressor, filled).margin[:, 0], regressor.predict(filled), rtol=0, atol=1e-12)
    assert_allclose(attribute(regressor, rows.astype({"code": str})).phi, attribute(regressor, rows).phi, rtol=0, atol=0)
    with pytest.raises(SchemaMismatch, match=r"column 'code' is double, the model was trained on categories that are strings"):
        attribute(regressor, rows.astype({"code": float}))
    with pytest.raises(SchemaMismatch, match=r"^rows, an array: column 'city' is double, the model was trained on categories that are strings$"):
        attribute(regressor, np.zeros((3, 5)))
    foreign = make_rows(200, 3).assign(city="elsewhere")
    with pytest.raises(SchemaMismatch, match=r"column 'city': 200 of 200 values are no category of the model"):
        attribute(regressor, foreign)


def test_numbers_beyond_single_precision_are_infinite(regressor):
    """As CatBoost rounds them, silently: above every border."""
    rows = PROBE.head(4).assign(pay=[1e300, -1e300, np.inf, -np.inf])
    assert_allclose(attribute(regressor, rows).margin[:, 0], regressor.predict(rows), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_what_is_not_there_is_refused(regressor, tmp_path):
    """By name, and with what to do instead."""
    for method in ("gap", "gap_greedy", "owen", "two_step"):
        with pytest.raises(UnsupportedModel, match=f"method '{method}' is not there for CatBoost models with target statistics"):
            attribute(regressor, PROBE, method, partition={"a": ["city"]} if method in ("owen", "two_step") else None)
    for ask in (lambda: attribute(regressor, PROBE, "ranker"), lambda: attribute(regressor, PROBE, interactions=3)):
        with pytest.raises(UsageError, match="cannot be shared among the features of a combination; make combinations players"):
            ask()
    assert attribute(regressor, PROBE, "ranker", combinations="own").phi.shape[2] > 5
    for measure in (prediction_gap, rank_by_gap):
        with pytest.raises(UnsupportedModel, match="the prediction gap is not there"):
            measure(regressor, PROBE)
    with pytest.raises(UnsupportedModel, match="statistics of several features at once"):
        measure_curves(regressor, PROBE, 0.0)
    with pytest.raises(UsageError, match="combinations is 'each', expected"):
        attribute(regressor, PROBE, combinations="each")
    regressor.save_model(str(tmp_path / "m.cbm"))
    PROBE.to_parquet(tmp_path / "rows.parquet")
    for background in (tmp_path / "rows.parquet", None):
        with pytest.raises(UsageError, match="cannot be shared among the features of a combination; make combinations players"):
            explain(tmp_path / "m.cbm", tmp_path / "rows.parquet", tmp_path / "run", interactions=3, background=background, scheduler="serial")
    with pytest.raises(UnsupportedModel, match="compare is not there"):
        compare(tmp_path / "m.cbm", tmp_path / "rows.parquet", tmp_path / "c.parquet", methods=["shapley", "banzhaf"], scheduler="serial")


def test_inspection_lists_combinations(regressor):
    """Splits on statistics of one feature are that feature's; combinations have lines of their own."""
    found = inspect_model(regressor, ["shapley", "ranker", "gap"])
    listed = {feature.name: feature for feature in found.features}
    assert list(listed)[:5] == list(PROBE)
    assert listed["city"].splits > 0
    assert all("×" in name and feature.values == "statistics of a combination" for name, feature in list(listed.items())[5:])
    assert sum(feature.splits for feature in found.features) == found.n_leaves - found.n_trees
    assert [cost.refused is None for cost in found.costs] == [True, False, False]
