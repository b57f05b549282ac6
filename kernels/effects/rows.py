"""Every row's margin as a step function of one axis' states: what the model predicts as a feature changes and the rest of the row stays."""

import numpy as np

from ..jit.decorator import jit
from .axes import Axis, Nodes, Runs, goes_left


@jit
def _follow(nodes: Nodes, runs: Runs, free: np.ndarray, bins: np.ndarray, levels: int, out: np.ndarray) -> None:
    """Add every row's steps to ``out (outputs, n, states + 1)``; at splits of ``free (used,) bool`` features it goes both ways."""
    mask, width = np.int64(np.iinfo(bins.dtype).max), nodes.value.shape[1]
    pending = np.empty(levels + 1, np.int64)
    for i in range(out.shape[1]):
        for t in range(nodes.root.size):
            pending[0], n_pending = nodes.root[t], 1
            while n_pending > 0:
                n_pending -= 1
                v = pending[n_pending]
                while nodes.feature[v] >= 0:
                    if free[nodes.feature[v]]:
                        pending[n_pending] = nodes.right[v]
                        n_pending += 1
                        v = nodes.left[v]
                    elif goes_left(nodes, v, np.int64(bins[nodes.feature[v], i]), mask):
                        v = nodes.left[v]
                    else:
                        v = nodes.right[v]
                for r in range(runs.start[v], runs.start[v + 1]):
                    for k in range(width):
                        out[nodes.output[t] + k, i, runs.first[r]] += nodes.value[v, k]
                        out[nodes.output[t] + k, i, runs.stop[r]] -= nodes.value[v, k]


def row_curves(nodes: Nodes, base: np.ndarray, axis: Axis, runs: Runs, bins: np.ndarray, n_rows: int) -> np.ndarray:
    """Compute the margins ``(outputs, n_rows, states)`` that the first of ``bins (used, n)`` would have in every state; ``base (outputs,)``."""
    steps, free = np.zeros((base.size, n_rows, axis.n_states + 1)), np.zeros(max(1, len(bins)), np.bool_)
    free[axis.member] = True
    _follow(nodes, runs, free, bins, int(nodes.level.max(initial=0)), steps)
    curves = steps[:, :, :-1]
    curves[:, :, 0] += base[:, None]
    return np.cumsum(curves, axis=2, out=curves)
