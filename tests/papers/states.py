"""What the published algorithms keep of a path: each a way to write the product of 1 + gamma y over its features, or its sums over coalitions.

All rows at once, ``(n, entries)``, in the precision of the rows; gammas are ``(n, 1)``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True, slots=True)
class State:
    """``add(state, gamma)`` adds a feature to a state, ``remove`` takes it away again; ``read`` gives the value of what is left, ``(n, 1)``.

    ``dummies``: the state starts with as many features of gamma 1 as a path can have, and a new feature takes the place of one of them.
    ``finish(state, distinct)`` brings the state of a leaf with so many distinct features to the form in which leaves are added.
    """

    start: Callable[[np.ndarray], Any]  # of the rows
    add: Callable[[Any, np.ndarray], Any]
    remove: Callable[[Any, np.ndarray], Any]
    read: Callable[[Any], np.ndarray]
    dummies: bool = False
    finish: Callable[[Any, int], Any] = lambda state, _: state
    plus: Callable[[Any, Any], Any] = lambda a, b: a + b
    scale: Callable[[Any, float], Any] = lambda state, factor: state * factor


def _add_feature(state, delta):
    """AddFeature of Karczmarz et al. 2022, Lemma 4: one entry more."""
    size = state.shape[1] + 1
    k = np.arange(size, dtype=state.dtype)
    edge = np.zeros((len(state), 1), state.dtype)
    return ((size - 1 - k) * np.hstack((state, edge)) + k * delta * np.hstack((edge, state))) / state.dtype.type(size)


def _delete_feature(state, delta):
    """DelFeature, its inverse: the bidiagonal system solved forward, the last equation left over."""
    number, size = state.dtype.type, state.shape[1]
    out = np.zeros((len(state), size - 1), state.dtype)
    before = np.zeros(len(state), state.dtype)
    for k in range(size - 1):
        before = (number(size) * state[:, k] - number(k) * delta[:, 0] * before) / number(size - 1 - k)
        out[:, k] = before
    return out


def coalition_sums(size: int) -> State:
    """Entry k is the sum over coalitions of k features, each weighed as in a Shapley value; ``size`` dummies to begin with.

    The vector of TreeShap-K (Li, Yu and Low 2026, Alg. 5) and of Karczmarz et al. 2022, Section 7.
    """
    return State(
        start=lambda rows: np.full((len(rows), size + 1), 1 / (size + 1), rows.dtype),
        add=_add_feature,
        remove=_delete_feature,
        read=lambda state: state.sum(axis=1, keepdims=True),
        dummies=True,
    )


def banzhaf_sum() -> State:
    """The mean over all coalitions, one number (Karczmarz et al. 2022, Lemma 6)."""
    return State(
        start=lambda rows: np.ones((len(rows), 1), rows.dtype),
        add=lambda state, delta: state * (1 + delta) / 2,
        remove=lambda state, delta: 2 * state / (1 + delta),
        read=lambda state: state,
    )


def _remove_difference(state, gamma):
    out = state.copy()
    for k in range(1, state.shape[1]):
        out[:, k] -= (gamma[:, 0] - 1) * out[:, k - 1]
    return out


def differences(size: int) -> State:
    """Coefficients of the product of 1 + (gamma - 1) t, integrated over [0, 1]: Linear TreeShap V1 (Li, Yu and Low 2026, Alg. 6)."""

    def add(state, gamma):
        out = state.copy()
        out[:, 1:] += (gamma - 1) * state[:, :-1]
        return out

    return State(
        start=lambda rows: np.eye(1, size + 1, dtype=rows.dtype).repeat(len(rows), axis=0),
        add=add,
        remove=_remove_difference,
        read=lambda state: (state / np.arange(1, size + 2, dtype=state.dtype)).sum(axis=1, keepdims=True),
    )


def gradients(nodes: np.ndarray, weights: np.ndarray) -> State:
    """The product of 1 - t + t gamma at the nodes t of a quadrature: TreeGrad-Shap, TreeGrad with one node (Li, Yu and Low 2026, Alg. 1, 8)."""

    def factor(gamma):
        return 1 - nodes + nodes * gamma

    return State(
        start=lambda rows: np.ones((len(rows), nodes.size), rows.dtype),
        add=lambda state, gamma: state * factor(gamma),
        remove=lambda state, gamma: state / factor(gamma),
        read=lambda state: (state @ weights)[:, None],
    )


def chebyshev(size: int) -> np.ndarray:
    """The nodes of Linear TreeShap, ``(size,)``: Chebyshev's of the second kind, ascending from -1 to 1."""
    return -np.cos(np.pi * np.arange(size) / (size - 1)) if size > 1 else np.ones(1)


def unit_roots(size: int) -> np.ndarray:
    """The nodes of TreeProb, ``(size,)``: equally spaced on the unit circle, from 1."""
    return np.exp(2j * np.pi * np.arange(size) / size)


def shapley_coefficients(size: int) -> np.ndarray:
    """q ``(size,)``: a polynomial of degree ``size - 1`` times q, coefficient by coefficient, is a Shapley value's sum over coalitions."""
    return np.array([1 / (size * comb(size - 1, k)) for k in range(size)])


def _read_weights(nodes):
    """From a polynomial's values at as many nodes as it has coefficients to its product with q: q times the inverse Vandermonde matrix."""
    return np.linalg.inv(np.vander(nodes, increasing=True)).T @ shapley_coefficients(nodes.size)


def padded_polynomial(nodes: np.ndarray) -> State:
    """The product of 1 + gamma y at the nodes, every leaf brought to one degree by a power of 1 + y: TreeProb (Li, Yu and Low 2026, Alg. 4)."""
    size = nodes.size
    weights = _read_weights(nodes)
    return State(
        start=lambda rows: np.ones((len(rows), size), nodes.dtype),
        add=lambda state, gamma: state * (1 + gamma * nodes),
        remove=lambda state, gamma: state / (1 + gamma * nodes),
        read=lambda state: (state @ weights).real[:, None],
        finish=lambda state, distinct: state * (1 + nodes) ** (size - distinct),
    )


class Polynomial(NamedTuple):
    """Values at the nodes, and the degree."""

    values: np.ndarray
    degree: int


def tracked_polynomial(nodes: np.ndarray) -> State:
    """The same without padding: a polynomial keeps its degree, and is read at as many of the first nodes as it has coefficients.

    Linear TreeShap as it is implemented (Li, Yu and Low 2026, Appendix C, Eq. 20).
    """
    weights = [_read_weights(nodes[:degree]) if degree else None for degree in range(nodes.size + 1)]

    def plus(a, b):
        degree = max(a.degree, b.degree)
        return Polynomial(sum(p.values * (1 + nodes) ** (degree - p.degree) for p in (a, b)), degree)

    return State(
        start=lambda rows: Polynomial(np.ones((len(rows), nodes.size), nodes.dtype), 0),
        add=lambda state, gamma: Polynomial(state.values * (1 + gamma * nodes), state.degree + 1),
        remove=lambda state, gamma: Polynomial(state.values / (1 + gamma * nodes), state.degree - 1),
        read=lambda state: (state.values[:, : state.degree + 1] @ weights[state.degree + 1]).real[:, None],
        plus=plus,
        scale=lambda state, factor: Polynomial(state.values * factor, state.degree),
    )
