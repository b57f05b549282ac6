"""Buffers are used again within a thread, and summaries are laid out when somebody looks."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from leafledger import attribute, load_ensemble
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.in_memory.explain import slices
from leafledger.pipeline.in_memory.explain.slices import KEPT_ROWS, Scratch
from leafledger.pipeline.methods import summary_tables as summary_tables_
from leafledger.pipeline.methods.tables import prepare_model
from tests.pipeline.conftest import FEATURES


def test_a_thread_keeps_its_buffers(example):
    """Small ones of one size; no other thread gets them."""
    prepared, scratch = prepare_model(load_ensemble(example.model), METHODS["shapley"], {}, ()), Scratch()
    first = scratch.take(prepared, 1)
    assert scratch.take(prepared, 100) is first
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(scratch.take, prepared, 1).result() is not first
    assert scratch.take(prepared, KEPT_ROWS + 1).values.shape[1] > KEPT_ROWS
    assert scratch.take(prepared, 1) is first
    assert scratch.take(prepared, 300).values.shape[1] >= 300


def test_summaries_are_laid_out_once(example, monkeypatch):
    """And travel as plain tables."""
    found = attribute(example.model, example.frame[FEATURES][:50])
    calls, tabulate = [], summary_tables_.tabulate
    monkeypatch.setattr(slices, "tabulate", lambda *given: calls.append(given) or tabulate(*given))
    assert not calls
    assert list(found.summaries) == ["importance", "inputs"]
    assert len(found.summaries) == 2
    assert repr(found.summaries) == "Summaries(importance, inputs)"
    mean = np.abs(found.phi[:, 0]).mean(axis=0)
    np.testing.assert_allclose(found.summaries["importance"]["mean_abs"].to_numpy(), mean, rtol=1e-12)
    assert len(calls) == 2
    assert pickle.loads(pickle.dumps(found)).summaries == dict(found.summaries)
    with pytest.raises(KeyError):
        found.summaries["nothing"]
