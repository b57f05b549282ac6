"""What a value's kernels read on a card: laid out here, sent there, and launched on the rows of a slice."""

from typing import Any, NamedTuple

import numpy as np

from ..semivalues.tables import SemivalueTables
from .decorator import cuda, kernel
from .leaves import add_subsets, make_patterns
from .lookup import look_up
from .splits import lay_out_all_splits
from .walk import make_walk

SHARED_BYTES = 48 << 10  # that every card gives a block
THREADS = 64, 32  # of a block: the first number with which sums fit into shared memory
LEVELS, PLAYERS = 2, 32  # kernels are made for multiples of so many levels, and own players of a leaf, so that similar models share them


class Job(NamedTuple):
    """A kernel, and what it reads."""

    kernel: Any
    threads: int  # of a block
    sums: int  # bytes of a block's shared memory
    arrays: tuple[Any, ...]  # here, or on the card

    @property
    def n_bytes(self) -> int:
        """Size of the arrays."""
        return sum(array.nbytes for array in self.arrays)


Jobs = list[Job]


def lay_out(tables: SemivalueTables, bin_bits: int, n_phi: int) -> Jobs:
    """Lay out the tables of a value with ``n_phi`` rows of phi for each output."""
    looked_up, subsets, patterns = tables.looked_up, tables.subsets, tables.patterns
    jobs = []
    if looked_up.first.size:
        names = ("marks", "start", "column", "target", "first", "values", "words")
        jobs.append(Job(look_up, THREADS[0], 0, tuple(getattr(looked_up, name) for name in names)))
    threads = next((threads for threads in THREADS if 8 * n_phi * threads <= SHARED_BYTES), 0)  # 0 where sums do not fit
    for splits in lay_out_all_splits(tables.walked, bin_bits):
        walk = make_walk(-(-splits.levels // LEVELS) * LEVELS, splits.nodes.shape[1], threads > 0)
        words = (splits.nodes.view(np.int64).reshape(-1), splits.weights.view(np.int64).reshape(-1), splits.records.view(np.int64))
        jobs.append(Job(walk, threads or THREADS[0], 8 * n_phi * threads, (splits.start, splits.output, *words, splits.sets)))
    if subsets.first.size:
        jobs.append(Job(add_subsets, THREADS[0], 0, (*subsets.leaves, subsets.players, subsets.first, subsets.sums)))
    if patterns.leaves.output.size:
        most = -(-max(1, int(np.diff(patterns.leaves.column).max())) // PLAYERS) * PLAYERS
        _, *arrays, weights = patterns
        jobs.append(Job(make_patterns(patterns.own.shape[1], most), THREADS[0], 0, (*patterns.leaves, *arrays, *weights)))
    return jobs


def send(jobs: Jobs) -> Jobs:
    """Send what kernels read to the card."""
    return [job._replace(arrays=tuple(cuda.to_device(np.ascontiguousarray(array)) for array in job.arrays)) for job in jobs]


@kernel
def _clear(out: Any, n: Any, n_rows: Any) -> None:
    row = cuda.grid(1)
    if row < n_rows:
        for at in range(row, out.size, n):
            out[at] = 0.0


def launch(jobs: Jobs, bins: Any, out: Any, n_phi: int, n: int, n_rows: int, stream: Any) -> None:
    """Overwrite the attributions of the first ``n_rows`` rows of a slice of n, ``out (outputs * n_phi * n,) float64``, given its flat bins."""
    top = (1 << 8 * bins.dtype.itemsize) - 1
    _clear[-(-n_rows // THREADS[0]), THREADS[0], stream](out, n, n_rows)
    for job in jobs:
        job.kernel[-(-n_rows // job.threads), job.threads, stream, job.sums](bins, n, *job.arrays, top, n_phi, n_rows, out)
