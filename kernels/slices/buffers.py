"""What a worker holds of a model, and the buffers in which a slice of rows is worked on."""

from typing import Any, NamedTuple

import numpy as np

from ..jit.lanes import zeros
from ..trees.binning import BinTables, bin_dtype, padded
from ..trees.margin import MarginTables
from .labels import Labels, no_labels


class Pairs(NamedTuple):
    """Pairs of players that interact; none where interactions are not asked for."""

    players: np.ndarray  # (pairs, 2) int32, numbers as in Prepared.players
    tables: Any  # InteractionTables of the game of pairs


NO_PAIRS = np.zeros((0, 2), np.int32)


class Sharing(NamedTuple):
    """Who gets what a kernel writes where some players stand for several others: each of these gets an equal share. Nobody does where it is empty."""

    start: np.ndarray  # (played + 1,) int64, row r of what a kernel writes goes to phi's rows row[start[r]:start[r + 1]]; or (0,)
    row: np.ndarray  # int32


NOT_SHARED = Sharing(np.zeros(0, np.int64), np.zeros(0, np.int32))


class WithoutLots(NamedTuple):
    """The method's tables and base values, each without one lot of the background, see ``lots``; none where errors are not asked for."""

    tables: tuple[Any, ...]
    base: np.ndarray  # (lots, outputs) float64, margin units


NO_LOTS = WithoutLots((), np.zeros((0, 0)))


class Prepared(NamedTuple):
    """A model and a method, ready for rows: what is broadcast."""

    bins: BinTables
    margin: MarginTables
    method: Any  # the method's own tables, a NamedTuple of arrays
    players: np.ndarray  # (rows,) int32, whose a row of phi is: a column of the ensemble, or a group
    pairs: Pairs
    base: np.ndarray  # (outputs,) float64, margin units: value of the empty coalition
    bound: np.ndarray  # (outputs,) float64, margin units: no margin is further from the base value
    n_steps: np.ndarray  # (1,) int64, steps of a row's path; 0 where the method has none
    sharing: Sharing
    without: WithoutLots

    @property
    def n_played(self) -> int:
        """Rows that a kernel writes to be shared; 0 where it writes phi."""
        return max(0, self.sharing.start.size - 1)


class Buffers(NamedTuple):
    """What a slice of rows is worked on in; rows are padded to a multiple of BATCH and reused from slice to slice."""

    values: np.ndarray  # (used, n) float64, the caller's input; binning changes it to what the library compares
    bins: np.ndarray  # (used, n) unsigned integers
    kinds: np.ndarray  # (read, n) uint8, what is said of values that are the data's own, see inputs.classify
    phi: np.ndarray  # (outputs, rows, n) float64
    played: np.ndarray  # (outputs, played, n) float64, phi before it is shared
    pairs: np.ndarray  # (outputs, pairs, n) float64, margin units
    path: np.ndarray  # (outputs, steps, n) float64, what a method with steps goes through for every row
    margin: np.ndarray  # (outputs, n) float64
    labels: Labels
    without: np.ndarray  # (lots, outputs, rows, n) float64, phi without each lot of the background


def make_buffers(prepared: Prepared, n_rows: int) -> Buffers:
    """Make buffers for slices of rows, all values zero.

    Parameters
    ----------
    prepared : Prepared
        says how many features, rows of phi, pairs, steps and outputs there are
    n_rows : int
        most rows of a slice

    Returns
    -------
    Buffers
        with room for ``padded(n_rows)`` rows, C-contiguous; float64 arrays start at the start of a cache line. No row has a label
    """
    used, outputs, n = prepared.bins.column.size, prepared.base.size, padded(n_rows)
    return Buffers(
        values=zeros(used, n),
        bins=np.zeros((used, n), bin_dtype(prepared.bins)),
        kinds=np.zeros((prepared.bins.read.size, n), np.uint8),
        phi=zeros(outputs, prepared.players.size, n),
        played=zeros(outputs, prepared.n_played, n),
        pairs=zeros(outputs, len(prepared.pairs.players), n),
        path=zeros(outputs, int(prepared.n_steps[0]), n),
        margin=zeros(outputs, n),
        labels=no_labels(n),
        without=zeros(len(prepared.without.tables), outputs, prepared.players.size, n),
    )
