"""The Method record: tables per model, kernel, outputs, checks, and the protocols of backgrounds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import InvalidParameters
from ..game_values import GameValue
from ..reductions.summary import IMPORTANCE, Summary
from ..slices.buffers import Buffers, Prepared
from ..trees.binning import BinTables
from ..trees.forest import Forest
from .open_parameters import Tuning
from .parameters import Parameter

Parameters = Mapping[str, Any]
TOLERANCE = 1e-9  # of a bound: rounding stays near 1e-13, wrong tables are far off


class BackgroundStatistics(Protocol):
    """Statistics of a background, or of a part of one: a NamedTuple of arrays."""

    def merge(self, others: Sequence[Any]) -> Any:
        """Add the statistics of other parts, in order, since float sums depend on it.

        Parameters
        ----------
        others : sequence of the same kind
            of the parts that follow, measured by the same query

        Returns
        -------
        BackgroundStatistics
            of the same kind, of all parts; the given ones are left as they are
        """


class BackgroundQuery(Protocol):
    """Statistics that a method needs of a background: a NamedTuple of arrays, mapped by workers."""

    @property
    def bins(self) -> BinTables:
        """Binning of rows."""

    @property
    def players(self) -> np.ndarray:
        """As ``Prepared.players``."""

    @property
    def n_bytes(self) -> np.ndarray:
        """``(1,) int64``, bytes of the prepared tables, at most."""

    @property
    def pairs(self) -> np.ndarray:
        """As ``Pairs.players``; empty without interactions."""

    def measure(self, values: np.ndarray, bins: np.ndarray, n_rows: int, first_row: int) -> BackgroundStatistics:
        """Measure the rows of a part of a background.

        Parameters
        ----------
        values : (used, n) float64, as ``bin_rows`` left them
        bins : (used, n) unsigned integers, n a multiple of BATCH
        n_rows : int
            how many of the rows count, the first; those behind are padding
        first_row : int
            number of the first in the whole background
        """

    def check(self, statistics: Any, n_rows: int) -> None:
        """Refuse statistics that no background rows can have: they may come from a file, and kernels do not check their tables.

        Parameters
        ----------
        statistics : Any
            records of arrays
        n_rows : int
            that were measured
        """

    def weigh_leaves(self, forest: Forest) -> BackgroundStatistics:
        """Use the model's own leaf weights as background.

        Parameters
        ----------
        forest : Forest
            that the query was made for

        Raises
        ------
        InvalidParameters
            leaf weights do not say enough
        """


class BackgroundUse(Protocol):
    """How a method uses a background."""

    def ask(
        self, forest: Forest, bins: BinTables, phi: "Phi", n_rows: int | None, budget: int, interactions: bool, order: int = 0
    ) -> BackgroundQuery:
        """Determine the statistics needed of a background so that the tables fit into memory.

        Parameters
        ----------
        bins : BinTables
            by which the background's rows become bins
        phi : Phi
            of the method: its rows, and whether its players are groups
        n_rows : int or None
            rows of the background; None for the model's own leaf weights
        budget : int
            bytes that tables may have
        interactions : bool
            there are tables of pairs too, where the method has interactions
        order : int
            these are of sets of up to so many players; 0 for pairs

        Raises
        ------
        InvalidParameters
            they do not fit
        """

    def prepare(self, forest: Forest, phi: "Phi", parameters: Parameters, query: Any, statistics: Any) -> tuple[NamedTuple, np.ndarray]:
        """Make the method's tables.

        Parameters
        ----------
        phi : Phi
            as ``ask`` takes it
        parameters : mapping
            from the name of each of the method's parameters to its value
        query : BackgroundQuery
            what ``ask`` returned for the same forest
        statistics : BackgroundStatistics
            what the query measured of all rows, or took from leaf weights

        Returns
        -------
        tables : NamedTuple
            of the same type as those of the path-dependent game
        base : (outputs,) float64, margin units
            value of the empty coalition

        Raises
        ------
        InvalidParameters
            the query or the statistics are those of another use, or the parameters do not fit
        """


@dataclass(frozen=True, slots=True)
class Games:
    """Games that a method supports, each with a function that makes its tables."""

    path_dependent: Callable[[Forest, Parameters], NamedTuple]  # ``(forest, parameters) -> tables``; absent features are averaged by cover
    background: BackgroundUse | None = None  # tables against a background; None if unsupported
    value: Callable[[Parameters], GameValue] | None = None  # ``parameters -> game value`` of interactions; None if unsupported
    index: str = ""  # interaction index of sets if none is named, of INDICES; "" where the game value weighs sets of every size


@dataclass(frozen=True, slots=True)
class Phi:
    """What a method writes for every row: ``phi (outputs, rows, n)``, and ``path (outputs, steps, n)`` if it has steps."""

    rows: Callable[[Forest], np.ndarray] = lambda forest: forest.players  # ``forest -> (rows,)``, players or features of phi's rows
    of_groups: bool = True  # with a partition, players are its groups; otherwise the features within them, and a partition is required
    column: str = "phi"  # prefix of the columns in parts
    scores: tuple[str, ...] = ()  # names of scores that follow the players' rows
    ranks: str = ""  # SCORE or SIZE if the players' rows hold ranks by it; empty for values, which determine both ranks
    linear: bool = True  # values are linear in the game, so that those of a player can be shared among several it stands for
    n_steps: Callable[[Parameters, int], int] = lambda parameters, n_players: 0  # ``(parameters, n_players) -> steps`` of the path


@dataclass(frozen=True, slots=True)
class Check:
    """Additivity check: the total of every row's attributions."""

    residuals: Callable[[Prepared, Buffers, int], np.ndarray]  # ``(prepared, buffers, n_rows) -> (outputs, n_rows) float64``, as fractions of a bound
    miss: str  # error message with ``{missed}``
    of_margins: bool = False  # phi sums to margin minus base value, so that stored columns can be checked
    applies: Callable[[Parameters], bool] = lambda parameters: True  # whether attributions with these parameters add up


@dataclass(frozen=True, slots=True)
class Method:
    """An attribution algorithm."""

    name: str
    meaning: str  # one line for people
    games: Games
    # ``(buffers, tables)`` adds into ``buffers.phi`` and writes further outputs; values and bins are read-only
    kernel: Callable[[Buffers, Any], None]
    parameters: tuple[Parameter, ...] = ()
    phi: Phi = Phi()  # outputs of the kernel
    check: Check | None = None  # None if attributions are not additive
    summaries: tuple[Summary, ...] = (IMPORTANCE,)  # reductions of a run over all rows
    labelled: bool = False  # rows need labels, which the margin predicts
    perturbs: bool = False  # needs margins of rows with perturbed values
    tuning: Tuning | None = None  # of an open parameter; None if none can be left open

    @property
    def attributes(self) -> bool:
        """Whether phi attributes margins, and neither ranks nor shares of an error."""
        return not self.phi.ranks and not self.labelled

    def check_of(self, parameters: Parameters) -> Check | None:
        """Return the additivity check that applies with these parameters.

        Parameters
        ----------
        parameters : mapping
            from the name of each of the method's parameters to its value

        Returns
        -------
        Check or None
            None where they add up to nothing
        """
        return self.check if self.check is not None and self.check.applies(parameters) else None


def miss_margins(parts: np.ndarray, prepared: Prepared, buffers: Buffers, n_rows: int) -> np.ndarray:
    """Return |base + sum of parts - margin| as a fraction of the margin's bound.

    Parameters
    ----------
    parts : (outputs, parts, n) float64, margin units

    Returns
    -------
    (outputs, n_rows) float64
    """
    total = parts[:, :, :n_rows].sum(axis=1) + prepared.base[:, None] - buffers.margin[:, :n_rows]
    return np.abs(total) / np.maximum(prepared.bound, np.finfo(np.float64).tiny)[:, None]


def _miss_margins(prepared: Prepared, buffers: Buffers, n_rows: int) -> np.ndarray:
    return miss_margins(buffers.phi, prepared, buffers, n_rows)


ADDITIVE = Check(_miss_margins, "attributions miss margin - base value by {missed:.3g} of the margin's bound", of_margins=True)


def refuse_other(query: Any, statistics: Any, expected: tuple[type, type]) -> None:
    """Refuse a background query or statistics of another kind of method.

    Parameters
    ----------
    expected : tuple of two types
        what each has to be
    """
    for found, wanted in zip((query, statistics), expected, strict=True):
        if not isinstance(found, wanted):
            raise InvalidParameters(f"the background is known as {type(found).__name__}, the method expects {wanted.__name__}")


def refuse_unless(holds: Any, what: str) -> None:
    """Refuse background statistics that fail a condition.

    Parameters
    ----------
    holds : bool, or array of bool
        has to be true everywhere
    what : str
        has to hold
    """
    if not np.all(holds):
        raise InvalidParameters(f"the background's statistics are those of no rows, expected {what}")


def refuse_arrays(record: Any, kinds: Mapping[str, tuple[type, tuple[int, ...]]]) -> None:
    """Refuse a record of arrays with wrong types or shapes.

    Parameters
    ----------
    kinds : mapping
        from the name of each of its arrays to its type and its shape, -1 for any length
    """
    for name, (kind, shape) in kinds.items():
        array = getattr(record, name)
        refuse_unless(isinstance(array, np.ndarray) and array.dtype == kind, f"{name} of {kind.__name__}")
        fits = array.ndim == len(shape) and all(wanted in (-1, found) for wanted, found in zip(shape, array.shape, strict=True))
        refuse_unless(fits, f"{name} of shape {shape}")
