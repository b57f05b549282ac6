"""This project's kernels on rows that lie in memory, on one thread or several."""

from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

import numpy as np

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.buffers import Buffers, Prepared, make_buffers
from leafledger.kernels.trees.binning import BATCH, bin_rows
from leafledger.kernels.trees.margin import add_margins
from tests.bench.timing import Contender

MOST_SLICE, SLICES_EACH = 1 << 13, 4  # rows of a slice at most; slices for each thread at least, so that none waits long
MOST_BYTES = 1 << 28  # of the buffers of a contender
SHAPLEY, BANZHAF = "shapley", "banzhaf"
WHOLE, KERNEL = "bins, margins, phi", "kernel alone"
BIN, MARGIN = "bin_rows", "add_margins"


def columns(prepared: Prepared) -> np.ndarray:
    """Which columns of the caller's rows the rows of the buffers are."""
    return prepared.bins.column


def most_rows(prepared: Prepared) -> int:
    """How many rows buffers of ``MOST_BYTES`` take, values and phi."""
    return MOST_BYTES // (8 * max(columns(prepared).size, 1) * (prepared.base.size + 2))


def fill(prepared: Prepared, buffers: Buffers, rows: np.ndarray) -> None:
    """Rows of the caller into the buffers."""
    buffers.values[:, : len(rows)] = rows.T[columns(prepared)]


def _even(n_rows: int, count: int) -> int:
    """Rows of a slice where there are ``count`` of the same size."""
    return -(-n_rows // (count * BATCH)) * BATCH


def make_slices(prepared: Prepared, rows: np.ndarray, n_threads: int) -> list[Buffers]:
    """Rows as slices to work on, in bins: as many for every thread, of the same size."""
    count = n_threads * max(SLICES_EACH, -(-len(rows) // (MOST_SLICE * n_threads)))
    step = _even(len(rows), count)
    made = []
    for first in range(0, len(rows), step):
        part = rows[first : first + step]
        made.append(make_buffers(prepared, len(part)))
        fill(prepared, made[-1], part)
        bin_rows(made[-1].values, prepared.bins, made[-1].bins)
    return made


def spread(work: Callable[[Buffers], None], slices: list[Buffers], threads: Executor | None) -> None:
    """The work on every slice, in this thread or on all."""
    if threads is None:
        for piece in slices:
            work(piece)
    else:
        list(threads.map(work, slices))


def attributions(prepared: Prepared, name: str, rows: np.ndarray, n_players: int) -> np.ndarray:
    """``(outputs, n, n_players) float64``, zero for features, or groups, that no tree uses."""
    buffers = make_buffers(prepared, len(rows))
    fill(prepared, buffers, rows)
    attribute_batch(METHODS[name], prepared, buffers)
    out = np.zeros((prepared.base.size, len(rows), n_players))
    out[:, :, prepared.players] = buffers.phi[:, :, : len(rows)].transpose(0, 2, 1)
    return out


def explain_all(prepared: Prepared, rows: np.ndarray) -> None:
    """Every row through one set of buffers, from the caller's matrix: how a caller works through many."""
    step = _even(len(rows), -(-len(rows) // MOST_SLICE))
    buffers = make_buffers(prepared, step)
    for first in range(0, len(rows), step):
        part = rows[first : first + step]
        fill(prepared, buffers, part)
        attribute_batch(METHODS[SHAPLEY], prepared, buffers)


def contend(tables: dict[str, Prepared], few: np.ndarray, many: np.ndarray, threads: Executor, n_threads: int) -> list[Contender]:
    """Both methods, whole and their kernels alone, on few rows; bins and margins on many; on one thread and on all."""
    shapley = tables[SHAPLEY]
    slices = {name: make_slices(prepared, few, n_threads) for name, prepared in tables.items()}
    slices_many = make_slices(shapley, many, n_threads)

    def whole(name: str, piece: Buffers) -> None:
        attribute_batch(METHODS[name], tables[name], piece)

    def kernel(name: str, piece: Buffers) -> None:
        METHODS[name].kernel(piece, tables[name].method)

    def bins(piece: Buffers) -> None:
        bin_rows(piece.values, shapley.bins, piece.bins)

    def margin(piece: Buffers) -> None:
        add_margins(piece.bins, shapley.margin, piece.margin)

    made = []
    for n, pool in {1: None, n_threads: threads}.items():
        for name in tables:
            for what, work in ((WHOLE, whole), (KERNEL, kernel)):
                made.append(Contender(f"{name}: {what}", n, len(few), partial(spread, partial(work, name), slices[name], pool)))
        made.append(Contender(BIN, n, len(many), partial(spread, bins, slices_many, pool)))
        made.append(Contender(MARGIN, n, len(many), partial(spread, margin, slices_many, pool)))
    return made
