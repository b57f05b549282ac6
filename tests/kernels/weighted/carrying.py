"""Attributions of a few rows carried background row by background row: by the kernels, and by the definition."""

import numpy as np
import pytest

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.jit.decorator import count_bytes
from leafledger.kernels.marginal import query as marginal_query
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_again, ask_background, measure_background, merge_statistics, prepare
from leafledger.kernels.quotients.quantities import KINDS
from leafledger.kernels.slices.buffers import make_buffers
from tests import naive

PLENTY = 1 << 40
LOSSES = tuple(name for name, kind in KINDS.items() if kind.labels is not None)
LABELS = {"log": np.array([1.0, 0.0, 0.25]), "poisson": np.array([0.0, 2.0, 5.0]), "gamma": np.array([0.5, 3.0, 1.0])}


def labels_for(name, n):
    """A label for each row, which the loss takes."""
    return np.resize(LABELS.get(name, np.array([1.5, -2.0, 0.0])), n)


def measured(asked, background, parts=1, n_columns=None):
    """A background's statistics, read twice, in so many parts."""
    values = background.T[asked.bins.column]
    pieces = np.array_split(values, parts, axis=1)
    first = np.cumsum([0, *(piece.shape[1] for piece in pieces)])

    def measure(query):
        return merge_statistics([measure_background(query, piece.copy(), int(at)) for at, piece in zip(first, pieces, strict=False)])

    following = ask_again(asked, measure(asked))
    counted = measure(following)
    following.check(counted, len(background))
    return counted


def prepare_carried(name, ensemble, background, quantity, group=None, kept=None, parts=1, errors=False, interactions=False, sets=None):
    """A method's tables; which subtrees are cut how finely may be said."""
    method = METHODS[name]
    with pytest.MonkeyPatch.context() as patch:
        if kept is not None:
            patch.setattr(marginal_query, "COARSE_TO_FINE", [kept])
        order = 0 if sets is None else sets.order
        asked = ask_background(
            ensemble,
            method,
            group,
            n_rows=len(background),
            budget=PLENTY,
            quantity=quantity,
            errors=errors,
            interactions=interactions,
            order=order,
        )
    parameters = {parameter.name: parameter.default for parameter in method.parameters}
    counted = measured(asked, background, parts)
    asked.check(counted, len(background))
    prepared = prepare(ensemble, method, parameters, group, background=(asked, counted), interactions=interactions, sets=sets)
    assert count_bytes(prepared) <= asked.n_bytes[0] + (1 << 20)
    return prepared


def carry(name, prepared, rows, labels=None):
    """Buffers after a few rows went through."""
    buffers = make_buffers(prepared, len(rows))
    buffers.values[:, : len(rows)] = rows.T[prepared.bins.column]
    if labels is not None:
        buffers.labels.label[: len(rows)] = labels
    attribute_batch(METHODS[name], prepared, buffers)
    return buffers


def defined(ensemble, rows, background, quantity, labels, values):
    """phi ``(n, outputs, players)`` by the definition: ``values(row, background)`` of one row against one, times the quotient, averaged."""
    found = []
    for row, label in zip(rows, labels, strict=True):
        total = 0.0
        for other in background:
            u, w = naive.margin(ensemble, row), naive.margin(ensemble, other)
            slopes = sum(term.factor(np.array([label])) * term.quotient(u, w) for term in quantity.terms)
            total = total + slopes[:, None] * values(row, other[None])
        found.append(total / len(background))
    return np.array(found)


def values_of(quantity, margins, label):
    """The quantity of margins ``(n, outputs)`` for one label."""
    return quantity.value(margins, np.array([label]))
