"""Columns become numbers by one rule each, whatever Arrow type carries them; types that cannot are refused by name."""

import decimal

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from pipeline.dataset import schema
from pipeline.errors import SchemaMismatch
from pipeline.models.cityhash import HashedCategory
from pipeline.models.model import Feature

NUMBER = Feature("x")
CODES = Feature("x", categorical=True)
WORDS = Feature("x", categorical=True, categories=("b", "a"))
NUMBERS = Feature("x", categorical=True, categories=(10, 20))
HASHES = Feature("x", categorical=True, categories=(HashedCategory.of("b"), HashedCategory.of("3")))
NAN = float("nan")


@pytest.mark.parametrize(
    ("feature", "column", "values"),
    [
        (NUMBER, pa.array([1.5, None, NAN, -np.inf]), [1.5, NAN, NAN, -np.inf]),
        (NUMBER, pa.array([1, None], pa.int8()), [1, NAN]),
        (NUMBER, pa.array([2**53 + 1], pa.int64()), [2.0**53]),
        (NUMBER, pa.array([2**64 - 1], pa.uint64()), [2.0**64]),
        (NUMBER, pa.array([True, False, None]), [1, 0, NAN]),
        (NUMBER, pa.array([np.float16(0.5), None], pa.float16()), [0.5, NAN]),
        (NUMBER, pa.array([decimal.Decimal("1.25"), None]), [1.25, NAN]),
        (NUMBER, pa.array([None, None]), [NAN, NAN]),
        (NUMBER, pa.array([3.5, None, 3.5]).dictionary_encode(), [3.5, NAN, 3.5]),
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
        (NUMBERS, pa.array([20.0, NAN, 10.5]), [1, NAN, 2]),
        (HASHES, pa.array(["b", "3", "c", None, "b"]), [0, 1, 2, NAN, 0]),
        (HASHES, pa.array([3, 4, None]), [1, 2, NAN]),
    ],
)
def test_columns_become_numbers(feature, column, values):
    """Numbers as they are, categories as positions in the model's list, its length where unseen, NaN where missing."""
    schema.check_column(feature, column.type, "rows")
    assert_array_equal(schema.column_values(feature, column), np.array(values, float))


@pytest.mark.parametrize(
    ("feature", "found", "says"),
    [
        (NUMBER, pa.string(), "column 'x' is string, the model was trained on numbers"),
        (NUMBER, pa.timestamp("us"), "column 'x' is timestamp"),
        (NUMBER, pa.date32(), "column 'x' is date32"),
        (NUMBER, pa.list_(pa.float64()), "column 'x' is list"),
        (NUMBER, pa.struct([("a", pa.int8())]), "column 'x' is struct"),
        (NUMBER, pa.dictionary(pa.int8(), pa.string()), "column 'x' is dictionary"),
        (CODES, pa.string(), "the model was trained on category codes, since it stores no category list"),
        (CODES, pa.dictionary(pa.int8(), pa.int64()), "category codes, since it stores no category list"),
        (WORDS, pa.float64(), "the model was trained on categories that are strings"),
        (NUMBERS, pa.string(), "the model was trained on categories that are numbers"),
        (HASHES, pa.float32(), "the model was trained on categories that are strings"),
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
    with pytest.raises(SchemaMismatch, match="f: column 'x' stands 2 times, expected once"):
        schema.check_columns([NUMBER], [], pa.schema([("x", pa.int8()), ("x", pa.int8())]), (), "f")


def test_output_columns_are_distinct():
    """Several outputs are told apart by name; an id that is called like an output is refused."""
    assert schema.output_columns(["x"], ["0"], ["id"], False, "phi") == (["margin"], ["phi_x"], [])
    several = schema.output_columns(["x"], ["a", "b"], [], True, "phi")
    assert several == (["margin_a", "margin_b"], ["phi_a_x", "phi_b_x"], ["interactions_a", "interactions_b"])
    for taken in ("margin", "phi_x", "interactions"):
        with pytest.raises(SchemaMismatch, match=f"output column '{taken}' would stand twice"):
            schema.output_columns(["x"], ["0"], [taken], True, "phi")
