"""Default placement: this process for work that it finishes before a local cluster has started."""

import time

from leafledger.kernels.method.method import Method
from leafledger.kernels.slices.buffers import Prepared
from leafledger.kernels.trees.binning import BATCH

from ...cluster.placement import Placement
from ...methods.warmup import call_kernels
from ...methods.worker_memory import SLICE_BYTES, extent_of

FEW_ROWS = 10_000  # rows that most methods explain sooner, also background rows
MANY_ROWS = 1 << 20  # rows whose reading and writing takes as long, for any model
START_SECONDS = 5.0  # start of a local cluster: imports and loading of kernels
CALLS = 3  # timed calls, of which the fastest counts


def _is_small(prepared: Prepared) -> bool:
    """Return whether attributions of BATCH rows fit a batch's target size, since this process may have less memory than workers."""
    extent = extent_of(prepared)
    return 8 * BATCH * prepared.base.size * (extent.n_players + len(extent.pairs) + extent.n_steps) <= SLICE_BYTES


def _is_quick(method: Method, prepared: Prepared, n_rows: int) -> bool:
    """Return whether kernels take less time for all rows than a local cluster needs to start, compilation aside."""
    call_kernels(method, prepared)
    taken = list[float]()
    while len(taken) < CALLS and (not taken or taken[-1] * n_rows <= CALLS * START_SECONDS * BATCH):
        began = time.perf_counter()
        call_kernels(method, prepared)
        taken.append(time.perf_counter() - began)
    return min(taken) * n_rows <= START_SECONDS * BATCH


def choose_placement(placement: Placement, method: Method, prepared: Prepared | None, n_rows: int, n_background: int) -> Placement:
    """Explain rows, or count a background, in this process if that is done before a local cluster has started."""
    if not placement.is_open:
        return placement
    if n_rows + n_background <= FEW_ROWS:
        return placement.here_if(small=True)
    if prepared is None or n_rows > MANY_ROWS or not _is_small(prepared):
        return placement
    return placement.here_if(_is_quick(method, prepared, n_rows))
