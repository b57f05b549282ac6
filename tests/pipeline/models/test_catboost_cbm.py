"""What is read from CatBoost's binary format is what CatBoost itself writes as JSON, and a file that is cut off is refused wherever it ends."""

import json

import catboost
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pipeline.errors import InvalidModel, UnsupportedModel
from pipeline.models.catboost_cbm import FORMAT, MAGIC, read_cbm
from tests.pipeline.models.catboosting import POLICIES, SHAPE, mixed, sample, saved


def both(model, tmp_path):
    """A model as it was read from the binary format, and CatBoost's JSON of it."""
    return read_cbm(saved(model, tmp_path, "cbm"), "m"), json.loads(saved(model, tmp_path, "json"))


def splits_in_order(contents):
    """What every split asks, in the order by which trees number them: borders of the numbers, then values of the categories."""
    borders = [(False, column.index, float(border)) for column in contents.columns if not column.categorical for border in column.borders]
    return borders + [(True, column.index, value) for column in contents.columns if column.categorical for value in column.values]


def asked(split):
    """The same of a split in JSON."""
    if split["split_type"] == "FloatFeature":
        return False, split["float_feature_index"], split["border"]
    return True, split["cat_feature_index"], split["value"] % 2**32


def nested(tree, splits, node=0):
    """A tree that was read, as nested tuples."""
    if tree.split[node] < 0:
        return tree.value[node].tolist(), float(tree.weight[node])
    return splits[tree.split[node]], nested(tree, splits, tree.left[node]), nested(tree, splits, tree.right[node])


def nested_json(node):
    """A tree of any shape in JSON, likewise."""
    if "split" not in node:
        return np.atleast_1d(node["value"]).tolist(), float(node["weight"])
    return asked(node["split"]), nested_json(node["left"]), nested_json(node["right"])


def nested_symmetric(tree, level=None, leaf=0):
    """A symmetric tree in JSON, likewise: the answer to split b is bit b of the leaf's number."""
    level = len(tree["splits"]) if level is None else level
    if level == 0:
        n_outputs = len(tree["leaf_values"]) // len(tree["leaf_weights"])
        return tree["leaf_values"][leaf * n_outputs : (leaf + 1) * n_outputs], float(tree["leaf_weights"][leaf])
    below = (nested_symmetric(tree, level - 1, leaf + (answer << level - 1)) for answer in (0, 1))
    return asked(tree["splits"][level - 1]), *below


def trees_of_json(document):
    return (
        [nested_symmetric(tree) for tree in document["oblivious_trees"]]
        if "oblivious_trees" in document
        else list(map(nested_json, document["trees"]))
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_numbers_and_categories_are_those_of_the_json(policy, tmp_path):
    """Features, borders, hashes, trees node by node, scale and bias."""
    rows, target = mixed()
    model = catboost.CatBoostRegressor(grow_policy=policy, one_hot_max_size=10, cat_features=[0, 2, 3], **SHAPE).fit(rows, target)
    model.set_scale_and_bias(-2.5, 7.0)
    found, document = both(model, tmp_path)
    numbers, categories = (document["features_info"][f"{kind}_features"] for kind in ("float", "categorical"))
    assert [column.categorical for column in found.columns] == [False] * len(numbers) + [True] * len(categories)
    for column, feature in zip(found.columns, numbers + categories, strict=True):
        assert (column.index, column.flat) == (feature["feature_index"], feature["flat_feature_index"])
        assert_array_equal(column.borders, np.array(feature.get("borders", ()), np.float32))
        assert column.values == tuple(value % 2**32 for value in feature.get("values", ()))
        assert column.texts is None
    splits = splits_in_order(found)
    assert [nested(tree, splits) for tree in found.trees] == trees_of_json(document)
    assert (found.scale, found.bias.tolist(), found.loss) == (-2.5, [7.0], "RMSE")


@pytest.mark.parametrize("policy", POLICIES)
def test_vector_leaves_and_class_names_are_those_of_the_json(policy, tmp_path):
    """A leaf has a value for every class."""
    rows, target = sample()
    labels = np.array(["low", "mid", "high"])[np.digitize(target, [-0.5, 0.5])]
    model = catboost.CatBoostClassifier(grow_policy=policy, loss_function="MultiClass", **SHAPE).fit(rows, labels)
    found, document = both(model, tmp_path)
    splits = splits_in_order(found)
    assert [nested(tree, splits) for tree in found.trees] == trees_of_json(document)
    assert found.class_names == tuple(model.classes_)
    assert (found.bias.tolist(), found.loss) == (document["scale_and_bias"][1], "MultiClass")


@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
def test_where_missing_numbers_go_is_said_of_features_that_had_some(nan_mode, tmp_path):
    """To the right where the JSON says that they are treated as true."""
    rows, target = sample()
    found, document = both(catboost.CatBoostRegressor(nan_mode=nan_mode, **SHAPE).fit(rows, target), tmp_path)
    treated = [feature["has_nans"] and feature["nan_value_treatment"] == "AsTrue" for feature in document["features_info"]["float_features"]]
    assert [column.nan_right for column in found.columns] == treated
    assert treated == [nan_mode == "Max", False, False, False]


@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
def test_a_file_that_is_cut_off_is_refused_wherever_it_ends(policy, tmp_path):
    """Also where its stated length is cut with it, so that offsets point outside; nothing is read as a smaller model."""
    rows, target = sample()
    data = saved(catboost.CatBoostRegressor(grow_policy=policy, **SHAPE | {"iterations": 1}).fit(rows, target), tmp_path, "cbm")
    whole = read_cbm(data, "m")
    for size in range(0, len(data), 5):
        with pytest.raises(InvalidModel, match=r"^m: .*expected .* bytes"):
            read_cbm(data[:size], "m")
    refusals = []
    for size in range(8, len(data), 5):
        try:
            found = read_cbm(MAGIC + (size - 8).to_bytes(4, "little") + data[8:size], "m")
        except (InvalidModel, UnsupportedModel) as refusal:
            refusals.append(str(refusal))
            continue
        # What was cut off is nothing of the model.
        assert [tree.value.tolist() for tree in found.trees] == [tree.value.tolist() for tree in whole.trees]
    assert len(refusals) > 50
    assert not any("\n" in refusal for refusal in refusals)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "0 bytes, expected b'CBM1' and 8 bytes in all"),
        (b"CBM2" + bytes(4), "8 bytes, expected b'CBM1'"),
        (MAGIC + bytes(4), "an offset points outside the file"),
        (MAGIC + (8).to_bytes(4, "little") + b"\xff" * 8, "an offset points outside the file"),
    ],
)
def test_what_is_no_such_file_is_refused(data, says):
    """In one line that says what was expected."""
    with pytest.raises(InvalidModel, match=f"^m: {says}"):
        read_cbm(data, "m")


def table(*fields):
    """A FlatBuffers table of two vectors and nothing else: where both begin is said as the distance from the field."""
    vtable = b"".join(number.to_bytes(2, "little") for number in (4 + 2 * len(fields), 4 + 4 * len(fields), *(4 + 4 * i for i in range(len(fields)))))
    start = 4 + len(vtable) + -len(vtable) % 4
    return start.to_bytes(4, "little") + vtable.ljust(start - 4, b"\0") + (start - 4).to_bytes(4, "little") + b"".join(fields)


def test_another_format_and_a_file_without_trees_are_refused():
    """By hand: a core table with the name of a format, and no table of trees."""
    for name, says in ((b"FlabuffersModel_v9", "format b'FlabuffersModel_v9', expected b'FlabuffersModel_v1'"), (FORMAT, "has no trees table")):
        body = table((4).to_bytes(4, "little")) + len(name).to_bytes(4, "little") + name
        with pytest.raises(InvalidModel, match=f"^m: {says}"):
            read_cbm(MAGIC + len(body).to_bytes(4, "little") + body, "m")
