"""A method's tables on a card, and the kernel that runs there; bins come from the processor, and margins stay there, against which sums are checked.

Binning takes a processor's core a tenth of a microsecond a row and is not worth a kernel; the margins of a row are a hundredth of the work of its
attributions, and computed elsewhere they check what a card returns.
"""

import threading
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidParameters
from ..method.method import Method
from ..path_dependent.walks import WalkTables
from ..semivalues.tables import SemivalueTables
from ..slices.buffers import Buffers, Prepared
from ..trees.lookup import LookupTables
from .splits import MOST_FEATURES, Splits, lay_out_splits

SHARED_BYTES = 48 << 10  # that every card gives a block
THREADS = 64, 32  # of a block: the first number with which sums fit into shared memory
LEVELS = 2  # kernels are made for multiples of so many levels, so that trees of similar models share them


@cache
def has_card() -> bool:
    """Return whether this machine has a card that CUDA can use.

    Raises
    ------
    ImportError
        what compiles kernels for it cannot be imported, as with a NumPy that is too new for numba-cuda
    """
    try:
        decorator = import_module(f"{__package__}.decorator")
        if not decorator.cuda.is_available():
            return False
        import_module("numba.core.typing" if decorator.SIMULATED else "numba.cuda.np.arrayobj")
    except (AttributeError, RuntimeError, OSError) as error:
        raise ImportError(str(error)) from error
    return True


class _Walk(NamedTuple):
    """Splits on a card, and how they are walked."""

    kernel: Any
    splits: Splits
    arrays: tuple[Any, ...]  # of the splits, on the card


def find_obstacle(method: Method, prepared: Prepared) -> str:
    """Say why a method's kernel cannot run on a card.

    Returns
    -------
    str
        empty if it can
    """
    tables = prepared.method
    if not isinstance(tables, SemivalueTables):
        return f"method {method.name!r} runs on processors only"
    if tables.subsets.first.size or tables.patterns.leaves.output.size or prepared.without.tables or prepared.weighted.tables:
        return "values against a background run on processors only, but for symmetric trees"
    if prepared.bins.column.size >= MOST_FEATURES:
        return f"the model's splits have {prepared.bins.column.size:,} features, at most {MOST_FEATURES - 1:,} are possible"
    try:
        laid_out = _lay_out(tables.walked, prepared)
    except InvalidParameters as error:
        return str(error)
    others = any(splits.rows > (prepared.n_played or prepared.players.size) for splits in laid_out)
    return "trees are cut to what groups of players can change, as for Owen values, which run on processors only" if others else ""


def _lay_out(walked: WalkTables, prepared: Prepared) -> list[Splits]:
    bits = 8 * int(prepared.bins.width[0])
    return [lay_out_splits(walks, bits, leaf) for walks in walked if walks.start.size for leaf in range(int(walks.width[0]))]


class Card:
    """The tables of a value on this process's card; any thread may ask, on a stream and buffers of its own."""

    def __init__(self, prepared: Prepared) -> None:
        from .decorator import cuda
        from .lookup import make_lookup
        from .walk import make_walk

        self._cuda, self._own = cuda, threading.local()
        tables: SemivalueTables = prepared.method
        self._top = (1 << 8 * int(prepared.bins.width[0])) - 1
        n_phi = prepared.n_played or prepared.players.size
        self._threads = next((threads for threads in THREADS if 8 * n_phi * threads <= SHARED_BYTES), 0)  # 0 where sums do not fit
        self._walks = []
        for splits in _lay_out(tables.walked, prepared):
            levels = -(-splits.levels // LEVELS) * LEVELS
            words = (splits.nodes.view(np.int64).reshape(-1), splits.weights.view(np.int64).reshape(-1), splits.records.view(np.int64))
            arrays = tuple(map(self._send, (splits.start, splits.output, *words, splits.sets)))
            self._walks.append(_Walk(make_walk(levels, splits.nodes.shape[1], self._threads > 0), splits, arrays))
        looked_up: LookupTables = tables.looked_up
        self._n_tables = looked_up.first.size
        names = ("marks", "start", "column", "target", "first", "values", "words")
        self._lookups = tuple(self._send(getattr(looked_up, name)) for name in names) if self._n_tables else ()
        self._look_up = make_lookup()

    def _send(self, array: np.ndarray) -> Any:
        return self._cuda.to_device(np.ascontiguousarray(array))

    def _room(self, name: str, size: int, dtype: Any) -> Any:
        """Return an array of this thread on the card, kept from one slice to the next."""
        kept = getattr(self._own, name, None)
        if kept is None or kept.size < size or kept.dtype != dtype:
            kept = self._cuda.device_array(size, dtype)
            setattr(self._own, name, kept)
        return kept[:size]

    def launch(self, bins: Any, out: Any, shape: tuple[int, int], n_rows: int, stream: Any) -> None:
        """Add the attributions of the first ``n_rows`` rows to ``out``, both flat on the card; ``shape`` is rows of phi, and rows."""
        n_phi, n = shape
        if self._n_tables:
            *tables, sets = self._lookups
            self._look_up[-(-n_rows // THREADS[0]), THREADS[0], stream](bins, n, *tables, sets, self._top, n_rows, out)
        threads, sums = self._threads or THREADS[0], 8 * n_phi * self._threads
        for walk in self._walks:
            walk.kernel[-(-n_rows // threads), threads, stream, sums](bins, n, *walk.arrays, self._top, n_phi, n_rows, out)

    def add(self, bins: np.ndarray, phi: np.ndarray, n_rows: int) -> None:
        """Add the attributions of the first ``n_rows`` rows.

        Parameters
        ----------
        bins : (used, n) unsigned integers
        phi : (outputs, rows, n) float64, contiguous
        """
        if not self._walks and not self._n_tables:
            return
        if not hasattr(self._own, "stream"):
            self._own.stream = self._cuda.stream()
        stream, given, out = self._own.stream, self._room("bins", bins.size, bins.dtype), self._room("phi", phi.size, np.float64)
        given.copy_to_device(np.ascontiguousarray(bins).reshape(-1), stream=stream)
        out.copy_to_device(phi.reshape(-1), stream=stream)
        self.launch(given, out, (phi.shape[1], phi.shape[2]), n_rows, stream)
        out.copy_to_host(phi.reshape(-1), stream=stream)
        stream.synchronize()


_CARDS: list[tuple[Any, Card]] = []  # tables, and where they are; the last few
_LOCK = threading.Lock()
KEPT = 4


def _find(prepared: Prepared) -> Card:
    """Return the tables on the card, sent there once."""
    sent = prepared.method
    with _LOCK:
        for known, card in _CARDS:
            if known is sent:
                return card
        card = Card(prepared)
        _CARDS.append((sent, card))
        del _CARDS[:-KEPT]
        return card


def on_card(method: Method, prepared: Prepared) -> Method:
    """Return a method whose kernel runs on the card.

    Parameters
    ----------
    prepared : Prepared
        the method's tables, for which ``find_obstacle`` finds none; the returned method is for these alone

    Returns
    -------
    Method
        the same but for its kernel; equal to the processor's within rounding
    """

    def attribute(buffers: Buffers, _: Any) -> None:
        _find(prepared).add(buffers.bins, buffers.phi, buffers.n_rows)

    return replace(method, kernel=attribute)
