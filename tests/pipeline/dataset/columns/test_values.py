"""The columns of a slice become numbers: their own, codes, and statistics behind them."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from leafledger.kernels.trees.binning import bin_ensemble
from leafledger.kernels.trees.statistics import ABOVE, CATEGORY, Statistics, make_directory
from leafledger.pipeline.dataset.columns.values import fill_values, read_features
from leafledger.pipeline.errors import InvalidColumn
from leafledger.pipeline.models.catboost.cityhash import NO_CATEGORY, HashedCategory
from leafledger.pipeline.models.model import Feature
from tests.trees import chain

FACTOR = 0x4906BA494954CB65
FEATURES = (Feature("unused"), Feature("city", True, (NO_CATEGORY,), hashed=True), Feature("pay"))


def key_of(city, high):
    """CalcHash of a city and of whether the pay is high."""
    code = HashedCategory.of(city).code
    key = FACTOR * (FACTOR * (code - 2**32 if code >= 2**31 else code)) % 2**64
    return FACTOR * (key + FACTOR * high) % 2**64


@pytest.fixture(scope="module")
def bins():
    """One statistic of city and high pay, known for Rome and little pay alone, where its code is 5; otherwise it is 0. The split is at 0.5."""
    key = np.array([key_of("Rome", 0)], np.uint64)
    bits, directory = make_directory(key)
    statistics = Statistics(
        source=np.array([1, 2], np.int32),
        nan_above=np.zeros(2, bool),
        element_start=np.array([0, 2]),
        element=np.array([0, 1], np.int32),
        kind=np.array([CATEGORY, ABOVE], np.uint8),
        bound=np.array([0.0, 1.5]),
        key_start=np.array([0, 1]),
        key=key,
        directory_bits=np.array([bits]),
        directory_start=np.array([0]),
        directory=directory,
        column=np.array([3], np.int32),
        projection=np.array([0], np.int32),
        code_start=np.array([0]),
        code=np.array([5, 0], np.uint8),
    )
    ensemble = chain([3], [1.0, 2.0], [1.0, 1.0], 4)
    return bin_ensemble(ensemble._replace(statistics=statistics, n_categories=np.array([0, 1, 0, 0], np.int32), single_precision=True))[0]


def test_what_statistics_are_looked_up_by_is_read(bins):
    """Also where no split asks for it; what nothing asks for is not."""
    assert [feature.name for feature in read_features(FEATURES, bins)] == ["city", "pay"]
    assert [feature.name for feature in read_features(dict(enumerate(FEATURES)), bins)] == ["city", "pay"]


def test_statistics_come_after_what_they_are_of(bins):
    """Codes of categories say whether they were ever seen; numbers are compared in single precision; rows that only pad are 0."""
    city, pay = pa.array(["Rome", "Rome", "Oslo", None, "Rome"]), pa.array([1.0, 1.5 + 1e-12, 0.0, 0.0, None])
    out = np.full((3, 8), -1.0)
    fill_values(read_features(FEATURES, bins), bins, [city, pay], out)
    assert_array_equal(out[0, :5], [0, 0, 1, np.nan, 0])
    assert_array_equal(out[1, :5], [1.0, 1.5 + 1e-12, 0.0, 0.0, np.nan])
    assert_array_equal(out[2, :5], [1, 1, 0, 0, 1])
    assert not out[:, 5:].any()


def test_texts_that_are_none_are_refused(bins):
    """By the name of their column."""
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")])
    with pytest.raises(InvalidColumn, match="column 'city'"):
        fill_values(read_features(FEATURES, bins), bins, [broken, pa.array([1.0])], np.zeros((3, 1)))


def test_a_hashed_feature_has_the_codes_of_its_own_categories(bins):
    """What is none of them has one code more; where there are none, all have it."""
    one = bin_ensemble(chain([0], [1.0, 2.0], [1.0, 1.0], 1))[0]
    city = pa.array(["Oslo", "Bern", None, "Rome"])
    for categories, codes in (((HashedCategory.of("Rome"), HashedCategory.of("Oslo")), [1, 2, np.nan, 0]), (None, [1, 1, np.nan, 1])):
        out = np.full((1, 6), -1.0)
        fill_values([Feature("city", True, categories, hashed=True)], one, [city], out)
        assert_array_equal(out[0], [*codes, 0, 0])
