"""Columns become numbers by one rule each, whatever Arrow type carries them; types that cannot are refused by name."""

import decimal
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from leafledger.pipeline.dataset.columns import schema
from leafledger.pipeline.errors import InvalidColumn, SchemaMismatch
from leafledger.pipeline.models.catboost.cityhash import DIGITS, HashedCategory
from leafledger.pipeline.models.catboost.cityhash import WORDS as WORDS_OF
from leafledger.pipeline.models.model import Feature
from tests.pipeline.dataset.kinds import BIG, CODES, HASHES, NUMBER, NUMBERS, WORDS

NAN = float("nan")


@pytest.mark.parametrize(
    ("feature", "column", "values"),
    [
        (NUMBER, pa.array([1.5, None, NAN, -np.inf]), [1.5, NAN, NAN, -np.inf]),
        (NUMBER, pa.array([1, None], pa.int8()), [1, NAN]),
        (NUMBER, pa.array([7, None, 1, 7]).dictionary_encode(), [7, NAN, 1, 7]),
        (Feature("x", missing=-999.0), pa.array([-999, None, 1, 999]), [NAN, NAN, 1, 999]),
        (Feature("x", missing=0.1), pa.array([0.1, NAN, 0.1 + 1e-12]), [NAN, NAN, 0.1 + 1e-12]),
        (Feature("x", missing=0.1), pa.array([0.1, None, 0.2], pa.float32()), [NAN, NAN, np.float32(0.2)]),
        (Feature("x", missing=99_999_999.0), pa.array([99_999_999, 1e8]), [NAN, 1e8]),
        (Feature("x", missing=99_999_999.0), pa.array(np.float32([99_999_999, 1e7])), [NAN, 1e7]),
        (Feature("x", missing=-999.0), pa.array([np.float16(-999), np.float16(0.5)], pa.float16()), [NAN, 0.5]),
        (Feature("x", categorical=True, missing=-1.0), pa.array([-1, 0, 1]), [NAN, 0, 1]),
        (NUMBER, pa.array([2**53 + 1], pa.int64()), [2.0**53]),
        (NUMBER, pa.array([2**64 - 1], pa.uint64()), [2.0**64]),
        (NUMBER, pa.array([True, False, None]), [1, 0, NAN]),
        (NUMBER, pa.array([np.float16(0.5), None], pa.float16()), [0.5, NAN]),
        (NUMBER, pa.array([decimal.Decimal("1.25"), None]), [1.25, NAN]),
        (NUMBER, pa.array([None, None]), [NAN, NAN]),
        (CODES, pa.array([0, 7, None, -1]), [0, 7, NAN, -1]),
        (WORDS, pa.array(["a", "b", "c", None, ""]), [1, 0, 2, NAN, 2]),
        (WORDS, pa.array(["a", None, "z", "b"], pa.large_string()), [1, NAN, 2, 0]),
        (WORDS, pa.array(["a", None, "z", "b"], pa.string_view()), [1, NAN, 2, 0]),
        (WORDS, pa.array(["a", None, "b", "z"]).dictionary_encode(), [1, NAN, 0, 2]),
        (WORDS, pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), pa.array(["b", None, "a"])), [0, NAN, 1]),
        (WORDS, pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([], pa.string())), [NAN, NAN]),
        (Feature("x", True, ("1", "2")), pa.array([2, 1, 3, None]), [1, 0, 2, NAN]),
        (Feature("x", True, ("True", "False")), pa.array([False, True, None]), [1, 0, NAN]),
        (NUMBERS, pa.array([20, 10, 5, None]), [1, 0, 2, NAN]),
        (Feature("x", True, (10, 20), perhaps_codes=True), pa.array([20, 10, 5]).dictionary_encode(), [1, 0, 2]),
        (Feature("x", True, ("1", "2"), perhaps_codes=True), pa.array(["2", "1"]), [1, 0]),
        (NUMBERS, pa.array([20.0, NAN, 10.5]), [1, NAN, 2]),
        (BIG, pa.array([2**53 + 1, 2**53, 2**53 + 2, None]), [1, 0, 2, NAN]),
        (BIG, pa.array([2**53 + 1, 2**53], pa.uint64()), [1, 0]),
        (BIG, pa.array([2.0**53, 2.0**53 + 2]), [0, 2]),
        (BIG, pa.array([decimal.Decimal(2**53), decimal.Decimal("0.5")]), [0, 2]),
        (Feature("x", True, (2**63 - 1, -(2**63))), pa.array([-(2**63), 2**63 - 1, 2**63 - 2]), [1, 0, 2]),
        (Feature("x", True, (0.5, 2.0, 2.0**53)), pa.array([2, 0, 2**53, 2**53 + 1]), [1, 3, 2, 3]),
        (HASHES, pa.array(["b", "3", "c", None, "b"]), [0, 1, 2, NAN, 0]),
        (HASHES, pa.array([3, 4, None]), [1, 2, NAN]),
        (replace(HASHES, categories=(HashedCategory.of("1"),), booleans=DIGITS), pa.array([True, False, None]), [0, 1, NAN]),
        (replace(HASHES, categories=(HashedCategory.of("True"),), booleans=WORDS_OF), pa.array([True, False, None]), [0, 1, NAN]),
    ],
)
def test_columns_become_numbers(feature, column, values):
    """Numbers as they are, categories as positions in the model's list, its length where unseen, NaN where missing."""
    schema.check_column(feature, column.type, "rows")
    assert_array_equal(schema.column_values(feature, column), np.array(values, float))


def test_a_library_that_compares_float32_finds_missing_values_so():
    """A column of 0.1 in double precision is missing where the estimator was told 0.1."""
    column = pa.array([0.1, 0.1 + 1e-12, 0.2])
    found = schema.column_values(Feature("x", missing=0.1), column, single_precision=True)
    assert_array_equal(found, [NAN, NAN, 0.2])


@pytest.mark.parametrize(
    ("feature", "found", "says"),
    [
        (NUMBER, pa.string(), "column 'x' is string, the model was trained on numbers"),
        (NUMBER, pa.timestamp("us"), "column 'x' is timestamp"),
        (Feature("x", missing=-9999.0), pa.float16(), "column 'x' is halffloat, which rounds -9999.0, the number for missing values"),
        (Feature("x", missing=1e6), pa.float16(), "column 'x' is halffloat, which rounds 1000000.0, the number for missing values"),
        (NUMBER, pa.date32(), "column 'x' is date32"),
        (NUMBER, pa.list_(pa.float64()), "column 'x' is list"),
        (NUMBER, pa.struct([("a", pa.int8())]), "column 'x' is struct"),
        (NUMBER, pa.dictionary(pa.int8(), pa.string()), "column 'x' is dictionary"),
        (Feature("x", perhaps_codes=True), pa.dictionary(pa.int8(), pa.int64()), "'x' is dictionary.*, .*cannot tell which: give it as numbers$"),
        (
            Feature("x", True, (10, 20), perhaps_codes=True),
            pa.int64(),
            "column 'x' is int64, .* categories or on their codes, and cannot tell which: ",
        ),
        (
            Feature("x", True, ("1", "2"), perhaps_codes=True),
            pa.int8(),
            "column 'x' is int8, .* categories or on their codes, and cannot tell which: ",
        ),
        (CODES, pa.string(), "the model was trained on category codes, since it stores no category list"),
        (CODES, pa.dictionary(pa.int8(), pa.int64()), "category codes, since it stores no category list"),
        (Feature("x", True, ("1",)), pa.bool_(), "column 'x' is bool, the model was trained on categories that are strings"),
        (WORDS, pa.float64(), "the model was trained on categories that are strings"),
        (NUMBERS, pa.string(), "the model was trained on categories that are numbers"),
        (HASHES, pa.float32(), "the model was trained on categories that are strings$"),
        (HASHES, pa.bool_(), "column 'x' is bool, .* that are strings and does not tell how it wrote booleans: give them as texts$"),
    ],
)
def test_types_that_cannot_hold_the_values_are_refused(feature, found, says):
    """Got, expected, where."""
    with pytest.raises(SchemaMismatch, match=rf"part\.parquet: .*{says}"):
        schema.check_column(feature, found, "part.parquet")


def test_columns_are_found_by_name_and_once():
    """A feature may come from the file or its path; a column that stands twice is refused, one in another case is another column."""
    columns = pa.schema([("y", pa.int8()), ("x", pa.float64()), ("z", pa.list_(pa.int8()))])
    schema.check_columns([NUMBER], ["y"], columns, (), "f")
    schema.check_columns([Feature("night")], [], columns, ("night",), "f")
    with pytest.raises(SchemaMismatch, match="f: column 'X' missing, got y, x, z"):
        schema.check_columns([Feature("X")], [], columns, (), "f")
    named = pa.schema([("carrier", pa.string())])
    with pytest.raises(SchemaMismatch, match=r"f: column 'carriier' missing, got carrier; did you mean 'carrier'\?$"):  # which is a feature too
        schema.check_columns([Feature("carrier", True, categories=("a",))], ["carriier"], named, (), "f")
    with pytest.raises(SchemaMismatch, match="f: column 'x' stands 2 times, expected once"):
        schema.check_columns([NUMBER], [], pa.schema([("x", pa.int8()), ("x", pa.int8())]), (), "f")


def test_output_columns_are_distinct():
    """Several outputs are told apart by name; an id that is called like an output is refused."""
    assert schema.output_columns(["x"], ["0"], ["id"], False, ("margin", "phi")) == (["margin"], ["phi_x"], [])
    several = schema.output_columns(["x"], ["a", "b"], [], True, ("prediction", "phi"))
    assert several == (["prediction_a", "prediction_b"], ["phi_a_x", "phi_b_x"], ["interactions_a", "interactions_b"])
    scored = schema.output_columns(["x", "gap"], ["a", "b"], [], False, ("margin", "phi"), n_scores=1)[1]
    assert scored == ["phi_a_x", "gap_a", "phi_b_x", "gap_b"]
    for taken in ("margin", "phi_x", "interactions"):
        with pytest.raises(SchemaMismatch, match=f"output column '{taken}' would stand twice"):
            schema.output_columns(["x"], ["0"], [taken], True, ("margin", "phi"))


def test_integers_are_rounded_once():
    """A library that compares float32 rounds an integer straight to it; by way of float64, this one would end up on the other side."""
    value = 2**60 + 2**36 + 1
    assert float(np.float32(float(value))) == 2.0**60
    assert schema.column_values(NUMBER, pa.array([value]), single_precision=True) == [2.0**60 + 2.0**37]
    assert schema.column_values(NUMBER, pa.array([value])) == [float(value)]


def test_decimals_that_float64_cannot_tell_apart_are_refused():
    """As categories; integers of that size are compared exactly."""
    with pytest.raises(InvalidColumn, match=r"column 'x': decimals beyond 9007199254740992 cannot be told apart, expected integers$"):
        schema.column_values(BIG, pa.array([decimal.Decimal(2**53 + 1)]))


def test_labels_may_be_missing_everywhere():
    """A column of nulls has no type of its own; numbers take it."""
    schema.check_numbers(["x"], {"x": pa.null()}, "f")
    with pytest.raises(SchemaMismatch, match=r"^f: column 'x' is string, expected numbers$"):
        schema.check_numbers(["x"], {"x": pa.string()}, "f")


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (b'{"index_columns": ["flight", {"kind": "range"}]}', ("flight",)),
        (b'{"index_columns": 1}', ()),
        (b"[]", ()),
        (b"{", ()),
        (b"\xff", ()),
    ],
)
def test_an_index_of_pandas_is_found(metadata, expected):
    """By what pandas writes beside the columns, which may be anything."""
    assert schema.index_columns(pa.schema([("flight", pa.int64())], {b"pandas": metadata})) == expected
    assert schema.index_columns(pa.schema([])) == ()


def test_types_of_columns_are_looked_at_in_the_file_alone():
    """A path has texts only, which are looked at one by one elsewhere."""
    columns = pa.schema([("x", pa.string())])
    with pytest.raises(SchemaMismatch, match="f: column 'x' is string, the model was trained on numbers"):
        schema.check_columns([NUMBER], (), columns, (), "f")
    schema.check_columns([NUMBER], (), pa.schema([]), ("x",), "f")
