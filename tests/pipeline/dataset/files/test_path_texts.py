"""A text of a path is taken for what the feature's type says, or refused where it may mean two things."""

import numpy as np
import pyarrow as pa
import pytest

from leafledger.pipeline.dataset.columns import schema
from leafledger.pipeline.dataset.files.path_texts import check_text, text_type
from leafledger.pipeline.errors import SchemaMismatch
from leafledger.pipeline.models.catboost.cityhash import NO_CATEGORY, HashedCategory
from leafledger.pipeline.models.model import Feature
from tests.pipeline.dataset.kinds import BIG, CODES, HASHES, NUMBER, NUMBERS, WORDS


@pytest.mark.parametrize(
    ("feature", "text", "value"),
    [
        (NUMBER, "04", 4),
        (NUMBER, "-1.5e3", -1500),
        (CODES, "7", 7),
        (WORDS, "a", 1),
        (WORDS, "c", 2),
        (Feature("x", True, ("01", "1")), "01", 0),
        (Feature("x", True, ("01", "1")), "1", 1),
        (NUMBERS, "020", 1),
        (BIG, str(2**53 + 1), 1),
        (Feature("x", True, (0.5, 2.0)), "2", 1),
        (HASHES, "3", 1),
    ],
)
def test_a_text_of_a_path_is_of_the_feature_s_type(feature, text, value):
    """A number where the model has numbers, and as it stands where it has texts."""
    check_text(feature, text, "f (its path)")
    assert schema.column_values(feature, pa.array([text])) == [value]


@pytest.mark.parametrize(
    ("feature", "text", "says"),
    [
        (NUMBER, "x", "column 'x' is 'x', the model was trained on numbers"),
        (NUMBERS, "1.5", "column 'x' is '1.5', the model was trained on numbers"),
        (
            Feature("x", perhaps_codes=True),
            "2",
            "column 'x' is '2', the model was trained on numbers or on a category column's codes, and cannot tell which: give it in the files",
        ),
        (
            Feature("x", True, perhaps_codes=True),
            "2",
            "column 'x' is '2', the model was trained on category codes, since it stores no category list: give them in the files, as numbers",
        ),
        (
            Feature("x", True, (10, 20), perhaps_codes=True),
            "20",
            f"column 'x' is '20', the model was trained on categories or on their codes, and cannot tell which: {schema.AS_CATEGORIES}",
        ),
        (Feature("x", True, ("1", "2")), "02", "column 'x' is '02', the model has category '2'; name the folder so"),
        (HASHES, "03", "column 'x' is '03', the model has category '3'; name the folder so"),
    ],
)
def test_a_text_of_a_path_that_may_mean_two_things_is_refused(feature, text, says):
    """No number, or zeros in front that the category does not have."""
    with pytest.raises(SchemaMismatch) as error:
        check_text(feature, text, "f (its path)")
    assert str(error.value) == f"f (its path): {says}"


LOOKED_UP = Feature("x", True, (NO_CATEGORY,), hashed=True)
BOTH = Feature("x", True, (HashedCategory.of("7"),), hashed=True)


@pytest.mark.parametrize(
    ("feature", "text", "says"),
    [
        (LOOKED_UP, "04", "'04', the model has category '4'; name the folder so"),
        (BOTH, "004", "'004', the model has category '4'; name the folder so"),
        (BOTH, "07", "'07', the model has category '7'; name the folder so"),
        (LOOKED_UP, "4", ""),
        (LOOKED_UP, "05", ""),
        (LOOKED_UP, "06", ""),
        (LOOKED_UP, "new", ""),
    ],
)
def test_a_text_of_a_path_is_looked_up_where_statistics_are(feature, text, says):
    """Among the hashes of "4", "05" and "5"; what is nothing without its zeros either is a category that was never seen."""
    hashes = np.array([HashedCategory.of(each).code for each in ("4", "05", "5")], np.uint32)
    if not says:
        check_text(feature, text, "f (its path)", hashes)
        return
    with pytest.raises(SchemaMismatch) as error:
        check_text(feature, text, "f (its path)", hashes)
    assert str(error.value) == f"f (its path): column 'x' is {says}"


def test_zeros_are_refused_where_the_categories_of_statistics_cannot_be_told():
    """No others are."""
    for text in ("4", "new", "0"):
        check_text(LOOKED_UP, text, "f (its path)", None)
    with pytest.raises(SchemaMismatch, match="column 'x' is '04', and the model does not tell whether it has that or '4'; name the folder '4' if"):
        check_text(LOOKED_UP, "04", "f (its path)", None)


def test_the_type_of_a_text_is_what_is_wanted_of_it():
    """A label's is a number where it can be."""
    assert [text_type(text) for text in ("4", "x", None)] == [pa.float64(), pa.string(), pa.null()]
