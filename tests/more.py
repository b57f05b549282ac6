"""Cases that `make test` leaves to `make test-more`: it holds the same claim on others."""

import itertools
from collections.abc import Collection
from typing import Any

import pytest


def more(*cases: Any) -> list[Any]:
    """Each of the cases, a parameter's values, marked."""
    return [pytest.param(case, marks=pytest.mark.more) for case in cases]


def diagonal(*columns: Collection[Any]) -> list[Any]:
    """All combinations of parameters' values, of which `make test` holds a diagonal, or of three parameters a Latin square: each value of each."""
    width = sorted(map(len, columns))[-2]
    return [
        pytest.param(*(value for _, value in cell), marks=pytest.mark.more if sum(place for place, _ in cell) % width else ())
        for cell in itertools.product(*map(enumerate, columns))
    ]
