"""Weighted backgrounds in the place of background rows: quotients of all rows from those of a few margins.

Carried background row by background row, a row's attributions of a quantity g are its attributions of the margin against each background row b alone,
times the quotient R(u, w) = (g(u) - g(w)) / (u - w) of both margins, averaged over b (Lundberg et al. 2020). R is smooth and of low numerical rank,

    R(u, w) = sum over k of R(u, w_k) L_k(w)

so these are K marginal games, in which background row b weighs L_k(w of b), each times R(u, w_k). The margins w_k, and as many conditions ``row``
that determine L, are chosen by elimination with complete pivoting on a grid of both ranges of margins. Each row of the grid is scaled by its largest
entry: so errors are relative to a row's own values, also where probabilities are saturated. L solves the triangular systems of that elimination.

All curves of a quantity share one set of margins. Weights are whole numbers, so that no order of adding them counts: ``2**exponent`` stands for one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InvalidParameters
from .quantities import Quantity, Term

GRID = 200  # points of each range
MOST = 32  # margins of a quantity, at most
LEFT = 1e-13  # what elimination may leave, of a row's largest entry
MISSED = 1e-10  # error allowed between the points of the grid
FARTHEST = 700.0  # scaled margins beyond which exponentials leave float64
HEADROOM = 61  # bits of a sum of weights


class Nodes(NamedTuple):
    """The margins of every output's weighted backgrounds, and how weights follow from a background row's margin."""

    margin: np.ndarray  # (outputs, K) float64, less the shift
    size: np.ndarray  # (outputs,) int64, how many of the K are in use; others have no weight
    row: np.ndarray  # (outputs, K) float64, margins of the conditions, less the shift
    term: np.ndarray  # (outputs, K) int64, terms of the conditions
    scale: np.ndarray  # (outputs, K) float64, of the conditions
    lower: np.ndarray  # (outputs, K, K) float64, unit lower triangle
    upper: np.ndarray  # (outputs, K, K) float64, upper triangle
    shift: np.ndarray  # (outputs,) float64, margin that others are taken from; 0 of quantities that are not centred
    exponent: np.ndarray  # (1,) int64, of weights
    rise_exponent: np.ndarray  # (outputs, terms) int64, of the sums of curves


def _spread(low: float, high: float) -> np.ndarray:
    """Return the points of a range, closer at its ends, which are among them."""
    return (low + high) / 2 - (high - low) / 2 * np.cos(np.pi * np.arange(GRID) / (GRID - 1))


def _stack(terms: Sequence[Term], u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the quotients of all terms, ``(terms * u.size, w.size)``, and what scales each row."""
    found = np.concatenate([term.quotient(u[:, None], w[None]) for term in terms])
    return found, 1.0 / np.maximum(np.abs(found).max(axis=1), np.finfo(np.float64).tiny)


def _eliminate(scaled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Choose rows and columns by complete pivoting, until nothing above ``LEFT`` remains."""
    rest, rows, columns = scaled.copy(), list[int](), list[int]()
    while len(rows) < MOST:
        row, column = divmod(int(np.abs(rest).argmax()), rest.shape[1])
        if not abs(rest[row, column]) > LEFT and rows:
            break
        rows.append(row)
        columns.append(column)
        rest -= rest[:, column : column + 1] * (rest[row : row + 1] / rest[row, column])
    return np.array(rows), np.array(columns)


def _factor(chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factor a matrix whose pivots stand in order, into a unit lower and an upper triangle."""
    upper, lower = chosen.copy(), np.eye(len(chosen))
    for k in range(len(chosen)):
        lower[k + 1 :, k] = upper[k + 1 :, k] / upper[k, k]
        upper[k + 1 :] -= lower[k + 1 :, k, None] * upper[k]
        upper[k + 1 :, k] = 0.0
    return lower, upper


def _bits(number: float) -> int:
    return int(np.frexp(number)[1])


class _Output(NamedTuple):
    """What is chosen for one output, see Nodes."""

    margin: np.ndarray
    row: np.ndarray
    term: np.ndarray
    scale: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def _weigh(terms: Sequence[Term], chosen: _Output, w: np.ndarray) -> np.ndarray:
    """Solve for the weights of margins, ``(K, n)``."""
    found = np.stack([s * terms[int(t)].quotient(u, w) for u, t, s in zip(chosen.row[:, None], chosen.term, chosen.scale, strict=True)])
    for k in range(len(found)):
        for known in range(k):
            found[k] -= chosen.lower[k, known] * found[known]
    for k in range(len(found) - 1, -1, -1):
        for known in range(k + 1, len(found)):
            found[k] -= chosen.upper[k, known] * found[known]
        found[k] /= chosen.upper[k, k]
    return found


def _choose(terms: Sequence[Term], rows: tuple[float, float], background: tuple[float, float]) -> _Output:
    """Choose the margins of one output, and verify them between the points of the grid."""
    w, u = _spread(*background), np.concatenate((_spread(*rows), _spread(*background)))
    found, scale = _stack(terms, u, w)
    picked, columns = _eliminate(found * scale[:, None])
    lower, upper = _factor((found * scale[:, None])[np.ix_(picked, columns)])
    chosen = _Output(w[columns], u[picked % u.size], picked // u.size, scale[picked], lower, upper)
    u, w = (u[1:] + u[:-1]) / 2, (w[1:] + w[:-1]) / 2
    found, scale = _stack(terms, u, w)
    at_nodes = np.concatenate([term.quotient(u[:, None], chosen.margin[None]) for term in terms])
    missed = np.abs(at_nodes @ _weigh(terms, chosen, w) - found).max(axis=1) * scale
    if not missed.max() <= MISSED:
        raise InvalidParameters(
            f"margins of the background's rows are from {background[0]:.4g} to {background[1]:.4g}, too far apart to be carried row by row"
        )
    return chosen


def _fill(width: int, values: np.ndarray) -> np.ndarray:
    """Lay a vector or a square matrix into a larger one, the identity elsewhere, so that outputs of fewer margins have no weight there."""
    if values.ndim == 2:
        held = np.eye(width)
        held[: len(values), : len(values)] = values
        return held
    return np.concatenate((values, np.full(width - values.size, values[0] if values.dtype == np.float64 else 0, values.dtype)))


def choose_nodes(quantity: Quantity, rows: np.ndarray, background: np.ndarray, n_rows: int) -> Nodes:
    """Choose the margins of weighted backgrounds, once, for all rows and all parts of the background.

    Parameters
    ----------
    rows : (outputs, 2) float64, margin units
        the smallest and largest margin that the model can have
    background : (outputs, 2) float64, margin units
        the smallest and largest margin of the background's rows
    n_rows : int
        of the background

    Returns
    -------
    Nodes
        of as many margins as the output that needs most

    Raises
    ------
    InvalidParameters
        margins of the background lie too far apart, or are not finite
    """
    if not np.isfinite(background).all():
        raise InvalidParameters("a margin of the background's rows is infinite or NaN")
    terms, farthest = quantity.terms, FARTHEST / max(abs(term.scale) for term in quantity.terms)
    shift = background.mean(axis=1) if quantity.centred else np.zeros(len(background))
    chosen, exponent, rise_exponent = list[_Output](), list[int](), list[list[int]]()
    for of_rows, of_background, taken in zip(rows, background, shift, strict=True):
        low, high = (of_background - taken).tolist()
        reach = np.array([min(low, of_rows[0] - taken), max(high, of_rows[1] - taken)])
        if not quantity.polynomial:
            if max(-low, high) > farthest:
                raise InvalidParameters(f"margins of the background are from {low:.4g} to {high:.4g}, beyond what probabilities or exponentials have")
            reach = np.clip(reach, -farthest, farthest)
        made = _choose(terms, (float(reach[0]), float(reach[1])), (low, high))
        points = _spread(low, high)
        most = 2.0 * np.abs(_weigh(terms, made, points)).max()  # between the points it is hardly more
        rises = [2.0 * np.abs(rise_of(term, points, made.margin[0])).max() for term in terms]
        chosen.append(made)
        exponent.append(HEADROOM - _bits(most * n_rows))
        rise_exponent.append([HEADROOM - _bits(max(rise, np.finfo(np.float64).tiny) * n_rows) for rise in rises])
    width = max(made.margin.size for made in chosen)
    margin, row, term, scale, lower, upper = (np.stack([_fill(width, values) for values in each]) for each in zip(*chosen, strict=True))
    size = np.array([made.margin.size for made in chosen])
    return Nodes(margin, size, row, term, scale, lower, upper, shift, np.array([min(exponent)]), np.array(rise_exponent))


def rise_of(term: Term, margin: np.ndarray, start: float) -> np.ndarray:
    """Compute how far a term's curve rises from one margin to others, without loss of digits.

    Parameters
    ----------
    margin : (n,) float64
    start : float

    Returns
    -------
    (n,) float64
    """
    return term.quotient(margin, np.array([start])) * (margin - start)


def weigh_rows(quantity: Quantity, nodes: Nodes, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute what background rows weigh in every weighted background, and how far their curves rise from its first margin.

    Parameters
    ----------
    margin : (outputs, n) float64, margin units

    Returns
    -------
    weights : (outputs, K, n) int64
        ``2**exponent`` stands for one
    rises : (outputs, terms, n) int64
        ``2**rise_exponent`` stands for one
    """
    terms, (outputs, n) = quantity.terms, margin.shape
    weights, rises = np.zeros((outputs, nodes.margin.shape[1], n), np.int64), np.zeros((outputs, len(terms), n), np.int64)
    for k in range(outputs):
        size, own = int(nodes.size[k]), margin[k] - nodes.shift[k]
        chosen = _Output(*(values[k, :size] for values in (nodes.margin, nodes.row, nodes.term, nodes.scale, nodes.lower, nodes.upper)))
        weights[k, :size] = np.rint(np.ldexp(_weigh(terms, chosen, own), int(nodes.exponent[0])))
        for j, term in enumerate(terms):
            rises[k, j] = np.rint(np.ldexp(rise_of(term, own, chosen.margin[0]), int(nodes.rise_exponent[k, j])))
    return weights, rises
