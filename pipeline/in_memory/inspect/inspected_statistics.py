"""Target statistics of a model: number by kind and by number of features, and size of tables."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from leafledger.kernels.jit.decorator import count_bytes
from leafledger.kernels.trees.statistics import CATEGORY, Statistics

from ...models.catboost.ctr import KINDS


@dataclass(frozen=True, slots=True)
class StatisticsOfKind:
    """Statistics of one kind: CatBoost's name of the formula, number of key features, and number of columns."""

    kind: str
    features: int
    columns: int


@dataclass(frozen=True, slots=True)
class InspectedStatistics:
    """All columns of statistics, the entries of their tables, and the bytes of all."""

    kinds: tuple[StatisticsOfKind, ...]
    entries: int
    table_bytes: int


def inspect_statistics(statistics: Statistics) -> InspectedStatistics | None:
    """Count a model's statistics."""
    if not statistics.column.size:
        return None
    categories = np.concatenate(([0], np.cumsum(statistics.kind == CATEGORY)))[statistics.element_start]
    features = np.diff(categories)[statistics.projection].tolist()
    counts = Counter(zip(statistics.formula.tolist(), features, strict=True))
    kinds = tuple(StatisticsOfKind(KINDS[kind], n, columns) for (kind, n), columns in sorted(counts.items()))
    return InspectedStatistics(kinds, int(statistics.key.size), count_bytes(statistics))
