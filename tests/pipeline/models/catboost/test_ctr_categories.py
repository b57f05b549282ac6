"""Categories that statistics know, told back from their keys: those that CatBoost was trained on."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from leafledger.kernels.trees.statistics import ABOVE, CATEGORY, EQUAL, NO_STATISTICS
from leafledger.pipeline.models.catboost.cityhash import hash_texts
from leafledger.pipeline.models.catboost.ctr_categories import MOST_BITS, known_hashes
from leafledger.pipeline.models.catboost.loader import LOADER
from tests.pipeline.models.catboost.training import counted, counting

WORD, FACTOR = 2**64, 0x4906BA494954CB65
HASHES = (0, 1, 2**31 - 1, 2**31, 2**32 - 1)


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("complexity", [1, 4])
def test_the_categories_of_training_are_told(complexity, integers):
    """All of them and no other ones; of a feature of two categories, whose splits the model lists, none."""
    frame, target = counted(integers=integers)
    model = counting("regression", frame, target, max_ctr_complexity=complexity)
    ensemble, features, *_ = LOADER.parse(LOADER.serialise(model), "m")
    found = {features[j].name: hashes for j, hashes in known_hashes(ensemble.statistics).items()}
    assert {"c0", "c1"} <= found.keys() <= {"c0", "c1", "c2", "c3"}
    for name, hashes in found.items():
        assert_array_equal(hashes, [] if name == "c3" else np.unique(hash_texts(pa.array(frame[name].unique().astype(str)))))


def make_key(parts):
    """CatBoost's CalcHash of signed hashes and bits."""
    key = 0
    for part in parts:
        key = FACTOR * (key + FACTOR * part) % WORD
    return key


def signed(code):
    return code - (2**32 if code >= 2**31 else 0)


def of_one_projection(elements, keys):
    """Statistics of pairs of a source, which is a column of twice its number, and a kind."""
    return NO_STATISTICS._replace(
        source=np.arange(0, 20, 2, dtype=np.int32),
        element_start=np.array([0, len(elements)]),
        element=np.array([source for source, _ in elements], np.int32),
        kind=np.array([kind for _, kind in elements], np.uint8),
        key_start=np.array([0, len(keys)]),
        key=np.array(sorted(keys), np.uint64),
    )


@pytest.mark.parametrize("n_bits", [0, 1, 2, MOST_BITS])
def test_bits_behind_a_category_do_not_hide_it(n_bits):
    """Whatever they are, also where the hash is negative as CatBoost takes it."""
    patterns = np.random.default_rng(0).integers(0, 2, (len(HASHES), n_bits)).tolist()
    keys = [make_key([signed(code), *bits]) for code, bits in zip(HASHES, patterns, strict=True)]
    found = known_hashes(of_one_projection([(3, CATEGORY), *((4, ABOVE), (5, EQUAL), *[(4, ABOVE)] * MOST_BITS)[:n_bits]], keys))
    assert_array_equal(found.pop(6), HASHES)
    assert all(hashes.size == 0 for hashes in found.values())


def test_what_stands_beside_other_categories_is_not_told():
    """Nor what too many bits are behind; and numbers have no categories."""
    assert known_hashes(of_one_projection([(1, CATEGORY), (2, CATEGORY)], [make_key([signed(code), 1]) for code in HASHES])) == {}
    assert known_hashes(of_one_projection([(1, CATEGORY), *[(4, ABOVE)] * (MOST_BITS + 1)], [5])) == {}
    assert known_hashes(NO_STATISTICS) == {}
