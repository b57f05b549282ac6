"""Insertion and deletion curves of rankings in memory, and gradients of the multilinear extension."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels import game_values
from leafledger.kernels.path_dependent.games import play
from leafledger.kernels.path_dependent.multilinear import add_gradients, prepare_gradient
from leafledger.kernels.ranking.curves import add_areas, prepare_curves
from leafledger.kernels.trees.binning import BinTables
from leafledger.kernels.trees.forest import Forest, make_forest

from ...arguments.readers import optional, read_flag, read_partition
from ...cluster.threads import do_all
from ...dataset.columns.partition import Partition, read_groups
from ...dataset.columns.players import number_players
from ...display.text import count
from ...errors import UnsupportedModel, UsageError
from ...methods.tables import refused
from ...methods.worker_memory import max_slice_rows
from ...models import load_ensemble
from ...models.model import Feature
from ..rows.arrow_batches import as_batch
from ..rows.given_rows import ROWS, as_numbers, bin_batch, in_order, refuse_unknown, say_given, spell_features


@dataclass(frozen=True, slots=True)
class Curves:
    """Margins when features of a ranking are present: those on top (insertion), or those at its bottom (deletion), from none to all.

    The higher insertion's areas, and the lower deletion's, the better is the ranking.

    Attributes
    ----------
    insertion, deletion : (n, outputs, players + 1) float64
        Expected margins, margin units, with 0, 1, … players present.
    insertion_area, deletion_area : (n, outputs) float64
        Means of all points but the first, margin units.
    """

    insertion: np.ndarray
    deletion: np.ndarray
    insertion_area: np.ndarray
    deletion_area: np.ndarray

    def __repr__(self) -> str:
        n, outputs, points = self.insertion.shape
        return f"Curves({count(n, 'row')}, {count(outputs, 'output')}, {count(points, 'point')})"


@dataclass(frozen=True, slots=True)
class Gradient:
    """The margin that is expected where every player is present with a probability of its own, and its derivatives.

    Attributes
    ----------
    phi : (n, outputs, players) float64
        Derivatives by every player's probability, margin units; 0 for players in no split.
    margin : (n, outputs) float64
        The expected margin.
    """

    phi: np.ndarray
    margin: np.ndarray

    def __repr__(self) -> str:
        n, outputs, n_players = self.phi.shape
        return f"Gradient({count(n, 'row')}, {count(outputs, 'output')}, {count(n_players, 'player')})"


def _read(given: Any, name: str, shape: tuple[int, ...], players: Sequence[str]) -> np.ndarray:
    """Broadcast numbers to every row, output and player."""
    try:
        numbers = as_numbers(in_order(given, players, name))
    except (TypeError, ValueError):
        raise UsageError(f"{name} are {say_given(given)}, expected numbers") from None
    try:
        return np.broadcast_to(numbers, shape)
    except ValueError:
        raise UsageError(f"{name} have shape {np.shape(given)}, expected {shape} or what spreads to it") from None


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows in Arrow, and the model's forest."""

    features: tuple[Feature, ...]
    bins: BinTables
    forest: Forest
    batch: pa.RecordBatch
    n_outputs: int
    players: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of rows, outputs and players."""
        return self.batch.num_rows, self.n_outputs, self.forest.n_all

    def spread(self, work: Callable[[slice, np.ndarray], None], cells: int) -> None:
        """Run ``work(rows, bins)`` on batches of rows with this many numbers each, on all cores."""
        size = max_slice_rows(cells)
        parts = [slice(first, min(first + size, self.batch.num_rows)) for first in range(0, self.batch.num_rows, size)]

        def each(rows: slice) -> None:
            work(rows, bin_batch(self.features, self.bins, self.batch.slice(rows.start, rows.stop - rows.start))[1])

        do_all(each, parts)


def _set_up(given: Any, rows: Any, partition: Partition | None, allow_unseen: bool) -> _Rows:
    model = spell_features(load_ensemble(given), rows)
    groups = read_groups(optional(read_partition)("partition", partition), model.features)
    players = number_players(model, groups)
    if players.combinations:
        raise UnsupportedModel("the model has statistics of several features at once, expected a CatBoost model trained with max_ctr_complexity=1")
    bins, forest = make_forest(model.ensemble, players.numbers)
    features, batch = as_batch(model, rows, bins.read.tolist())
    refuse_unknown(features, bins, batch, ROWS, read_flag("allow_unseen", allow_unseen))
    return _Rows(
        features, bins, forest, batch, len(model.outputs), tuple(group for group, _ in groups) or tuple(each.name for each in model.features)
    )


def _to_kernel(values: np.ndarray, players: np.ndarray, n: int) -> np.ndarray:
    """Return ``(outputs, players, n)`` for the players in splits, padded, from ``(rows, outputs, players)``."""
    out = np.zeros((values.shape[1], players.size, n))
    out[:, :, : len(values)] = values[:, :, players].transpose(1, 2, 0)
    return out


def gradient(model: Any, rows: Any, z: Any = 0.5, *, partition: Partition | None = None, allow_unseen: bool = False) -> Gradient:
    """Differentiate the path-dependent game's multilinear extension, of the whole ensemble, at a point of every row's own.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    rows : data frame, Arrow table or array
        n rows, as `attribute` takes them.
    z : array or float
        Probabilities that players are present, each independently: (n, outputs, players), or what NumPy spreads to it. Players are all features, or
        groups; what pandas has names of goes by them. At 0.5 everywhere, derivatives are Banzhaf values.
    partition : mapping, str or path, optional
        Groups of features, as `attribute` takes them.
    allow_unseen : bool
        Take rows of which the model knows hardly any category of some feature; by default they are refused.

    Returns
    -------
    Gradient
        Derivatives by every probability and the margin that is expected, margin units.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where. UsageError where probabilities are not numbers between 0 and 1 of that shape.
    """
    found = _set_up(model, rows, partition, allow_unseen)
    point = _read(z, "probabilities", found.shape, found.players)
    if not ((point >= 0) & (point <= 1)).all():
        raise UsageError("probabilities are expected to lie between 0 and 1")
    with refused():
        tables = prepare_gradient(play(found.forest, game_values.shapley))
    out = Gradient(np.zeros(found.shape), np.zeros(found.shape[:2]))

    def work(part: slice, bins: np.ndarray) -> None:
        n, at = part.stop - part.start, _to_kernel(point[part], found.forest.players, bins.shape[1])
        phi, margin = np.zeros(at.shape), np.zeros((at.shape[0], at.shape[2]))
        add_gradients(bins, tables, at, phi, margin)
        out.phi[part, :, found.forest.players] = phi[:, :, :n].transpose(2, 0, 1)
        out.margin[part] = margin[:, :n].T

    found.spread(work, 3 * found.n_outputs * found.forest.n_players)
    return out


def curves(model: Any, rows: Any, scores: Any, *, partition: Partition | None = None, allow_unseen: bool = False) -> Curves:
    """Measure rankings by any scores with insertion and deletion curves, in the path-dependent game of the whole ensemble.

    A ranking is by descending score; equal scores keep the order of features.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    rows : data frame, Arrow table or array
        n rows, as `attribute` takes them.
    scores : array or float
        (n, outputs, players), or what NumPy spreads to it, such as ``attribute(…).phi``. Finite, in any unit, and 0 where a player is in no split.
        Players are all features, or groups; what pandas has names of goes by them.
    partition : mapping, str or path, optional
        Groups of features, as `attribute` takes them.
    allow_unseen : bool
        Take rows of which the model knows hardly any category of some feature; by default they are refused.

    Returns
    -------
    Curves

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where. UsageError where scores are not such numbers.
    """
    found = _set_up(model, rows, partition, allow_unseen)
    n_all, given = found.forest.n_all, _read(scores, "scores", found.shape, found.players)
    if not np.isfinite(given).all():
        raise UsageError("scores are expected to be finite")
    if given[:, :, np.setdiff1d(np.arange(n_all), found.forest.players)].any():
        raise UsageError("scores are expected to be 0 for features that no split asks for")
    with refused():
        tables = prepare_curves(play(found.forest, game_values.shapley), found.forest.players, n_all)
    points, areas = [np.zeros((*found.shape[:2], n_all + 1)) for _ in range(2)], [np.zeros(found.shape[:2]) for _ in range(2)]

    def work(part: slice, bins: np.ndarray) -> None:
        n = part.stop - part.start
        some = _to_kernel(given[part], found.forest.players, n)
        curve, area = np.zeros((found.n_outputs, 2, n, n_all + 1)), np.zeros((2, found.n_outputs, 1, n))
        add_areas(bins, tables, [some], area[0], area[1], curve)
        for kind in range(2):
            points[kind][part], areas[kind][part] = curve[:, kind].transpose(1, 0, 2), area[kind, :, 0].T

    found.spread(work, 6 * found.n_outputs * (n_all + 1))
    return Curves(points[0], points[1], areas[0], areas[1])
