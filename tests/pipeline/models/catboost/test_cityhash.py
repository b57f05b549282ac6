"""CatBoost's hash of a category against published values and against the library's own hashes."""

import json

import catboost
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.pipeline.models.catboost.cityhash import DIGITS, WORDS, HashedCategory, city_hash, find_booleans, hash_texts
from tests.pipeline.models.catboost.training import SHAPE

# https://clickhouse.com/docs/native-protocol/hash has values of this version and of the later one, which differ; of nothing it is a constant.
PUBLISHED = {
    b"": 0x9AE16A3B2F90404F,
    b"Moscow": 12507901496292878638,
    b"How can you write a big system without C++?  -Paul Glick": 6237945311650045625,
}


@pytest.mark.parametrize("text", PUBLISHED)
def test_hashes_are_those_that_were_published(text):
    """All 64 bits."""
    assert city_hash(text) == PUBLISHED[text]


def hashes_of(texts, tmp_path):
    """CatBoost's own hashes of distinct texts, from a model that was trained on them."""
    pool = catboost.Pool([[text] for text in texts], np.arange(len(texts)) % 2, cat_features=[0])
    model = catboost.CatBoostRegressor(one_hot_max_size=255, **SHAPE | {"iterations": 1, "depth": 1}).fit(pool)
    model.save_model(str(tmp_path / "m"), format="json", pool=pool)
    entries = json.loads((tmp_path / "m").read_bytes())["features_info"]["cat_features_hash"]
    assert len(entries) == len(texts)
    return {entry["value"]: entry["hash"] for entry in entries}


def test_longer_texts_and_other_scripts_are_hashed_as_utf8(tmp_path):
    """Texts of one to four bytes a letter, and of several blocks of 64 bytes up to a thousand."""
    texts = [letter * n for letter in ("é", "色", "🂡") for n in (1, 2, 3, 5, 8, 16, 21, 32, 33)]
    texts += ["".join(chr(33 + (11 * n + 5 * k) % 90) for k in range(n)) for n in (255, 256, 257, 319, 320, 321, 500, 1000)]
    assert hashes_of(texts, tmp_path) == {text: HashedCategory.of(text).code for text in texts}
    assert hashes_of(texts, tmp_path) == dict(zip(texts, hash_texts(pa.array(texts)).tolist(), strict=True))


@given(value=st.integers(-(2**63), 2**63))
def test_a_category_is_the_low_half_of_the_hash_of_its_decimal_text(value):
    """Whichever way an integer comes."""
    assert HashedCategory.of(value) == HashedCategory.of(f"{value:d}") == HashedCategory(city_hash(str(value).encode()) % 2**32)


def test_hashes_are_catboosts(tmp_path):
    """CityHash64's low half for texts of every length up to 200 bytes, and booleans and integers as text."""
    texts = ["".join(chr(33 + (7 * n + 3 * k) % 90) for k in range(n)) for n in range(201)]
    found = hashes_of(texts, tmp_path)
    assert found == {text: HashedCategory.of(text).code for text in texts}
    for kind in (pa.string(), pa.large_string()):
        assert found == dict(zip(texts, hash_texts(pa.array(texts, kind)).tolist(), strict=True))
    assert HashedCategory.of(True) == HashedCategory.of(1) == HashedCategory.of("1")
    assert HashedCategory.of(-5) == HashedCategory.of("-5")


@pytest.mark.parametrize(
    ("known", "booleans"),
    [
        ((), ()),
        (("yes", "no"), ()),
        (("1", "red"), DIGITS),
        (("0",), DIGITS),
        (("True", "missing"), WORDS),
        (("False",), WORDS),
        (("1", "False"), ()),
    ],
)
def test_booleans_are_written_as_the_model_has_them(known, booleans):
    """Not told where it has neither of the two ways, or both."""
    assert find_booleans({HashedCategory.of(each).code for each in known}) == booleans


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@given(texts=st.lists(st.text(max_size=90), max_size=20), data=st.data())
def test_many_texts_are_hashed_as_each_alone(kind, texts, data):
    """Whatever their lengths and order, in slices of arrays too."""
    start = data.draw(st.integers(0, len(texts)))
    length = data.draw(st.integers(0, len(texts) - start))
    found = hash_texts(pa.array(texts, kind)[start : start + length])
    assert found.dtype == np.uint32
    assert found.tolist() == [HashedCategory.of(text).code for text in texts[start : start + length]]


def test_null_is_something():
    """And does not disturb the others."""
    found = hash_texts(pa.array(["a", None, "b" * 70, None, ""]))
    assert found[[0, 2, 4]].tolist() == [HashedCategory.of(text).code for text in ("a", "b" * 70, "")]
