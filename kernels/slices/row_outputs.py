"""One output per row: the predicted class, or another one drawn at random."""

import numpy as np

from ..arrays.pseudorandom import GAMMA, mix
from .buffers import Buffers


def find_predicted(margin: np.ndarray) -> np.ndarray:
    """Find the output with the largest margin, the first of ties, as NumPy and the libraries do.

    Parameters
    ----------
    margin : (outputs, n) float64

    Returns
    -------
    (n,) int64
    """
    return margin.argmax(axis=0)


def draw_other(margin: np.ndarray, rows: np.ndarray, seed: int) -> np.ndarray:
    """Draw an output for every row, uniformly among those not predicted.

    Parameters
    ----------
    margin : (outputs, n) float64
        of at least two outputs
    rows : (n,) integers
        numbers of the rows, at least 0; a row's draw depends on its number and the seed alone, and not on what is read along with it
    seed : int
        at least 0 and below 2^64

    Returns
    -------
    (n,) int64
    """
    start = mix(np.array([seed], np.uint64) + GAMMA)
    drawn = (mix(start + (rows.astype(np.uint64) + np.uint64(1)) * GAMMA) % np.uint64(margin.shape[0] - 1)).astype(np.int64)
    return drawn + (drawn >= find_predicted(margin))


def take_outputs(values: np.ndarray, output: np.ndarray) -> np.ndarray:
    """Select the values of one output for every row.

    Parameters
    ----------
    values : (outputs, …, n) of any type
    output : (n,) int64

    Returns
    -------
    (1, …, n) of that type, contiguous
    """
    taken = values[output, ..., np.arange(output.size)]  # rows become the first axis
    return np.ascontiguousarray(np.moveaxis(taken, 0, -1))[None]


def keep_outputs(buffers: Buffers, output: np.ndarray) -> Buffers:
    """Keep one output of every row.

    Parameters
    ----------
    buffers : Buffers
        as ``batch.attribute_batch`` left them
    output : (n,) int64
        of all rows, those that pad too

    Returns
    -------
    Buffers
        with one output; attributions, interactions, paths and margins are copies
    """
    phi, pairs, path, margin, ends = (
        take_outputs(values, output) for values in (buffers.phi, buffers.pairs, buffers.path, buffers.margin, buffers.ends)
    )
    without = np.zeros((0, *phi.shape)) if not len(buffers.without) else np.stack([take_outputs(each, output) for each in buffers.without])
    return buffers._replace(phi=phi, pairs=pairs, path=path, margin=margin, without=without, ends=ends)
