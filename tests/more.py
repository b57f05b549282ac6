"""Cases that `make test` leaves to `make test-more`: it holds the same claim on others."""

from typing import Any

import pytest


def more(*cases: Any) -> list[Any]:
    """Each of the cases, a parameter's values, marked."""
    return [pytest.param(case, marks=pytest.mark.more) for case in cases]
