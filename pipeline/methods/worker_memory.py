"""Sizes of batches, row groups and work items, and the projected memory of a worker."""

from dataclasses import dataclass

import numpy as np

from leafledger.kernels.slices.buffers import Prepared
from leafledger.kernels.trees.binning import BATCH

from ..cluster.threads import AHEAD
from ..errors import UsageError
from ..stores.table_arrays import table_bytes

ITEM_ROWS = 1 << 18  # target rows of a work item: seconds of work, an object of tens of megabytes,
ITEM_CHUNKS = 1 << 16  # and the most column chunks in it, which a writer holds until the object is closed
CHUNK_BYTES = 2048  # bytes that a writer or reader holds of each
SLICE_ROWS = 1 << 15  # rows that a worker holds at a time,
SLICE_BYTES = 1 << 26  # and the most bytes of attributions; also of a row group as written
ENTRY_BYTES = 64  # of a list entry: numbers, and repeated names
WORKER_OVERHEAD = 400 << 20  # a worker process with its imports, before tables and rows


@dataclass(frozen=True, slots=True)
class Extent:
    """Dimensions of tables, whether prepared or not yet."""

    n_used: int  # columns used in splits
    n_players: int  # players of these columns
    pairs: np.ndarray  # (pairs, 2) int32, see leafledger.kernels.batch.Pairs
    n_bytes: int  # bytes that workers map, at most
    n_steps: int = 0  # steps of a row's path


@dataclass(frozen=True, slots=True)
class Memory:
    """Projected peak memory of a worker, in bytes."""

    tables: int
    slice: int  # with the output row group being gathered
    row_group: int  # of the input, or of the background, with others fetched together
    footer: int  # of the input and output files, or of the background's

    @property
    def shared(self) -> int:
        """Bytes of the process itself and of the tables, which its threads share."""
        return WORKER_OVERHEAD + self.tables

    @property
    def total(self) -> int:
        """Total bytes of a worker with one thread, including the process itself."""
        return self.of(1)

    def of(self, n_threads: int) -> int:
        """Total bytes of a worker with several threads, and with the items that are ahead of them."""
        n_items = n_threads + AHEAD if n_threads > 1 else 1
        return self.shared + n_items * (self.slice + self.row_group + self.footer)

    def check(self, available: int, n_threads: int = 1) -> None:
        """Refuse workers with less memory.

        Parameters
        ----------
        available : int
            What one worker may hold, in bytes.
        """
        if self.of(n_threads) > available:
            who, fewer = ("a worker needs", "workers") if n_threads == 1 else (f"{n_threads} threads need", "threads")
            raise UsageError(
                f"{who} {self.of(n_threads) >> 20} MiB (tables {self.tables >> 20}, slice {self.slice >> 20}, largest row group "
                f"{self.row_group >> 20}, footer {self.footer >> 20}), it has {available >> 20}; use fewer {fewer}"
            )


def extent_of(prepared: Prepared) -> Extent:
    """Measure prepared tables, for ``make_plan``."""
    return Extent(
        prepared.bins.column.size, prepared.players.size + prepared.n_played, prepared.pairs.players, table_bytes(prepared), int(prepared.n_steps[0])
    )


def max_slice_rows(cells: int) -> int:
    """Choose the number of rows that a worker holds at a time.

    Parameters
    ----------
    cells : int
        Numbers of 8 bytes that a row has.

    Returns
    -------
    int
        At least BATCH and at most SLICE_ROWS; a slice's numbers take at most SLICE_BYTES, unless BATCH rows take more.
    """
    return max(BATCH, min(SLICE_ROWS, SLICE_BYTES // (8 * max(1, cells)) // BATCH * BATCH))


def max_group_rows(slice_rows: int, written: int) -> int:
    """Choose the rows of a part's row group: several batches, if far fewer attributions are kept than computed.

    Parameters
    ----------
    slice_rows : int
        Rows that are explained at a time.
    written : int
        Bytes that a row has in the part, about; at least 1.

    Returns
    -------
    int
        Whole slices, of at most SLICE_ROWS and SLICE_BYTES, unless one slice is more.
    """
    return slice_rows * max(1, min(SLICE_ROWS, SLICE_BYTES // written) // slice_rows)


def max_item_rows(group_rows: int, n_columns: int) -> int:
    """Choose the number of rows of a work item.

    Parameters
    ----------
    group_rows : int
        Rows of a row group of its part.
    n_columns : int
        Columns of the part, those within lists counted each.

    Returns
    -------
    int
        At most ITEM_ROWS, and so many that the part has at most ITEM_CHUNKS column chunks, unless one row group has more.
    """
    return min(ITEM_ROWS, group_rows * max(1, ITEM_CHUNKS // n_columns))
