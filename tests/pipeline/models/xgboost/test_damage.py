"""Old, damaged, hostile and unrepresentable XGBoost files: each ends in one line of InvalidModel or UnsupportedModel, or in a sound ensemble."""

import copy
import functools
import re
import warnings
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose

from leafledger.kernels.trees.ensemble import check
from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models.xgboost.loader import LOADER
from tests import naive
from tests.pipeline.models.xgboost.training import (
    ATOL,
    CLASS,
    LARGEST,
    RAW_CODES,
    ROWS,
    SIGNAL,
    TARGETS,
    document,
    frame,
    load,
    margins,
    parse_document,
    train,
    trees_of,
)
from tests.trees import assert_same_bits


@functools.cache
def _sound(kind):
    if kind == "category":
        rows = np.stack([RAW_CODES, ROWS[:, 0], ROWS[:, 1]], axis=1)
        return train(rows, SIGNAL + 3 * np.isin(RAW_CODES, [3, 32]), 2, ["c", "q", "q"], max_depth=2, max_cat_to_onehot=1)
    if kind == "list":
        data = frame(["a", "b", "c"])[["word", "x"]]
        return train(data, SIGNAL + 9 * (data["word"] == "b").to_numpy(), 2, max_depth=2)
    if kind == "vector":
        return train(target=TARGETS, n_rounds=2, multi_strategy="multi_output_tree", max_depth=2)
    return train(n_rounds=2, max_depth=2)


def sound(kind="numeric"):
    """A fresh, sound document: two trees of depth 2."""
    return copy.deepcopy(document(_sound(kind)))


def test_files_of_older_versions():
    """Scalar base scores, booleans, absent categories, hessian-free vector leaves: what 1.0 to 3.1 wrote."""
    booster = train(target=CLASS > 0, objective="binary:logistic")
    model = document(booster)
    model["version"] = [1, 0, 0]
    learner = model["learner"]
    learner["learner_model_param"] = {"base_score": "5E-1", "num_class": "0", "num_feature": "3"}
    del learner["feature_names"], learner["feature_types"]
    content = learner["gradient_booster"]["model"]
    del content["cats"], content["iteration_indptr"]
    for tree in content["trees"]:
        for key in [key for key in tree if key.startswith("categories")]:
            del tree[key]
        del tree["split_type"]
        tree["default_left"] = [bool(side) for side in tree["default_left"]]
        tree["tree_param"]["size_leaf_vector"] = "0"
    ensemble, features, _ = parse_document(model)
    shift = naive.margins(ensemble, ROWS) - margins(booster, ROWS)
    assert_allclose(shift, np.broadcast_to(-load(booster)[0].base, shift.shape), atol=ATOL)
    assert len(features) == 3


def put(model, path, value):
    *parents, key = path
    for parent in parents:
        model = model[parent]
    if value is None:
        del model[key]
    else:
        model[key] = value


MODEL = ("learner", "gradient_booster", "model")
TREE = (*MODEL, "trees", 1)
PARAMETER = ("learner", "learner_model_param")
DAMAGES: list[tuple[tuple, Any, str]] = [
    (("learner",), None, "'learner' is missing, expected an object"),
    (("learner",), [], "'learner' is 0 elements"),
    (("version",), None, "'version' is missing"),
    (("version",), [3, 2], "'version' has 2 numbers, expected 3"),
    ((*PARAMETER, "num_feature"), "0", "'num_feature' is '0', expected 1..100000"),
    ((*PARAMETER, "num_feature"), "9" * 18, "'num_feature' is '9+', expected 1..100000"),
    ((*PARAMETER, "num_feature"), "1", "tree 0: position .*: feature is 1, expected 0..0"),
    ((*PARAMETER, "num_class"), "x", "'num_class' is 'x'"),
    ((*PARAMETER, "base_score"), "[1,2]", "'base_score' is .*, expected 1 or 1 finite numbers"),
    ((*PARAMETER, "base_score"), "nan", "finite"),
    ((*PARAMETER, "base_score"), "[]", "expected numbers"),
    ((*PARAMETER, "base_score"), "1e999", "finite"),
    ((*PARAMETER, "base_score"), "[99999999999999999999]", "a whole number that XGBoost reads as another"),
    ((*MODEL, "iteration_indptr"), [1, 1, 2], "does not divide .* trees into rounds"),
    (("learner", "objective"), None, "'objective' is missing"),
    (("learner", "feature_names"), ["a"], "'feature_names' has 1 entries, expected 3"),
    (("learner", "feature_names"), ["a", 1, "b"], "'feature_names' has 3 entries, expected 3 texts"),
    (("learner", "feature_names"), ["a", "\ud800", "b"], "not Unicode"),
    (("learner", "attributes"), {"best_iteration": "2"}, "'best_iteration' is '2', expected 0..1"),
    (("learner", "attributes"), {"best_iteration": "-1"}, "'best_iteration' is '-1'"),
    (("learner", "attributes"), {"best_iteration": ["0"]}, "'best_iteration' is 1 elements"),
    ((*MODEL, "trees"), [], "0 trees, 'num_trees' is '2'"),
    ((*MODEL, "tree_info"), [0, 1], "position 1: output of a tree is 1, expected 0..0"),
    ((*MODEL, "tree_info"), [0], "'tree_info' has 1 numbers, expected 2"),
    ((*MODEL, "cats"), [], "'cats' is 0 elements"),
    ((*MODEL, "cats"), {"enc": [{}]}, "'cats' has 1 features, expected 3"),
    ((*MODEL, "weight_drop"), [1.0], "'weight_drop' has 1 numbers, expected 2"),
    (TREE, 7, "tree 1: is 7, expected an object"),
    ((*TREE, "id"), 0, "tree 1: 'id' is 0, expected 1..1"),
    ((*TREE, "tree_param", "num_nodes"), "9", "tree 1: 'left_children' has 7 numbers, expected 9"),
    ((*TREE, "tree_param", "num_nodes"), str(10**18 - 1), "'num_nodes' is"),
    ((*TREE, "tree_param", "num_deleted"), "1", "tree 1: 0 nodes are deleted, 'num_deleted' is '1'"),
    ((*TREE, "left_children"), None, "'left_children' is missing"),
    ((*TREE, "left_children"), "abc", "'left_children' is 'abc', expected a list of integers"),
    ((*TREE, "left_children", 0), 1.0, "expected a list of integers"),
    ((*TREE, "left_children", 0), [1], "expected a list of integers"),
    ((*TREE, "left_children", 0), 10**30, "expected a list of integers"),
    ((*TREE, "left_children", 0), 0, "node 7: has 2 parents"),
    ((*TREE, "left_children", 0), 2, "has 2 parents"),
    ((*TREE, "left_children", 0), 7, "tree 1: position 0: child is 7, expected 0..6"),
    ((*TREE, "left_children", 0), -1, "not reached from any root"),
    ((*TREE, "right_children", 0), -1, "tree 1: position 0: child is -1, expected 0..6"),
    ((*TREE, "split_indices", 0), 3, "tree 1: position 0: feature is 3, expected 0..2"),
    ((*TREE, "split_indices", 0), -1, "feature is -1"),
    ((*TREE, "split_indices", 0), 2**31 - 1, "1 nodes are deleted, 'num_deleted' is '0'"),
    ((*TREE, "split_conditions", 0), float("nan"), "threshold is nan"),
    ((*TREE, "split_conditions", 0), float("-inf"), "threshold is -inf"),
    ((*TREE, "split_conditions", 6), float("nan"), r"leaf value is \[nan\]"),
    ((*TREE, "split_conditions", 6), 1e300, r"leaf value is \[inf\]"),
    ((*TREE, "split_conditions", 6), "1", "expected a list of numbers"),
    ((*TREE, "default_left"), [1], "'default_left' has 1 numbers, expected 7"),
    ((*TREE, "default_left"), [255, 0, 0, 0, 0, 0, 0], "tree 1: position 0: default direction is 255, expected 0..1"),
    ((*TREE, "sum_hessian"), None, "'sum_hessian' is missing"),
    ((*TREE, "sum_hessian", 0), float("nan"), "cover is nan"),
    ((*TREE, "sum_hessian", 0), float("inf"), "cover is inf"),
    ((*TREE, "sum_hessian", 0), 1e6, "cover is 1000000.0, its children's add up to"),
]


@pytest.mark.parametrize(("path", "value", "says"), DAMAGES, ids=[f"{'.'.join(map(str, d[0]))}={str(d[1])[:20]}" for d in DAMAGES])
def test_damaged_documents_are_refused(path, value, says):
    """Every broken invariant is one InvalidModel of one line that begins with where and says what was got."""
    model = sound()
    put(model, path, value)
    with pytest.raises(InvalidModel, match="^m: .*" + f"(?:{says})") as caught:
        parse_document(model)
    assert "\n" not in str(caught.value)


CATEGORY_DAMAGES = [
    (("categories", 0), -1, "category code is -1, expected 0..16777215"),
    (("categories", 0), 2**24, "category code is 16777216"),
    (("categories_sizes", 0), 10**6, "category segment size is 1000000"),
    (("categories_segments", 0), -1, "category segment is -1"),
    (("categories_segments", 0), "all", "end of a category segment"),
    (("categories_nodes", 0), 99, "category node is 99"),
    (("categories_nodes",), [], "'categories_segments' has"),
    (("split_type",), [0] * 7, "both numeric and categorical"),
    (("split_type",), [1] * 7, "sets of categories, . more expected"),
    (("split_type",), [0], "'split_type' has 1 numbers"),
]


@pytest.mark.parametrize(("path", "value", "says"), CATEGORY_DAMAGES, ids=[d[2][:30] for d in CATEGORY_DAMAGES])
def test_damaged_category_sets_are_refused(path, value, says):
    """Segments outside the pool, codes that are no codes, splits without a set."""
    model = sound("category")
    tree = next(t for t in trees_of(model) if t["categories"] and 0 in t["split_type"][:3])
    if value == "all":
        value = len(tree["categories"])
    put(tree, path, value)
    with pytest.raises(InvalidModel, match=f"^m: .*{says}"):
        parse_document(model)


LIST_DAMAGES = [
    ({"offsets": [0, 1, 2, 99], "values": [97, 98, 99]}, "do not divide 3 bytes"),
    ({"offsets": [0, 2, 1, 3], "values": [97, 98, 99]}, "do not divide"),
    ({"offsets": [1, 2, 3], "values": [97, 98, 99]}, "do not divide"),
    ({"offsets": [0, 1, 2, 3], "values": [97, 97, 99]}, "are not distinct"),
    ({"offsets": [0, 1, 2], "values": [97, 98]}, "a split has category 2, expected 0..1"),
    ({"offsets": [0, 1], "values": "a"}, "expected a list of integers"),
    ({"offsets": [0, 1], "values": [-61]}, "not ASCII|not UTF-8"),
    ({"type": 15, "values": [1.5]}, "expected a list of integers"),
    ({"type": 3, "values": [1]}, "'type' is 3, expected 7..16"),
    ({"values": [1]}, "'type' is None"),
    (7, "are 7, expected an object"),
]


@pytest.mark.parametrize(("entry", "says"), LIST_DAMAGES, ids=[d[1] for d in LIST_DAMAGES])
def test_damaged_category_lists_are_refused(entry, says):
    """A category list that cannot be read, or is shorter than the codes that splits use."""
    model = sound("list")
    tree = next(tree for tree in trees_of(model) if tree["categories"])
    tree["categories"] = [2] * len(tree["categories"])
    put(model, (*MODEL, "cats", "enc", 0), entry)
    with pytest.raises((InvalidModel, UnsupportedModel), match=f"^m: .*(?:{says})"):
        parse_document(model)


def test_wide_unsigned_and_float_categories():
    """Type 12 is uint16 in signed storage; types 7 and 8 are floats, which 3.1 accepted."""
    model = sound("list")
    for entry, values in (
        ({"type": 12, "values": [1, -1, 5]}, (1, 65535, 5)),
        ({"type": 8, "values": [0.5, 2, -1.5]}, (0.5, 2.0, -1.5)),
    ):
        put(model, (*MODEL, "cats", "enc", 0), entry)
        assert parse_document(model)[1][0].categories == values


VECTOR_DAMAGES = [
    (("leaf_weights",), [1.0], InvalidModel, "'leaf_weights' has 1 numbers, expected a row each"),
    (("right_children", 6), 0, InvalidModel, "expected a row each"),
    (("right_children", 6), 99, InvalidModel, "row of leaf weights is 99"),
    (("right_children", 6), 4, InvalidModel, "row of leaf weights is 4, expected 0..3"),
    (("tree_param", "size_leaf_vector"), "3", InvalidModel, "leaves have 3 values, expected 2"),
    (("tree_param", "size_leaf_vector"), "1", UnsupportedModel, "some trees have vector leaves and some have not"),
    (("sum_hessian",), None, UnsupportedModel, "tree 1: has vector leaves without covers .* since 3.2"),
]


@pytest.mark.parametrize(("path", "value", "error", "says"), VECTOR_DAMAGES, ids=[d[3][:30] for d in VECTOR_DAMAGES])
def test_damaged_vector_leaves_are_refused(path, value, error, says):
    """Each vector leaf owns one row of weights; files of 2.0 to 3.1 have no covers for them."""
    model = sound("vector")
    put(model, (*TREE, *path), value)
    with pytest.raises(error, match=f"^m: .*{says}"):
        parse_document(model)


REFUSALS = [
    (("learner", "objective", "name"), "reg:new", "objective is 'reg:new', its base score is not known as a margin"),
    (("learner", "gradient_booster", "name"), "gbnew", "booster is 'gbnew', expected 'gbtree' or 'dart'"),
    (("version",), [4, 0, 0], "written by XGBoost 4.0"),
    ((*MODEL, "tree_temperature"), [1, 2], r"with \['tree_temperature'\], not known here"),
    ((*TREE, "sum_hessian", 3), -1.0, "tree 1, node 3: cover .* is -1.0"),
]


@pytest.mark.parametrize(("path", "value", "says"), REFUSALS, ids=[d[2][:30] for d in REFUSALS])
def test_what_cannot_be_represented_is_refused(path, value, says):
    """A sound model outside the semantic is UnsupportedModel, which names the part."""
    model = sound()
    put(model, path, value)
    with pytest.raises(UnsupportedModel, match=f"^m: .*{says}"):
        parse_document(model)


def test_an_infinite_margin_is_refused():
    """A Poisson base score of 0 has the margin minus infinity."""
    model = sound()
    model["learner"]["objective"]["name"] = "count:poisson"
    model["learner"]["learner_model_param"]["base_score"] = "[0E0]"
    with pytest.raises(UnsupportedModel, match=r"base score \[0E0\] of count:poisson is the margin \[-inf\]"):
        parse_document(model)


def test_linear_models_are_refused():
    """gblinear is not a tree ensemble."""
    rows = np.nan_to_num(ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        booster = xgb.train({"booster": "gblinear", "nthread": 1}, xgb.DMatrix(rows, SIGNAL, nthread=1), 1)
    with pytest.raises(UnsupportedModel, match=r"^m: booster is 'gblinear', .*: a linear model has no trees, its coefficients explain it$"):
        load(booster)


def test_a_pool_of_huge_category_sets_is_refused():
    """One huge code makes every set of its feature wide; the memory is bounded before it is taken."""
    model = sound("category")
    tree = next(tree for tree in trees_of(model) if tree["categories"])
    tree["categories"] = [2**24 - 1] * len(tree["categories"])
    stored = trees_of(model)
    stored[:] = [copy.deepcopy(tree) | {"id": t} for t in range(200)]
    content = model["learner"]["gradient_booster"]["model"]
    content["gbtree_model_param"]["num_trees"] = "200"
    content["tree_info"] = [0] * 200
    content["iteration_indptr"] = list(range(201))
    with pytest.raises(UnsupportedModel, match=r"m: feature 'f0' has category codes up to 16777215: .* words of category sets"):
        parse_document(model)


def test_an_infinite_threshold_stays_exact():
    """x < inf is x <= the largest float32; XGBoost makes such cuts from values near it."""
    model = sound()
    model["learner"]["gradient_booster"]["model"]["trees"][0]["split_conditions"][0] = float("inf")
    ensemble, _, _ = parse_document(model)
    assert ensemble.threshold[0] == LARGEST


TEXTS = [
    (b"", "byte 0: 1 bytes are announced, 0 are left"),
    (b"{", "byte 1"),
    (b'{"learner": {}, "learner": {}}', "key 'learner' is given twice"),
    (b'{"learner": ' + b"[" * 200_000, "nested too deep"),
    (b'{"learner": ' + b'{"a":' * 200_000, "nested too deep"),
    (b'{"learner": "\xff"}', "utf-8"),
    (b'{"learner": ' + b"9" * 5000 + b"}", "not a whole document"),
    (b'{"learner": {}} x', "Extra data"),
    (b"[1]", "opens a value|opens a length|is 1 elements|announced|byte"),
    (b"{L" + bytes(7) + b"\x07learner" + b"[" * 100_000, "nested more than 32 deep"),
    (b"{L" + bytes(7) + b"\x07learner" + b"{i\x01a" * 100_000, "nested more than 32 deep"),
    (b"{L\x7f" + b"\xff" * 7, "bytes are announced"),
    (b"{L\xff" + b"\xff" * 7, "-1 bytes are announced"),
    (b"{L" + bytes(7) + b"\x07learner[$L#L\x7f" + b"\xff" * 7, "bytes are announced"),
    (b"{L" + bytes(7) + b"\x07learner[#L\x7f" + b"\xff" * 7, "elements are announced"),
    (b"{L" + bytes(7) + b"\x07learner[$T#L" + bytes(7) + b"\x07", "packed array of b'T'"),
    (b"{L" + bytes(7) + b"\x07learner[$l" + bytes(8), "packed array"),
    (b"{L" + bytes(7) + b"\x07learnerQ", "b'Q' opens a value"),
    (b"{i\x07learner{}i\x07learner{}}", "key 'learner' is given twice"),
    (b"{i\x07learner{}}extra", "the document ends, 5 bytes follow"),
    (b"{i\x07learner{}}", "'gradient_booster' is missing|'version' is missing"),
    (b"{i\x02\xff\xfe{}}", "utf-8"),
    (b"{i\x07learner{i\x10gradient_booster[$l#i\x02" + bytes(8) + b"}}", "'gradient_booster' is 2 elements|'version' is missing"),
]


@pytest.mark.parametrize(("data", "says"), TEXTS, ids=[f"{d[0][:24]!r}{len(d[0])}" for d in TEXTS])
def test_hostile_bytes_are_refused(data, says):
    """Lengths are checked before anything is taken, nesting is bounded, nothing is named twice."""
    with pytest.raises(InvalidModel, match=f"^m: .*(?:{says})"):
        LOADER.parse(data, "m")


@pytest.mark.parametrize("file_format", ["json", "ubj"])
def test_no_truncation_is_read(file_format):
    """A file cut off anywhere is refused, never read as a smaller model."""
    data = bytes(_sound("numeric").save_raw(file_format))
    for size in range(0, len(data), 3):
        with pytest.raises(InvalidModel):
            LOADER.parse(data[:size], "m")


def test_ubjson_of_other_writers():
    """Untyped, uncounted and counted containers, small integers and constants are UBJSON too."""

    def encode(value):
        if isinstance(value, dict):
            members = b"".join(b"U" + bytes([len(key)]) + key.encode() + encode(member) for key, member in value.items())
            return b"{" + members + b"}" if len(value) % 2 else b"{#U" + bytes([len(value)]) + members
        if isinstance(value, list):
            return b"[" + b"".join(map(encode, value)) + b"]"
        if isinstance(value, str):
            return b"SU" + bytes([len(value)]) + value.encode()
        if isinstance(value, bool):
            return b"T" if value else b"F"
        if isinstance(value, int):
            return b"L" + value.to_bytes(8, "big", signed=True)
        return b"D" + np.array(value, ">f8").tobytes()

    model = sound()
    trees_of(model)[0]["default_left"] = [bool(side) for side in trees_of(model)[0]["default_left"]]
    assert_same_bits(LOADER.parse(encode(model), "m")[0], parse_document(model)[0])


@pytest.mark.parametrize("kind", ["numeric", "category", "list", "vector"])
@pytest.mark.parametrize("file_format", ["json", "ubj"])
def test_mutated_files_end_in_a_clean_error_or_a_sound_ensemble(file_format, kind):
    """Flipped bits, changed digits, removed, doubled and inserted bytes, anywhere."""
    data = bytes(_sound(kind).save_raw(file_format))
    rng = np.random.default_rng(6)
    refusals = []
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(damaged)))
            way = rng.integers(4)
            if way == 0:
                damaged[at] ^= 1 << int(rng.integers(8))
            elif way == 1:
                damaged[at] = rng.choice(np.frombuffer(b'0123456789-,[]{}":LlidSU#$\x00\xff', np.uint8))
            elif way == 2:
                del damaged[at : at + int(rng.integers(1, 9))]
            else:
                damaged[at:at] = damaged[at : at + int(rng.integers(1, 9))]
        try:
            ensemble, features, *_ = LOADER.parse(bytes(damaged), "m")
        except (InvalidModel, UnsupportedModel) as error:
            refusals.append(str(error))
            continue
        check(ensemble)
        assert len(features) == ensemble.n_features
    assert len(refusals) > 100
    assert all(re.fullmatch("m: [^\n]+", text) for text in refusals)
