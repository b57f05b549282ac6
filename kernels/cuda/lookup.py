"""Look-ups on a card, a row per thread: the outcomes of a tree's comparisons form a code, the row of its table."""

from functools import cache
from typing import Any

import numpy as np

from ..jit.widths import QUAD
from ..trees.lookup import MARK_BIT, MARK_FEATURE, MARK_LOWER, MARK_MEMBERS, MARK_SPAN
from .decorator import cuda, kernel


@cache
def make_lookup() -> Any:
    """Make the kernel."""

    def look_up(
        bins: Any, n: Any, marks: Any, start: Any, column: Any, target: Any, first: Any, values: Any, sets: Any, top: Any, n_rows: Any, out: Any
    ) -> None:
        """Add the table row of every tree, for every row of data, to ``out (rows * n,) float64``."""
        row = cuda.grid(1)
        if row >= n_rows:
            return
        for t in range(first.size):
            code = 0
            for m in range(start[t], start[t + 1]):
                bin_ = np.int64(bins[marks[m, MARK_FEATURE] * n + row])
                members = np.int64(marks[m, MARK_MEMBERS])
                if members >= 0:
                    bin_ = np.int64(sets[members + (bin_ >> 5)] >> np.uint32(bin_ & 31)) & 1
                inside = (bin_ - marks[m, MARK_LOWER]) & top <= np.int64(marks[m, MARK_SPAN]) & top
                code |= np.int64(inside) << marks[m, MARK_BIT]
            n_columns = column[t + 1] - column[t]
            width = n_columns if n_columns == 1 else (n_columns + QUAD - 1) // QUAD * QUAD  # padded_width's
            at = first[t] + code * width
            for k in range(n_columns):
                out[np.int64(target[column[t] + k]) * n + row] += values[at + k]

    return kernel(look_up)
