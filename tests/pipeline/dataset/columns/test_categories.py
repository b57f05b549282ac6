"""Codes are positions among the model's categories, by values and by CatBoost's hashes."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from leafledger.pipeline.dataset.columns.categories import encode, encode_hashes, hash_values, is_text, say_codes
from leafledger.pipeline.models.catboost.cityhash import HashedCategory
from leafledger.pipeline.models.model import Feature
from tests.pipeline.running import as_model
from tests.trees import one_tree

NAN = np.nan


@pytest.mark.parametrize(
    ("values", "categories", "codes"),
    [
        (pa.array(["b", None, "c", "a", "a"]), ("a", "b"), [1, NAN, 2, 0, 0]),
        (pa.array([7, None, 8]), ("7", "8"), [0, NAN, 1]),
        (pa.array([True, False, None]), ("False", "True"), [1, 0, NAN]),
        (pa.array([1.5, NAN, 2.0, None]), (2, 1.5), [1, NAN, 0, NAN]),
        (pa.array([-0.0, 0.0, -1.0]), (-1, 0), [1, 1, 0]),
        (pa.array([-0.0, 0.0, 0.5]), (-0.0, 0.5), [0, 0, 1]),
        (pa.array(["-0.0", "0"]), (1.5, 0.0), [1, 1]),
        (pa.array([2**53 + 1, 2**53]), (2**53, 2**53 + 1), [1, 0]),
        (pa.array([1, 2, None]), (1.5, 2.0), [2, 1, NAN]),
        (pa.array(["1.5", None, "2"]), (2, 1.5), [1, NAN, 0]),
        (pa.array([str(2**53 + 1), None]), (2**53, 2**53 + 1), [1, NAN]),
        (pa.array(["x", None, "z"]), (HashedCategory.of("z"), HashedCategory.of("x")), [1, NAN, 0]),
        (pa.array([3, 4, None]), (HashedCategory.of("4"),), [1, 0, NAN]),
    ],
    ids=[
        *("texts", "integers by text", "booleans", "numbers", "a negative zero", "a negative zero of the model", "a negative zero of a path"),
        *("beyond float64", "fractions", "path", "integers of a path", "hashes", "of integers"),
    ],
)
def test_codes_are_positions(values, categories, codes):
    """One more than the last where a value is no category, NaN where it is missing."""
    assert_array_equal(encode(values, categories), codes)


@pytest.mark.parametrize("kind", [pa.decimal32(9, 1), pa.decimal64(18, 1), pa.decimal128(38, 1), pa.decimal256(70, 1)])
def test_decimals_of_any_width_are_numbers(kind):
    """Narrow ones too, of which Arrow knows hardly more than their order."""
    values = pa.array([Decimal("1.5"), None, Decimal(-2), Decimal(3)], kind)
    assert_array_equal(encode(values, (-2, 1.5)), [1, NAN, 0, 2])


@pytest.mark.parametrize("kind", [pa.decimal64(18, 0), pa.decimal128(38, 0), pa.decimal256(70, 0)])
def test_decimals_that_float64_cannot_tell_apart_are_refused(kind):
    """On either side of zero."""
    assert_array_equal(encode(pa.array([2**53, -(2**53)], kind), (2**53, 1)), [0, 2])
    for value in (2**53 + 1, -(2**53) - 1):
        with pytest.raises(ValueError, match=r"^decimals beyond 9007199254740992 cannot be told apart, expected integers$"):
            encode(pa.array([1, value, None], kind), (1, 2))


@pytest.mark.parametrize("large", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_are_hashed_once_each(large):
    """However they are laid out, cut and encoded; missing ones have no hash."""
    texts = ["Ärztin", "", None, "a" * 70, "Ärztin", "b"]
    expected = [NAN if text is None else HashedCategory.of(text).code for text in texts]
    column = pa.array(texts).cast(large)
    assert is_text(column.type)
    assert_array_equal(hash_values(column), expected)
    assert_array_equal(hash_values(column[2:5]), expected[2:5])
    plain = pa.array(texts)
    assert_array_equal(hash_values(plain.dictionary_encode()), expected)
    nulls = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1], pa.int8()), pa.array(["b", None]))
    assert_array_equal(hash_values(nulls), [HashedCategory.of("b").code, NAN, NAN, NAN])


def test_numbers_are_hashed_by_their_texts():
    """Integers of any width as decimals, booleans as 1 and 0 or as the model has them, and nothing where all are missing."""
    for kind in (pa.int8(), pa.uint64(), pa.int32()):
        assert_array_equal(hash_values(pa.array([1, 0], kind)), [HashedCategory.of("1").code, HashedCategory.of("0").code])
    assert_array_equal(hash_values(pa.array([-12])), [HashedCategory.of("-12").code])
    booleans = pa.array([True, False, None])
    assert_array_equal(hash_values(booleans), hash_values(pa.array(["1", "0", None])))
    assert_array_equal(hash_values(booleans, ("False", "True")), hash_values(pa.array(["True", "False", None])))
    assert_array_equal(encode(booleans, (HashedCategory.of("True"),), ("False", "True")), [0, 1, NAN])
    with pytest.raises(ValueError, match=r"^booleans, of which the model does not tell whether it has them as 0 and 1 or as False and True"):
        hash_values(booleans, ())
    assert_array_equal(hash_values(pa.nulls(2)), [NAN, NAN])


def test_hashes_that_are_not_listed_are_none():
    """In any order of the list."""
    listed = tuple(map(HashedCategory, (9, 2, 5)))
    assert_array_equal(encode_hashes(np.array([5.0, 9.0, 3.0, NAN, 2.0, 10.0]), listed), [2, 0, 3, NAN, 1, 3])


def test_codes_of_categories_without_a_list_are_said():
    """Of features that training may have seen other values of; ten of many."""
    model = as_model(one_tree([0, -1, -1], [0.0, 0.0, 0.0], [1, -1, -1], [2, -1, -1], [0.0, 1.0, 2.0], [2.0, 1.0, 1.0], 14))
    assert say_codes(model) == ""
    lacking = [Feature(f"c{j}", True, perhaps_codes=True) for j in range(12)]
    others = (Feature("own", True), Feature("x", perhaps_codes=True))
    said = "codes of categories, not values, since the model has no list of them: "
    assert say_codes(replace(model, features=(*others, *lacking[:2]))) == said + "c0, c1"
    assert say_codes(replace(model, features=(*others, *lacking))) == said + "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 2 more"
