"""Rows in memory with a game that is played on them: curves, gradients and values of coalitions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.set_indices import Sets
from leafledger.kernels.slices.buffers import Prepared
from leafledger.kernels.slices.row_outputs import take_outputs
from leafledger.kernels.trees.binning import BinTables
from leafledger.kernels.trees.forest import Forest, make_forest
from leafledger.kernels.trees.margin import MarginTables, add_margins, prepare_margin

from ...arguments.readers import optional, read_flag, read_partition
from ...cluster.threads import do_all
from ...dataset.columns.partition import Groups, Partition, read_groups
from ...dataset.columns.players import number_players
from ...errors import UnsupportedModel, UsageError
from ...methods.parameters import check_parameters, find_method
from ...methods.worker_memory import max_slice_rows
from ...models import load_ensemble
from ...models.model import Feature, Model
from ...models.row_output import RowOutput, choose_among, read_row_output
from ..explain.question import prepare_game
from ..rows.arrow_batches import as_batch
from ..rows.given_rows import BACKGROUND, ROWS, as_numbers, bin_batch, in_order, refuse_unknown, say_given, spell_features


def read_numbers(given: Any, name: str, shape: tuple[int, ...], players: Sequence[str]) -> np.ndarray:
    """Broadcast numbers to every row, output and player."""
    try:
        numbers = as_numbers(in_order(given, players, name))
    except (TypeError, ValueError):
        raise UsageError(f"{name} are {say_given(given)}, expected numbers") from None
    try:
        return np.broadcast_to(numbers, shape)
    except ValueError:
        hint = f"; numpy.asarray({name})[:, None] has an axis of one output" if np.shape(given) == shape[::2] else ""
        raise UsageError(f"{name} have shape {np.shape(given)}, expected {shape} or what NumPy spreads to it{hint}") from None


@dataclass(frozen=True, slots=True)
class PlayedRows:
    """Rows in Arrow, the model's forest, and the background of the game."""

    model: Model
    groups: Groups
    features: tuple[Feature, ...]
    bins: BinTables
    forest: Forest
    batch: pa.RecordBatch
    background: Any
    row_output: RowOutput | None
    allow_unseen: bool

    @property
    def players(self) -> tuple[str, ...]:
        """Names of players: groups of the partition, or features."""
        return tuple(group for group, _ in self.groups) or tuple(each.name for each in self.model.features)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of rows, outputs and players."""
        return self.batch.num_rows, len(self.model.outputs), self.forest.n_all

    def prepare(self, method: str, sets: Sets | None = None, **parameters: Any) -> Prepared:
        """Make the tables of a method in the game, and of interactions of sets where they are asked for."""
        known = self.model if self.background is None else spell_features(self.model, self.background, where=BACKGROUND)
        found, given = find_method(method), check_parameters(find_method(method), parameters)
        return prepare_game(self.model, known, found, given, self.groups, bool(sets), False, self.background, False, self.allow_unseen, sets)[0]

    def spread(self, work: Callable[[slice, np.ndarray], None], cells: int) -> None:
        """Run ``work(rows, bins)`` on batches of rows with this many numbers each, on all cores."""
        size = max_slice_rows(cells)
        parts = [slice(first, min(first + size, self.batch.num_rows)) for first in range(0, self.batch.num_rows, size)]

        def each(rows: slice) -> None:
            work(rows, bin_batch(self.features, self.bins, self.batch.slice(rows.start, rows.stop - rows.start))[1])

        do_all(each, parts)

    def to_kernel(self, values: np.ndarray, n: int) -> np.ndarray:
        """Return ``(outputs, players, n)`` for the players in splits, padded, from ``(rows, outputs, players)``."""
        players = self.forest.players
        out = np.zeros((values.shape[1], players.size, n))
        out[:, :, : len(values)] = values[:, :, players].transpose(1, 2, 0)
        return out

    def _prepare_margin(self) -> MarginTables:
        forest = self.forest
        return prepare_margin(forest.ensemble, forest.splits, forest.trace, forest.comparisons)

    def choose_outputs(self) -> np.ndarray | None:
        """Choose each row's output, ``(n,) int64``, by its margins; None where all are asked for."""
        asked = self.row_output
        if asked is None:
            return None
        found, tables = np.zeros(self.batch.num_rows, np.int64), self._prepare_margin()

        def work(part: slice, bins: np.ndarray) -> None:
            margin = np.zeros((len(self.model.outputs), bins.shape[1]))
            add_margins(bins, tables, margin)
            found[part] = asked.choose(margin[:, : part.stop - part.start], np.arange(part.start, part.stop))

        self.spread(work, 2 * len(self.model.outputs))
        return found

    def name_outputs(self, chosen: np.ndarray | None) -> np.ndarray | None:
        """Name each row's output, ``(n,) str``."""
        return None if chosen is None else np.array(self.model.outputs, object)[chosen]


def keep_output(values: np.ndarray, chosen: np.ndarray | None) -> np.ndarray:
    """Keep each row's output of ``(n, outputs, …)``; all of them where none is chosen."""
    return values if chosen is None else np.moveaxis(take_outputs(np.moveaxis(values, 0, -1), chosen), -1, 0)


def play_rows(given: Any, rows: Any, partition: Partition | None, background: Any, output: str | int | None, allow_unseen: bool) -> PlayedRows:
    """Read a model and rows, and what game is played on them."""
    row_output = read_row_output(output)
    loaded = choose_among(row_output, load_ensemble(given, output=None if row_output is not None else output))
    model = spell_features(loaded, rows)
    groups = read_groups(optional(read_partition)("partition", partition), model.features)
    players, unseen = number_players(model, groups), read_flag("allow_unseen", allow_unseen)
    if players.combinations:
        raise UnsupportedModel("the model has statistics of several features at once, expected a CatBoost model trained with max_ctr_complexity=1")
    bins, forest = make_forest(model.ensemble, players.numbers)
    features, batch = as_batch(model, rows, bins.read.tolist())
    refuse_unknown(features, bins, batch, ROWS, unseen)
    return PlayedRows(model, groups, features, bins, forest, batch, background, row_output, unseen)
