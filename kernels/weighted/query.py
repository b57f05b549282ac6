"""What weighted games need of a background: first the range of its margins, then, with the nodes chosen for it, counts and sums of weights."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidParameters
from ..jit.decorator import frozen
from ..marginal.background import first_codes, n_words
from ..marginal.counts import check_counts
from ..marginal.game import MarginalGame
from ..marginal.query import MarginalQuery, MarginalUse, make_game
from ..method.method import Parameters, Phi, refuse_arrays, refuse_other, refuse_unless
from ..quotients.nodes import MOST, Nodes, choose_nodes, weigh_rows
from ..quotients.quantities import Quantity, decode
from ..slices.buffers import Weighted
from ..trees.binning import BinTables
from ..trees.forest import Forest
from ..trees.margin import MarginTables, add_margins, prepare_margin
from ..trees.paths import value_range
from .counts import ONE, MarginRange, WeightedCounts, count_weighted


class CarriedQuery(NamedTuple):
    """A query of the marginal game, and what weighs rows by their margins."""

    query: MarginalQuery
    n_bytes: np.ndarray  # (1,) int64, bytes of the prepared tables, at most
    margin: MarginTables
    reached: np.ndarray  # (outputs, 2) float64, margin units: the smallest and largest margin that the model can have
    code: np.ndarray  # (2,) float64, see Quantity.encode
    n_rows: np.ndarray  # (1,) int64, of the whole background
    width: np.ndarray  # (1,) int64, columns of leaf values
    coded_output: np.ndarray  # (coded subtrees,) int64, the first output that each adds to
    deep_output: np.ndarray  # (deep subtrees,) int64
    nodes: tuple[Nodes, ...]  # one, or none as long as the range of margins is not known

    @property
    def bins(self) -> BinTables:
        """Binning of rows."""
        return self.query.bins

    @property
    def players(self) -> np.ndarray:
        """As ``Prepared.players``."""
        return self.query.players

    @property
    def pairs(self) -> np.ndarray:
        """As ``Pairs.players``."""
        return self.query.pairs

    def choose(self, ranges: MarginRange) -> "CarriedQuery":
        """Choose the nodes.

        Parameters
        ----------
        ranges : MarginRange
            of all rows

        Returns
        -------
        CarriedQuery
            that counts

        Raises
        ------
        InvalidParameters
            margins lie too far apart
        """
        held = np.stack((ranges.low, ranges.high), axis=1)
        return frozen(self._replace(nodes=(choose_nodes(decode(self.code), self.reached, held, int(self.n_rows[0])),)))

    def measure(self, values: np.ndarray, bins: np.ndarray, n_rows: int, first_row: int) -> MarginRange | WeightedCounts:  # noqa: ARG002 - the shape of a query
        """Measure the rows of a part of a background.

        Parameters
        ----------
        values : (used, n) float64
            not needed, bins say all
        bins : (used, n) unsigned integers, n a multiple of BATCH
        n_rows : int
            how many of the rows count, the first
        first_row : int
            not needed
        """
        margin = np.zeros((self.margin.base.size, bins.shape[1]))
        add_margins(bins, self.margin, margin)
        margin = margin[:, :n_rows]
        if not self.nodes:
            return MarginRange(margin.min(axis=1, initial=np.inf), margin.max(axis=1, initial=-np.inf))
        weights, rises = weigh_rows(decode(self.code), self.nodes[0], margin)
        outputs = self.coded_output, self.deep_output
        counted = count_weighted(bins, self.query.partitioning, n_rows, outputs, int(self.width[0]), weights)
        return WeightedCounts(counted, rises.sum(axis=2), np.array([n_rows]), self.nodes[0])

    def check(self, statistics: Any, n_rows: int) -> None:
        """Refuse sums that no background rows can have.

        Parameters
        ----------
        n_rows : int
            rows of the background
        """
        refuse_other(self.query, statistics, (MarginalQuery, WeightedCounts))
        nodes, outputs = statistics.nodes, self.margin.base.size
        refuse_unless(isinstance(nodes, Nodes) and nodes.margin.ndim == 2 and 0 < nodes.margin.shape[1] <= MOST, f"at most {MOST} margins")
        k, terms = nodes.margin.shape[1], len(decode(self.code).terms)
        kinds: dict[str, tuple[type, tuple[int, ...]]] = {"term": (np.int64, (outputs, k)), "shift": (np.float64, (outputs,))}
        kinds |= dict.fromkeys(("margin", "row", "scale"), (np.float64, (outputs, k)))
        kinds |= dict.fromkeys(("lower", "upper"), (np.float64, (outputs, k, k)))
        kinds |= {"size": (np.int64, (outputs,)), "exponent": (np.int64, (1,)), "rise_exponent": (np.int64, (outputs, terms))}
        refuse_arrays(nodes, kinds)
        refuse_unless((nodes.term >= 0) & (nodes.term < terms), "conditions of terms")
        refuse_unless((nodes.size > 0) & (nodes.size <= k), "margins of every output")
        refuse_unless(np.isfinite(nodes.margin) & np.isfinite(nodes.row), "finite margins")
        refuse_arrays(statistics, {"rises": (np.int64, (outputs, terms)), "n_rows": (np.int64, (1,))})
        refuse_unless(statistics.n_rows == n_rows, f"{n_rows} rows")
        columns, partitioning = ONE + int(self.width[0]) * k, self.query.partitioning
        shapes = {"counts": (int(first_codes(partitioning.coded)[-1]), columns), "patterns": (-1, n_words(partitioning.deep)), "times": (-1, columns)}
        refuse_arrays(statistics.counted, {name: (np.int64, shape) for name, shape in shapes.items()})
        check_counts(partitioning, statistics.rows, n_rows)

    def weigh_leaves(self, forest: Forest) -> WeightedCounts:  # noqa: ARG002 - the shape of a query
        """Refuse leaf weights as background: they have no rows.

        Returns
        -------
        WeightedCounts
            never

        Raises
        ------
        InvalidParameters
            always
        """
        raise InvalidParameters("the model's own leaf weights have no rows to go by one by one")


def _first_outputs(forest: Forest, nodes: np.ndarray) -> np.ndarray:
    return forest.ensemble.output[forest.trace.tree[nodes]].astype(np.int64)


def count_games(quantity: Quantity, width: int) -> int:
    """Bound the number of weighted games.

    Parameters
    ----------
    width : int
        columns of leaf values
    """
    return width * (2 if quantity.polynomial else MOST)


def ask_carried(forest: Forest, query: MarginalQuery, quantity: Quantity, n_rows: int) -> CarriedQuery:
    """Make the query of weighted games.

    Parameters
    ----------
    query : MarginalQuery
        made for the same forest
    n_rows : int
        of the background

    Returns
    -------
    CarriedQuery
        that measures the range of margins, contiguous and read-only
    """
    ensemble, width = forest.ensemble, forest.ensemble.value.shape[1]
    reached = np.repeat(ensemble.base[:, None].astype(np.float64), 2, axis=1)
    for column in range(width):
        for end, values in enumerate(value_range(ensemble, forest.trace, column)):
            reached[:, end] += np.bincount(ensemble.output + column, values, minlength=len(reached))
    coded, deep = query.partitioning
    return frozen(
        CarriedQuery(
            query=query,
            n_bytes=query.n_bytes * (1 + count_games(quantity, width)),
            margin=prepare_margin(ensemble, forest.splits, forest.trace, forest.comparisons),
            reached=reached,
            code=quantity.encode(),
            n_rows=np.array([n_rows], np.int64),
            width=np.array([width], np.int64),
            coded_output=_first_outputs(forest, coded.leaves.node[coded.leaves.start[:-1]]),
            deep_output=_first_outputs(forest, deep.leaves.node),
            nodes=(),
        )
    )


def weigh_games(forest: Forest, phi: Phi, query: CarriedQuery, statistics: Any) -> Iterator[MarginalGame]:
    """Play all weighted games: of every column of leaf values and, within a column, of every margin of the nodes.

    Parameters
    ----------
    phi : Phi
        of the method
    query : CarriedQuery
        what was asked, for the same forest
    statistics : WeightedCounts
        of all rows

    Yields
    ------
    MarginalGame
    """
    refuse_other(query, statistics, (CarriedQuery, WeightedCounts))
    n_nodes, value = statistics.nodes.margin.shape[1], forest.ensemble.value
    for column in range(int(query.width[0])):
        alone = np.zeros_like(value)
        alone[:, column] = value[:, column]
        only = forest._replace(ensemble=forest.ensemble._replace(value=alone))
        for k in range(n_nodes):
            yield make_game(only, phi, query.query, statistics.share(column * n_nodes + k))


def prepare_carried(
    use: MarginalUse, forest: Forest, phi: Phi, parameters: Parameters, query: CarriedQuery, statistics: Any
) -> tuple[Weighted, NamedTuple, np.ndarray]:
    """Make the tables of all weighted games, and those of the game without weights.

    Parameters
    ----------
    use : MarginalUse
        of the method
    phi : Phi
        of the method
    parameters : mapping
        from the name of each of the method's parameters to its value
    query, statistics
        as ``weigh_games`` takes them

    Returns
    -------
    weighted : Weighted
    tables : NamedTuple
        of the method, of margins
    base : (outputs,) float64, margin units
        value of the empty coalition, the background's mean margin
    """
    tables = [use.tables(game, parameters) for game in weigh_games(forest, phi, query, statistics)]
    plain, base = use.prepare(forest, phi, parameters, query.query, statistics.rows)
    return Weighted(query.code, (statistics.nodes,), tuple(tables), statistics.mean_rises), plain, base
