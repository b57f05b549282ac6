"""How far predictions move when features are perturbed: PG² of a set of features, PGI² of a ranking, and the greedy ranking, of rows in memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.methods import METHODS
from kernels.prediction_gap.exact import Prefixes
from kernels.prediction_gap.noise import EMPIRICAL, NOISE_NAMES, NOISES, Measured, Noise, measure, noise_number, resampled_units
from kernels.prediction_gap.rankings import EXACT, measure_rows, rank_rows_greedily
from kernels.prediction_gap.tables import BUDGET, GapTables, affordable, place_units, prepare_gap
from kernels.trees.binning import BinTables, bin_dtype, bin_rows, padded
from kernels.trees.forest import Forest, make_forest

from ..dataset import schema
from ..dataset.partition import Groups, Partition, group_numbers, read_groups
from ..errors import UsageError
from ..models import load_ensemble
from ..models.model import Feature, Model
from ..runs.job import check_parameters, count_cores
from ..runs.options import shorten
from ..runs.prepare import refused
from .attributions import as_batch, attribute

SLICE_ROWS = 128
Scale = float | Mapping[str, float] | Sequence[float]


def find_noise(noise: str | Callable[[Any], Any]) -> Noise:
    """A distribution by name, or by its function P(noise <= z), z in units of scale; numeric features drawn anew need none."""
    if callable(noise):
        return Noise("given", noise, lambda z: 1.0 - noise(z))
    if noise not in NOISE_NAMES:
        raise UsageError(f"noise is {shorten(noise)}, expected one of {', '.join(NOISE_NAMES)}, or a distribution function")
    return NOISES[noise_number(noise)]


def read_scale(scale: Scale, features: Sequence[Feature]) -> np.ndarray:
    """The scale of every feature, ``(features,) float64``, from a number, one for each feature, or by name."""
    names = [feature.name for feature in features]
    if isinstance(scale, Mapping):
        unknown = sorted(set(scale) - set(names))
        if unknown:
            raise UsageError(f"scale names {unknown[0]!r}, which is no feature of the model")
        missing = [feature.name for feature in features if feature.name not in scale and not feature.categorical]
        if missing:
            raise UsageError(f"scale has none for feature {missing[0]!r}")
        scale = [scale.get(name, 0.0) for name in names]
    try:
        found = np.broadcast_to(np.asarray(scale, np.float64), (len(names),))
    except (TypeError, ValueError):
        raise UsageError(f"scale is {shorten(scale)}, expected a number, or one for each of {len(names)} features") from None
    if not ((found >= 0) & np.isfinite(found)).all():
        raise UsageError(f"scale is {shorten(scale)}, expected numbers of at least 0")
    return found


def _values(features: Sequence[Feature], bins: BinTables, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    """Values and bins of a slice, ``(used, n)`` each, as kernels read them."""
    n = batch.num_rows
    values = np.zeros((bins.column.size, padded(n)))
    for j, column in enumerate(bins.column):
        values[j, :n] = schema.column_values(features[column], batch.column(features[column].name))
    binned = np.zeros(values.shape, bin_dtype(bins))
    bin_rows(values, bins, binned)
    return np.ascontiguousarray(values[:, :n]), np.ascontiguousarray(binned[:, :n])


def _measure(model: Model, forest: Forest, bins: BinTables, drawn: np.ndarray, data: Any) -> Measured:
    features, batch = as_batch(model, data, bins.column.tolist())
    if not batch.num_rows:
        raise UsageError("data has no rows, expected at least one")

    def work(first: int) -> Measured:
        values, binned = _values(features, bins, batch.slice(first, 1 << 13))
        return measure(values, binned, forest.player, drawn)

    with ThreadPoolExecutor(count_cores()) as threads:
        first, *others = threads.map(work, range(0, batch.num_rows, 1 << 13))
        return first.merge(others)


def _prepare(model: Model, groups: Groups, noise: Any, scale: Scale, data: Any, resample: bool) -> tuple[BinTables, GapTables, Noise]:
    chosen, scales = find_noise(noise), read_scale(scale, model.features)
    empirical = isinstance(noise, str) and noise == EMPIRICAL
    if data is None and empirical:
        raise UsageError("noise 'empirical' draws values from data, but none was given")
    bins, forest = make_forest(model.ensemble, group_numbers(groups, model.features))
    drawn = resampled_units(forest, empirical, resample and data is not None)
    measured = None if data is None else _measure(model, forest, bins, drawn, data)
    return bins, prepare_gap(forest, scales, measured, drawn=drawn, relative=True), chosen


def _choose_seed(tables: GapTables, asked: Mapping[str, Any], passes: int, approximate: bool) -> int:
    """The seed where values have to be estimated, else EXACT."""
    with refused():
        return EXACT if affordable(tables, asked["budget"], passes, approximate) else asked["seed"]


def _numbers(names: Any, players: Sequence[str], what: str) -> list[int]:
    place = {name: number for number, name in enumerate(players)}
    given = [names] if isinstance(names, str) else list(names)
    for name in given:
        if name not in place:
            raise UsageError(f"{what} names {shorten(name)}, which is no feature or group of the model")
    if len(set(given)) < len(given):
        raise UsageError(f"{what} names one twice")
    return [place[name] for name in given]


def rank_players(phi: np.ndarray) -> np.ndarray:
    """Players by the size of their attributions, the largest first, equal ones in their own order: ``(n, outputs, players) int64``."""
    return np.argsort(-np.abs(phi), axis=2, kind="stable")


def _orders(ranking: Any, model: Model, rows: Any, partition: Partition | None, players: Sequence[str], n: int) -> np.ndarray:
    """Rankings of players of every row and output."""
    outputs = len(model.outputs)
    if isinstance(ranking, str):
        return rank_players(attribute(model, rows, ranking, partition=partition).phi)
    if isinstance(ranking, np.ndarray) and ranking.dtype.kind in "iu":
        order = ranking[:, None, :] if ranking.ndim == 2 else ranking
        if order.ndim != 3 or order.shape[0] != n or order.shape[1] not in (1, outputs):
            raise UsageError(f"ranking has shape {ranking.shape}, expected a line of players for each of {n} rows, or for each of their outputs")
        by_number = np.sort(order, axis=2)
        if order.size and (by_number[:, :, 0].min() < 0 or by_number.max() >= len(players) or (np.diff(by_number, axis=2) == 0).any()):
            raise UsageError(f"ranking has other entries than different numbers of players from 0 to {len(players) - 1}")
        return np.broadcast_to(order, (n, outputs, order.shape[2])).astype(np.int64)
    numbers = np.array(_numbers(ranking, players, "ranking"), np.int64)
    return np.broadcast_to(numbers, (n, outputs, numbers.size))


def prediction_gap(
    model: Model | Any,
    rows: Any,
    *,
    features: Iterable[str] | None = None,
    ranking: Any = None,
    noise: str | Callable[[Any], Any] = "normal",
    scale: Scale = 1.0,
    data: Any = None,
    resample: bool = True,
    partition: Partition | None = None,
    budget: float = BUDGET,
    approximate: bool = False,
    seed: int = 0,
) -> Any:
    """The mean squared change of every row's margin when features are perturbed, exactly (Gajewski et al. 2024).

    Parameters
    ----------
    model, rows : as ``attribute`` takes them
    features : those that are perturbed, all by default: PG² of the set
    ranking : or a ranking, whose prefixes are perturbed in turn, and PG² averaged over them: PGI². Names, the most important first; positions of
        features ``(n, features)`` or ``(n, outputs, features)``, row by row; or a method of ``attribute``, which bins by size of its values
    noise : "normal", "uniform" or "laplace", of mean 0, is added to numeric features; a function P(noise <= z) of arrays is one of your own;
        "empirical" draws them anew from ``data``. Noise leaves a missing value missing
    scale : standard deviation of the noise, of one of your own the unit of z: a number, one for each feature, or by name
    data : rows, like ``rows``; scales are multiples of the standard deviations of their features
    resample : draw categorical features, and groups of features together, from ``data``; without it, or without data, they stay
    partition : groups of features, such as dummies of one category, as ``attribute`` takes them
    budget : pairs of leaves that may be looked at for a row. What the ensemble may need beyond it is refused, or
    approximate : computed by quasi-Monte Carlo, with ``seed``

    Returns
    -------
    ndarray ``(n, outputs) float64``, squared margin units; where ``approximate``, a pair of it and of standard errors, 0 where it is exact
    """
    model, asked = load_ensemble(model), check_parameters(METHODS["gap"], {"budget": budget, "seed": seed})
    if features is not None and ranking is not None:
        raise UsageError("features and ranking were both given; leave out one or the other")
    groups = read_groups(partition, model.features)
    players = [group for group, _ in groups] or [feature.name for feature in model.features]
    bins, tables, chosen = _prepare(model, groups, noise, scale, data, resample)
    read, batch = as_batch(model, rows, bins.column.tolist())
    n, outputs = batch.num_rows, len(model.outputs)
    first_seed = _choose_seed(tables, asked, 1, approximate)
    orders = None if ranking is None else _orders(ranking, model, rows, partition, players, n)
    together = (
        np.isin(tables.units, range(len(players)) if features is None else _numbers(features, players, "features")) & tables.regions.units.perturbed
    )
    gaps, errors = np.zeros((n, outputs)), np.zeros((n, outputs))

    def work(first: int) -> None:
        values, binned = _values(read, bins, batch.slice(first, SLICE_ROWS))
        some = slice(first, first + values.shape[1])
        if orders is None:
            shape = (values.shape[1], outputs, 1)
            prefixes = Prefixes(np.broadcast_to(together, (*shape[:2], together.size)).astype(np.int64), np.ones(shape))
        else:
            prefixes = place_units(tables, orders[some])
        gaps[some], errors[some] = measure_rows(tables, chosen, values, binned, prefixes, first_seed)

    with ThreadPoolExecutor(count_cores()) as threads:
        list(threads.map(work, range(0, n, SLICE_ROWS)))
    return (gaps, errors) if approximate else gaps


def rank_by_gap(
    model: Model | Any,
    rows: Any,
    *,
    top: int | None = None,
    noise: str | Callable[[Any], Any] = "normal",
    scale: Scale = 1.0,
    data: Any = None,
    resample: bool = True,
    partition: Partition | None = None,
    budget: float = BUDGET,
    approximate: bool = False,
    seed: int = 0,
) -> tuple[np.ndarray, ...]:
    """The greedy ranking of every row: at each step the feature that raises PG² most, of equal gains (to 1e-12 of PG²) the first feature.

    Parameters
    ----------
    top : how many are ranked, by default or with 0 all; the others as for ``prediction_gap``

    Returns
    -------
    order : (n, outputs, top) int64, positions of features or groups; those that no perturbation can change come last, in their own order
    gaps : (n, outputs, top) float64, PG² of each prefix; the mean over all is the ranking's PGI²
    errors : where ``approximate``, (n, outputs, top) float64, standard errors of the gaps, 0 where they are exact
    """
    model, asked = load_ensemble(model), check_parameters(METHODS["gap_greedy"], {"top": top or 0, "budget": budget, "seed": seed})
    groups = read_groups(partition, model.features)
    bins, tables, chosen = _prepare(model, groups, noise, scale, data, resample)
    read, batch = as_batch(model, rows, bins.column.tolist())
    n_players, outputs = int(tables.n_all[0]), len(model.outputs)
    top = min(asked["top"] or n_players, n_players)
    first_seed = _choose_seed(tables, asked, max(min(top, int(tables.regions.units.perturbed.sum())), 1), approximate)
    order = np.zeros((batch.num_rows, outputs, top), np.int64)
    gaps, errors = np.zeros(order.shape), np.zeros(order.shape)

    def work(first: int) -> None:
        values, binned = _values(read, bins, batch.slice(first, SLICE_ROWS))
        some, found = slice(first, first + SLICE_ROWS), rank_rows_greedily(tables, chosen, values, binned, top, first_seed)
        order[some], gaps[some], errors[some] = found.order, found.gaps, found.gap_errors

    with ThreadPoolExecutor(count_cores()) as threads:
        list(threads.map(work, range(0, batch.num_rows, SLICE_ROWS)))
    return (order, gaps, errors) if approximate else (order, gaps)
