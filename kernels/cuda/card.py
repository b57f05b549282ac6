"""A method's kernel on a graphics card; bins come from the processor, and margins stay there, against which sums are checked.

Binning takes a processor's core a tenth of a microsecond a row and is not worth a kernel; the margins of a row are a hundredth of the work of its
attributions, and computed elsewhere they check what a card returns.
"""

from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from ..errors import InvalidParameters
from ..method.method import Method
from ..semivalues.methods import attribute_semivalues
from ..semivalues.tables import SemivalueTables
from ..slices.buffers import Buffers, Prepared
from .splits import MOST_FEATURES, lay_out_all_splits

if TYPE_CHECKING:
    from .memory import Room
    from .tables import Jobs


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


def _count_phi(prepared: Prepared) -> int:
    """Return the number of rows of phi that the kernel writes for each output."""
    return prepared.n_played or prepared.players.size


def find_obstacle(method: Method, prepared: Prepared | None = None) -> str:
    """Say why a method's kernel cannot run on a card.

    Parameters
    ----------
    prepared : Prepared, optional
        the method's tables; not given, of any model with a background

    Returns
    -------
    str
        empty if it can
    """
    kernel = method.kernel
    if kernel is not attribute_semivalues:
        return f"method {method.name!r} runs on processors only"
    if prepared is None:
        return ""
    if prepared.bins.column.size >= MOST_FEATURES:
        return f"the model's splits have {prepared.bins.column.size:,} features, at most {MOST_FEATURES - 1:,} are possible"
    try:
        laid_out = lay_out_all_splits(prepared.method.walked, 8 * int(prepared.bins.width[0]))
    except InvalidParameters as error:
        return str(error)
    others = any(splits.rows > _count_phi(prepared) for splits in laid_out)
    return "trees are cut to what groups of players can change, as for Owen values, which run on processors only" if others else ""


def list_tables(prepared: Prepared) -> list[SemivalueTables]:
    """Return the tables that the method's kernel is called with, in any order."""
    together: tuple[SemivalueTables, ...] = prepared.weighted.tables or (prepared.method,)
    lots = ((lot.tables if prepared.weighted.tables else (lot,)) for lot in prepared.without.tables)
    return [*together, *(each for lot in lots for each in lot)]


def on_card(method: Method, prepared: Prepared) -> Method:
    """Return a method whose kernel runs on the card.

    Parameters
    ----------
    prepared : Prepared
        the method's tables, for which ``find_obstacle`` finds none; the returned method is for these alone

    Returns
    -------
    Method
        the same but for its kernel; equal to the processor's within rounding. Any thread may call it; it raises ``NoRoom`` where tables or not even
        one slice fit into the card's memory
    """
    from . import memory, tables

    known, bin_bits, n_phi = list_tables(prepared), 8 * int(prepared.bins.width[0]), _count_phi(prepared)

    def lay_out() -> list["Jobs"]:
        return [tables.lay_out(each, bin_bits, n_phi) for each in known]

    def attribute(buffers: Buffers, asked: SemivalueTables) -> None:
        bins, phi, n_rows = buffers.bins, buffers.phi, buffers.n_rows
        n_words, number = phi.size - -bins.nbytes // 8, next(k for k, each in enumerate(known) if each is asked)
        if not bins.size or not phi.size:
            return

        def work(sent: list["Jobs"], room: "Room") -> None:
            given, there = room.here[phi.size : n_words].view(bins.dtype), room.there[phi.size : n_words].view(bins.dtype)
            out, found = room.there[: phi.size], room.here[: phi.size]
            given[: bins.size].reshape(bins.shape)[:] = bins
            there.copy_to_device(given, stream=room.stream)
            tables.launch(sent[number], there, out, phi.shape[1], phi.shape[2], n_rows, room.stream)
            out.copy_to_host(found, stream=room.stream)
            room.stream.synchronize()
            phi[:, :, :n_rows] += found.reshape(phi.shape)[:, :, :n_rows]

        memory.MEMORY.use(known[0], lay_out, n_words, work)

    return replace(method, kernel=attribute)
