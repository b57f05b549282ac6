"""Nothing is open where a method has nothing to choose, or everything is given."""

from types import SimpleNamespace

from leafledger.kernels.method.open_parameters import Tuning, find_open
from leafledger.kernels.methods import METHODS
from tests.kernels.attributing import defaults


def test_what_is_open_is_found():
    """By what the method declares."""
    tuning = Tuning("rate", 10, lambda given: ("ranker", {"rate": 1.0}) if given["rate"] == "auto" else None, None, None)
    assert find_open(SimpleNamespace(tuning=tuning), {"rate": "auto"}) == ("ranker", {"rate": 1.0})
    assert find_open(SimpleNamespace(tuning=tuning), {"rate": 2.0}) is None
    assert find_open(SimpleNamespace(tuning=None), {"rate": "auto"}) is None


def test_nothing_is_open_by_default():
    """Of any method."""
    assert not any(find_open(method, defaults(name)) for name, method in METHODS.items())
