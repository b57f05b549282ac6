"""What is read from CatBoost's binary format is what CatBoost itself writes as JSON, and a file that is cut off is refused wherever it ends."""

import itertools
import json
import struct

import catboost
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models.catboost.cbm_format import FORMAT, MAGIC, read_cbm
from leafledger.pipeline.models.catboost.classes import Classes
from leafledger.pipeline.models.catboost.ctr import BINARIZED_MEAN, COUNTER, FLOAT_MEAN, FREQUENCY, KINDS
from leafledger.pipeline.models.catboost.loader import LOADER
from tests.pipeline.models.catboost.training import POLICIES, SHAPE, Editable, asked, counted, counting, ends, looked_up, mixed, sample, saved, sums


def both(model, tmp_path):
    """A model as it was read from the binary format, and CatBoost's JSON of it."""
    return read_cbm(saved(model, tmp_path, "cbm"), "m"), json.loads(saved(model, tmp_path, "json"))


def splits_in_order(contents):
    """What every split asks, in the order by which trees number them: borders of the numbers, then values of the categories."""
    borders = [(False, column.index, float(border)) for column in contents.columns if not column.categorical for border in column.borders]
    return borders + [(True, column.index, value) for column in contents.columns if column.categorical for value in column.values]


def asks(split):
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
    return asks(node["split"]), nested_json(node["left"]), nested_json(node["right"])


def nested_symmetric(tree, level=None, leaf=0):
    """A symmetric tree in JSON, likewise: the answer to split b is bit b of the leaf's number."""
    level = len(tree["splits"]) if level is None else level
    if level == 0:
        n_outputs = len(tree["leaf_values"]) // len(tree["leaf_weights"])
        return tree["leaf_values"][leaf * n_outputs : (leaf + 1) * n_outputs], float(tree["leaf_weights"][leaf])
    below = (nested_symmetric(tree, level - 1, leaf + (answer << level - 1)) for answer in (0, 1))
    return asks(tree["splits"][level - 1]), *below


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
    assert found.classes == Classes(tuple(model.classes_), (0, 1, 2))
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


@pytest.fixture(scope="module")
def statistics(tmp_path_factory):
    """A model with combinations, and statistics of three kinds and several target borders."""
    kinds = ["Borders:TargetBorderCount=3", "BinarizedTargetMeanValue:TargetBorderCount=5", "Counter"]
    given = {"max_ctr_complexity": 3, "model_size_reg": 0, "one_hot_max_size": 3, "simple_ctr": kinds, "combinations_ctr": kinds}
    model = counting("regression", *counted(300), iterations=40, **given)
    return saved(model, tmp_path_factory.mktemp("m"), "cbm")


def of_kind(found, kind, *fields):
    """The first column or table that is of a kind; ``fields`` lead to what says so."""
    return next(
        each for each in found if KINDS[each[1].number(1, "<b", 0) if not fields else Editable.within(each, *fields)[1].number(1, "<b", 0)] == kind
    )


def with_part(edited, field, length):
    """The first column whose projection has such elements."""
    for found in edited.columns:
        projection = Editable.within(found, 0, 0, 0)
        if int.from_bytes(edited.data[edited.vector(projection, field) :][:4], "little") >= length if projection[1]._place(field) else False:
            return projection
    raise AssertionError(field)


def other_key(edited):
    """Two neighbouring buckets that have keys, of which one takes over the key of the other: a search finds both."""
    table = of_kind(edited.tables, "Counter", 0)
    buckets = table[1].array(1, "u1").view([("key", "<u8"), ("row", "<u4")])
    i = int(np.flatnonzero((buckets["key"][1:] != 2**64 - 1) & (buckets["key"][:-1] != 2**64 - 1))[0])
    edited.put_item(table, 1, 12 * (i + 1), "<Q", int(buckets["key"][i]))


def row_twice(edited):
    table = of_kind(edited.tables, "Counter", 0)
    buckets = table[1].array(1, "u1").view([("key", "<u8"), ("row", "<u4")])
    used = np.flatnonzero(buckets["key"] != 2**64 - 1)
    edited.put_item(table, 1, 12 * int(used[0]) + 8, "<I", int(buckets["row"][used[1]]))


def gap(edited):
    """A key in an empty bucket before which there is nothing, where its own place is elsewhere."""
    table = of_kind(edited.tables, "Counter", 0)
    buckets = table[1].array(1, "u1").view([("key", "<u8"), ("row", "<u4")])
    empty = buckets["key"] == 2**64 - 1
    i = int(np.flatnonzero(empty[1:] & empty[:-1])[0]) + 1
    edited.put_item(table, 1, 12 * i, "<Q", i - 1)


def full(edited):
    table = of_kind(edited.tables, "Counter", 0)
    for i in range(table[1].array(1, "u1").size // 12):
        edited.put_item(table, 1, 12 * i, "<Q", i)


def same_table(edited):
    """Two tables that are of the same: one says the kind of the other, and its classes."""
    said = [(Editable.within(table, 0), Editable.within(table, 0, 0)[1]) for table in edited.tables]
    texts = [tuple(each.array(field, dtype).tobytes() for field, dtype in ((0, "<i4"), (1, "<i8"), (2, "<i8"))) for _, each in said]
    for i, j in itertools.permutations(range(len(said)), 2):
        (base, _), (other, _) = said[i], said[j]
        if texts[i] == texts[j] and base[1]._place(1) and base[1]._place(2):
            edited.put(base, 1, "<b", int(other[1].number(1, "<b", 0)))
            edited.put(base, 2, "<i", other[1].integer(2, 0))
            return
    raise AssertionError("no two tables of one projection")


DAMAGES = {
    "of the end": (lambda e: e.data.append(0), "bytes, but its tables of counts end after"),
    "of the number of tables": (lambda e: e.data.__setitem__(slice(e.n_tables_at, e.n_tables_at + 4), b"\xff\xff\0\0"), "an offset points outside"),
    "of a number beyond all": (lambda e: struct.pack_into("<I", e.data, e.n_tables_at, 100_001), "100001 tables of counts, expected at most 100000"),
    "of a table's size": (lambda e: struct.pack_into("<I", e.data, e.tables[0][0] - 4, 1 << 31), "table 0 of counts has 2147483648 bytes, but"),
    "of a table's end": (lambda e: struct.pack_into("<I", e.data, e.tables[0][0] - 4, 8), "(an offset points outside|does not say)"),
    "of the number of buckets": (lambda e: e.resize(e.tables[0], 1, 36), "has 36 bytes of buckets, expected 12 times"),
    "of the bytes of buckets": (lambda e: e.resize(e.tables[0], 1, 25), "has 25 bytes of buckets, expected 12 times a power"),
    "of no buckets": (lambda e: e.resize(e.tables[0], 1, 0), "has 0 bytes of buckets, expected 12 times a power"),
    "of more buckets": (lambda e: e.resize(e.tables[0], 1, 12 << 20), "an offset points outside the file"),
    "of the bytes of counts": (lambda e: e.resize(of_kind(e.tables, "Borders", 0), 2, 8), "has 8 bytes of counts, expected 4 times 4"),
    "of the number of counts": (lambda e: e.resize(of_kind(e.tables, "Counter", 0), 2, 4), "keys for 1 counts"),
    "of no classes": (lambda e: e.put(of_kind(e.tables, "Borders", 0), 4, "<i", 0), "expected 0 times 4 for every key"),
    "of fewer classes": (lambda e: e.put(of_kind(e.tables, "Borders", 0), 4, "<i", -1), "expected -1 times 4 for every key"),
    "of one class": (lambda e: e.put(of_kind(e.tables, "Borders", 0), 4, "<i", 1), "counts of 1 classes, expected at least 2"),
    "of a count": (lambda e: e.put_item(of_kind(e.tables, "Borders", 0), 2, 0, "<i", -1), "has counts"),
    "of a sum": (lambda e: e.put_item(of_kind(e.tables, BINARIZED_MEAN, 0), 2, 0, "<f", np.nan), "has counts"),
    "of a denominator": (lambda e: e.put(of_kind(e.tables, "Counter", 0), 3, "<i", -1), "denominator -1, expected"),
    "of keys": (other_key, "is there twice"),
    "of rows": (row_twice, "expected counts of its own for each"),
    "of a place": (gap, "where no search finds it"),
    "of all places": (full, "has no empty bucket, in which a search would end"),
    "of two tables": (same_table, "is of what another one is of"),
    "of what a column is of": (lambda e: e.leave_out(e.columns[0], 0), "target statistic 0 does not say what it is of"),
    "of what a table is of": (lambda e: e.leave_out(e.tables[0], 0), "table 0 of counts does not say what it is of"),
    "of a kind": (lambda e: e.put(e.within(of_kind(e.columns, "Counter", 0, 0), 0, 0), 1, "<b", 6), r"statistic \d+ is of kind 6, expected 0\.\.5"),
    "of a table's kind": (lambda e: e.put(Editable.within(of_kind(e.tables, "Counter", 0), 0), 1, "<b", -1), r"table \d+ of counts is of kind -1"),
    "of a prior": (lambda e: e.put(Editable.within(of_kind(e.columns, "Borders", 0, 0), 0), 5, "<f", np.inf), "expected finite numbers"),
    "of borders": (lambda e: e.put_item(e.columns[0], 1, 0, "<f", np.nan), "expected ascending numbers"),
    "of a category": (lambda e: e.put_item(with_part(e, 0, 1), 0, 0, "<i", 77), "is of categorical feature 77, expected one of the model's"),
    "of a number": (lambda e: e.put_item(with_part(e, 1, 1), 1, 0, "<i", 77), "is of float feature 77, expected one of the model's"),
    "of a border": (lambda e: e.put_item(with_part(e, 1, 1), 1, 4, "<f", 77), "above 77, expected one of the feature's own borders"),
    "of a hash": (lambda e: e.put_item(with_part(e, 2, 1), 2, 4, "<i", 77), "with hash 77, expected one of the feature's own categories"),
}  # fmt: skip


@pytest.mark.parametrize("which", DAMAGES)
def test_damaged_statistics_are_refused(statistics, which):
    """In one line with the table or column. Damage of a projection may leave it without a table, which is refused too."""
    change, says = DAMAGES[which]
    edited = Editable(statistics)
    change(edited)
    with pytest.raises((InvalidModel, UnsupportedModel), match=f"^m: .*({says}|has no table of counts)") as refusal:
        LOADER.parse(bytes(edited.data), "m")
    assert "\n" not in str(refusal.value)
    assert ("has no table" in str(refusal.value)) <= (which in {"of a category", "of a number", "of a border", "of a hash"})


def test_tables_that_no_column_needs_are_passed_over(statistics):
    """They may hold anything: CatBoost keeps some where it is asked to."""
    edited = Editable(statistics)
    edited.put(Editable.within(of_kind(edited.columns, COUNTER, 0, 0), 0, 0), 1, "<b", KINDS.index(FREQUENCY))
    before, after = (set(read_cbm(data, "m").tables) for data in (statistics, bytes(edited.data)))
    assert after < before


def test_statistics_that_are_cut_off_are_refused(statistics):
    """Wherever the file ends behind its trees."""
    start = 8 + int.from_bytes(statistics[4:8], "little")
    for end in np.linspace(start, len(statistics) - 1, 25).astype(int):
        with pytest.raises((InvalidModel, UnsupportedModel), match=r"^m: "):
            LOADER.parse(statistics[:end], "m")


def test_kinds_that_only_gpus_train(statistics, tmp_path):
    """A file of the CPU's kinds with the kinds, and the sums, written over: CatBoost predicts the same of it."""
    edited = Editable(statistics)
    other, done, rng = {2: 3, 4: 5}, set(), np.random.default_rng(0)
    for found, fields in [*((column, (0, 0)) for column in edited.columns), *((table, (0,)) for table in edited.tables)]:
        start, base = base_of = Editable.within(found, *fields)
        kind = base.number(1, "<b", 0)
        if kind in other and (start, base.position) not in done:  # files share equal tables
            done.add((start, base.position))
            edited.put(base_of, 1, "<b", other[kind])
        if len(fields) == 1 and kind == 2:
            for at in range(0, found[1].array(2, "u1").size, 8):
                sum_at = edited.vector(found, 2) + 4 + at
                (value,) = struct.unpack_from("<f", edited.data, sum_at)
                struct.pack_into("<f", edited.data, sum_at, value * rng.uniform(0.5, 1.5))
    found = read_cbm(bytes(edited.data), "m")
    assert {FLOAT_MEAN, FREQUENCY} <= {each.counted.kind for each in found.statistics} <= set(KINDS) - {BINARIZED_MEAN, COUNTER}
    (tmp_path / "m").write_bytes(edited.data)
    ensemble, features, *_ = LOADER.parse(bytes(edited.data), "m")
    frame = asked(1000)
    expected = catboost.CatBoost().load_model(str(tmp_path / "m")).predict(frame)
    margins = sums(ensemble, ends(ensemble, looked_up(ensemble, features, frame)))[:, 0]
    assert_allclose(margins, expected, rtol=1e-12, atol=1e-12)
    before = LOADER.parse(statistics, "m")[0]
    assert np.abs(sums(before, ends(before, looked_up(before, features, frame)))[:, 0] - margins).max() > 0.01
