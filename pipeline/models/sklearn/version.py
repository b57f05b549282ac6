"""The version of scikit-learn whose predictions an estimator makes."""

import sys
from typing import Any

from .skops_types import Stored

VOTES_AGAINST = (1, 3)  # since then AdaBoost counts a tree's vote against all other classes too


def find_version(model: Any) -> tuple[int, int]:
    """Return the first two numbers of the version: of an estimator from a file that which wrote it, of one in memory that which is imported."""
    if isinstance(model, Stored):
        return model.version
    major, minor, *_ = sys.modules["sklearn"].__version__.split(".")
    return int(major), int(minor)
