"""CatBoost's target statistics (CTR): counts by hash, and the codes computed from them.

The codes, computed here once for every key, are those that CatBoost computes for every row (``online_ctr.h``, ``static_ctr_provider.cpp``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leafledger.kernels.trees.statistics import ABOVE, CATEGORY, EQUAL, NO_STATISTICS, Statistics, make_directory

from ...errors import InvalidModel, UnsupportedModel
from .columns import MAX_FEATURES, Column

BORDERS, BUCKETS, BINARIZED_MEAN, FLOAT_MEAN, COUNTER, FREQUENCY = KINDS = (
    "Borders",
    "Buckets",
    "BinarizedTargetMeanValue",
    "FloatTargetMeanValue",
    "Counter",
    "FeatureFreq",
)
OF_CLASSES, MEANS, COUNTERS = KINDS[:2], KINDS[2:4], KINDS[4:]
EMPTY = 2**64 - 1  # CatBoost's mark of an empty slot
MOST_BORDERS = 255  # largest number of borders for 8-bit codes
MOST_ROWS = 2**31 - 1  # largest sum of a table's counts, which CatBoost adds in 32 bits
CODES_PER_BYTE = 16  # limit relative to the file's tables; CatBoost's own models have about one


@dataclass(frozen=True, slots=True)
class Projection:
    """What rows are counted by, in file order: features by index among those of their kind."""

    categories: tuple[int, ...]
    above: tuple[tuple[int, float], ...]  # a numeric feature and a border
    equal: tuple[tuple[int, int], ...]  # a categorical feature and a category's hash, 0..2**32 - 1


@dataclass(frozen=True, slots=True)
class CtrCounts:
    """The kind of counts in a table."""

    projection: Projection
    kind: str  # one of KINDS
    binarization: int  # number of the binarization of the target


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts by keys."""

    key: np.ndarray  # (keys,) uint64, distinct and ascending
    counts: np.ndarray  # (keys, width) int64: rows of every class, or all rows; for means (keys, 2) float32, the sum and the rows
    denominator: int  # of counters


@dataclass(frozen=True, slots=True)
class Statistic:
    """A column of statistics with the borders of its splits: ``((good + prior) / (total + prior's denominator) + shift) * scale > border``."""

    counted: CtrCounts
    target_border: int  # classes above it are good; for buckets, the class itself
    prior: tuple[float, float]  # numerator and denominator
    shift: float
    scale: float
    borders: np.ndarray  # (borders,) float32


@dataclass(frozen=True, slots=True)
class _Asked:
    """A feature, with borders or category hashes that occur in projections."""

    column: Column
    bounds: frozenset[float]


def make_counts(key: np.ndarray, counts: np.ndarray, denominator: int, kind: str, where: str) -> Counts:
    """Sort and check a table of counts."""
    if kind in OF_CLASSES and counts.shape[1] < 2:
        raise InvalidModel(f"{where}: counts of {counts.shape[1]} classes, expected at least 2")
    rows = counts[:, 1:] if kind in MEANS else counts
    total = rows.sum(axis=1, dtype=float)
    bad = np.flatnonzero((rows < 0).any(axis=1) | ~(total <= MOST_ROWS) | ~np.isfinite(counts).all(axis=1))
    if bad.size:
        raise InvalidModel(f"{where}: key {key[bad[0]]} has counts {counts[bad[0]].tolist()[:9]}, expected numbers of rows up to {MOST_ROWS} in all")
    if kind in COUNTERS and not 0 <= denominator <= MOST_ROWS:
        raise InvalidModel(f"{where}: denominator {denominator}, expected 0..{MOST_ROWS}")
    order = np.argsort(key, kind="stable")
    key = key[order]
    twice = np.flatnonzero(key[1:] == key[:-1])
    if twice.size:
        raise InvalidModel(f"{where}: key {key[twice[0]]} is there twice")
    return Counts(key, counts[order], denominator)


def count_targets(kind: str, table: Counts) -> int:
    """Return the number of target borders for which a table has columns."""
    return table.counts.shape[1] - (kind == BORDERS) if kind in OF_CLASSES else 1


def _check_statistic(statistic: Statistic, table: Counts, where: str) -> None:
    """Refuse a column with invalid numbers, or that does not fit its table."""
    borders, n_targets = statistic.borders, count_targets(statistic.counted.kind, table)
    if not 0 <= statistic.target_border < n_targets:
        raise InvalidModel(f"{where} has target border {statistic.target_border}, expected 0..{n_targets - 1}")
    numbers = (*statistic.prior, statistic.shift, statistic.scale)
    with np.errstate(over="ignore"):
        if not np.isfinite(np.array(numbers, np.float32)).all():
            raise InvalidModel(f"{where} has prior, shift and scale {numbers}, expected finite numbers")
    if borders.size > MOST_BORDERS:
        raise UnsupportedModel(f"{where} has {borders.size} borders, expected at most {MOST_BORDERS}")
    steps = np.flatnonzero(~(borders[1:] >= borders[:-1]))
    if steps.size or np.isnan(borders).any():
        at = int(steps[0]) if steps.size else 0
        raise InvalidModel(f"{where} has borders {borders[at : at + 2].tolist()}, expected ascending numbers")


def _good_and_total(statistic: Statistic, table: Counts) -> tuple[np.ndarray, np.ndarray]:
    """Return numerators and denominators, ``(keys + 1,) float32``, the last for unknown keys."""
    kind, counts = statistic.counted.kind, table.counts
    if kind in MEANS:
        good, total = counts[:, 0], counts[:, 1]
    elif kind in COUNTERS:
        good, total = counts[:, 0], np.full(len(counts), table.denominator)
    else:
        first = statistic.target_border + (kind == BORDERS)
        good, total = counts[:, first : first + 1 if kind == BUCKETS else None].sum(axis=1), counts.sum(axis=1)
    other = table.denominator if kind in COUNTERS else 0
    return np.append(good, 0).astype(np.float32), np.append(total, other).astype(np.float32)


def count_borders(statistic: Statistic, table: Counts) -> np.ndarray:
    """Count the borders below a statistic, in single precision with one rounding per operation, as CatBoost does."""
    good, total = _good_and_total(statistic, table)
    prior, denominator, shift, scale = np.array((*statistic.prior, statistic.shift, statistic.scale), np.float32)
    with np.errstate(all="ignore"):
        value = ((good + prior) / (total + denominator) + shift) * scale
    return np.where(np.isnan(value), 0, np.searchsorted(statistic.borders, value)).astype(np.uint8)


def _elements(projection: Projection, columns: Mapping[tuple[bool, int], _Asked], where: str) -> list[tuple[Column, int, float]]:
    """Return a projection's features, kinds and bounds."""

    def find(categorical: bool, index: int) -> _Asked:
        if (categorical, index) not in columns:
            raise InvalidModel(f"{where} is of {'categorical' if categorical else 'float'} feature {index}, expected one of the model's")
        return columns[categorical, index]

    if not projection.categories:
        raise InvalidModel(f"{where} is of no categorical feature, expected at least one")
    found = [(find(True, index).column, CATEGORY, 0.0) for index in projection.categories]
    for index, border in projection.above:
        asked = find(False, index)
        if border not in asked.bounds:  # CatBoost takes the bit of a split, so its border has to exist
            raise InvalidModel(f"{where} asks for feature {asked.column.name!r} above {border:g}, expected one of the feature's own borders")
        found.append((asked.column, ABOVE, border))
    for index, value in projection.equal:
        asked = find(True, index)
        if value not in asked.bounds:
            raise InvalidModel(f"{where} asks for feature {asked.column.name!r} with hash {value}, expected one of the feature's own categories")
        found.append((asked.column, EQUAL, float(value)))
    return found


def _by_index(columns: Sequence[Column], where: str) -> dict[tuple[bool, int], _Asked]:
    found = {
        (column.categorical, column.index): _Asked(column, frozenset(column.values if column.categorical else column.borders.tolist()))
        for column in columns
    }
    if len(found) != len(columns):
        raise InvalidModel(f"{where}: two features have one index among those of their kind")
    return found


def _united(tables: Sequence[Counts]) -> np.ndarray:
    """Return all keys of tables, ascending; most tables have the same."""
    first = tables[0].key
    if all(np.array_equal(first, table.key) for table in tables[1:]):
        return first
    return np.unique(np.concatenate([table.key for table in tables]))


def _spread(codes: np.ndarray, key: np.ndarray, united: np.ndarray) -> np.ndarray:
    """Expand a table's codes to all keys of its projection, and unknown keys."""
    if key.size == united.size:
        return codes
    found = np.full(united.size + 1, codes[-1])
    found[np.searchsorted(united, key)] = codes[:-1]
    return found


def _check_all(statistics: Sequence[Statistic], tables: Mapping[CtrCounts, Counts], where: str) -> None:
    """Refuse columns without a fitting table, and too many columns."""
    if len(statistics) > MAX_FEATURES:
        raise UnsupportedModel(f"{where}: {len(statistics)} target statistics, expected at most {MAX_FEATURES}")
    seen = set()
    for number, statistic in enumerate(statistics):
        table, label = tables.get(statistic.counted), f"{where}: target statistic {number}"
        if table is None:
            raise UnsupportedModel(f"{label} has no table of counts: train with final_ctr_computation_mode='Default'")
        _check_statistic(statistic, table, label)
        said = (statistic.counted, statistic.target_border, statistic.prior, statistic.shift, statistic.scale)
        if said in seen:
            raise InvalidModel(f"{label} is there twice")
        seen.add(said)


def lay_out_statistics(
    statistics: Sequence[Statistic], tables: Mapping[CtrCounts, Counts], columns: Sequence[Column], order: Mapping[int, int], where: str
) -> tuple[Statistics, np.ndarray]:
    """Compute the codes of all columns of statistics, and their look-up tables."""
    if not statistics:
        return NO_STATISTICS, np.zeros(0, np.int64)
    _check_all(statistics, tables, where)
    by_index = _by_index(columns, where)
    number = {projection: p for p, projection in enumerate(dict.fromkeys(statistic.counted.projection for statistic in statistics))}
    of_projection = np.array([number[statistic.counted.projection] for statistic in statistics], np.int32)
    ranked = np.argsort(of_projection, kind="stable")
    first_of = {statistics[k].counted.projection: k for k in reversed(range(len(statistics)))}
    elements = [_elements(projection, by_index, f"{where}: target statistic {first_of[projection]}") for projection in number]
    counted: list[list[Counts]] = [[] for _ in number]
    for each in dict.fromkeys(statistic.counted for statistic in statistics):
        counted[number[each.projection]].append(tables[each])
    keys = [_united(group) for group in counted]

    n_codes = np.array([keys[p].size + 1 for p in of_projection[ranked]], np.int64)
    held = sum(table.key.nbytes + table.counts.nbytes for table in tables.values())
    if n_codes.sum() > CODES_PER_BYTE * held + n_codes.size:
        raise UnsupportedModel(f"{where}: {n_codes.sum()} codes of target statistics need too much memory")
    codes = []
    for k in ranked.tolist():
        table = tables[statistics[k].counted]
        codes.append(_spread(count_borders(statistics[k], table), table.key, keys[of_projection[k]]))
    directories = [make_directory(key) for key in keys]
    flat = [element for group in elements for element in group]
    positions = np.array([order[column.flat] for column, _, _ in flat], np.int32)
    source, element = np.unique(positions, return_inverse=True)
    nan_above = np.zeros(source.size, bool)
    nan_above[element] = [column.nan_right for column, _, _ in flat]
    column = np.zeros(len(statistics), np.int64)
    column[ranked] = len(columns) + np.arange(len(statistics))
    return Statistics(
        source=source,
        nan_above=nan_above,
        element_start=_starts([len(group) for group in elements]),
        element=element.astype(np.int32),
        kind=np.array([kind for _, kind, _ in flat], np.uint8),
        bound=np.array([bound for _, _, bound in flat], float),
        key_start=_starts([key.size for key in keys]),
        key=np.concatenate(keys),
        directory_bits=np.array([bits for bits, _ in directories], np.int64),
        directory_start=_starts([directory.size for _, directory in directories])[:-1],
        directory=np.concatenate([directory for _, directory in directories]),
        column=np.sort(column).astype(np.int32),
        projection=of_projection[ranked],
        code_start=_starts(n_codes)[:-1],
        code=np.concatenate(codes),
        formula=np.array([KINDS.index(statistics[k].counted.kind) for k in ranked], np.uint8),
    ), column


def _starts(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)
