"""Bands of values, and where they begin and end."""

import math

import numpy as np
import pyarrow as pa

from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.runs.columns.reasons import Band, Reasons, Worded, find_codes, has_texts


def test_where_bands_begin_and_end():
    """A half-open end and a beginning at the same bound touch: neither overlaps nor leaves out."""
    assert Band(None, "t", below=1.0).high == Band(None, "t", at_least=1.0).low
    assert Band(None, "t", at_most=1.0).high == Band(None, "t", above=1.0).low
    assert Band(None, "t", at_least=1.0).low < Band(None, "t", above=1.0).low
    assert Band(None, "t", above=0.0).high == (math.inf, True)
    assert Band(None, "t", below=0.0).low == (-math.inf, False)


def test_a_band_without_conditions_is_for_all_others():
    assert Band(None, "t").for_others
    for condition in ({"above": 0.0}, {"at_most": 0.0}, {"one_of": (1.0,)}, {"missing": True}):
        assert not Band(None, "t", **condition).for_others


def test_the_default_is_for_what_has_no_words():
    low, others, default = Band("a", "low", below=0.0), Band("b", "others"), Band(None, "default")
    worded = (Worded("x", (low,)), Worded("y", (low, others)))
    reasons = Reasons("", "raises", 4, 0.0, (), default, worded)
    assert reasons.bands_of("x") == (low, default)
    assert reasons.bands_of("y") == (low, others)
    assert reasons.bands_of("z") == (default,)
    assert Reasons("", "raises", 4, 0.0, (), None, worded).bands_of("x") == (low,)


def test_values_are_equal_where_the_model_takes_them_for_equal():
    """Texts and hashes; booleans as the model has them; numbers that stand for missing."""
    assert find_codes(Feature("x", True, ("a", "b")), pa.array(["b", "c", None])).tolist()[:2] == [1, 2]
    hashed = Feature("x", True, None, hashed=True, booleans=("0", "1"))
    assert find_codes(hashed, pa.array([True])) == find_codes(hashed, pa.array(["1"]))
    assert np.isnan(find_codes(Feature("x", missing=-1.0), pa.array([-1])))
    assert [has_texts(feature) for feature in (hashed, Feature("x", True, ("a",)), Feature("x", True), Feature("x"))] == [True, True, False, False]
