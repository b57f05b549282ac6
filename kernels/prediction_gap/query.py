"""Statistics that perturbations need of a background, and the methods' use of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidParameters
from ..jit.decorator import count_bytes, frozen
from ..method.method import Parameters, Phi, refuse_other
from ..ranking.methods import bound_ranking
from ..slices.buffers import NO_PAIRS
from ..trees.binning import BinTables
from ..trees.forest import Forest
from ..trees.margin import margin_bytes
from ..trees.paths import empty_coalition
from .leaf_regions import make_regions, numeric_alone
from .noise import Measured, check_measured, measure

RECORD_BYTES = 1 << 12  # bytes of records with empty arrays


class PerturbationQuery(NamedTuple):
    """Moments of every feature, and the values that groups are resampled from."""

    bins: BinTables
    player: np.ndarray  # (used,) int64, player of each used feature
    players: np.ndarray  # (rows,) int32, as Prepared.players
    n_bytes: np.ndarray  # (1,) int64, bytes of the prepared tables, at most

    @property
    def pairs(self) -> np.ndarray:
        """None: rankings have no interactions."""
        return NO_PAIRS

    def measure(self, values: np.ndarray, bins: np.ndarray, n_rows: int, first_row: int) -> Measured:  # noqa: ARG002 - the shape of a query
        """Measure the moments of used features, and count the combinations of every unit's bins.

        Parameters
        ----------
        values : (used, n) float64, NaN where missing
        bins : (used, n) unsigned integers
        n_rows : int
            how many of the rows count, the first
        first_row : int
            not needed
        """
        everything = np.ones(int(self.player.max(initial=-1)) + 1, bool)
        return measure(values[:, :n_rows], bins[:, :n_rows], self.player, everything)

    def check(self, statistics: Any, n_rows: int) -> None:
        """Refuse statistics that no background rows can have.

        Parameters
        ----------
        n_rows : int
            rows of the background
        """
        check_measured(self.bins, self.player, statistics, n_rows)

    def weigh_leaves(self, forest: Forest) -> Measured:  # noqa: ARG002 - the shape of a query
        """Refuse leaf weights as background: they do not determine the spread of features.

        Returns
        -------
        Measured
            never

        Raises
        ------
        InvalidParameters
            always
        """
        raise InvalidParameters("rows are perturbed by what is measured of a background, expected rows, got the model")


@dataclass(frozen=True, slots=True)
class PerturbationUse:
    """Perturbations with scales and draws from a background."""

    # ``(forest, parameters, measured) -> tables``, of the same type as without a background
    tables: Callable[[Forest, Parameters, Measured], NamedTuple]

    def ask(
        self,
        forest: Forest,
        bins: BinTables,
        phi: Phi,
        n_rows: int | None,
        budget: int,  # noqa: ARG002 - as MarginalUse
        interactions: bool,  # noqa: ARG002 - as MarginalUse
        order: int = 0,  # noqa: ARG002 - as MarginalUse
    ) -> PerturbationQuery:
        """Bound the bytes of the tables for a background of this many rows.

        Parameters
        ----------
        bins : BinTables
            by which the background's rows become bins
        phi : Phi
            of the method: its rows
        n_rows : int or None
            rows of the background; None for the model's own leaf weights, which are refused later
        budget : int
            decides nothing, for tables cannot be made smaller
        interactions : bool
            decides nothing, for there are none

        Returns
        -------
        PerturbationQuery
            contiguous and read-only
        """
        regions, alone = make_regions(forest, {}), numeric_alone(forest)
        n_bins = np.diff(bins.start) + bins.n_codes + 3.0
        n_patterns = np.ones(forest.n_players)
        np.multiply.at(n_patterns, forest.player, n_bins)
        atoms = (np.minimum(n_patterns, n_rows or 0) * (16 + 8 * np.bincount(forest.player, minlength=forest.n_players)))[~alone].sum()
        n_bytes = RECORD_BYTES + count_bytes(regions) + atoms + 8 * (np.diff(regions.units.side)[~alone] ** 2).sum()
        n_bytes += bound_ranking(forest)
        n_bytes += bins.threshold.nbytes + margin_bytes(forest.ensemble, forest.trace, forest.comparisons)
        players = np.asarray(phi.rows(forest), np.int32)
        return frozen(PerturbationQuery(bins, forest.player.astype(np.int64), players, np.array([n_bytes], np.int64)))

    def prepare(
        self,
        forest: Forest,
        phi: Phi,  # noqa: ARG002 - as MarginalUse
        parameters: Parameters,
        query: Any,
        statistics: Any,
    ) -> tuple[NamedTuple, np.ndarray]:
        """Make the tables from the background's statistics; absent features are averaged by cover.

        Parameters
        ----------
        phi : Phi
            decides nothing
        parameters : mapping
            from the name of each of the method's parameters to its value
        query : PerturbationQuery
            what ``ask`` returned for the same forest
        statistics : Measured
            what the query measured of all rows

        Returns
        -------
        tables : NamedTuple
            of the same type as without a background
        base : (outputs,) float64, margin units
            value of the empty coalition of the path-dependent game

        Raises
        ------
        InvalidParameters
            the query or the statistics are those of another use, or the parameters do not fit
        """
        refuse_other(query, statistics, (PerturbationQuery, Measured))
        return self.tables(forest, parameters, statistics), empty_coalition(forest.ensemble, forest.trace)
