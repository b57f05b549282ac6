"""What becomes of rows in weighted games: how the games are put together for each, and what that adds up to."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..quotients.nodes import rise_of
from ..quotients.quantities import Quantity, decode
from ..slices.buffers import BASE, REACH, RISE, TOTAL, Buffers, Prepared, Weighted
from ..slices.labels import Labels


def _find_labels(quantity: Quantity, labels: Labels) -> np.ndarray:
    """Return the labels, and one that every loss takes where a row has none."""
    return np.where(labels.missing | ~quantity.takes(labels.label), 1.0, labels.label) if quantity.labelled else labels.label


def _mix(weighted: Weighted, margin: np.ndarray, labels: Labels, ends: np.ndarray) -> np.ndarray:
    """Return what each weighted game counts for each row, ``(outputs, K, n)``, and overwrite ``ends`` but for bounds of margins in the reach."""
    quantity, nodes = decode(weighted.code), weighted.nodes[0]
    label, factors = _find_labels(quantity, labels), np.zeros((margin.shape[0], nodes.margin.shape[1], margin.shape[1]))
    ends[:] = 0.0
    for k, shift in enumerate(nodes.shift):
        size, own = int(nodes.size[k]), margin[k] - shift
        start, asked = nodes.margin[k, 0], label - shift if quantity.centred else label
        ends[k, BASE] = quantity.value(np.array([start]), asked)
        ends[k, TOTAL] = quantity.value(own, asked)
        for j, term in enumerate(quantity.terms):
            factor, slopes = term.factor(asked), term.quotient(own[None], nodes.margin[k, :size, None])
            factors[k, :size] += factor * slopes
            ends[k, BASE] += factor * weighted.rises[k, j]
            ends[k, RISE] += factor * (rise_of(term, own, start) - weighted.rises[k, j])
            ends[k, REACH] += np.abs(factor) * np.abs(slopes).max(axis=0)
    return factors


def _add_games(tables: tuple[Any, ...], play: Callable[[Any, np.ndarray], None], found: np.ndarray, scratch: np.ndarray, factors: np.ndarray) -> None:
    """Overwrite ``found (outputs, m, n)`` with all weighted games, each times what it counts for a row; ``play`` overwrites ``scratch`` with one."""
    found[:] = 0.0
    n_nodes = factors.shape[1]
    width = len(tables) // n_nodes
    for number, each in enumerate(tables):
        column, k = divmod(number, n_nodes)
        some = slice(None) if width == 1 else slice(column, column + 1)  # a game of one column of leaf values has one output
        play(each, scratch)
        scratch[some] *= factors[some, k, None]
        found[some] += scratch[some]


def carry_rows(prepared: Prepared, buffers: Buffers, play: Callable[[Any, Buffers], None]) -> None:
    """Overwrite attributions, also those without each lot of the background, interactions, and the ends.

    Parameters
    ----------
    buffers : Buffers
        with bins and margins, and labels where the quantity is a loss
    play : callable
        ``(tables, buffers)`` overwrites ``buffers.phi`` by the method's kernel
    """

    def attribute(tables: Any, out: np.ndarray) -> None:
        play(tables, buffers._replace(phi=out))

    def interact(tables: Any, out: np.ndarray) -> None:
        out[:] = 0.0
        tables.add(buffers.bins, out, buffers.n_rows)

    with np.errstate(over="ignore", invalid="ignore"):
        for lot, tables in enumerate(prepared.without.tables):
            factors = _mix(tables, buffers.margin, buffers.labels, buffers.ends)
            _add_games(tables.tables, attribute, buffers.without[lot], buffers.scratch, factors)
        factors = _mix(prepared.weighted, buffers.margin, buffers.labels, buffers.ends)
        _add_games(prepared.weighted.tables, attribute, buffers.phi, buffers.scratch, factors)
        _add_games(prepared.pairs.tables.tables, interact, buffers.pairs, buffers.scratch_pairs, factors)
        buffers.ends[:, REACH] *= prepared.bound[:, None]


def find_carried_misses(values: np.ndarray, buffers: Buffers, n_rows: int) -> np.ndarray:
    """Measure each row's additivity residual.

    Parameters
    ----------
    values : (outputs, m, n) float64
        attributions, or interactions, that have to add up
    buffers : Buffers
        as ``carry_rows`` left them
    n_rows : int
        how many of the rows count, the first

    Returns
    -------
    (outputs, n_rows) float64
        as fractions of the scale of a row's own errors: its largest quotient times the margin's bound
    """
    with np.errstate(invalid="ignore"):
        missed = np.abs(values[:, :, :n_rows].sum(axis=1) - buffers.ends[:, RISE, :n_rows])
        return missed / np.maximum(buffers.ends[:, REACH, :n_rows], np.finfo(np.float64).tiny)


def is_loss(weighted: Weighted) -> bool:
    """Return whether attributions are of a loss, which depends on a row's label.

    Parameters
    ----------
    weighted : Weighted
        perhaps of nothing
    """
    return bool(weighted.tables) and decode(weighted.code).labelled


def find_mean(weighted: Weighted) -> np.ndarray:
    """Compute the background's mean of a quantity: the base value of all rows.

    Returns
    -------
    (outputs,) float64
        NaN for a loss, of which each row has its own
    """
    quantity, nodes = decode(weighted.code), weighted.nodes[0]
    if quantity.labelled:
        return np.full(len(nodes.margin), np.nan)
    factors = np.array([float(term.factor(np.zeros(1))[0]) for term in quantity.terms])
    return quantity.value(nodes.margin[:, 0] + nodes.shift, np.zeros(1)) + weighted.rises @ factors
