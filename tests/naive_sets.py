"""Interactions of sets of players, by the definitions of their indices, in exact fractions."""

import itertools
from fractions import Fraction
from functools import cache
from math import comb, factorial

import numpy as np

from tests import naive

BERNOULLI = [Fraction(1), Fraction(-1, 2), Fraction(1, 6), Fraction(0), Fraction(-1, 30), Fraction(0), Fraction(1, 42)]


def subsets(players, most=None):
    """All sets of some players, of up to so many."""
    players = sorted(players)
    sizes = range(len(players) + 1 if most is None else min(most, len(players)) + 1)
    return [frozenset(chosen) for size in sizes for chosen in itertools.combinations(players, size)]


def _derivative(v, T, S):
    """The discrete derivative of the game by T at S."""
    return sum((-1) ** (len(T) - len(L)) * v(S | L) for L in subsets(T))


def _mean(v, T, everyone, weight):
    """The sum over coalitions S of the others of their weights, by size, and the derivative there."""
    return sum(weight(len(S)) * _derivative(v, T, S) for S in subsets(everyone - T))


def sii(v, T, everyone, order):
    n, t = len(everyone), len(T)
    return _mean(v, T, everyone, lambda s: Fraction(factorial(n - t - s) * factorial(s), factorial(n - t + 1)))


def k_sii(v, T, everyone, order):
    """Bordt and von Luxburg 2023, Theorem 8: SII of larger sets, by Bernoulli numbers."""
    return sum(BERNOULLI[len(U)] * sii(v, T | U, everyone, order) for U in subsets(everyone - T, order - len(T)))


def stii(v, T, everyone, order):
    """Sundararajan, Dhamdhere and Agarwal 2020, Equation 8."""
    n = len(everyone)
    if len(T) < order:
        return _derivative(v, T, frozenset())
    return Fraction(order, n) * _mean(v, T, everyone, lambda s: Fraction(1, comb(n - 1, s)))


def bii(v, T, everyone, order):
    return _mean(v, T, everyone, lambda s: Fraction(1, 2 ** (len(everyone) - len(T))))


def moebius(v, T, everyone, order):
    return _derivative(v, T, frozenset())


def co_moebius(v, T, everyone, order):
    return _derivative(v, T, everyone - T)


def _solve(matrix, right):
    """Solve a linear system in exact fractions, for every column of the right side."""
    rows = [[*row, *values] for row, values in zip(matrix, right, strict=True)]
    for k in range(len(rows)):
        pivot = next(i for i in range(k, len(rows)) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        scale = rows[k][k]
        rows[k] = [each / scale if each else each for each in rows[k]]
        for i in range(len(rows)):
            if i != k and rows[i][k]:
                factor = rows[i][k]
                rows[i] = [a - factor * b if b else a for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[len(rows) :] for row in rows]


def _regress(players, order, weight, exact):
    """What every coalition's value adds to the numbers of sets whose sums over subsets come nearest to the game: ``{set: {coalition: factor}}``.

    By weighted squares, exact at some coalitions.
    """
    sets, coalitions = subsets(players, order), [S for S in subsets(players) if S not in exact]
    inside = [[Fraction(T <= S) for T in sets] for S in coalitions]
    weights = [weight(len(S)) for S in coalitions]
    normal = [[sum(w * row[a] * row[b] for w, row in zip(weights, inside, strict=True)) for b in range(len(sets))] for a in range(len(sets))]
    held = [[Fraction(T <= S) for T in sets] for S in exact]
    nothing = [Fraction(0)] * len(exact)
    matrix = [[*row, *(each[a] for each in held)] for a, row in enumerate(normal)] + [[*each, *nothing] for each in held]
    right = [[*(w * row[a] for w, row in zip(weights, inside, strict=True)), *nothing] for a in range(len(sets))]
    right += [[Fraction(S == E) for S in (*coalitions, *exact)] for E in exact]
    return {T: dict(zip((*coalitions, *exact), factors, strict=True)) for T, factors in zip(sets, _solve(matrix, right), strict=False)}


@cache
def _fsii(n, order):
    """Tsai, Yeh and Ravikumar 2023, Equation 6: Shapley's weights, exact at nobody and everybody."""
    players = frozenset(range(n))
    return _regress(players, order, lambda s: Fraction(factorial(s - 1) * factorial(n - s - 1), factorial(n - 1)), (frozenset(), players))


@cache
def _fbii(n, order):
    """Tsai, Yeh and Ravikumar 2023, Section 4.2: all coalitions alike."""
    return _regress(frozenset(range(n)), order, lambda _: Fraction(1), ())


ONE_BY_ONE = {"SII": sii, "k-SII": k_sii, "STII": stii, "BII": bii, "Moebius": moebius, "Co-Moebius": co_moebius}
TOGETHER = {"FSII": _fsii, "FBII": _fbii}


def by_index(v, n_players, index, order):
    """The index of every set of up to ``order`` players, not of nobody: ``{set: number}``."""
    everyone = frozenset(range(n_players))
    sets = [T for T in subsets(everyone, order) if T]
    if index in TOGETHER:
        factors = TOGETHER[index](n_players, min(order, n_players))
        return {T: sum(factor * v(S) for S, factor in factors[T].items()) for T in sets}
    return {T: ONE_BY_ONE[index](v, T, everyone, order) for T in sets}


def by_measure(v, n_players, order, weight):
    """The same by the weights of a game value: ``weight(size, n)`` is that of a coalition of so many others among n players."""
    everyone = frozenset(range(n_players))
    return {T: _mean(v, T, everyone, lambda s, T=T: weight(s, n_players - len(T) + 1)) for T in subsets(everyone, order) if T}


def play(ensemble, row, output, background=None, group=None):
    """The game of features or, with ``group (features,)``, of groups, every value computed once."""
    v, known = naive.game(ensemble, row, output, background), {}
    group = np.arange(ensemble.n_features) if group is None else np.asarray(group)

    def of_players(players):
        if players not in known:
            known[players] = v(np.flatnonzero(np.isin(group, list(players))).tolist())
        return known[players]

    return of_players
