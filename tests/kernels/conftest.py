"""Settings of the tests of kernels."""

import pytest

from leafledger.kernels.semivalues import cover_sets
from leafledger.kernels.trees import lookup


@pytest.fixture
def walked(monkeypatch):
    """Walk all trees."""
    monkeypatch.setattr(lookup, "MAX_COMPARISONS", 0)
    monkeypatch.setattr(cover_sets, "ENTRIES_PER_NODE", 0)


@pytest.fixture(params=["looked up", "walked"])
def trees(request, monkeypatch):
    """Trees as small as these are looked up; walk them as well."""
    if request.param == "walked":
        request.getfixturevalue("walked")
    else:
        monkeypatch.setattr(lookup, "ENTRIES_PER_NODE", 10**6)
