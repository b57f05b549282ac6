"""How many rows are explained at a time, written together, and one task's; and what a worker needs of memory for them."""

from dataclasses import dataclass

import numpy as np

from leafledger.kernels.slices.buffers import Prepared
from leafledger.kernels.trees.binning import BATCH

from ..errors import UsageError
from ..stores.table_arrays import table_bytes

ITEM_ROWS = 1 << 18  # rows a work item aims at: seconds of work, an object of tens of megabytes,
ITEM_CHUNKS = 1 << 16  # and at most so many column chunks in it, which a writer holds until it closes the object
CHUNK_BYTES = 2048  # what it, or a reader, holds of each
SLICE_ROWS = 1 << 15  # rows a worker holds at a time,
SLICE_BYTES = 1 << 26  # and at most so many bytes of attributions; and of a row group as it is written
ENTRY_BYTES = 64  # of an entry of a list: numbers, and names that are often the same
WORKER_OVERHEAD = 400 << 20  # a worker process with its imports, before any table or row


@dataclass(frozen=True, slots=True)
class Extent:
    """What is known of tables, prepared or not yet."""

    n_used: int  # columns that splits ask for
    n_players: int  # whose they are
    pairs: np.ndarray  # (pairs, 2) int32, see leafledger.kernels.batch.Pairs
    n_bytes: int  # that workers map, at most
    n_steps: int = 0  # of the way that the method goes for every row


@dataclass(frozen=True, slots=True)
class Memory:
    """What a worker is projected to hold at its peak, in bytes."""

    tables: int
    slice: int  # with the row group that is gathered
    row_group: int  # of the input, or of the background, and those that are fetched with it
    footer: int  # of the input's file and the output's, or of the background's

    @property
    def total(self) -> int:
        """Bytes in all, with the worker process itself."""
        return WORKER_OVERHEAD + self.tables + self.slice + self.row_group + self.footer

    def check(self, available: int) -> None:
        """Refuse workers that have fewer bytes.

        Parameters
        ----------
        available : int
            What one worker may hold, in bytes.
        """
        if self.total > available:
            raise UsageError(
                f"a worker needs {self.total >> 20} MiB (tables {self.tables >> 20}, slice {self.slice >> 20}, largest row group "
                f"{self.row_group >> 20}, footer {self.footer >> 20}), it has {available >> 20}; use fewer workers"
            )


def extent_of(prepared: Prepared) -> Extent:
    """Measure prepared tables, for ``make_plan``."""
    return Extent(
        prepared.bins.column.size, prepared.players.size + prepared.n_played, prepared.pairs.players, table_bytes(prepared), int(prepared.n_steps[0])
    )


def max_slice_rows(cells: int) -> int:
    """Choose how many rows a worker holds at a time.

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
    """Choose how many rows of a part are a row group. Where many attributions are computed and few kept, it has several slices.

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
    """Choose how many rows a task explains.

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
