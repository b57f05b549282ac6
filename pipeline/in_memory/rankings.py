"""Rankings of rows in memory: what they are worth as curves, and the gradient that they can be made from."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kernels import game_values
from kernels.path_dependent.games import play
from kernels.path_dependent.multilinear import add_gradients, prepare_gradient
from kernels.ranking.curves import add_areas, prepare_curves
from kernels.trees.binning import BinTables, bin_dtype, bin_rows, padded
from kernels.trees.forest import Forest, make_forest

from ..dataset import schema
from ..dataset.partition import Partition, group_numbers, read_groups
from ..display import count
from ..errors import UsageError
from ..models import load_ensemble
from ..models.model import Feature
from ..runs.job import count_cores
from ..runs.plan import max_slice_rows
from .attributions import as_batch


@dataclass(frozen=True, slots=True)
class Curves:
    """Margins when features of a ranking are present: those on top (insertion), or those at its bottom (deletion), from none to all.

    insertion, deletion : (n, outputs, players + 1) float64, margin units; insertion_area, deletion_area : (n, outputs) float64, the means of all
    points but the first. The higher insertion's, and the lower deletion's, the better is the ranking.
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

    phi : (n, outputs, players) float64, margin units; margin : (n, outputs) float64
    """

    phi: np.ndarray
    margin: np.ndarray

    def __repr__(self) -> str:
        n, outputs, n_players = self.phi.shape
        return f"Gradient({count(n, 'row')}, {count(outputs, 'output')}, {count(n_players, 'player')})"


def _binned(features: tuple[Feature, ...], tables: BinTables, batch: pa.RecordBatch) -> np.ndarray:
    """``(used, n)`` bins, n padded."""
    values = np.zeros((tables.column.size, padded(batch.num_rows)))
    for j, column in enumerate(tables.column):
        values[j, : batch.num_rows] = schema.column_values(features[column], batch.column(j))
    bins = np.zeros(values.shape, bin_dtype(tables))
    bin_rows(values, tables, bins)
    return bins


def _read(given: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers for every row, output and player, as they are or spread."""
    try:
        return np.broadcast_to(np.asarray(given, np.float64), shape)
    except ValueError:
        raise UsageError(f"{name} have shape {np.shape(given)}, expected {shape} or what spreads to it") from None


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows in Arrow, and the forest that they are played on."""

    features: tuple[Feature, ...]
    bins: BinTables
    forest: Forest
    batch: pa.RecordBatch
    n_outputs: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, outputs, players."""
        return self.batch.num_rows, self.n_outputs, self.forest.n_all

    def spread(self, work: Callable[[slice, np.ndarray], None], cells: int) -> None:
        """``work(rows, bins)`` on slices of rows that have so many numbers each, on all cores."""
        size = max_slice_rows(cells)
        parts = [slice(first, min(first + size, self.batch.num_rows)) for first in range(0, self.batch.num_rows, size)]

        def each(rows: slice) -> None:
            work(rows, _binned(self.features, self.bins, self.batch.slice(rows.start, rows.stop - rows.start)))

        with ThreadPoolExecutor(count_cores()) as threads:
            list(threads.map(each, parts))


def _set_up(given: Any, rows: Any, partition: Partition | None) -> _Rows:
    model = load_ensemble(given)
    bins, forest = make_forest(model.ensemble, group_numbers(read_groups(partition, model.features), model.features))
    features, batch = as_batch(model, rows, bins.column.tolist())
    return _Rows(features, bins, forest, batch, len(model.outputs))


def _to_kernel(values: np.ndarray, players: np.ndarray, n: int) -> np.ndarray:
    """``(outputs, players, n)`` of the players that some split asks for, padded, from ``(rows, outputs, players)``."""
    out = np.zeros((values.shape[1], players.size, n))
    out[:, :, : len(values)] = values[:, :, players].transpose(1, 2, 0)
    return out


def gradient(model: Any, rows: Any, z: Any = 0.5, *, partition: Partition | None = None) -> Gradient:
    """Derivatives of the path-dependent game's multilinear extension, of the whole ensemble, at a point of every row's own.

    Parameters
    ----------
    model, rows, partition : as for ``attribute``
    z : probabilities that players are present, (n, outputs, players) or what spreads to it; players are all features, or groups
    """
    found = _set_up(model, rows, partition)
    point = _read(z, "probabilities", found.shape)
    if not ((point >= 0) & (point <= 1)).all():
        raise UsageError("probabilities are expected to lie between 0 and 1")
    tables, out = prepare_gradient(play(found.forest, game_values.shapley)), Gradient(np.zeros(found.shape), np.zeros(found.shape[:2]))

    def work(part: slice, bins: np.ndarray) -> None:
        n, at = part.stop - part.start, _to_kernel(point[part], found.forest.players, bins.shape[1])
        phi, margin = np.zeros(at.shape), np.zeros((at.shape[0], at.shape[2]))
        add_gradients(bins, tables, at, phi, margin)
        out.phi[part, :, found.forest.players] = phi[:, :, :n].transpose(2, 0, 1)
        out.margin[part] = margin[:, :n].T

    found.spread(work, 3 * found.n_outputs * found.forest.n_players)
    return out


def curves(model: Any, rows: Any, scores: Any, *, partition: Partition | None = None) -> Curves:
    """Insertion and deletion curves of rankings by any scores, in the path-dependent game of the whole ensemble.

    A ranking is by descending score; equal scores keep the order of features.

    Parameters
    ----------
    model, rows, partition : as for ``attribute``
    scores : (n, outputs, players) or what spreads to it, such as ``attribute(…).phi``; 0 where a player is in no split
    """
    found = _set_up(model, rows, partition)
    n_all, given = found.forest.n_all, _read(scores, "scores", found.shape)
    if not np.isfinite(given).all():
        raise UsageError("scores are expected to be finite")
    if given[:, :, np.setdiff1d(np.arange(n_all), found.forest.players)].any():
        raise UsageError("scores are expected to be 0 for features that no split asks for")
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
