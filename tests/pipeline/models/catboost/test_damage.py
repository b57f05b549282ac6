"""CatBoost files that are cut, edited or corrupted: one line of refusal, never a traceback."""

import json
import struct
from typing import Any

import catboost
import numpy as np
import pytest

from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models.catboost.cbm_format import read_cbm
from leafledger.pipeline.models.catboost.loader import LOADER

SHAPE = {"iterations": 4, "depth": 3, "thread_count": 1, "verbose": 0, "allow_writing_files": False, "random_seed": 1}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """JSON of a symmetric and of a free model with a category."""
    rng = np.random.default_rng(5)
    words, numbers, codes = rng.choice(["red", "green", "blue"], 120), rng.normal(size=120).round(1), rng.integers(-2, 3, 120)
    rows = [[str(w), float(x), int(c), "constant"] for w, x, c in zip(words, numbers, codes, strict=True)]
    target = numbers + (words == "red") * 2.0 - (words == "blue") * (codes == 1) * 3.0
    found = {}
    for policy in ("SymmetricTree", "Lossguide"):
        model = catboost.CatBoostRegressor(grow_policy=policy, one_hot_max_size=10, cat_features=[0, 2, 3], **SHAPE).fit(rows, target)
        folder = tmp_path_factory.mktemp("m")
        for form in ("json", "cbm"):
            model.save_model(str(folder / form), format=form)
        found[policy] = ((folder / "json").read_bytes(), (folder / "cbm").read_bytes())
    return found


def _edit(record, path, value):
    *way, last = path
    for step in way:
        record = record[step]
    if value is KeyError:
        del record[last]
    else:
        record[last] = value


@pytest.mark.parametrize(
    ("path", "value", "error", "match"),
    [
        (("oblivious_trees", 1, "leaf_weights"), KeyError, UnsupportedModel, "m: tree 1 has no leaf weights"),
        (("oblivious_trees", 1, "leaf_values"), [1.0], InvalidModel, "tree 1 has 1 leaf values"),
        (("oblivious_trees", 1, "leaf_values", 0), "3", InvalidModel, "tree 1, leaf_values.*expected a list of numbers"),
        (("oblivious_trees", 1, "leaf_values", 0), 1e999, InvalidModel, "not sound JSON"),
        (("oblivious_trees", 1, "leaf_values", 0), 10**30, InvalidModel, "more than 53 bits"),
        (("oblivious_trees", 1, "leaf_weights", 0), -1, InvalidModel, "tree 1.*cover is -1"),
        (("oblivious_trees", 1, "splits", 0, "split_index"), 999, InvalidModel, "tree 1 has split 999"),
        (("oblivious_trees", 1, "splits", 0, "split_index"), -1, InvalidModel, "tree 1 has split -1"),
        (("oblivious_trees", 1, "splits", 0), 7, InvalidModel, "tree 1 has no 'split_index'"),
        (("oblivious_trees", 1, "splits", 0, "split_type"), "OnlineCtr", InvalidModel, "tree 1 has no 'ctr_target_border_idx'"),
        (
            ("oblivious_trees", 1, "splits", 0, "split_type"),
            "Odd",
            UnsupportedModel,
            "tree 1 has a split of type 'Odd', expected one of",
        ),
        (("features_info", "float_features", 0, "borders", 0), 12345.0, InvalidModel, "but features_info says"),
        (("features_info", "float_features", 0, "flat_feature_index"), 0, InvalidModel, "flat feature indices are"),
        (("features_info", "float_features", 0, "flat_feature_index"), 10**20, InvalidModel, "'flat_feature_index' is 1"),
        (("features_info", "float_features", 0, "feature_index"), -1, InvalidModel, "'feature_index' is -1, expected 0..2147483647"),
        (("features_info", "categorical_features", 0, "values", 0), 10**20, InvalidModel, "expected hashes"),
        (("features_info", "float_features", 0, "feature_id"), 5, InvalidModel, "'feature_id' is 5, expected a string"),
        (("features_info", "categorical_features", 0, "values", 0), "x", InvalidModel, "expected hashes"),
        (("features_info",), KeyError, InvalidModel, "m has no 'features_info'"),
        (("oblivious_trees",), KeyError, InvalidModel, "expected a CatBoost model"),
        (("oblivious_trees", 0), None, UnsupportedModel, "tree 0 has no leaf weights"),
        (("scale_and_bias",), [1, [1, 2]], InvalidModel, "tree 0 has 8 leaf values"),
        (("scale_and_bias",), [], InvalidModel, "expected a scale and a list"),
        (("scale_and_bias", 0), 1e308, InvalidModel, "leaf value is"),
        (("model_info",), {"class_params": {"class_names": 3}}, InvalidModel, "'class_names' is 3"),
    ],
)
def test_a_damaged_json_is_one_line(texts, path, value, error, match):
    """Edited files are refused in one line with file and place."""
    record = json.loads(texts["SymmetricTree"][0])
    if value == 1e308:  # a finite scale that takes a finite leaf past the largest float
        record["oblivious_trees"][0]["leaf_values"][0] = 100.0
    _edit(record, path, value)
    with pytest.raises(error, match=match) as caught:
        LOADER.parse(json.dumps(record).encode(), "m")
    assert "\n" not in str(caught.value)


def test_borders_that_do_not_ascend_are_refused(texts):
    """CatBoost counts the borders below a value, so that two which changed places would mean other splits than their own."""
    for _, data in texts.values():
        borders = read_cbm(data, "m").columns[0].borders
        written = borders.tobytes()
        assert borders.size > 1
        assert data.count(written) == 1
        with pytest.raises(InvalidModel, match=r"m: feature '1' has border .* expected ascending ones"):
            LOADER.parse(data.replace(written, borders[::-1].tobytes()), "m")


def test_a_damaged_free_tree_is_one_line(texts):
    """Missing children and weights, ragged leaves and deep nesting."""
    record = json.loads(texts["Lossguide"][0])
    for path, value, error, match in (
        (("trees", 1, "left"), KeyError, InvalidModel, "tree 1 has no 'left'"),
        (("trees", 1), {"value": [1, 2], "weight": 1}, InvalidModel, r"tree 1 has leaves of \[2\] values, expected 1"),
        (("trees", 1), {"value": 1}, UnsupportedModel, "tree 1 has no leaf weights"),
        (("trees", 1), [], InvalidModel, "tree 1 has no 'split'"),
    ):
        changed = json.loads(json.dumps(record))
        _edit(changed, path, value)
        with pytest.raises(error, match=match):
            LOADER.parse(json.dumps(changed).encode(), "m")
    tree: dict[str, Any] = {"value": 1.0, "weight": 1.0}
    for _ in range(70):
        tree = {"left": {"value": 1.0, "weight": 1.0}, "right": tree, "split": record["trees"][0]["split"]}
    with pytest.raises(UnsupportedModel, match="tree 0 is 70 deep, expected at most 64"):
        LOADER.parse(json.dumps({**record, "trees": [tree]}).encode(), "m")
    for data in (b'{"trees":' + b"[" * 100_000, b'{"trees":1,"trees":2}', b'{"trees":[NaN]}', b"{\xff", b'{"trees":', b"[]", b""):
        with pytest.raises(InvalidModel):
            LOADER.parse(data, "m")


@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
def test_a_cut_cbm_is_refused(texts, policy):
    """Every truncation, a lying length and trailing bytes."""
    data = texts[policy][1]
    for n in (*range(60), *range(60, len(data), 97), len(data) - 1):
        with pytest.raises(InvalidModel):
            LOADER.parse(data[:n], "m")
    for size in (0, 1, 4, 2**31, 2**32 - 1):
        with pytest.raises(InvalidModel):
            LOADER.parse(data[:4] + struct.pack("<I", size) + data[8:], "m")
    with pytest.raises(InvalidModel, match="expected"):
        LOADER.parse(data + b"x", "m")


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
def test_mutations_end_in_a_model_or_a_refusal(texts, policy, which):
    """Seeded byte flips and hostile 32-bit words never raise anything but a refusal; what loads is a well-formed ensemble."""
    data = texts[policy][which]
    rng = np.random.default_rng(9)
    refusals = []
    for _ in range(400):
        changed = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(0, len(data) - 4))
            if rng.random() < 0.5:
                changed[at] ^= 1 << int(rng.integers(8))
            else:
                changed[at : at + 4] = rng.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 8]).astype(np.uint32).tobytes()
        try:
            ensemble, *_ = LOADER.parse(bytes(changed), "m")
        except (InvalidModel, UnsupportedModel) as error:
            refusals.append(str(error))
        else:
            assert ensemble.feature.size < 1000
    assert len(refusals) > 20
    assert all(refusal.startswith("m") and "\n" not in refusal for refusal in refusals)
