"""CatBoost's loader against CatBoost: raw predictions and path-dependent contributions, both formats, every tree shape."""

import json
import tempfile

import catboost
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger import attribute, load_ensemble, save_model
from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models.catboost.assemble import BELOW_ALL
from leafledger.pipeline.models.catboost.cityhash import HashedCategory
from leafledger.pipeline.models.catboost.loader import LOADER
from tests import naive
from tests.pipeline.models.catboost.training import POLICIES, SHAPE, WORDS, mixed, sample, saved

# Leaves and sums are float64 on both sides, added in another order; thresholds are exact. Contributions pass through float32 nowhere.
RTOL, ATOL = 1e-9, 1e-9


def hostile(ensemble):
    """Rows on each threshold and beside it, and with every special float."""
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 5e-324, float(np.finfo(np.float32).max)]
    columns = []
    for j in range(ensemble.n_features):
        at = np.unique(ensemble.threshold[(ensemble.feature == j) & (ensemble.category_set < 0)]).astype(np.float32)
        with np.errstate(over="ignore"):  # the neighbour of -FLT_MAX, which stands before NaN, is -inf
            beside = [np.nextafter(at, np.float32(side)) for side in (-np.inf, np.inf)]
        doubles = at.astype(float) * (1 + 1e-12)  # rounds back to the threshold
        columns.append(np.concatenate((special, at, *beside, doubles)))
    rng = np.random.default_rng(3)
    return np.column_stack([rng.choice(column, 300) for column in columns])


def raw(model, rows):
    found = np.asarray(model.predict(rows, prediction_type="RawFormulaVal", thread_count=1))
    return found.reshape(len(found), -1)


def contributions(model, pool, n_outputs):
    """``(n, outputs, features + 1)``, base last.

    CatBoost's own values do not add up where one child of a node is a leaf and the other is not (catboost issues 1703 and 2136);
    a round through JSON, which writes such leaves as nodes of their own, puts that right.
    """
    with tempfile.TemporaryDirectory() as folder:
        model.save_model(f"{folder}/m", format="json")
        model = catboost.CatBoost().load_model(f"{folder}/m", format="json")
    found = model.get_feature_importance(pool, type="ShapValues", shap_calc_type="Regular", thread_count=1)
    return found.reshape(len(found), n_outputs, -1)


def assert_same_model(model, rows, data):
    """Margins on hostile rows, contributions on the given ones."""
    ensemble, features, outputs, _ = LOADER.parse(data, "m")
    probes = hostile(ensemble)
    assert_allclose(naive.margins(ensemble, probes), raw(model, probes), rtol=RTOL, atol=ATOL)
    found = contributions(model, catboost.Pool(rows), len(outputs))
    for i, row in enumerate(rows):
        assert_allclose(naive.semivalue(ensemble, row, naive.shapley_weight), found[i, :, :-1], rtol=RTOL, atol=ATOL)
    base = [float(naive.coalition_value(ensemble, rows[0], (), k)) for k in range(len(outputs))]
    assert_allclose(base, found[0, :, -1], rtol=RTOL, atol=ATOL)
    return ensemble, features, outputs


@pytest.mark.parametrize("form", ["cbm", "json"])
@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
@pytest.mark.parametrize("policy", POLICIES)
def test_margins_and_contributions_are_catboosts(policy, nan_mode, form, tmp_path):
    """Every tree shape, either NaN mode, either format: CatBoost's raw scores and its path-dependent SHAP values."""
    rows, target = sample()
    model = catboost.CatBoostRegressor(grow_policy=policy, nan_mode=nan_mode, **SHAPE).fit(rows, target)
    ensemble, features, outputs = assert_same_model(model, rows[:3], saved(model, tmp_path, form))
    assert outputs == ("0",)
    assert [feature.name for feature in features] == model.feature_names_ == ["0", "1", "2", "3"]
    asked = ensemble.missing_left[ensemble.feature == 0]
    assert asked.size
    assert (asked == (nan_mode == "Min")).all()


@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("infinities", [(-np.inf,), (np.inf,), (-np.inf, np.inf)])
def test_infinities_are_parted_from_numbers(policy, nan_mode, infinities, tmp_path):
    """CatBoost has borders at them where rows that it is trained on have them, and does not write such a model as JSON; NaN is no infinity."""
    rows, target = sample()
    for i, infinity in enumerate(infinities, 1):
        rows[i::5, 0] = infinity
    rows[3::5, 0] = np.nan
    target[1::5] += 3.0
    model = catboost.CatBoostRegressor(grow_policy=policy, nan_mode=nan_mode, **SHAPE | {"iterations": 20}).fit(rows, target)
    ensemble, _, _, _ = LOADER.parse(saved(model, tmp_path, "cbm"), "m")
    assert (-np.inf in model.get_borders()[0]) == (BELOW_ALL in ensemble.threshold)
    probes = np.vstack([rows, hostile(ensemble), np.full((1, 4), -np.finfo(np.float32).max)])
    assert_allclose(naive.margins(ensemble, probes), raw(model, probes), rtol=RTOL, atol=ATOL)
    assert_allclose(attribute(model, probes).margin, raw(model, probes), rtol=RTOL, atol=ATOL)
    save_model(model, tmp_path / "model.trees")
    assert_array_equal(load_ensemble(tmp_path / "model.trees").ensemble.threshold, ensemble.threshold)


@pytest.mark.parametrize("policy", POLICIES)
def test_both_formats_hold_the_same_arrays(policy, tmp_path):
    """The cbm and the JSON of one model differ in nothing but the order of nodes."""
    rows, target = sample()
    model = catboost.CatBoostClassifier(grow_policy=policy, loss_function="MultiClass", **SHAPE).fit(rows, target.round().clip(-1, 1))
    binary, text = (LOADER.parse(saved(model, tmp_path, form), "m") for form in ("cbm", "json"))
    assert binary[1:] == text[1:]
    probes = hostile(binary[0])
    assert_array_equal(naive.margins(binary[0], probes), naive.margins(text[0], probes))
    for name in ("threshold", "cover"):
        assert_array_equal(np.sort(getattr(binary[0], name)), np.sort(getattr(text[0], name)))


@pytest.mark.parametrize("policy", POLICIES)
def test_several_outputs_are_vector_leaves_with_class_names(policy):
    """Multi-class leaves are vectors in the order of the class names, contributions included."""
    rows, target = sample()
    labels = np.array(["low", "mid", "high"])[np.digitize(target, [-0.5, 0.5])]
    model = catboost.CatBoostClassifier(
        grow_policy=policy, loss_function="MultiClass", class_names=["mid", "low", "high"], **SHAPE | {"iterations": 2, "depth": 2}
    ).fit(rows, labels)
    ensemble, _, outputs = assert_same_model(model, rows[:2], LOADER.serialise(model))
    assert outputs == ("mid", "low", "high") == tuple(model.classes_)
    assert ensemble.value.shape[1] == 3


def assert_same_margins(model, data):
    ensemble, _, outputs, _ = LOADER.parse(data, "m")
    probes = hostile(ensemble)
    assert_allclose(naive.margins(ensemble, probes), raw(model, probes), rtol=RTOL, atol=ATOL)
    return ensemble, outputs


def test_each_target_has_its_own_bias():
    """MultiRMSE and RMSEWithUncertainty: a bias per output, outputs numbered."""
    rows, target = sample()
    for loss, y in (("MultiRMSE", np.column_stack((target, target**2))), ("RMSEWithUncertainty", target)):
        model = catboost.CatBoostRegressor(loss_function=loss, **SHAPE | {"iterations": 2}).fit(rows, y)
        ensemble, outputs = assert_same_margins(model, LOADER.serialise(model))
        assert outputs == ("0", "1")
        assert ensemble.base[0] != ensemble.base[1]


@pytest.mark.parametrize("form", ["cbm", "json"])
@pytest.mark.parametrize("policy", POLICIES)
def test_scale_multiplies_the_leaves_and_bias_is_the_base(policy, form, tmp_path):
    """A model after ``set_scale_and_bias`` predicts scale * trees + bias (CatBoost itself has no contributions for it)."""
    rows, target = sample()
    model = catboost.CatBoostRegressor(grow_policy=policy, **SHAPE).fit(rows, target)
    model.set_scale_and_bias(-2.5, 7.0)
    assert assert_same_margins(model, saved(model, tmp_path, form))[0].base.tolist() == [7.0]


def test_leaves_that_no_row_reached():
    """Symmetric trees that ask one feature on two levels have leaves of weight 0; contributions still agree, halves and all."""
    rows, target = sample()
    model = catboost.CatBoostRegressor(**SHAPE | {"iterations": 3, "depth": 4}).fit(rows[:, :2], target)
    ensemble, _, _ = assert_same_model(model, rows[:6, :2], LOADER.serialise(model))
    inner = ensemble.feature >= 0
    assert (ensemble.cover[~inner] == 0).any()
    assert (ensemble.cover[inner] == 0).any()
    probes = hostile(ensemble)[:40]
    found = contributions(model, catboost.Pool(probes), 1)
    reached = 0
    for i, row in enumerate(probes):
        node = ensemble.root[0]
        while ensemble.feature[node] >= 0:
            node = (ensemble.left if naive.goes_left(ensemble, node, row[ensemble.feature[node]]) else ensemble.right)[node]
        reached += ensemble.cover[node] == 0
        assert_allclose(naive.semivalue(ensemble, row, naive.shapley_weight), found[i, :, :-1], rtol=RTOL, atol=ATOL)
    assert reached  # rows that CatBoost never saw end in leaves of weight 0


def test_weights_of_rows_are_the_cover():
    """Covers are sums of sample weights, as CatBoost's contributions use them."""
    rows, target = sample()
    weight = np.random.default_rng(2).uniform(0.1, 3, len(rows)).round(2)
    model = catboost.CatBoostRegressor(**SHAPE).fit(rows, target, sample_weight=weight)
    ensemble, _, _ = assert_same_model(model, rows[:2], LOADER.serialise(model))
    assert_allclose(ensemble.cover[ensemble.root], weight.sum(), rtol=1e-6)  # CatBoost keeps sample weights in float32


def coded(features, rows):
    """Rows of values as rows of codes, the way a reader of data would do it."""
    columns = []
    for j, feature in enumerate(features):
        values = [row[j] for row in rows]
        if feature.categorical:
            place = {category: code for code, category in enumerate(feature.categories)}
            hashed = isinstance(feature.categories[0], HashedCategory)
            values = [place.get(HashedCategory.of(value) if hashed else str(value), len(place)) for value in values]
        columns.append(values)
    return np.array(columns, float).T


@pytest.mark.parametrize("form", ["cbm", "json", "json with texts"])
@pytest.mark.parametrize("policy", POLICIES)
def test_categories_by_hash_and_by_text(policy, form, tmp_path):
    """One-hot splits: known, unknown, empty, non-ASCII and integer categories; text where the file has it, else its hash."""
    rows, target = mixed()
    model = catboost.CatBoostRegressor(grow_policy=policy, one_hot_max_size=10, cat_features=[0, 2, 3], **SHAPE)
    pool = catboost.Pool(rows, target, cat_features=[0, 2, 3])
    model.fit(pool)
    if form == "json with texts":
        model.save_model(str(tmp_path / "m"), format="json", pool=pool)
        data = (tmp_path / "m").read_bytes()
    else:
        data = saved(model, tmp_path, form)
    ensemble, features, *_ = LOADER.parse(data, "m")
    assert [feature.categorical for feature in features] == [True, False, True, True]
    known = (features[0].categories or ()) + (features[2].categories or ())
    assert all(isinstance(category, str if form == "json with texts" else HashedCategory) for category in known)
    assert {"red", HashedCategory.of("red")} & set(known)
    assert [len(f.categories or ()) for f in features] == ensemble.n_categories.tolist()
    probes = [[w, x, c, "?"] for w in (*WORDS, "unseen") for x in (0.3, float("nan"), -5.0) for c in (-2, 0, 1, 2, 77, 2**40)]
    assert_allclose(
        naive.margins(ensemble, coded(features, probes)),
        raw(model, catboost.Pool(probes, cat_features=[0, 2, 3])),
        rtol=RTOL,
        atol=ATOL,
    )
    found = contributions(model, catboost.Pool(probes[:40:13], cat_features=[0, 2, 3]), 1)
    for i, row in enumerate(coded(features, probes[:40:13])):
        assert_allclose(naive.semivalue(ensemble, row, naive.shapley_weight), found[i, :, :-1], rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("code", [-1, 3000, 2**31, np.nan, np.inf, -np.inf])
def test_a_code_outside_the_list_is_unseen(code):
    """Unseen, negative, huge and missing codes all take the way of an unknown category."""
    rows, target = mixed()
    model = catboost.CatBoostRegressor(one_hot_max_size=10, cat_features=[0, 2, 3], **SHAPE).fit(rows, target)
    ensemble, features, *_ = LOADER.parse(LOADER.serialise(model), "m")
    known = coded(features, rows[:5])
    unseen, odd = known.copy(), known.copy()
    unseen[:, 0], odd[:, 0] = len(features[0].categories or ()), code
    assert_array_equal(naive.margins(ensemble, odd), naive.margins(ensemble, unseen))


def test_unused_and_dropped_features_keep_their_names():
    """Columns follow the flat index over both kinds; after ``drop_unused_features`` the gaps close and names tell which are left."""
    rows, target = sample()
    pool = catboost.Pool(rows, target, feature_names=["a", "b", "c", "d"])
    model = catboost.CatBoostRegressor(ignored_features=[1], **SHAPE).fit(pool)
    assert [f.name for f in LOADER.parse(LOADER.serialise(model), "m")[1]] == ["a", "b", "c", "d"]
    model.drop_unused_features()
    ensemble, features, *_ = LOADER.parse(LOADER.serialise(model), "m")
    kept = ["abcd".index(feature.name) for feature in features]
    assert 1 not in kept
    assert_allclose(naive.margins(ensemble, rows[:20][:, kept]), raw(model, rows[:20]), rtol=RTOL, atol=ATOL)


def test_no_trees_is_a_constant(tmp_path):
    """A model shrunk to nothing is its bias."""
    rows, target = sample()
    model = catboost.CatBoostRegressor(**SHAPE).fit(rows, target)
    for form in ("cbm", "json"):
        data = saved(model, tmp_path, form)
        if form == "json":
            record = json.loads(data)
            record["oblivious_trees"] = None
            ensemble, features, *_ = LOADER.parse(json.dumps(record).encode(), "m")
            assert (ensemble.root.size, len(features)) == (0, 4)
            assert_array_equal(naive.margins(ensemble, rows[:2])[:, 0], [record["scale_and_bias"][1][0]] * 2)
    model.shrink(1)
    assert_allclose(naive.margins(LOADER.parse(LOADER.serialise(model), "m")[0], rows), raw(model, rows), rtol=RTOL, atol=ATOL)


def test_recognises_its_own_files_and_objects(tmp_path):
    """Both formats by their first bytes, models by their class, nothing else."""
    rows, target = sample()
    model = catboost.CatBoostRegressor(**SHAPE).fit(rows, target)
    for form in ("cbm", "json"):
        assert LOADER.recognise(saved(model, tmp_path, form)[:200])
    assert not any(LOADER.recognise(data) for data in (b"", b"tree\nversion=v4", b'{"learner":{}}', b"\x80\x04", b"{}"))
    assert LOADER.owns(model)
    assert LOADER.owns(catboost.CatBoost())
    assert not LOADER.owns(catboost.Pool(rows))
    assert not LOADER.owns(3)
    with pytest.raises(InvalidModel, match="not fitted"):
        LOADER.serialise(catboost.CatBoostRegressor())


def test_refuses_text_and_embeddings():
    """What is computed from features before the trees see it cannot be represented, and the feature is named."""
    rows = [[f"word{i % 3} of many", float(i), [float(i % 5), 1.0]] for i in range(200)]
    target = [i % 3 for i in range(200)]
    for kind, j in (("text", 0), ("embedding", 2)):
        data = [[row[j], row[1]] for row in rows]
        pool = catboost.Pool(data, [t > 1 for t in target], feature_names=["t", "x"], **{f"{kind}_features": ["t"]})
        model = catboost.CatBoostClassifier(**SHAPE).fit(pool)
        with pytest.raises(UnsupportedModel, match=f"feature 't' is of kind {kind}, .*: train it without, or on numbers that you compute"):
            LOADER.parse(LOADER.serialise(model), "m")


def test_integers_that_the_library_takes_for_nothing_are_refused(tmp_path):
    """CatBoost reads a leaf value of 2^53 as it is, and one more as 0."""
    rows = np.random.default_rng(0).normal(size=(50, 1))
    model = catboost.CatBoostRegressor(iterations=1, depth=1, thread_count=1, verbose=False, allow_writing_files=False).fit(rows, rows[:, 0])
    model.save_model(str(tmp_path / "model.json"), format="json")
    found = json.loads((tmp_path / "model.json").read_text())
    found["scale_and_bias"] = [1, [0]]
    for value, read in ((1 << 53, 1 << 53), ((1 << 53) + 1, 0)):
        found["oblivious_trees"][0]["leaf_values"] = [value, value]
        (tmp_path / "model.json").write_text(json.dumps(found))
        assert catboost.CatBoost().load_model(str(tmp_path / "model.json"), format="json").predict(rows).tolist() == [read] * 50
        if read:
            assert (attribute(tmp_path / "model.json", rows).margin == read).all()
        else:
            with pytest.raises(InvalidModel, match="leaf_values: 9007199254740993 is an integer of more than 53 bits, which CatBoost takes for 0"):
                load_ensemble(tmp_path / "model.json")
