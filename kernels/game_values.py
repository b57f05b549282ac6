"""Game values as quadrature rules: semivalues integrate the game's gradient over [0, 1], exactly for trees.

At the point t every feature is present with probability t. A path of d distinct features makes the integrand a polynomial of degree
d - 1 in t, so a Gauss rule of ceil(d / 2) nodes is exact (Li, Yu and Low 2026, TreeGrad-Shap, with Gauss instead of fixed nodes).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .errors import InvalidParameters

LEAST_WEIGHT = 1e-6  # inverse of the largest total of signed weights: beyond it digits are lost
LEAST_NORM = 1e-14  # stopping norm of Lanczos' method: moments would change by its square
LAST_ABSCISSA = 6.08  # last abscissa of the tanh-sinh rule: beyond it t or 1 - t would underflow
SETTLED = 1e-12  # error allowed in a density's moments, relative to its total variation
MOST_GROWTH = 100.0  # mean of 1 / t + 1 / (1 - t), which bounds the digits lost in divisions by factors; Gauss-Legendre rules of 40 points have 17
FINEST = 1 << 6  # largest rule, in multiples of the first rule's nodes: resolves peaks as narrow as 5e-4, and detects those of 1e-4


class Quadrature(NamedTuple):
    """Quadrature rule: nodes in [0, 1] and weights that sum to one; those of a signed measure may be negative."""

    nodes: np.ndarray  # (q,) float64
    weights: np.ndarray  # (q,) float64


GameValue = Callable[[int], Quadrature]  # from the maximal number of players on a path


def shapley(n_players: int) -> Quadrature:
    """Return the Gauss–Legendre rule on [0, 1], for a uniform density: the Shapley value.

    Parameters
    ----------
    n_players : int
        distinct players on a path, at most; the rule is exact for trees with such paths
    """
    return beta(n_players, 1.0, 1.0)


def banzhaf(n_players: int, p: float) -> Quadrature:  # noqa: ARG001 - every game value takes the number of players
    """Return the one-node rule at ``p``: the weighted Banzhaf value, with every other player present with probability p.

    1/2 gives the Banzhaf value, 0 the effect of joining the empty coalition, 1 that of leaving the grand coalition.

    Parameters
    ----------
    n_players : int
        not needed, one node is always exact
    p : float
        from 0 to 1
    """
    return Quadrature(np.array([p]), np.ones(1))


def _gauss(diagonal: np.ndarray, beside: np.ndarray) -> Quadrature:
    """Compute the Gauss rule of a Jacobi matrix (Golub and Welsch 1969) from its diagonal ``(q,)`` and off-diagonal ``(q - 1,)``."""
    from scipy.linalg import eigh_tridiagonal  # a tenth of a second to import, which a one-node rule does not need

    nodes, vectors = eigh_tridiagonal(diagonal, beside)
    weights = vectors[0] ** 2
    return Quadrature(np.clip(nodes, 0.0, 1.0), weights / weights.sum())


def beta(n_players: int, alpha: float, beta: float) -> Quadrature:
    """Return the Gauss–Jacobi rule of the density t^(beta - 1) (1 - t)^(alpha - 1): Beta(alpha, beta) of Kwon and Zou 2022.

    Exact with as few nodes as the Shapley value, Beta(1, 1). A large alpha weighs small coalitions, a large beta large ones. The recurrence
    coefficients are those of the Jacobi polynomials (Gautschi 2004, Table 1.1), shifted to [0, 1].

    Parameters
    ----------
    n_players : int
        distinct players on a path, at most
    alpha, beta : float
        any numbers above 0
    """
    both, m = alpha + beta, np.arange(max(0, (n_players - 1) // 2), dtype=float)  # m = n - 1, so that exponents near 0 keep their digits
    s = 2 * m + both
    diagonal = np.append(beta / both, (1 + (beta - alpha) * (both - 2) / (s * (s + 2))) / 2)
    squares = (m + 1) * (m + alpha) * (m + beta) * (m - 1 + both) / (s * s * (s * s - 1))
    squares[:1] = alpha * beta / (both**2 * (both + 1))  # n = 1: the general formula's vanishing factors cancel
    return _gauss(diagonal, np.sqrt(squares))


def _jacobi_matrix(t: np.ndarray, mass: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute the Jacobi matrix of a discrete measure up to ``order``: its diagonal and off-diagonal.

    Lanczos' method with every vector orthogonalised twice; ``t`` and ``mass (atoms,)`` are the measure.
    """
    basis = np.zeros((order, t.size))
    basis[0] = np.sqrt(mass)
    diagonal, beside = [float(mass @ t)], []
    for i in range(1, order):
        vector = t * basis[i - 1]
        for _ in range(2):
            vector -= (basis[:i] @ vector) @ basis[:i]
        norm = float(np.linalg.norm(vector))
        if norm < LEAST_NORM:
            break
        basis[i] = vector / norm
        beside.append(norm)
        diagonal.append(float(basis[i] ** 2 @ t))
    return np.array(diagonal), np.array(beside)


def _reduce(n_players: int, t: np.ndarray, mass: np.ndarray) -> Quadrature:
    """Reduce a positive measure of total one, atoms ``t`` and ``mass (atoms,)``, to its Gauss rule."""
    order = max(1, (n_players + 1) // 2)
    t, mass = t[mass > 0], mass[mass > 0]
    return Quadrature(t, mass) if t.size <= order else _gauss(*_jacobi_matrix(t, mass, order))


def measure(n_players: int, atoms: npt.ArrayLike) -> Quadrature:
    """Return the rule of any measure on [0, 1]: the other players are present with probability t, drawn from the measure.

    More atoms than ceil(n_players / 2) are reduced to the measure's Gauss rule of that many nodes, exact for the polynomials of a path (Golub and
    Welsch 1969; Jacobi matrix by Lanczos' method, Gautschi 2004). A signed measure has such a rule for each sign.

    Parameters
    ----------
    n_players : int
        distinct players on a path, at most
    atoms : (m, 2) float64
        every row a point t in [0, 1] and its weight, of either sign; weights are scaled to sum to one, and have a sum above zero
    """
    t, where = np.unique(np.asarray(atoms, np.float64)[:, 0], return_inverse=True)
    mass = np.bincount(where.reshape(-1), np.asarray(atoms, np.float64)[:, 1])
    mass = mass / mass.sum()
    if (mass >= 0).all():
        return _reduce(n_players, t, mass)
    signs = (1, np.maximum(mass, 0.0)), (-1, np.maximum(-mass, 0.0))
    rules = [(sign * part.sum(), _reduce(n_players, t, part / part.sum())) for sign, part in signs]
    return Quadrature(np.concatenate([rule.nodes for _, rule in rules]), np.concatenate([total * rule.weights for total, rule in rules]))


def polyline_atoms(n_players: int, points: npt.ArrayLike) -> np.ndarray:
    """Turn a piecewise linear density into atoms of a measure, by a Gauss–Legendre rule on every piece.

    Parameters
    ----------
    n_players : int
        distinct players on a path, at most
    points : (m, 2) float64
        every row a point t in [0, 1] and the height there, of either sign; t ascends, twice the same t is a jump, and outside of the points the
        density is zero

    Returns
    -------
    atoms : (atoms, 2) float64
    """
    t, height = np.asarray(points, np.float64).T
    nodes, weights = np.polynomial.legendre.leggauss(n_players // 2 + 1)  # exact for a linear density times a polynomial of degree n_players - 1
    share, length = (nodes[:, None] + 1) / 2, np.diff(t)
    where = t[:-1] + share * length
    mass = weights[:, None] / 2 * length * ((1 - share) * height[:-1] + share * height[1:])
    return np.stack((where.ravel(), mass.ravel()), axis=1)


def _chebyshev_moments(n_players: int, t: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Compute moments by Chebyshev polynomials on [0, 1] (which stay in [-1, 1]) up to degree max(n_players - 1, 0)."""
    x, now, after = 2 * t - 1, mass, (2 * t - 1) * mass
    moments = [now.sum()]
    for _ in range(1, n_players):
        moments.append(after.sum())
        now, after = after, 2 * x * after - now
    return np.array(moments)


def density_atoms(n_players: int, density: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """Turn a density function into atoms of a measure by the tanh-sinh rule (Takahasi and Mori 1974), accurate to SETTLED.

    The density may be infinite at the ends, as t^-0.9, and is smooth elsewhere. Rules are refined; the first whose moments agree with those of the
    finest rule is taken, and a density without any is refused.

    Parameters
    ----------
    n_players : int
        distinct players on a path, at most
    density : callable
        from arrays t and 1 - t, ``(nodes,) float64``, to heights ``(nodes,)``, finite, of either sign; it takes 1 - t as well since next to 1
        the difference has lost its digits

    Returns
    -------
    atoms : (atoms, 2) float64

    Raises
    ------
    InvalidParameters
        the function fails, a height is no number, too much of the density is next to 0 or 1, or it has jumps, kinks, or peaks that are too narrow
    """
    n = int(LAST_ABSCISSA * (64 + n_players // 16))  # resolves most densities, and peaks as narrow as n_players^-1/2
    u = np.linspace(-LAST_ABSCISSA, LAST_ABSCISSA, 2 * n * FINEST + 1)
    t, rest = 1 / (1 + np.exp(-np.pi * np.sinh(u))), 1 / (1 + np.exp(np.pi * np.sinh(u)))
    try:
        found = np.asarray(density(t, rest))
    except Exception as error:  # a caller's function may raise anything
        says = " ".join(str(error).split())[:200]
        raise InvalidParameters(f"parameter 'density' is a function that fails: {says}, expected one that takes arrays of t and of 1 - t") from error
    if found.shape not in ((), t.shape) or found.dtype.kind not in "biuf":
        raise InvalidParameters(f"parameter 'density' makes {found.dtype} of shape {found.shape}, expected heights of shape {t.shape}")
    height = found * np.ones_like(t)
    if not np.isfinite(height).all():
        where = np.argmin(np.isfinite(height))
        raise InvalidParameters(f"parameter 'density' is {height[where]} at t = {t[where]:.6g}, expected finite heights")
    mass = height * (np.pi * LAST_ABSCISSA / n) * np.cosh(u) * t * rest  # weights of the first rule's nodes
    least = SETTLED * np.abs(mass).sum() / FINEST
    if max(abs(mass[0]), abs(mass[-1])) * n / LAST_ABSCISSA > least:
        raise InvalidParameters("parameter 'density' is too high next to 0 or 1 to be integrated there; give 'atoms' at 0 or 1")
    moments = _chebyshev_moments(n_players, t, mass / FINEST)
    every = FINEST
    while every > 1:
        atoms = t[::every], mass[::every] * (every / FINEST)
        if (np.abs(_chebyshev_moments(n_players, *atoms) - moments) <= least).all():
            return np.stack(atoms, axis=1)
        every //= 2
    raise InvalidParameters("parameter 'density' is not smooth enough to be integrated as a function; give it as a polyline, or as 'atoms'")


def interior(rule: Quadrature, n_terms: int) -> Quadrature:
    """Move a rule into the open interval (0, 1), where no factor vanishes, exact for polynomials of ``n_terms`` coefficients.

    By barycentric interpolation at the Gauss–Legendre nodes (Wang and Xiang 2012).

    Parameters
    ----------
    rule : Quadrature
        returned as it is where its nodes are well inside
    """
    with np.errstate(divide="ignore"):
        growth = np.abs(rule.weights) @ (1 / rule.nodes + 1 / (1 - rule.nodes))
    if growth <= MOST_GROWTH:
        return rule
    x, gauss = np.polynomial.legendre.leggauss(n_terms)
    nodes, apart = (x + 1) / 2, rule.nodes[:, None] - (x + 1) / 2
    barycentric = (-1.0) ** np.arange(n_terms) * np.sqrt((1 - x * x) * gauss)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = barycentric / apart
        shares /= shares.sum(axis=1, keepdims=True)
    on_node = (apart == 0).any(axis=1)
    shares[on_node] = apart[on_node] == 0
    return Quadrature(nodes, rule.weights @ shares)


def thin_sizes(sizes: np.ndarray, n_players: int) -> np.ndarray:
    """Derive the size distributions for all numbers of players up to ``n_players``, removing null players one by one.

    Parameters
    ----------
    sizes : (N,) float64
        probability that a player joins a coalition of k of the N - 1 others (Weber 1988); any finite numbers

    Returns
    -------
    thinned : triangular float64
        row d - 1, from d (d - 1) / 2 on, is the distribution among d players, ``(d,)``
    """
    rows = []
    while sizes.size:
        if sizes.size <= n_players:
            rows.append(sizes)
        m = sizes.size - 1
        k = np.arange(m)
        sizes = (m - k) / max(m, 1) * sizes[:-1] + (k + 1) / max(m, 1) * sizes[1:]
    return np.concatenate([np.zeros(0), *reversed(rows)])


def size_rule(sizes: np.ndarray) -> GameValue:
    """Return the rules of a value given by the sizes of coalitions: signed measures with the same probabilities of sizes.

    Among n players the distribution of sizes has n numbers, and so many nodes determine a measure on them: the weights solve a linear system of
    Bernstein's polynomials at Chebyshev's points.

    Parameters
    ----------
    sizes : (N,) float64, as ``thin_sizes`` takes them, of sum 1

    Returns
    -------
    GameValue
        of at most N players

    Raises
    ------
    InvalidParameters
        on a path are so many players that weights would lose digits
    """

    def value(n_players: int) -> Quadrature:
        n = max(1, min(n_players, sizes.size))
        k, nodes = np.arange(n), (1 - np.cos((np.arange(n) + 0.5) * np.pi / n)) / 2
        weights = np.linalg.solve(_binomial(n - 1)[:, None] * nodes ** k[:, None] * (1 - nodes) ** (n - 1 - k[:, None]), thin_sizes(sizes, n)[-n:])
        if not np.abs(weights).sum() < 1 / LEAST_WEIGHT:
            raise InvalidParameters(
                f"sizes of coalitions of {n} players on a path, as a measure, have weights that cancel too much, expected fewer players"
            )
        return Quadrature(nodes, weights / weights.sum())

    return value


def _binomial(n: int) -> np.ndarray:
    """Return the binomial coefficients of n, ``(n + 1,) float64``."""
    from scipy.special import binom

    return binom(n, np.arange(n + 1))


Weighing = Callable[[int], np.ndarray]  # from n players to the weights ``[b, a]`` of coalitions with b others present and a absent, a + b < n


def weigh_by_value(value: GameValue) -> Weighing:
    """Weigh coalitions by a game value: integrals of t^b (1 - t)^a."""

    def weigh(n_players: int) -> np.ndarray:
        rule, power = value(n_players), np.arange(n_players)[:, None]
        return (rule.weights * rule.nodes**power) @ ((1 - rule.nodes) ** power).T

    return weigh


def weigh_by_size(sizes: np.ndarray) -> Weighing:
    """Weigh coalitions by their size.

    Parameters
    ----------
    sizes : (N,) float64, as ``thin_sizes`` takes them

    Returns
    -------
    Weighing
        0 for more players than there are
    """

    from scipy.special import binom

    def weigh(n_players: int) -> np.ndarray:
        weights, most = np.zeros((n_players, n_players)), min(n_players, sizes.size)
        thinned = thin_sizes(sizes, most)
        for m in range(most):
            b = np.arange(m + 1)
            weights[b, m - b] = thinned[m * (m + 1) // 2 + b] / binom(m, b)
        return weights

    return weigh
