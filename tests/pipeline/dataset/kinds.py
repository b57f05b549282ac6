"""A feature of each kind, for tests of the columns and texts that are taken for its values."""

from leafledger.pipeline.models.catboost.cityhash import HashedCategory
from leafledger.pipeline.models.model import Feature

NUMBER = Feature("x")
CODES = Feature("x", categorical=True)
WORDS = Feature("x", categorical=True, categories=("b", "a"))
NUMBERS = Feature("x", categorical=True, categories=(10, 20))
HASHES = Feature("x", categorical=True, categories=(HashedCategory.of("b"), HashedCategory.of("3")))
BIG = Feature("x", categorical=True, categories=(2**53, 2**53 + 1))
