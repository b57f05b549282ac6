"""Where rows are explained if nobody says: in this process what is done there sooner than a local cluster has started."""

import time

from leafledger.kernels.method.method import Method
from leafledger.kernels.slices.buffers import Prepared
from leafledger.kernels.trees.binning import BATCH

from ...cluster.placement import Placement
from ...methods.memory import SLICE_BYTES, extent_of
from ...methods.warmup import call_kernels

FEW_ROWS = 10_000  # that most methods explain sooner, also of a background
MANY_ROWS = 1 << 20  # that take as long to read and write, whatever the model
START_SECONDS = 5.0  # of a local cluster: its workers import what they need, and load kernels
CALLS = 3  # of which the quickest counts


def _is_small(prepared: Prepared) -> bool:
    """Attributions of BATCH rows take no more than a slice aims at: this process may have less memory than workers."""
    extent = extent_of(prepared)
    return 8 * BATCH * prepared.base.size * (extent.n_players + len(extent.pairs) + extent.n_steps) <= SLICE_BYTES


def _is_quick(method: Method, prepared: Prepared, n_rows: int) -> bool:
    """Kernels take no longer for all rows than a local cluster takes to start; they are compiled, which is done before it is started anyway."""
    call_kernels(method, prepared)
    taken = list[float]()
    while len(taken) < CALLS and (not taken or taken[-1] * n_rows <= CALLS * START_SECONDS * BATCH):
        began = time.perf_counter()
        call_kernels(method, prepared)
        taken.append(time.perf_counter() - began)
    return min(taken) * n_rows <= START_SECONDS * BATCH


def choose_placement(placement: Placement, method: Method, prepared: Prepared | None, n_rows: int, n_background: int) -> Placement:
    """Let this process explain rows, and count a background, if it is done sooner than a local cluster has started."""
    if not placement.is_open:
        return placement
    if n_rows + n_background <= FEW_ROWS:
        return placement.here_if(small=True)
    if prepared is None or n_rows > MANY_ROWS or not _is_small(prepared):
        return placement
    return placement.here_if(_is_quick(method, prepared, n_rows))
