"""Players of models with CatBoost's target statistics of feature combinations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from leafledger.kernels.trees.statistics import CATEGORY, Statistics

from ...errors import SchemaMismatch
from ...models.model import Model
from .partition import Groups, group_numbers

TIMES = "×"  # separator of the features of a combination


@dataclass(frozen=True, slots=True)
class Players:
    """The players of a model."""

    numbers: np.ndarray | None  # (columns,) int32, player of every column of the ensemble; None if each is its own
    combinations: dict[int, tuple[int, ...]]  # by number, after the other players: the features or groups that a combination consists of


def _find_sources(statistics: Statistics) -> Iterator[np.ndarray]:
    """Find the features whose categories key each column of statistics; bits of combinations do not count."""
    for projection in statistics.projection:
        elements = slice(statistics.element_start[projection], statistics.element_start[projection + 1])
        yield statistics.source[statistics.element[elements][statistics.kind[elements] == CATEGORY]]


def number_players(model: Model, groups: Groups) -> Players:
    """Number the players: features or groups first, then combinations.

    A statistic of one feature, or of features of one group, belongs to it, as its splits do. One of several is a player of its own, as in CatBoost's
    SHAP values.

    Parameters
    ----------
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.
    """
    numbers, statistics = group_numbers(groups, model.features), model.ensemble.statistics
    if not statistics.column.size:
        return Players(numbers, {})
    own = np.arange(len(model.features), dtype=np.int32) if numbers is None else numbers
    sources = [tuple(sorted({int(own[feature]) for feature in found})) for found in _find_sources(statistics)]
    several = sorted({source for source in sources if len(source) > 1}, key=lambda source: (len(source), source))
    number = {source: len(groups or model.features) + k for k, source in enumerate(several)}
    statistic = [number.get(source, source[0]) for source in sources]
    return Players(np.concatenate((own, np.array(statistic, np.int32))), {number: source for source, number in number.items()})


def combination_names(model: Model, groups: Groups) -> tuple[str, ...]:
    """Name combinations by their features or groups: ``city×job``.

    Parameters
    ----------
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.

    Returns
    -------
    tuple of str
        In the order of their numbers; empty where the model has none.

    Raises
    ------
    SchemaMismatch
        A feature or group is called as a combination is.
    """
    names = [group for group, _ in groups] or [feature.name for feature in model.features]
    return join_names(names, [*number_players(model, groups).combinations.values()])


def join_names(names: Sequence[str], combinations: Iterable[Sequence[int]]) -> tuple[str, ...]:
    """Name combinations by their members.

    Parameters
    ----------
    names : sequence of str
        Of all features, or groups.
    combinations : iterable of sequences of int
        Numbers of their members.

    Returns
    -------
    tuple of str
        In their order.

    Raises
    ------
    SchemaMismatch
        A feature or group is called as a combination is.
    """
    found = tuple(TIMES.join(names[each] for each in source) for source in combinations)
    taken = set(names) & set(found)
    if taken or len(set(found)) < len(found):
        raise SchemaMismatch(f"{min(taken or found)!r} would be the name of two players; rename the feature, or share combinations")
    return found
