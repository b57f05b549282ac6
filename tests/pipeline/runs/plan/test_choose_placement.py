"""Where rows are explained if nobody says: here what the kernels are done with before a cluster has started, and nowhere else than was said."""

import dataclasses
import time

import pytest

from leafledger.kernels.methods import METHODS
from leafledger.kernels.trees.binning import BATCH
from leafledger.pipeline.cluster.placement import SERIAL, make_placement
from leafledger.pipeline.runs.plan import choose_placement as where
from tests.pipeline.running import ready

SHAPLEY = METHODS["shapley"]


@pytest.fixture(scope="module")
def prepared(example, tmp_path_factory):
    """Tables of a model."""
    return ready(example, tmp_path_factory.mktemp("where") / "run")[1].prepared


@pytest.fixture
def placement():
    """Nobody said where to work."""
    return make_placement(None, None, False)


def taking(seconds):
    """Shapley values whose kernel takes so long for a batch, the first time longer, and how often it was called."""
    calls = []

    def kernel(buffers, tables):
        calls.append(buffers.phi.shape[2])
        time.sleep(seconds if len(calls) > 1 else 0.5)
        SHAPLEY.kernel(buffers, tables)

    return dataclasses.replace(SHAPLEY, kernel=kernel), calls


def test_what_takes_kernels_less_than_a_cluster_takes_to_start_stays_here(placement, prepared, monkeypatch):
    """By what a batch takes, times the batches there are; what the first call takes, which compiles, does not count."""
    monkeypatch.setattr(where, "START_SECONDS", 1.0)
    method, calls = taking(0.1)
    assert where.choose_placement(placement, method, prepared, 3 * BATCH, where.FEW_ROWS).is_serial
    assert set(calls) == {BATCH}
    assert not where.choose_placement(placement, method, prepared, 11 * BATCH, where.FEW_ROWS).is_serial


def test_a_slow_method_is_not_measured_for_long(placement, prepared, monkeypatch):
    """One call says enough."""
    monkeypatch.setattr(where, "START_SECONDS", 0.01)
    method, calls = taking(0.2)
    assert not where.choose_placement(placement, method, prepared, 20_000, 0).is_serial
    assert len(calls) == 2


def test_nothing_is_measured_of_a_million_rows(placement, prepared, monkeypatch):
    """Reading and writing them takes as long, and kernels would be compiled for nothing."""
    monkeypatch.setattr(where, "START_SECONDS", 1e9)
    method, calls = taking(0.0)
    assert where.choose_placement(placement, method, prepared, where.MANY_ROWS, 0).is_serial
    assert calls
    calls.clear()
    assert not where.choose_placement(placement, method, prepared, where.MANY_ROWS + 1, 0).is_serial
    assert not calls


def test_nothing_is_measured_of_rows_that_take_much_memory(placement, prepared, monkeypatch):
    """A plan of thousands of classes and features would take gigabytes."""
    method, calls = taking(0.0)
    monkeypatch.setattr(where, "START_SECONDS", 1e9)
    monkeypatch.setattr(where, "SLICE_BYTES", 8 * BATCH * prepared.players.size)
    assert where.choose_placement(placement, method, prepared, 20_000, 0).is_serial
    calls.clear()
    monkeypatch.setattr(where, "SLICE_BYTES", 8 * BATCH * prepared.players.size - 1)
    assert not where.choose_placement(placement, method, prepared, 20_000, 0).is_serial
    assert not calls


@pytest.mark.parametrize(("n_rows", "n_background", "here"), [(10_000, 0, True), (9_000, 1_000, True), (9_000, 1_001, False)])
def test_nothing_is_measured_of_few_rows_or_against_a_background(placement, n_rows, n_background, here):
    """Nor are there tables where a background has to be counted for them."""
    assert where.choose_placement(placement, SHAPLEY, None, n_rows, n_background).is_serial == here


@pytest.mark.parametrize(("scheduler", "workers"), [(None, 1), ("tls://host:8786", None), (SERIAL, None)])
def test_what_was_asked_for_is_done(scheduler, workers):
    """However few rows there are."""
    placement = make_placement(scheduler, workers, False)
    assert where.choose_placement(placement, SHAPLEY, None, 1, 0) is placement
