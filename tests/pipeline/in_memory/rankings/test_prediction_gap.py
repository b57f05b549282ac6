"""Prediction gaps of every library's model, by Python and by runs: exact ones are what sampling comes to, and what cannot be done is refused."""

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import ndtr

import leafledger
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.errors import LeafledgerError, UsageError
from leafledger.pipeline.in_memory.rankings.prediction_gap import rank_players
from tests.more import diagonal
from tests.pipeline.conftest import WRONG

N, NAMES = 300, ["age", "city", "red", "green", "blue"]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 3, N)
    found = pd.DataFrame({"age": rng.normal(40, 10, N), "city": rng.integers(0, 4, N)})
    found.loc[::9, "age"] = np.nan
    return found.assign(**{name: (colour == c).astype(float) for c, name in enumerate(NAMES[2:])})


LIBRARIES = ["xgboost", "lightgbm", "catboost"]
# What is refused before the model counts, by the model of one library.
ONE_MODEL = pytest.mark.parametrize("model", ["lightgbm"], indirect=True)


@pytest.fixture(scope="module", params=LIBRARIES)
def model(request, frame):
    """City is a category, red, green and blue are dummies."""
    target = np.nan_to_num(frame["age"], nan=60) / 10 * (frame["city"] % 2) + 3 * frame["red"] - frame["blue"]
    coded = frame.assign(city=frame["city"].astype("category"))
    if request.param == "xgboost":
        return xgboost.train({"max_depth": 3, "nthread": 1}, xgboost.DMatrix(coded, target, enable_categorical=True), 8)
    if request.param == "lightgbm":
        given = {"num_leaves": 6, "verbose": -1, "num_threads": 1, "min_data_per_group": 1}
        return lightgbm.train(given, lightgbm.Dataset(coded, target), 8)
    found = catboost.CatBoostRegressor(iterations=8, depth=3, one_hot_max_size=9, thread_count=1, verbose=False, allow_writing_files=False)
    return found.fit(catboost.Pool(frame, target, cat_features=["city"]))


DUMMIES = {"colour": ["red", "green", "blue"]}


@pytest.mark.parametrize("given", [{"scale": 0.5}, {"noise": "empirical"}, {"resample": False, "noise": "laplace"}], ids=str)
@pytest.mark.parametrize("ranking", [None, "shapley"])
def test_exact_gaps_are_what_sampling_comes_to(model, frame, given, ranking):
    """Noise, values drawn anew, categories and dummies that are drawn together; PG² of all features, and PGI² of a ranking."""
    some, asked = frame[:6], {"data": frame, "partition": DUMMIES, "ranking": ranking} | given
    exact = leafledger.prediction_gap(model, some, **asked)
    found, errors = leafledger.prediction_gap(model, some, approximate=True, budget=0, **asked)
    assert exact.shape == (6, 1)
    assert (np.abs(found - exact) <= 6 * errors + 1e-12).all()
    again, none = leafledger.prediction_gap(model, some, approximate=True, **asked)
    assert_array_equal(again, exact)
    assert (none == 0).all()


def test_what_stays_moves_nothing(model, frame):
    """A missing value under noise, a category and dummies that are not drawn."""
    missing = frame[frame["age"].isna()][:3]
    assert (leafledger.prediction_gap(model, missing, features=["age"], scale=9.0) == 0).all()
    assert (leafledger.prediction_gap(model, missing, features=["city", "colour"], partition=DUMMIES) == 0).all()
    assert (leafledger.prediction_gap(model, missing, features=["age"], noise="empirical", data=frame) > 0).any()


def test_scales_and_distributions(model, frame):
    """By number, by feature, by deviation; by name and by function."""
    some = frame[:5]
    scale = dict.fromkeys(NAMES, 0.5) | {"age": 3.0}
    found = leafledger.prediction_gap(model, some, scale=scale)
    assert_array_equal(leafledger.prediction_gap(model, some, scale=[3.0, 0.5, 0.5, 0.5, 0.5]), found)
    for named in (pd.Series(scale)[::-1], pd.Series([0.5, 3.0, 0.5, 0.5, 0.5], [2, 0, 1, 3, 4]), pd.Series(scale).drop("city")):
        assert_array_equal(leafledger.prediction_gap(model, some, scale=named), found)
    with pytest.raises(UsageError, match=r"^scale is a Series that has a feature twice, expected once$"):
        leafledger.prediction_gap(model, some, scale=pd.Series([1.0, 2.0], ["age", "age"]))
    assert_allclose(leafledger.prediction_gap(model, some, scale=scale, noise=ndtr), found, rtol=1e-9, atol=1e-12)
    deviation = frame["age"].std(ddof=0)
    relative = leafledger.prediction_gap(model, some, features=["age"], scale=0.2, background=frame)
    assert_array_equal(leafledger.prediction_gap(model, some, features=["age"], scale=0.2, data=frame), relative)  # its name before 0.3
    assert_allclose(leafledger.prediction_gap(model, some, features=["age"], scale=0.2 * deviation), relative, rtol=1e-6)


def test_greedy_rankings_and_given_ones(model, frame):
    """The mean of a greedy ranking's gaps is its PGI², given back by number or, where rows agree, by name."""
    some = frame[:4]
    order, gaps = leafledger.rank_by_gap(model, some, scale=2.0)
    assert_allclose(leafledger.prediction_gap(model, some, ranking=order, scale=2.0), gaps.mean(axis=2), rtol=1e-9, atol=1e-15)
    one = leafledger.prediction_gap(model, some[:1], ranking=[NAMES[j] for j in order[0, 0]], scale=2.0)
    assert_allclose(one, gaps[:1].mean(axis=2), rtol=1e-9, atol=1e-15)
    top, _ = leafledger.rank_by_gap(model, some, top=2, scale=2.0)
    assert_array_equal(top, order[:, :, :2])


@ONE_MODEL
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"noise": "pink"}, "noise is 'pink', expected one of normal, uniform, laplace, empirical"),
        ({"noise": "empirical"}, "draws values from a background, but none was given"),
        ({"scale": -1.0}, "expected numbers of at least 0"),
        ({"scale": "wide"}, "expected a number, or one for each of 5 features"),
        ({"scale": {"age": 1.0}}, "scale has none for feature"),
        ({"scale": {"height": 1.0}}, "scale names 'height'"),
        ({"features": ["height"]}, "features names 'height'"),
        ({"ranking": ["age", "age"]}, "ranking has 'age' twice, expected once"),
        ({"ranking": np.zeros((2, 2), int)}, "ranking has shape"),
        ({"ranking": "owen", "partition": DUMMIES}, "whose values are features' and not their groups'"),
        ({"ranking": np.zeros((3, 2), int)}, "different numbers of players from 0 to 4"),
        ({"ranking": ["age"], "features": ["age"]}, "leave out one or the other"),
        ({"budget": 1.0}, "pairs of leaves per row, the budget is 1"),
        ({"background": np.zeros((1, 5), int), "data": np.zeros((1, 5), int)}, "background and data were both given, which are the same"),
        ({"data": np.zeros((0, 5), int)}, "the background has no rows"),
        ({"seed": -1}, "parameter 'seed' is -1, expected a whole number from 0"),
        ({"seed": 1.5}, "parameter 'seed' is 1.5, expected a whole number"),
        ({"budget": "much"}, "parameter 'budget' is 'much', expected a number"),
    ],
    ids=str,
)
def test_refusals(model, frame, given, says):
    """One line that says what was got and what was expected."""
    with pytest.raises(UsageError, match=says) as refusal:
        leafledger.prediction_gap(model, frame[:3], **given)
    assert "\n" not in str(refusal.value)


@ONE_MODEL
@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.phi.ranks])
def test_methods_that_write_ranks_are_no_rankings(model, frame, method):
    """They rank by signed score, or under their own noise and not under that which is measured; it says what to take instead."""
    with pytest.raises(UsageError, match=rf"^ranking is '{method}', which writes ranks, expected a method of values .* or what rank_by_gap returns$"):
        leafledger.prediction_gap(model, frame[:3], ranking=method, scale=2.0, data=frame)


@pytest.mark.parametrize("method", ["shapley", "banzhaf", "ranker"])
def test_values_are_ranked_by_size(model, frame, method):
    """Whatever their signs, also those of a method that ranks by them."""
    some, given = frame[:5], {"scale": 2.0, "data": frame}
    phi = leafledger.attribute(model, some, method).phi
    order = np.array([[sorted(range(len(NAMES)), key=lambda j: -abs(values[j])) for values in of_row] for of_row in phi])
    assert_allclose(leafledger.prediction_gap(model, some, ranking=method, **given), leafledger.prediction_gap(model, some, ranking=order, **given))


@pytest.mark.slow
def test_absolute_changes_are_estimated(model, frame):
    """PG and PGI (Eq. 1) of values drawn anew from the data, by all of them in turn: within five standard errors, and at most the root of PG²."""
    some, predict = frame[:4], lambda rows: leafledger.attribute(model, rows).margin[:, 0]
    given = {"noise": "empirical", "data": frame, "approximate": True, "absolute": True}
    found, errors = leafledger.prediction_gap(model, some, features=["age"], **given)
    ranked, ranked_errors = leafledger.prediction_gap(model, some, ranking=["age", "city"], **given)
    for i in range(4):
        row = some.iloc[[i] * N].reset_index(drop=True)
        before = predict(row)[0]
        one = np.abs(predict(row.assign(age=frame["age"])) - before).mean()
        both = {city: np.abs(predict(row.assign(age=frame["age"], city=city)) - before).mean() for city in range(4)}
        assert abs(found[i, 0] - one) <= 5 * errors[i, 0] + 1e-12
        assert abs(ranked[i, 0] - (one + frame["city"].map(both).mean()) / 2) <= 5 * ranked_errors[i, 0] + 1e-12
    squared = leafledger.prediction_gap(model, some, features=["age"], noise="empirical", data=frame)
    assert (found <= np.sqrt(squared) + 5 * errors).all()
    with pytest.raises(UsageError, match="absolute changes have no exact mean here, expected approximate as well"):
        leafledger.prediction_gap(model, some, absolute=True)


def test_a_ranking_is_a_method_with_its_parameters(model, frame):
    """In their order or by name; others are refused with what is expected."""
    some = frame[:3]
    expected = leafledger.prediction_gap(model, some, ranking=rank_players(leafledger.attribute(model, some, "banzhaf", parameters={"p": 0.9}).phi))
    for text in ("banzhaf:0.9", "banzhaf(p=0.9)", "semivalue(atoms=0.9:1)"):
        assert_allclose(leafledger.prediction_gap(model, some, ranking=text), expected, rtol=1e-12)
    with pytest.raises(UsageError, match=r"^'banzhaf:2': expected a number between 0 and 1 for 'p'$"):
        leafledger.prediction_gap(model, some, ranking="banzhaf:2")


WRONG_GAPS = (
    "model",
    "rows",
    "features",
    "ranking",
    "noise",
    "scale",
    "data",
    "resample",
    "partition",
    "budget",
    "approximate",
    "absolute",
    "seed",
    "top",
)


@ONE_MODEL
@pytest.mark.parametrize("name", WRONG_GAPS)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
def test_a_wrong_type_is_told_in_one_line(model, frame, name, wrong):
    """Whatever stands in the place of an argument: a refusal of one line, no traceback."""
    if name == "scale" and isinstance(wrong, float | list):
        return  # a number and numbers are what is asked for
    if name in ("features", "ranking") and isinstance(wrong, list):
        return  # so are positions
    for function, other in ((leafledger.prediction_gap, {"top"}), (leafledger.rank_by_gap, {"features", "ranking", "absolute"})):
        if name not in other:
            with pytest.raises(LeafledgerError) as error:
                function(**({"model": model, "rows": frame[:3]} | {name: wrong}))
            assert "\n" not in str(error.value)


def _fails(z):
    raise ArithmeticError("of\nits own")


@ONE_MODEL
@pytest.mark.parametrize(
    ("noise", "says"),
    [
        (stats.norm.pdf, "noise is a function, which is 0 at minus infinity and 0 at infinity, expected a distribution function: 0 and 1"),
        (stats.norm.sf, "noise is a function, which is 1 at minus infinity and 0 at infinity"),
        (lambda z: z, "noise is a function, which is -inf at minus infinity and inf at infinity"),
        (lambda z: np.nan * z, "noise is a function, which is nan at minus infinity and nan at infinity"),
        (lambda z: np.where(np.isinf(z), ndtr(z), np.nan), r"noise is a function, which is 0 at -inf and nan at -1e\+09, .* which does not fall"),
        (
            lambda z: ndtr(z) + stats.norm.pdf(z),
            r"noise is a function, which is 1\.\S+ at \S+ and 1\.\S+ at \S+, expected a distribution function, which does not fall",
        ),
        (
            lambda z: ndtr(z)[0],
            r"noise is a function, which makes float64 of shape \(89,\) of an array of shape \(3, 89\), expected probabilities of its shape",
        ),
        (lambda z: ndtr(z).astype(str), "noise is a function, which makes <U32 of shape"),
        (lambda z: ndtr(z).astype(complex), "noise is a function, which makes complex128 of shape"),
        (len, r"noise is a function, which makes int64 of shape \(\)"),
        (_fails, "noise is a function, which fails: of its own, expected one that takes an array of z"),
    ],
)
def test_functions_that_are_no_distributions_are_refused(model, frame, noise, says):
    """In one line, by what they are at the ends or where they fall."""
    for function in (leafledger.prediction_gap, leafledger.rank_by_gap):
        with pytest.raises(UsageError, match=f"^{says}") as refusal:
            function(model, frame[:3], noise=noise)
        assert "\n" not in str(refusal.value)


NOISES = [
    stats.norm.cdf,
    stats.uniform(-1, 2).cdf,
    stats.t(3).cdf,
    lambda z: 1 / (1 + np.exp(-z)),
    lambda z: np.searchsorted([-1.0, 0.0, 1.0], z, side="right") / 3,
    lambda z: (z >= 0).astype(int),
]


@pytest.mark.parametrize(("noise", "model"), diagonal(NOISES, LIBRARIES), indirect=["model"])
def test_distribution_functions_are_taken(model, frame, noise):
    """Of the whole line or a part of it, smooth or in steps: the gap is what drawing from it comes to, as Monte Carlo sees it."""
    some = frame[["age", *NAMES[1:]]][1:3]
    found = leafledger.prediction_gap(model, some, features=["age"], noise=noise, scale=9.0)
    z = np.linspace(-60, 60, 120_001)
    drawn = 9.0 * z[np.minimum(np.searchsorted(noise(z), (np.arange(2000) + 0.5) / 2000), z.size - 1)]
    moved = [leafledger.attribute(model, pd.concat([some[i : i + 1]] * 2000).assign(age=some["age"].iloc[i] + drawn)).margin for i in range(2)]
    still = leafledger.attribute(model, some).margin
    assert_allclose(found, [((moved[i] - still[i]) ** 2).mean(axis=0) for i in range(2)], rtol=0.05, atol=1e-6)


@ONE_MODEL
@pytest.mark.parametrize("top", [-1, 1.5, "few"])
def test_a_top_that_is_no_number_of_features_is_refused(model, frame, top):
    """In a line, as a run does."""
    with pytest.raises(UsageError, match=r"parameter 'top' is .*, expected a (whole )?number"):
        leafledger.rank_by_gap(model, frame[:3], top=top)


def save(model, folder):
    """The model in its library's own format."""
    if isinstance(model, lightgbm.Booster):
        return model.save_model(folder / "model.txt") and folder / "model.txt"
    name = folder / ("model.json" if isinstance(model, xgboost.Booster) else "model.cbm")
    model.save_model(name)
    return name


GIVEN = [{"scale": "0.5"}, {"noise": "empirical"}, {"noise": "laplace", "resample": "no"}]


@pytest.mark.parametrize(("model", "method", "parameters"), diagonal(LIBRARIES, ["gap", "gap_greedy"], GIVEN), indirect=["model"], ids=str)
def test_runs_perturb_by_what_was_measured_of_a_background(model, frame, tmp_path, method, parameters):
    """Standard deviations, categories and groups of a data set in several files, as Python does it with rows in memory."""
    (tmp_path / "data").mkdir()
    for i in range(3):
        frame[100 * i : 100 * (i + 1)].to_parquet(tmp_path / "data" / f"{i}.parquet")
    given = {"method": method, "background": tmp_path / "data", "partition": DUMMIES, "precision": "float64", "scheduler": "serial"}
    leafledger.explain(save(model, tmp_path), tmp_path / "data" / "0.parquet", tmp_path / "run", parameters=parameters, **given)
    found = pq.read_table(tmp_path / "run" / "attributions").to_pandas()
    asked = {"data": frame, "partition": DUMMIES, "scale": float(parameters.get("scale", 1)), "noise": parameters.get("noise", "normal")}
    asked["resample"] = "resample" not in parameters
    if method == "gap":
        pgi2 = leafledger.prediction_gap(model, frame[:100], ranking="shapley", **asked)[:, 0]
        in_memory = leafledger.attribute(model, frame[:100], method, background=frame, partition=DUMMIES, parameters=parameters)
        assert_allclose(in_memory.phi[:, 0, -2], pgi2, rtol=1e-9)
    else:
        order, gaps = leafledger.rank_by_gap(model, frame[:100], **asked)
        pgi2 = gaps[:, 0].mean(axis=1)
        ranks = found[[f"rank_{name}" for name in ("age", "city", "colour")]]
        assert_array_equal(ranks, np.argsort(order[:, 0], axis=1) + 1)
    assert_allclose(found["pgi2"], pgi2, rtol=1e-9)
    assert leafledger.check_run(str(tmp_path / "run"), True).n_rows == 100


@pytest.mark.parametrize("parameters", [{}, {"budget": 1, "approximate": "yes"}], ids=["exact", "estimated"])
@pytest.mark.parametrize("model", ["lightgbm"], indirect=True)
@pytest.mark.slow
def test_workers_change_no_byte(model, frame, tmp_path, parameters, two_workers):
    """What is measured is added up by the places of its parts, whoever measures; points are the same everywhere."""
    (tmp_path / "data").mkdir()
    for i in range(10):
        frame[30 * i : 30 * (i + 1)].to_parquet(tmp_path / "data" / f"{i}.parquet")
    for name, where in {"serial": {"scheduler": "serial"}, "two": {"scheduler": two_workers}}.items():
        given = {
            "method": "gap",
            "parameters": parameters,
            "background": tmp_path / "data",
            "partition": DUMMIES,
            "tables": tmp_path / f"tables-{name}",
            **where,
        }
        leafledger.explain(save(model, tmp_path), tmp_path / "data" / "0.parquet", tmp_path / name, **given)
    one, two = ([path.read_bytes() for path in sorted((tmp_path / name / "attributions").glob("*"))] for name in ("serial", "two"))
    assert one == two
    one, two = ([path.read_bytes() for path in sorted((tmp_path / f"tables-{name}").rglob("*.npy"))] for name in ("serial", "two"))
    assert one == two
