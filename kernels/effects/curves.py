"""Partial dependence as step functions of one axis' states, or of two axes'.

    PD(z) = base + sum over leaves of value * [z leads to the leaf] * share of the background that passes all other conditions of its path

(Friedman 2001, Eq. 51). Leaves are added where their runs of states begin, and taken off where they end; running sums are the curve.
"""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..method.jackknife import standard_errors
from .axes import Nodes, Runs


class Curve(NamedTuple):
    """A partial dependence, in margin units."""

    value: np.ndarray  # (outputs, states) float64, or (outputs, states of the first axis, of the second)
    error: np.ndarray  # of the same shape: standard errors of the background as a sample, NaN where it was not dealt out


@jit
def _add_steps(nodes: Nodes, runs: Runs, weight: np.ndarray, out: np.ndarray) -> None:
    """Add every leaf's steps to ``out (lots, outputs, states + 1)``, by ``weight (lots, nodes)``."""
    for v in range(nodes.feature.size):
        for r in range(runs.start[v], runs.start[v + 1]):
            for lot in range(weight.shape[0]):
                for k in range(nodes.value.shape[1]):
                    step, output = weight[lot, v] * nodes.value[v, k], nodes.output[nodes.tree[v]] + k
                    out[lot, output, runs.first[r]] += step
                    out[lot, output, runs.stop[r]] -= step


@jit
def _add_boxes(nodes: Nodes, runs: Runs, others: Runs, weight: np.ndarray, out: np.ndarray) -> None:
    """Add every leaf's boxes to ``out (lots, outputs, states + 1, states of the other axis + 1)``."""
    for v in range(nodes.feature.size):
        for r in range(runs.start[v], runs.start[v + 1]):
            for s in range(others.start[v], others.start[v + 1]):
                for lot in range(weight.shape[0]):
                    for k in range(nodes.value.shape[1]):
                        step, output = weight[lot, v] * nodes.value[v, k], nodes.output[nodes.tree[v]] + k
                        out[lot, output, runs.first[r], others.first[s]] += step
                        out[lot, output, runs.stop[r], others.first[s]] -= step
                        out[lot, output, runs.first[r], others.stop[s]] -= step
                        out[lot, output, runs.stop[r], others.stop[s]] += step


def _finish(sums: np.ndarray, sizes: np.ndarray, base: np.ndarray) -> Curve:
    """Turn sums of every lot into means of all rows, and their standard errors by leaving out each lot in turn."""
    total, n = sums.sum(axis=0), sizes.sum()
    value = total / n + base.reshape(-1, *(1,) * (total.ndim - 1))
    if len(sums) == 1:
        return Curve(value, np.full(value.shape, np.nan))
    without = ((total - lot) / (n - size) for lot, size in zip(sums, sizes, strict=True))
    return Curve(value, standard_errors(np.stack([*without]), total / n))


def draw_curve(nodes: Nodes, runs: Runs, weight: np.ndarray, sizes: np.ndarray, base: np.ndarray, n_states: int) -> Curve:
    """Draw the partial dependence on one axis.

    Parameters
    ----------
    weight : (lots, nodes) float64
        how many of the rows of every lot pass what a leaf asks of others
    sizes : (lots,) float64
        rows of every lot
    base : (outputs,) float64, margin units
    n_states : int
        of the axis
    """
    sums = np.zeros((len(weight), base.size, n_states + 1))
    _add_steps(nodes, runs, weight, sums)
    return _finish(sums.cumsum(axis=2)[:, :, :-1], sizes, base)


def draw_surface(nodes: Nodes, runs: Runs, others: Runs, weight: np.ndarray, sizes: np.ndarray, base: np.ndarray, n_states: tuple[int, int]) -> Curve:
    """Draw the partial dependence on two axes, as ``draw_curve`` does on one.

    Parameters
    ----------
    weight : (lots, nodes) float64
        as of ``draw_curve``; where both axes' players are free
    sizes : (lots,) float64
        rows of every lot
    base : (outputs,) float64, margin units
    """
    sums = np.zeros((len(weight), base.size, n_states[0] + 1, n_states[1] + 1))
    _add_boxes(nodes, runs, others, weight, sums)
    return _finish(sums.cumsum(axis=2).cumsum(axis=3)[:, :, :-1, :-1], sizes, base)
