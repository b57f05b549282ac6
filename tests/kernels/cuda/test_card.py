"""What runs on a card, and what is said of the rest."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from leafledger.kernels.cuda import card as module
from leafledger.kernels.cuda import decorator
from leafledger.kernels.cuda.decorator import SIMULATED
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, measure_background
from tests.kernels.cuda.card import on, on_card, tables
from tests.trees import chain, grown


@pytest.fixture(autouse=True)
def few_threads(monkeypatch):
    monkeypatch.setattr(module, "THREADS", (4, 2))
    monkeypatch.setattr(module, "_CARDS", [])


def test_there_is_a_card():
    """The simulator's, or a real one."""
    assert module.has_card()


def test_what_compiles_kernels_cannot_be_imported(monkeypatch):
    """numba-cuda 0.30 asks NumPy 2.5 for a function that it does not have any more."""

    def fail(_):
        raise AttributeError("module 'numpy' has no attribute 'row_stack'")

    monkeypatch.setattr(module, "import_module", fail)
    with pytest.raises(ImportError, match="no attribute 'row_stack'"):
        module.has_card.__wrapped__()


def test_a_machine_without_a_card(monkeypatch):
    monkeypatch.setattr(decorator.cuda, "is_available", lambda: False)
    assert not module.has_card.__wrapped__()


@pytest.mark.parametrize(
    ("name", "given", "group"), [("two_step", {}, [0, 0, 1]), ("probabilistic", {"sizes": (1.0, 0.0, 0.0)}, None), ("r2", {}, None)]
)
def test_methods_of_processors(name, given, group):
    """Methods that are no semivalues, or not of single players, are named in the refusal."""
    prepared = tables(name, grown(np.random.default_rng(0), 1, 2, 3), None if group is None else np.array(group), **given)
    assert module.find_obstacle(METHODS[name], prepared) == f"method {name!r} runs on processors only"


def test_values_against_a_background_run_on_processors():
    """Sums over a background's patterns are no walks."""
    ensemble = chain(np.arange(14), np.arange(15.0), np.ones(15), 14)
    query = ask_background(ensemble, METHODS["shapley"], n_rows=8, budget=1 << 24)
    values = np.random.default_rng(1).normal(size=(14, 8))[query.bins.column]
    prepared = tables("shapley", ensemble, background=(query, measure_background(query, values)))
    assert module.find_obstacle(METHODS["shapley"], prepared) == "values against a background run on processors only, but for symmetric trees"


def test_more_features_than_a_record_can_name(monkeypatch):
    """A record has 22 bits for the feature."""
    monkeypatch.setattr(module, "MOST_FEATURES", 3)
    prepared = tables("shapley", grown(np.random.default_rng(0), 1, 3, 3))
    assert module.find_obstacle(METHODS["shapley"], prepared) == "the model's splits have 3 features, at most 2 are possible"


@pytest.mark.parametrize(("name", "given"), [("owen", {}), ("asymmetric", {"sequence": (1, 0, 2)})])
def test_values_within_groups_run_on_processors(name, given):
    """Members of a group are present with a probability of their own."""
    prepared = tables(name, grown(np.random.default_rng(0), 2, 4, 6), np.array([0, 0, 0, 1, 1, 2]), **given)
    assert "Owen values" in module.find_obstacle(METHODS[name], prepared)


@pytest.mark.skipif(SIMULATED, reason="the simulator knows one thread at a time")
def test_threads_of_a_process_share_the_tables():
    """Slices explained at once by several threads have the bits of one after the other, and tables are sent once."""
    rng = np.random.default_rng(4)
    prepared = tables("shapley", grown(rng, 2, 4, 6))
    method, slices = on_card(METHODS["shapley"], prepared), [rng.normal(size=(3, 6)) for _ in range(4)]
    expected = [on(method, prepared, rows)[0] for rows in slices]
    with ThreadPoolExecutor(2) as pool:
        for found, wanted in zip(pool.map(lambda rows: on(method, prepared, rows)[0], slices), expected, strict=True):
            assert_array_equal(found, wanted)
    assert len(module._CARDS) == 1
