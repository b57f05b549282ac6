"""Cases that `make test` leaves to `make test-more`: it holds the same claim on others."""

import itertools
from collections.abc import Collection, Sequence
from typing import Any

import pytest


def more(*cases: Any) -> list[Any]:
    """Each of the cases, a parameter's values, marked."""
    return [pytest.param(case, marks=pytest.mark.more) for case in cases]


def one_in(n: int, cases: Sequence[Any]) -> list[Any]:
    """The first of every n cases as it is, the others marked."""
    return [case if i % n == 0 else pytest.param(case, marks=pytest.mark.more) for i, case in enumerate(cases)]


def diagonal(*columns: Collection[Any]) -> list[Any]:
    """All combinations of parameters' values, of which `make test` holds a diagonal, or of three parameters a Latin square: each value of each."""
    width = sorted(map(len, columns))[-2]
    return [
        pytest.param(*(value for _, value in cell), marks=pytest.mark.more if sum(place for place, _ in cell) % width else ())
        for cell in itertools.product(*map(enumerate, columns))
    ]
