"""Statistics in JSON that was edited, or lacks counts, are refused in one line; sums are read as they are written."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models.catboost.assemble import Contents
from leafledger.pipeline.models.catboost.classes import Classes
from leafledger.pipeline.models.catboost.ctr import BINARIZED_MEAN, COUNTER, FLOAT_MEAN, FREQUENCY
from leafledger.pipeline.models.catboost.ctr_json import check_unambiguous, read_statistics, read_tables
from leafledger.pipeline.models.catboost.loader import LOADER
from tests.pipeline.models.catboost.training import counted, counting, saved

KINDS = ["Borders:TargetBorderCount=3", "BinarizedTargetMeanValue:TargetBorderCount=5", "Counter"]


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    """JSON of a model with combinations, of three kinds of statistics; without its trees, which say of their splits what columns do."""
    given = {"max_ctr_complexity": 3, "model_size_reg": 0, "one_hot_max_size": 3, "simple_ctr": KINDS, "combinations_ctr": KINDS}
    model = counting("regression", *counted(300), iterations=40, **given)
    return json.loads(saved(model, tmp_path_factory.mktemp("m"), "json")) | {"oblivious_trees": None}


def copied(document):
    return json.loads(json.dumps(document))


def parsed(document):
    return LOADER.parse(json.dumps(document).encode(), "m")


def first(document, wanted):
    """A column of a kind, or with such an element, and its table."""
    for column in document["features_info"]["ctrs"]:
        for element in column["elements"]:
            if wanted in (column["ctr_type"], element["combination_element"]):
                return column, document["ctr_data"][column["identifier"]], element
    raise AssertionError(wanted)


BORDERS, MEAN, COUNT, ABOVE, EQUAL = "Borders", BINARIZED_MEAN, COUNTER, "float_feature", "cat_feature_exact_value"


@pytest.mark.parametrize(
    ("wanted", "part", "change", "error", "says"),
    [
        (BORDERS, 0, {"ctr_type": "Odd"}, InvalidModel, "is of kind 'Odd', expected one of Borders, Buckets"),
        (BORDERS, 0, {"ctr_type": 3}, InvalidModel, "'ctr_type' is 3, expected a string"),
        (BORDERS, 0, {"elements": []}, UnsupportedModel, "has no table of counts"),
        (BORDERS, 0, {"elements": [3]}, InvalidModel, "has no 'combination_element'"),
        (BORDERS, 0, {"borders": ["x"]}, InvalidModel, "borders: got"),
        (BORDERS, 0, {"borders": [1, 0]}, InvalidModel, "expected ascending numbers"),
        (BORDERS, 0, {"prior_numerator": None}, InvalidModel, "prior_numerator: got"),
        (BORDERS, 0, {"prior_denomerator": 1e39}, InvalidModel, "expected finite numbers"),
        (BORDERS, 0, {"scale": "15"}, InvalidModel, "scale: got"),
        (BORDERS, 0, {"shift": True}, InvalidModel, "shift: got"),
        (BORDERS, 0, {"target_border_idx": 3}, UnsupportedModel, "JSON lacks some counts"),
        (BORDERS, 0, {"target_border_idx": -1}, InvalidModel, "has target border -1"),
        (BORDERS, 0, {"target_border_idx": 0.0}, InvalidModel, "'target_border_idx' is 0.0, expected an integer"),
        (BORDERS, 1, {"hash_stride": 1}, InvalidModel, "in steps of 1, expected keys, each with 1 counts"),
        (BORDERS, 1, {"hash_stride": 2}, InvalidModel, "(in steps of 2|is no text|no whole number|has counts|counts of 1 classes)"),
        (BORDERS, 1, {"hash_map": ["1", 2, 3]}, InvalidModel, "3 entries in steps of 5"),
        (BORDERS, 1, {"hash_map": [1, 1, 1, 1, 1]}, InvalidModel, "a key is no text of decimal digits"),
        (BORDERS, 1, {"hash_map": ["1", 1, 1, 1, 1, "x", 1, 1, 1, 1]}, InvalidModel, "a key is no text of decimal digits"),
        (BORDERS, 1, {"hash_map": ["-1", 1, 1, 1, 1]}, InvalidModel, "a key is no text of decimal digits"),
        (BORDERS, 1, {"hash_map": ["1" * 5000, 1, 1, 1, 1]}, InvalidModel, "a key is no text of decimal digits"),
        (BORDERS, 1, {"hash_map": ["18446744073709551616", 1, 1, 1, 1]}, InvalidModel, "a number is too large"),
        (BORDERS, 1, {"hash_map": ["1", 1, 1, 1, 1.0]}, InvalidModel, "a count is no whole number"),
        (BORDERS, 1, {"hash_map": ["1", True, 1, 1, 1]}, InvalidModel, "a count is no whole number"),
        (BORDERS, 1, {"hash_map": ["1", 2**64, 1, 1, 1]}, InvalidModel, "a number is too large"),
        (BORDERS, 1, {"hash_map": ["1", -1, 1, 1, 1]}, InvalidModel, "key 1 has counts"),
        (BORDERS, 1, {"hash_map": ["1", 1, 1, 1, 1, "01", 1, 1, 1, 1]}, InvalidModel, "key 1 is there twice"),
        (BORDERS, 1, {"hash_map": None}, InvalidModel, "'hash_map' is None, expected a list"),
        (BORDERS, 1, {"counter_denominator": "0"}, InvalidModel, "'counter_denominator' is '0', expected an integer"),
        (COUNT, 1, {"counter_denominator": -1}, InvalidModel, "denominator -1"),
        (COUNT, 1, {"hash_stride": 3}, InvalidModel, "in steps of 3, expected keys, each with 1 counts"),
        (MEAN, 1, {"hash_stride": 2}, InvalidModel, "in steps of 2, expected keys, each with 2 counts"),
        (MEAN, 1, {"hash_map": ["1", 1e39, 1]}, InvalidModel, "key 1 has counts"),
        (MEAN, 1, {"hash_map": ["1", 1, 1.0]}, InvalidModel, "a count is no whole number"),
        (ABOVE, 2, {"combination_element": "odd"}, InvalidModel, "has an element of kind 'odd'"),
    ],
)
def test_edited_statistics_are_refused(document, wanted, part, change, error, says):
    """In one line with the file, and the column or table."""
    changed = copied(document)
    first(changed, wanted)[part].update(change)
    with pytest.raises(error, match=f"^m: .*{says}") as refusal:
        parsed(changed)
    assert "\n" not in str(refusal.value)


def test_what_a_table_is_of_is_read_from_its_key(document):
    """A text that is itself JSON, whatever its spaces; a damaged one is refused, and so is a second table of the same."""
    key = first(document, BORDERS)[0]["identifier"]
    respaced, twice, damaged = copied(document), copied(document), copied(document)
    respaced["ctr_data"] = {json.dumps(json.loads(each)): table for each, table in respaced["ctr_data"].items()}
    assert_array_equal(parsed(respaced)[0].statistics.code, parsed(document)[0].statistics.code)
    twice["ctr_data"][f" {key}"] = twice["ctr_data"][key]
    with pytest.raises(InvalidModel, match=r"^m: table .* of counts is of what another one is of$"):
        parsed(twice)
    damaged["ctr_data"][key[:-1]] = damaged["ctr_data"].pop(key)
    with pytest.raises(InvalidModel, match=r"^m: table .* of counts: not sound JSON"):
        parsed(damaged)
    del twice["ctr_data"][key], twice["ctr_data"][f" {key}"]
    with pytest.raises(UnsupportedModel, match=r"^m: target statistic .* has no table of counts"):
        parsed(twice)


def test_tables_that_no_column_needs_are_passed_over(document):
    """They may hold anything: CatBoost keeps some where it is asked to."""
    changed = copied(document)
    columns = changed["features_info"]["ctrs"]
    unneeded = {column["identifier"] for column in columns if column["ctr_type"] == COUNT}
    columns[:] = [column for column in columns if column["ctr_type"] != COUNT]
    for key in unneeded:
        changed["ctr_data"][key] = None
    assert parsed(changed)[0].statistics.column.size == len(columns)


def test_the_empty_bucket_is_no_key(document):
    """CatBoost writes it with the counts of another key."""
    assert any("18446744073709551615" in table["hash_map"] for table in document["ctr_data"].values())
    assert 2**64 - 1 not in parsed(document)[0].statistics.key


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("float_feature", {"border": 0.125}, "above 0.125, expected one of the feature's own borders"),
        ("float_feature", {"float_feature_index": 9}, "is of float feature 9, expected one of the model's"),
        ("cat_feature_value", {"cat_feature_index": 9}, "is of categorical feature 9, expected one of the model's"),
        ("cat_feature_exact_value", {"value": 12345}, "with hash 12345, expected one of the feature's own categories"),
        ("cat_feature_exact_value", {"value": 2**32}, r"asks for hash 4294967296, expected -2147483648\.\.4294967295"),
    ],
)
def test_combinations_of_what_the_model_has_not_are_refused(document, place, value, says):
    """Also where the table says the same."""
    changed = copied(document)
    _, _, element = first(changed, place)
    old = {**element}
    for column in changed["features_info"]["ctrs"]:
        for each in column["elements"]:
            if each == old:
                each.update(value)
    tables = {}
    for key, table in changed["ctr_data"].items():
        said = json.loads(key)
        for each in said["identifier"]:
            if each == old:
                each.update(value)
        tables[json.dumps(said)] = table
    changed["ctr_data"] = tables
    with pytest.raises(InvalidModel, match=f"^m: .*{says}"):
        parsed(changed)


def test_hashes_may_be_written_without_a_sign(document):
    """The same category."""
    changed = copied(document)
    for column in changed["features_info"]["ctrs"]:
        for each in column["elements"]:
            if "value" in each:
                each["value"] %= 2**32
    assert_array_equal(parsed(changed)[0].statistics.bound, parsed(document)[0].statistics.bound)


def lacking(document, change):
    changed = copied(document)
    change(changed)
    with pytest.raises(UnsupportedModel, match=r"^m: JSON lacks some counts of a model .* save it as cbm$"):
        parsed(changed)


def test_json_that_may_lack_counts_is_refused(document):
    """One kind described twice with other classes; columns that are not those of one table; several targets; and where nothing is said."""
    parameters = lambda changed: changed["model_info"]["params"]  # noqa: E731 - a place
    other = {"ctr_type": "Borders", "target_binarization": {"border_count": 1, "border_type": "MinEntropy"}}
    for name in ("simple_ctrs", "combinations_ctrs"):
        lacking(document, lambda changed, name=name: parameters(changed)["cat_feature_params"][name].append(other))
    lists = {"3": [other, {"ctr_type": "Borders"}]}
    lacking(document, lambda changed: parameters(changed)["cat_feature_params"].update(per_feature_ctrs=lists))
    lacking(document, lambda changed: changed["model_info"].pop("params"))
    lacking(document, lambda changed: changed.pop("model_info"))
    lacking(document, lambda changed: parameters(changed).update(loss_function={"type": "SurvivalAft"}))

    def swap(changed):
        columns = changed["features_info"]["ctrs"]
        k = next(k for k in range(1, len(columns)) if columns[k]["identifier"] == columns[k - 1]["identifier"])
        columns[k - 1 : k + 1] = columns[k : k - 2 : -1] if k > 1 else columns[1::-1]

    lacking(document, swap)
    lacking(document, lambda changed: changed["features_info"]["ctrs"].insert(0, changed["features_info"]["ctrs"][0]))


def contents(document, statistics, tables, **changes):
    return Contents(
        **{"columns": (), "trees": (), "scale": 1.0, "bias": np.zeros(2), "classes": Classes(), "loss": "MultiClass"} | changes,
        statistics=statistics,
        tables=tables,
    )


@pytest.mark.parametrize(
    ("loss", "said"), [("MultiClass", True), ("RMSEWithUncertainty", True), ("MultiRMSE", False), ("MultiLogloss", False), ("", False)]
)
def test_several_outputs_are_those_of_one_target_or_of_several(document, loss, said):
    """By the loss; a model of several targets lacks tables, but not where it counts rows alone."""
    statistics = read_statistics(document, "m")
    found = contents(document, statistics, read_tables(document, statistics, "m"), loss=loss)
    info = {"params": json.dumps({"loss_function": {"type": loss}})}
    if said:
        check_unambiguous(found, info, "m")
        check_unambiguous(found, {"model0:params": info["params"], "model1:params": {}}, "m")
        return
    with pytest.raises(UnsupportedModel, match="JSON lacks some counts"):
        check_unambiguous(found, info, "m")
    counters = tuple(statistic for statistic in statistics if statistic.counted.kind == COUNTER)
    check_unambiguous(contents(document, counters, found.tables, loss=loss), None, "m")


def test_kinds_that_only_gpus_train_are_read_as_they_are_written(document):
    """Sums of a target that is no class have fractions, which CatBoost's own reader of JSON cuts off: each moves the code where it should."""
    changed = json.loads(json.dumps(document).replace(BINARIZED_MEAN, FLOAT_MEAN).replace(COUNTER, FREQUENCY))
    assert_array_equal(parsed(changed)[0].statistics.code, parsed(document)[0].statistics.code)
    _, table, _ = first(changed, FLOAT_MEAN)
    table["hash_map"][1::3] = [value + 0.25 for value in table["hash_map"][1::3]]
    statistics = read_statistics(changed, "m")
    key = {statistic.counted for statistic in statistics if statistic.counted.kind == FLOAT_MEAN}
    same = json.loads(json.dumps(document).replace(BINARIZED_MEAN, FLOAT_MEAN).replace(COUNTER, FREQUENCY))
    before, after = (read_tables(each, statistics, "m") for each in (same, changed))
    moved = [after[each].counts - before[each].counts for each in key]
    assert sum(bool(each.any()) for each in moved) == 1
    assert_allclose(max(moved, key=np.max), np.tile([0.25, 0], (len(table["hash_map"]) // 3 - 1, 1)), atol=1e-6)


@pytest.mark.parametrize("tables", [None, {}, {"odd": 3}, [3]])
def test_a_model_without_statistics_may_have_anything_for_tables(document, tables):
    """Nothing of it is read. Where statistics ask for tables, none at all and null are the same: they are missing."""
    changed = copied(document) | {"ctr_data": tables}
    statistics = read_statistics(changed, "m")
    assert read_tables(changed, (), "m") == {}
    if not tables:
        assert read_tables(changed, statistics, "m") == {}
        with pytest.raises(UnsupportedModel, match=r"^m: target statistic 0 has no table of counts"):
            parsed(changed)
