"""Condition numbers of what the published algorithms invert: how far a solution may be off, in units of the right-hand side's rounding."""

from fractions import Fraction
from math import prod

import numpy as np

from tests.papers.states import chebyshev, unit_roots


def _condition(matrix, inverse):
    """The 2-norm's; from an inverse free of rounding, since one found in float64 would hide all conditions above 1e16."""
    return float(np.linalg.norm(matrix, 2) * np.linalg.norm(inverse, 2))


def _bidiagonal(diagonal, below):
    """Condition of the matrix with these entries on and below the diagonal. Its inverse is products alone, so that nothing cancels in it."""
    inverse = np.diag(1 / diagonal)
    for i in range(1, diagonal.size):
        inverse[i, :i] = -below[i - 1] / diagonal[i] * inverse[i - 1, :i]
    return _condition(np.diag(diagonal) + np.diag(below, -1), inverse)


def deletion(size: int) -> float:
    """The system DelFeature of TreeShap-K solves, at gamma = 1 (Li, Yu and Low 2026, Eq. 26)."""
    k = np.arange(size)
    return _bidiagonal((size - k) / (size + 1), k[1:] / (size + 1))


def difference(size: int, gamma: float) -> float:
    """The system Linear TreeShap V1 solves (Li, Yu and Low 2026, Eq. 34)."""
    return _bidiagonal(np.ones(size), np.full(size - 1, gamma - 1))


def chebyshev_vandermonde(size: int) -> float:
    """The Vandermonde matrix of Linear TreeShap. Its inverse holds the coefficients of the Lagrange polynomials, found in whole numbers."""
    nodes = chebyshev(size)
    exact = [Fraction(float(node)) for node in nodes]
    scale = max(node.denominator for node in exact)
    whole = [int(node * scale) for node in exact]  # nodes are binary fractions: polynomials in scale * y have whole coefficients
    product = [1]  # of y - node over all nodes, highest power first
    for node in whole:
        product = [here - node * above for above, here in zip([0, *product], [*product, 0], strict=True)]
    inverse = np.empty((size, size))
    for i, node in enumerate(whole):
        quotient, carry = [], 0
        for coefficient in product[:-1]:
            carry = coefficient + node * carry
            quotient.append(carry)
        at_node = prod(node - other for other in whole if other != node)
        inverse[:, i] = [float(Fraction(c * scale**k, at_node)) for k, c in enumerate(reversed(quotient))]
    return _condition(np.vander(nodes, increasing=True), inverse)


def unit_vandermonde(size: int) -> float:
    """The Vandermonde matrix of TreeProb, whose inverse is its conjugate over ``size``."""
    matrix = np.vander(unit_roots(size), increasing=True)
    return _condition(matrix, matrix.conj() / size)
