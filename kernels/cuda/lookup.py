"""Look-ups on a card, a row per thread: the outcomes of a tree's comparisons form a code, the row of its table."""

from typing import Any

import numpy as np

from ..jit.widths import QUAD
from ..trees.lookup import MARK_BIT, MARK_FEATURE, MARK_LOWER, MARK_MEMBERS, MARK_SPAN
from .decorator import cuda, inlined, kernel


@inlined
def outcome(bins: Any, n: Any, row: Any, marks: Any, m: Any, sets: Any, top: Any) -> Any:
    """Return the outcome of a comparison for a row, 0 or 1."""
    bin_ = np.int64(bins[marks[m, MARK_FEATURE] * n + row])
    members = np.int64(marks[m, MARK_MEMBERS])
    if members >= 0:
        bin_ = np.int64(sets[members + (bin_ >> 5)] >> np.uint32(bin_ & 31)) & 1
    return np.int64((bin_ - marks[m, MARK_LOWER]) & top <= np.int64(marks[m, MARK_SPAN]) & top)


@kernel
def look_up(
    bins: Any,
    n: Any,
    marks: Any,
    start: Any,
    column: Any,
    target: Any,
    first: Any,
    values: Any,
    sets: Any,
    top: Any,
    _: Any,
    n_rows: Any,
    out: Any,
) -> None:
    """Add the table row of every tree, for every row of data, to ``out (rows * n,) float64``."""
    row = cuda.grid(1)
    if row >= n_rows:
        return
    for t in range(first.size):
        code = 0
        for m in range(start[t], start[t + 1]):
            code |= outcome(bins, n, row, marks, m, sets, top) << marks[m, MARK_BIT]
        n_columns = column[t + 1] - column[t]
        width = n_columns if n_columns == 1 else (n_columns + QUAD - 1) // QUAD * QUAD  # padded_width's
        at = first[t] + code * width
        for k in range(n_columns):
            out[np.int64(target[column[t] + k]) * n + row] += values[at + k]
