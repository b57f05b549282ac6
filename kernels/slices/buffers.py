"""The prepared model that workers hold, and the buffers of a batch of rows."""

from typing import Any, NamedTuple

import numpy as np

from ..jit.lanes import zeros
from ..quotients.nodes import Nodes
from ..trees.binning import BinTables, bin_dtype, padded
from ..trees.margin import MarginTables
from .labels import Labels, no_labels, take_labels


class Pairs(NamedTuple):
    """Pairs, or sets, of players that interact; empty without interactions."""

    players: np.ndarray  # (pairs, 2) int32 or (sets, order), -1 behind smaller sets; numbers as in Prepared.players
    tables: Any  # InteractionTables of the game of pairs, or SetTables; or WeightedPairs


NO_PAIRS = np.zeros((0, 2), np.int32)


class WeightedPairs(NamedTuple):
    """Interactions carried to a quantity; empty without."""

    tables: tuple[Any, ...]  # InteractionTables or SetTables of all weighted games, in the order of Weighted.tables

    @property
    def add_up(self) -> bool:
        """Whether all interactions of a row add up to its quantity less the base value."""
        return any(each.add_up for each in self.tables)


class Sharing(NamedTuple):
    """Rows of phi that share a kernel row equally, where one player represents several; empty if none does."""

    start: np.ndarray  # (played + 1,) int64, a kernel's row r is shared by phi's rows row[start[r]:start[r + 1]]; or (0,)
    row: np.ndarray  # int32


NOT_SHARED = Sharing(np.zeros(0, np.int64), np.zeros(0, np.int32))


class WithoutGroups(NamedTuple):
    """Tables and base values without each group of the background, see ``jackknife``; empty without standard errors."""

    tables: tuple[Any, ...]
    base: np.ndarray  # (N_GROUPS, outputs) float64, margin units


NO_GROUPS = WithoutGroups((), np.zeros((0, 0)))


class Weighted(NamedTuple):
    """What carries attributions to a quantity background row by background row, see ``quotients.nodes``; without tables where nothing does."""

    code: np.ndarray  # (2,) float64, see Quantity.encode
    nodes: tuple[Nodes, ...]  # one
    tables: tuple[Any, ...]  # the method's, of every column of leaf values and, within a column, every margin of the nodes
    rises: np.ndarray  # (outputs, terms) float64, mean rise of the terms' curves over the background, from the first margin of the nodes


NOT_WEIGHTED = Weighted(np.zeros(2), (), (), np.zeros((0, 0)))
N_ENDS = 4
BASE, TOTAL, RISE, REACH = range(N_ENDS)  # of Buffers.ends


class Prepared(NamedTuple):
    """A model and a method ready for rows, as broadcast to workers."""

    bins: BinTables
    margin: MarginTables
    method: Any  # the method's own tables, a NamedTuple of arrays; of margins, so not read where ``weighted`` has tables
    players: np.ndarray  # (rows,) int32, player of each row of phi: a column of the ensemble, or a group
    pairs: Pairs
    base: np.ndarray  # (outputs,) float64, margin units: value of the empty coalition
    bound: np.ndarray  # (outputs,) float64, margin units: largest distance of a margin from the base value
    n_steps: np.ndarray  # (1,) int64, steps of a row's path; 0 without a path
    sharing: Sharing
    without: WithoutGroups
    weighted: Weighted = NOT_WEIGHTED
    changes: Any = ()  # ChangeTables, where nearest changes are asked for

    @property
    def n_played(self) -> int:
        """Number of kernel rows to be shared; 0 if the kernel writes phi."""
        return max(0, self.sharing.start.size - 1)


class Buffers(NamedTuple):
    """Buffers of a batch of rows, padded to a multiple of BATCH and reused for every batch."""

    values: np.ndarray  # (used, n) float64, input; binning rounds it to the library's precision
    bins: np.ndarray  # (used, n) unsigned integers
    kinds: np.ndarray  # (read, n) uint8, kinds of the data's own values, see input_counts.classify
    phi: np.ndarray  # (outputs, rows, n) float64
    played: np.ndarray  # (outputs, played, n) float64, phi before sharing
    pairs: np.ndarray  # (outputs, pairs, n) float64, margin units, or of the quantity that they are carried to
    path: np.ndarray  # (outputs, steps, n) float64, path of a method with steps
    margin: np.ndarray  # (outputs, n) float64
    labels: Labels
    without: np.ndarray  # (N_GROUPS, outputs, rows, n) float64, phi without each group of the background
    scratch: np.ndarray  # (outputs, rows, n) float64, attributions of one weighted background
    scratch_pairs: np.ndarray  # (outputs, pairs, n) float64, interactions of one
    ends: np.ndarray  # (outputs, N_ENDS, n) float64: a row's base value and total, what it adds up to, and the scale of its errors
    n_rows: int  # rows that count, the first; kernels may leave out others


def make_buffers(prepared: Prepared, n_rows: int) -> Buffers:
    """Allocate buffers, all values zero.

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
        n_rows=n,
        scratch=zeros(outputs, prepared.players.size if prepared.weighted.tables else 0, n),
        scratch_pairs=zeros(outputs, len(prepared.pairs.players) if prepared.weighted.tables else 0, n),
        ends=zeros(outputs, N_ENDS if prepared.weighted.tables else 0, n),
    )


def take_rows(buffers: Buffers, first: int, last: int) -> Buffers:
    """Take some rows of a slice, for what begins at a slice's first row.

    Parameters
    ----------
    buffers : Buffers
        as ``batch.attribute_batch`` left them
    first, last : int
        rows from ``first`` up to ``last``

    Returns
    -------
    Buffers
        of ``last - first`` rows, not padded, so that no kernel of a batch takes them; contiguous, and perhaps of the same memory
    """
    taken = {name: np.ascontiguousarray(each[..., first:last]) for name, each in buffers._asdict().items() if isinstance(each, np.ndarray)}
    return Buffers(**taken, labels=take_labels(buffers.labels, first, last), n_rows=last - first)
