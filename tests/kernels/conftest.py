"""Settings of the tests of kernels."""

import pytest

from leafledger.kernels.trees import lookup


@pytest.fixture(params=["looked up", "walked"])
def trees(request, monkeypatch):
    """Trees as small as these are looked up; walk them as well."""
    if request.param == "walked":
        monkeypatch.setattr(lookup, "MAX_COMPARISONS", 0)
    else:
        monkeypatch.setattr(lookup, "ENTRIES_PER_NODE", 10**6)
