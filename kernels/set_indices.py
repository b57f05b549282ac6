"""Interaction indices of sets of players: each is a row of weights on Möbius coefficients, and here a table of numbers.

With mu(U) the Möbius coefficients of a game (Harsanyi's dividends), every index in use is I_T = sum over U that contain T of w(|T|, |U| - |T|)
mu(U). A leaf is a product of factors that are linear in t, so the same I_T is a sum over quadrature points t of weights omega with

    sum of omega t^m = w(|T|, m)    for every m up to the leaf's players less |T|

which fixes as many weights as there are equations, whatever the points. Gauss–Legendre points keep them small. They are solved in exact fractions of
the points as they are stored. Weights of coalitions, of which b others are present and a absent, are sums of omega t^b (1 - t)^a, exact too.

The precision of sums with signed weights is that of the sum of their magnitudes: 1 for SII and BII, about 2 for FSII, up to 12 for Möbius
coefficients and STII of paths of 40 players, but for k-SII of orders 3 and 4 it is 9 for paths of 6 players, 111 of 14, 301 of 20 and 1,973 of 40,
and for FBII of order 3 and 4 12 and 22, 106 and 405, 260 and 1,239, 1,376 and 10,344.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import comb
from typing import NamedTuple

import numpy as np

from .errors import InvalidParameters
from .game_values import LEAST_WEIGHT, GameValue, interior, weigh_by_value

EXACT = 1e-14  # error of a rule with fewer points than equations, relative to the magnitudes of its weights
Weigh = Callable[[int, int, int], Fraction]  # ``(size, beyond, top)``: of a set of a size in coalitions with more players; the largest size asked for


@dataclass(frozen=True, slots=True)
class Sets:
    """What sets of players are asked for: of up to how many, and by which index."""

    order: int
    index: str  # of INDICES; "" where the method's own measure weighs them


class SetRule(NamedTuple):
    """Quadrature rule of sets of players, with weights for every size of a set."""

    nodes: np.ndarray  # (q,) float64, inside (0, 1)
    weights: np.ndarray  # (order, q) float64


@dataclass(frozen=True, slots=True)
class SetValue:
    """How sets of players are weighed, in both games."""

    order: int
    adds_up: bool  # all sets of a row add up to its margin less the base value
    rule: Callable[[int], SetRule]  # from the most players of a path
    coalitions: Callable[[int], np.ndarray]  # from n to (order, n, n) float64: weights [size - 1, b, a] of b others present and a absent, a + b < n


class Index(NamedTuple):
    """An interaction index."""

    meaning: str  # one line for people
    weigh: Weigh
    adds_up: bool = False


@cache
def _bernoulli(n: int) -> Fraction:
    """Return the Bernoulli number of n, where that of 1 is -1/2."""
    return Fraction(1) if n == 0 else -sum((comb(n + 1, k) * _bernoulli(k) for k in range(n)), Fraction(0)) / (n + 1)


def _k_sii(size: int, beyond: int, top: int) -> Fraction:
    """Bordt and von Luxburg 2023: SII of larger sets, up to the top, dealt out by Bernoulli numbers."""
    return sum((_bernoulli(r) * comb(beyond, r) / (beyond - r + 1) for r in range(min(top - size, beyond) + 1)), Fraction(0))


def _stii(size: int, beyond: int, top: int) -> Fraction:
    """Sundararajan, Dhamdhere and Agarwal 2020."""
    return Fraction(1, comb(top + beyond, top)) if size == top else Fraction(beyond == 0)


def _fsii(size: int, beyond: int, top: int) -> Fraction:
    """Tsai, Yeh and Ravikumar 2023, Theorem 19."""
    if size + beyond <= top:
        return Fraction(beyond == 0)
    faithful = Fraction(size * comb(top, size) * comb(size + beyond - 1, top), (top + size) * comb(size + beyond + top - 1, top + size))
    return (beyond == 0) + (-1) ** (top - size) * faithful


def _fbii(size: int, beyond: int, top: int) -> Fraction:
    """Tsai, Yeh and Ravikumar 2023, Theorem 13."""
    if size + beyond <= top:
        return Fraction(beyond == 0)
    return (beyond == 0) + (-1) ** (top - size) * Fraction(comb(beyond - 1, top - size), 2**beyond)


INDICES: dict[str, Index] = {
    "SII": Index("Shapley interaction index: the mean effect of a set beyond its parts", lambda _, beyond, __: Fraction(1, beyond + 1)),
    "k-SII": Index("n-Shapley values: SII, with what larger sets have dealt out so that all add up", _k_sii, adds_up=True),
    "STII": Index("Shapley-Taylor: smaller sets alone, all else with sets of the highest order; all add up", _stii, adds_up=True),
    "FSII": Index("faithful Shapley interactions: the sum over sets that comes nearest to the game; all add up", _fsii, adds_up=True),
    "BII": Index("Banzhaf interaction index: the mean over all coalitions of the others", lambda _, beyond, __: Fraction(1, 2**beyond)),
    "FBII": Index("faithful Banzhaf interactions: as FSII, with all coalitions alike", _fbii),
    "Moebius": Index("Möbius coefficients: what a set has alone, beyond its parts", lambda _, beyond, __: Fraction(beyond == 0)),
    "Co-Moebius": Index("co-Möbius coefficients: what a set adds to all others, beyond its parts", lambda _, __, ___: Fraction(1)),
}


def _solve(nodes: tuple[Fraction, ...], moments: list[Fraction]) -> np.ndarray:
    """Return the weights ``(q,)`` at the nodes whose first q moments are these, by Lagrange's polynomials."""
    master = [Fraction(1)]  # coefficients of the product of (t - node), the lowest first
    for node in nodes:
        master = [below - node * here for below, here in zip([Fraction(0), *master], [*master, Fraction(0)], strict=True)]
    weights = []
    for node in nodes:
        quotient, last = [], Fraction(0)
        for coefficient in reversed(master[1:]):
            last = coefficient + last * node
            quotient.append(last)
        quotient.reverse()
        at_node = Fraction(0)
        for coefficient in reversed(quotient):
            at_node = coefficient + at_node * node
        weights.append(float(sum(c * moment for c, moment in zip(quotient, moments, strict=True)) / at_node))
    return np.array(weights)


def _miss(rule: SetRule, exact: np.ndarray, n_players: int) -> float:
    """Return the largest error of a product of factors between 0 and 1, over sizes, relative to the weights' magnitudes."""
    errors = []
    for size, weights in enumerate(rule.weights[:n_players], 1):
        others = n_players - size
        b = np.arange(others + 1)
        found = (weights * rule.nodes ** b[:, None] * (1 - rule.nodes) ** (others - b[:, None])).sum(axis=1)
        times = np.array([float(comb(others, k)) for k in range(others + 1)])
        errors.append(times @ np.abs(found - exact[size - 1, b, others - b]) / np.abs(weights).sum())
    return float(max(errors))


@cache
def _coalitions(index: str, order: int, n: int) -> np.ndarray:
    """Return the weights of coalitions by an index, ``(order, n, n)``."""
    weights = np.zeros((order, n, n))
    for size in range(1, order + 1):
        row = [INDICES[index].weigh(size, beyond, order) for beyond in range(n)]
        for absent in range(n):
            weights[size - 1, : n - absent, absent] = [float(w) for w in row]
            row = [here - after for here, after in pairwise(row)]
    return weights


@cache
def _rule(index: str, order: int, n_players: int) -> SetRule:
    """Return the rule of an index with the fewest points that is exact."""
    exact = _coalitions(index, order, n_players)

    def solve(q: int) -> SetRule:
        nodes = (np.polynomial.legendre.leggauss(q)[0] + 1) / 2
        points = tuple(map(Fraction, nodes.tolist()))
        moments = [[INDICES[index].weigh(size, beyond, order) for beyond in range(q)] for size in range(1, order + 1)]
        return SetRule(nodes, np.array([_solve(points, row) for row in moments]))

    solved = map(solve, sorted({1, (n_players + 1) // 2, n_players}))
    rule = next(rule for rule in solved if rule.nodes.size == n_players or _miss(rule, exact, n_players) <= EXACT)
    most = np.abs(rule.weights).sum(axis=1).max()
    if most * LEAST_WEIGHT > 1:
        raise InvalidParameters(
            f"index {index!r} of order {order} on paths of {n_players} players has weights of up to {most:.3g} that cancel, expected less than "
            f"{1 / LEAST_WEIGHT:g}, or digits are lost; ask for a lower order"
        )
    return rule


def of_index(index: str, order: int) -> SetValue:
    """Weigh sets of up to ``order`` players by one of INDICES."""
    return SetValue(order, INDICES[index].adds_up, lambda n: _rule(index, order, n), lambda n: _coalitions(index, order, n))


def of_value(value: GameValue, order: int) -> SetValue:
    """Weigh sets of up to ``order`` players by the measure of a game value: the mean over coalitions of others, each present with probability t."""

    def rule(n_players: int) -> SetRule:
        nodes, weights = interior(value(n_players), n_players)
        return SetRule(nodes, np.tile(weights, (order, 1)))

    return SetValue(order, False, rule, lambda n: np.tile(weigh_by_value(value)(n), (order, 1, 1)))
