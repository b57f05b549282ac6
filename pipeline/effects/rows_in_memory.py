"""A background in memory: counted, and passed over row by row, on all cores."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from leafledger.kernels.effects.sums import CountedRows, EffectSums, RowTables, sum_rows
from leafledger.kernels.slices.links import Link
from leafledger.kernels.trees.binning import read_columns

from ..cluster.resources import table_budget
from ..cluster.threads import do_all
from ..dataset.columns.values import read_features
from ..errors import UsageError
from ..in_memory.rows.arrow_batches import as_batch
from ..in_memory.rows.given_rows import BACKGROUND, SLICE_ROWS, bin_batch, fill_columns
from ..methods.unseen_categories import refuse_counted
from ..models.model import Feature
from .asked import AskedEffects
from .counted import Margins, ask_background, count_values, draw_counted
from .passed import find_carry, slice_rows

AT_ONCE = 16  # slices whose results are held before they are merged
M = TypeVar("M", CountedRows, EffectSums)


@dataclass(frozen=True, slots=True)
class Background:
    """Rows in memory, and what is asked of them."""

    asked: AskedEffects
    features: tuple[Feature, ...]
    batch: pa.RecordBatch

    def _merge(self, work: Callable[[pa.RecordBatch, int], M], size: int) -> M:
        """Merge what ``work(slice, its first row)`` finds of all slices, in order."""
        firsts = range(0, self.batch.num_rows, size)
        total = work(self.batch.slice(0, size), 0)
        for k in range(1, len(firsts), AT_ONCE):
            total = total.merge(do_all(lambda row: work(self.batch.slice(row, size), row), firsts[k : k + AT_ONCE]))
        return total

    def count(self, allow_unseen: bool) -> Margins:
        """Count rows, and draw partial dependence of margins."""
        query = ask_background(self.asked, self.batch.num_rows, table_budget())
        named = [(each.name, each.axis) for each in self.asked.axes]

        def work(part: pa.RecordBatch, first: int) -> CountedRows:
            values = np.zeros((query.bins.column.size, part.num_rows))
            fill_columns(self.features, query.bins, part, values)
            return count_values(query, named, values, first)

        counted = self._merge(work, SLICE_ROWS)
        if not allow_unseen:
            some = self.batch.slice(0, SLICE_ROWS)
            refuse_counted(counted.seen, read_features(self.features, query.bins), BACKGROUND, lambda name: some.column(name).to_pylist())
        return draw_counted(self.asked, query, counted)

    def sum(self, tables: RowTables, link: Link | None) -> EffectSums:
        """Sum what every row says."""
        carry = find_carry(link)

        def work(part: pa.RecordBatch, first: int) -> EffectSums:  # noqa: ARG001 - the shape of work
            return sum_rows(tables, bin_batch(self.features, tables.bins, part)[1], part.num_rows, carry)

        return self._merge(work, slice_rows(tables))


def read_background(asked: AskedEffects, rows: Any) -> Background:
    """Read rows; categories that the model knows by hashes alone are spelled as in them."""
    features, batch = as_batch(asked.model, rows, read_columns(asked.model.ensemble).tolist(), BACKGROUND)
    if not batch.num_rows:
        raise UsageError("the background has no rows, expected at least one")
    spelled = [each if each.bins is None or each.ordered else each.spelled(batch.column(each.name).unique().to_pylist()) for each in asked.axes]
    return Background(replace(asked, axes=tuple(spelled)), features, batch)
