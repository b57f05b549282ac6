"""CatBoost's hash of a category against published values and against the library's own hashes."""

import json

import catboost
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.models.cityhash import HashedCategory, city_hash
from tests.pipeline.models.catboosting import SHAPE

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


@given(value=st.integers(-(2**63), 2**63))
def test_a_category_is_the_low_half_of_the_hash_of_its_decimal_text(value):
    """Whichever way an integer comes."""
    assert HashedCategory.of(value) == HashedCategory.of(f"{value:d}") == HashedCategory(city_hash(str(value).encode()) % 2**32)


def test_hashes_are_catboosts(tmp_path):
    """CityHash64's low half for texts of every length up to 200 bytes, and booleans and integers as text."""
    texts = ["".join(chr(33 + (7 * n + 3 * k) % 90) for k in range(n)) for n in range(201)]
    assert hashes_of(texts, tmp_path) == {text: HashedCategory.of(text).code for text in texts}
    assert HashedCategory.of(True) == HashedCategory.of(1) == HashedCategory.of("1")
    assert HashedCategory.of(-5) == HashedCategory.of("-5")
