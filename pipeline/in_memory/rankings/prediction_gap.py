"""Prediction gaps of rows in memory: PG² of feature sets, PGI² of rankings, and greedy rankings."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prediction_gap.exact import Prefixes
from leafledger.kernels.prediction_gap.feature_noise import NOISE, of_features
from leafledger.kernels.prediction_gap.noise import NOISE_NAMES, Measured, Noise, measure, resampled_units
from leafledger.kernels.prediction_gap.quasi_monte_carlo import haltons, sample_rows
from leafledger.kernels.prediction_gap.rankings import EXACT, measure_rows, noises_of, rank_rows_greedily
from leafledger.kernels.prediction_gap.tables import BUDGET, GapTables, affordable, place_units, prepare_gap
from leafledger.kernels.trees.binning import BinTables
from leafledger.kernels.trees.forest import Forest, make_forest

from ...arguments.readers import optional, read_flag, read_names, read_partition, shorten
from ...cluster.threads import do_all
from ...dataset.columns.names import name_at
from ...dataset.columns.partition import Groups, Partition, read_groups
from ...dataset.columns.players import number_players
from ...display.nearest import did_you_mean
from ...errors import UsageError
from ...methods.parameters import check_parameters, read_entry, spread_by_feature
from ...methods.tables import refuse_statistics, refused
from ...models import load_ensemble
from ...models.model import Feature, Model
from ..explain.attribute import attribute
from ..rows.arrow_batches import as_batch
from ..rows.given_rows import BACKGROUND, ROWS, as_numbers, bin_batch, refuse_unknown, say_given, spell_features

SLICE_ROWS = 128
OneNoise = str | Sequence[tuple[float, float]] | Callable[[Any], Any]
GivenNoise = OneNoise | Mapping[str | int, OneNoise] | Sequence[OneNoise]
Scale = float | Mapping[str | int, float] | Sequence[float]


def read_noise(noise: Any, features: Sequence[Feature]) -> Any:
    """Read the noise of all features, or of each."""
    try:
        found = NOISE.read(noise)
    except ValueError as error:
        raise UsageError(f"noise is {'a function' if callable(noise) else shorten(noise)}, {error}{did_you_mean(noise, NOISE_NAMES)}") from None
    if isinstance(found, tuple) and len(found) != len(features):
        raise UsageError(f"noise has {len(found)} entries, expected one, or one for each of {len(features)} features")
    return spread_by_feature("noise", found, features, NOISE.by_feature) if isinstance(found, Mapping) else found


def read_scale(scale: Scale, features: Sequence[Feature]) -> np.ndarray:
    """Read the scale of every feature."""
    if (pandas := sys.modules.get("pandas")) is not None and isinstance(scale, pandas.Series):
        if not scale.index.is_unique:
            raise UsageError("scale is a Series that has a feature twice, expected once")
        scale = scale.to_dict()
    if isinstance(scale, Mapping):
        scale = spread_by_feature("scale", scale, features, 0.0)
    try:
        found = np.broadcast_to(as_numbers(scale), (len(features),))
    except (TypeError, ValueError):
        raise UsageError(f"scale is {say_given(scale)}, expected a number, or one for each of {len(features)} features") from None
    if not ((found >= 0) & np.isfinite(found)).all():
        raise UsageError(f"scale is {shorten(scale)}, expected numbers of at least 0")
    return found


def _values(features: Sequence[Feature], bins: BinTables, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return values and bins of a batch, ``(used, n)`` each, as kernels read them."""
    values, binned = (np.ascontiguousarray(padded[:, : batch.num_rows]) for padded in bin_batch(features, bins, batch))
    return values, binned


def _choose(background: Any, data: Any) -> Any:
    """Return the rows that noise is measured on, by either of their names."""
    if background is not None and data is not None:
        raise UsageError("background and data were both given, which are the same; leave out one or the other")
    return data if background is None else background


def _measure(model: Model, forest: Forest, bins: BinTables, drawn: np.ndarray, data: Any, allow_unseen: bool) -> Measured:
    features, batch = as_batch(spell_features(model, data, where=BACKGROUND), data, bins.read.tolist(), BACKGROUND)
    if not batch.num_rows:
        raise UsageError("the background has no rows, expected at least one")
    refuse_unknown(features, bins, batch, BACKGROUND, allow_unseen)

    def work(first: int) -> Measured:
        values, binned = _values(features, bins, batch.slice(first, 1 << 13))
        return measure(values, binned, forest.player, drawn)

    first, *others = do_all(work, range(0, batch.num_rows, 1 << 13))
    return first.merge(others)


def _prepare(
    model: Model, groups: Groups, noise: Any, scale: Scale, data: Any, resample: bool, allow_unseen: bool
) -> tuple[BinTables, GapTables, tuple[Noise, ...]]:
    refuse_statistics(model, "the prediction gap")
    chosen = of_features(read_noise(noise, model.features), read_scale(scale, model.features))
    if data is None and chosen.empirical.any():
        raise UsageError("noise 'empirical' draws values from a background, but none was given")
    bins, forest = make_forest(model.ensemble, number_players(model, groups).numbers)
    drawn = resampled_units(forest, chosen.empirical, resample and data is not None)
    measured = None if data is None else _measure(model, forest, bins, drawn, data, allow_unseen)
    tables = prepare_gap(forest, chosen.scale, measured, drawn=drawn, relative=True)
    return bins, tables, noises_of(tables, forest, chosen.noises)


def _choose_seed(tables: GapTables, asked: Mapping[str, Any], passes: int, approximate: bool) -> int:
    """Return the seed if values have to be estimated, else EXACT."""
    with refused():
        return EXACT if affordable(tables, asked["budget"], passes, approximate) else asked["seed"]


def _numbers(names: Any, players: Sequence[str], what: str, expected: str) -> list[int]:
    place = {name: number for number, name in enumerate(players)}
    several = isinstance(names, Iterable) and not isinstance(names, str | Mapping) and getattr(names, "ndim", 1) == 1
    given = [name_at(each, place, what) for each in names] if several else name_at(names, place, what)
    found = read_names(what, given, expected)
    for name in found:
        if name not in place:
            raise UsageError(f"{what} names {shorten(name)}, which is no feature or group of the model{did_you_mean(name, place)}")
    return [place[name] for name in found]


def rank_players(phi: np.ndarray) -> np.ndarray:
    """Rank players by descending magnitude of attributions; ties keep the order of players."""
    return np.argsort(-np.abs(phi), axis=2, kind="stable")


def _orders(ranking: Any, model: Model, rows: Any, partition: Partition | None, players: Sequence[str], n: int, allow_unseen: bool) -> np.ndarray:
    """Return the rankings of players of every row and output."""
    outputs = len(model.outputs)
    if isinstance(ranking, str):
        method, given = read_entry(ranking)
        if method.phi.ranks:  # by score, or with noise of its own
            raise UsageError(f"ranking is {ranking!r}, which writes ranks, expected a method of values to rank by size, or what rank_by_gap returns")
        found = attribute(model, rows, method.name, parameters=given, partition=partition, allow_unseen=allow_unseen)
        if found.players != tuple(players):
            raise UsageError(f"ranking is {ranking!r}, whose values are features' and not their groups', expected a method of groups")
        return rank_players(found.phi)
    if isinstance(ranking, np.ndarray) and ranking.dtype.kind in "iu" and not isinstance(ranking, np.ma.MaskedArray):
        order = ranking[:, None, :] if ranking.ndim == 2 else ranking
        if order.ndim != 3 or order.shape[0] != n or order.shape[1] not in (1, outputs):
            raise UsageError(f"ranking has shape {ranking.shape}, expected a line of players for each of {n} rows, or for each of their outputs")
        by_number = np.sort(order, axis=2)
        if order.size and (by_number[:, :, 0].min() < 0 or by_number.max() >= len(players) or (np.diff(by_number, axis=2) == 0).any()):
            raise UsageError(f"ranking has other entries than different numbers of players from 0 to {len(players) - 1}")
        return np.broadcast_to(order, (n, outputs, order.shape[2])).astype(np.int64)
    numbers = np.array(_numbers(ranking, players, "ranking", "names of features or groups, their positions, or a method"), np.int64)
    return np.broadcast_to(numbers, (n, outputs, numbers.size))


def prediction_gap(
    model: Model | Any,
    rows: Any,
    *,
    features: str | int | Iterable[str | int] | None = None,
    ranking: Any = None,
    noise: GivenNoise = "normal",
    scale: Scale = 1.0,
    background: Any = None,
    data: Any = None,
    resample: bool = True,
    partition: Partition | None = None,
    budget: float = BUDGET,
    approximate: bool = False,
    absolute: bool = False,
    seed: int = 0,
    allow_unseen: bool = False,
) -> Any:
    """Measure how far every row's margin moves when features are perturbed: the mean of its squared change (Gajewski et al. 2024).

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    rows : data frame, Arrow table or array
        n rows, as `attribute` takes them.
    features : str, int, or iterable of them, optional
        Features, or groups of the partition, by name or position, that are perturbed together: PG² of the set. By default all are.
    ranking : str, sequence of str or int, or array of int, optional
        In place of ``features`` a ranking, whose prefixes are perturbed in turn, and PG² averaged over them: PGI². Names or positions, the most
        important first; an array of positions of features or groups, (n, ranked) or (n, outputs, ranked), row by row; or a method of `attribute`,
        whose values are ranked by size. Methods that write ranks, as `gap_greedy`, are refused: the greedy ranking under the same noise is what
        `rank_by_gap` returns.
    noise : str, sequence of (float, float), callable, or these by feature
        "normal", "uniform" or "laplace", of mean 0, is added to numeric features, "laplace:0.5" with a scale of its own; values with probabilities,
        "-1:0.5,1:0.5" or as pairs, are noise that takes few values; a function P(noise <= z) of arrays is one of your own; "empirical" draws
        features anew from ``background``. One for all features, one for each in their order, or a mapping of names or positions, "*" for all others.
        Noise leaves a missing value missing.
    scale : float, sequence of float, or mapping of str or int to float
        Standard deviation of the noise, of one of your own the unit of z, in the feature's units: a number for all, one for each feature, or by
        name or position, "*" for all others, as a pandas Series has them, too. With a background in units of its standard deviation there.
    background : data frame, Arrow table or array, optional
        Rows, like ``rows``, that values are drawn from and standard deviations measured on.
    data : optional
        The same, by the name that it had before 0.3.
    resample : bool
        Draw categorical features, and groups of features together, from the background; without it, or without one, they stay.
    partition : mapping, str or path, optional
        Groups of features, such as dummies of one category, as `attribute` takes them.
    budget : float
        Pairs of leaves that may be looked at for a row. What the ensemble may need beyond it is refused or estimated.
    approximate : bool
        Estimate beyond the budget by quasi-Monte Carlo, and return standard errors too.
    absolute : bool
        Measure the mean of the change's absolute value instead, PG or PGI (ibid., Eq. 1), in margin units. It is always an estimate, and needs
        ``approximate``.
    seed : int
        Of the estimates' points, at least 0.
    allow_unseen : bool
        Take rows and a background of which the model knows hardly any category of some feature; by default they are refused.

    Returns
    -------
    gaps : (n, outputs) float64, squared margin units, or margin units where ``absolute``
    errors : (n, outputs) float64, in the same units
        Where ``approximate`` alone: standard errors of the gaps, 0 where they are exact.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where. UsageError where exact gaps take more than the budget and may not be estimated.
    """
    model, asked = spell_features(load_ensemble(model), rows), check_parameters(METHODS["gap"], {"budget": budget, "seed": seed})
    if features is not None and ranking is not None:
        raise UsageError("features and ranking were both given; leave out one or the other")
    groups = read_groups(optional(read_partition)("partition", partition), model.features)
    players = [group for group, _ in groups] or [feature.name for feature in model.features]
    drawn = _choose(background, data)
    bins, tables, chosen = _prepare(model, groups, noise, scale, drawn, read_flag("resample", resample), read_flag("allow_unseen", allow_unseen))
    read, batch = as_batch(model, rows, bins.read.tolist())
    refuse_unknown(read, bins, batch, ROWS, allow_unseen)
    n, outputs = batch.num_rows, len(model.outputs)
    if read_flag("absolute", absolute) and not read_flag("approximate", approximate):
        raise UsageError("absolute changes have no exact mean here, expected approximate as well, which estimates it with its standard error")
    first_seed = asked["seed"] if absolute else _choose_seed(tables, asked, 1, read_flag("approximate", approximate))
    orders = None if ranking is None else _orders(ranking, model, rows, partition, players, n, allow_unseen)
    asked_for = range(len(players)) if features is None else _numbers(features, players, "features", "names of features or groups")
    together = np.isin(tables.units, asked_for) & tables.regions.units.perturbed
    gaps, errors = np.zeros((n, outputs)), np.zeros((n, outputs))

    def work(first: int) -> None:
        values, binned = _values(read, bins, batch.slice(first, SLICE_ROWS))
        some = slice(first, first + values.shape[1])
        if orders is None:
            shape = (values.shape[1], outputs, 1)
            prefixes = Prefixes(np.broadcast_to(together, (*shape[:2], together.size)).astype(np.int64), np.ones(shape))
        else:
            prefixes = place_units(tables, orders[some])
        if absolute:
            gaps[some], errors[some] = sample_rows(tables, chosen, values, binned, prefixes, haltons(first_seed), np.abs)
        else:
            gaps[some], errors[some] = measure_rows(tables, chosen, values, binned, prefixes, first_seed)

    do_all(work, range(0, n, SLICE_ROWS))
    return (gaps, errors) if approximate else gaps


def rank_by_gap(
    model: Model | Any,
    rows: Any,
    *,
    top: int | None = None,
    noise: GivenNoise = "normal",
    scale: Scale = 1.0,
    background: Any = None,
    data: Any = None,
    resample: bool = True,
    partition: Partition | None = None,
    budget: float = BUDGET,
    approximate: bool = False,
    seed: int = 0,
    allow_unseen: bool = False,
) -> tuple[np.ndarray, ...]:
    """Rank the features of every row greedily: at each step comes the one that raises PG² most, of equal gains (to 1e-12 of PG²) the first.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes.
    rows : data frame, Arrow table or array
        n rows, as `attribute` takes them.
    top : int, optional
        How many are ranked; None or 0 ranks all, and more than there are does too.
    noise, scale, background, data, resample, partition : as for `prediction_gap`
    budget, approximate, seed, allow_unseen : as for `prediction_gap`

    Returns
    -------
    order : (n, outputs, top) int64
        Positions of features or groups. One that no perturbation can change comes before those that would lower PG².
    gaps : (n, outputs, top) float64, squared margin units
        PG² of each prefix; the mean over all of them is the ranking's PGI².
    errors : (n, outputs, top) float64, squared margin units
        Where ``approximate`` alone: standard errors of the gaps, 0 where they are exact.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where. UsageError where exact gaps take more than the budget and may not be estimated.
    """
    model, asked = (
        spell_features(load_ensemble(model), rows),
        check_parameters(METHODS["gap_greedy"], {"top": 0 if top is None else top, "budget": budget, "seed": seed}),
    )
    groups = read_groups(optional(read_partition)("partition", partition), model.features)
    drawn = _choose(background, data)
    bins, tables, chosen = _prepare(model, groups, noise, scale, drawn, read_flag("resample", resample), read_flag("allow_unseen", allow_unseen))
    read, batch = as_batch(model, rows, bins.read.tolist())
    refuse_unknown(read, bins, batch, ROWS, allow_unseen)
    n_players, outputs = int(tables.n_all[0]), len(model.outputs)
    top = min(asked["top"] or n_players, n_players)
    first_seed = _choose_seed(tables, asked, max(min(top, int(tables.regions.units.perturbed.sum())), 1), read_flag("approximate", approximate))
    order = np.zeros((batch.num_rows, outputs, top), np.int64)
    gaps, errors = np.zeros(order.shape), np.zeros(order.shape)

    def work(first: int) -> None:
        values, binned = _values(read, bins, batch.slice(first, SLICE_ROWS))
        some, found = slice(first, first + SLICE_ROWS), rank_rows_greedily(tables, chosen, values, binned, top, first_seed)
        order[some], gaps[some], errors[some] = found.order, found.gaps, found.gap_errors

    do_all(work, range(0, batch.num_rows, SLICE_ROWS))
    return (order, gaps, errors) if approximate else (order, gaps)
