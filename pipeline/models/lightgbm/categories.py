"""Assignment of pandas' category lists to columns: LightGBM files store lists in column order, without their columns."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import UnsupportedModel


@dataclass(frozen=True, slots=True)
class Trained:
    """The features as seen in training."""

    categorical: tuple[int, ...]  # categorical features, in order
    spare: tuple[int, ...]  # other features that may have held a category column's codes, in order
    needed: np.ndarray  # (features,) int64, number of categories that the codes need
    seen: np.ndarray  # (features,) int64, number of codes seen; for features split as numbers, of integers in their range


def _place(lists: Iterable[int], candidates: Iterable[int], fits: Callable[[int, int], bool]) -> dict[int, int] | None:
    """Assign each list the first fitting candidate after the previous one's."""
    columns, waiting = {}, iter(candidates)
    for i in lists:
        column = next((j for j in waiting if fits(i, j)), None)
        if column is None:
            return None
        columns[i] = column
    return columns


def _extremes(n_lists: int, candidates: Sequence[int], fits: Callable[[int, int], bool]) -> tuple[dict[int, int] | None, dict[int, int] | None]:
    """Return the first and the last feature possible for each list, None if not all can be placed."""
    return _place(range(n_lists), candidates, fits), _place(reversed(range(n_lists)), candidates[::-1], fits)


def place_lists(lists: Sequence[list[Any]], trained: Trained, where: str) -> dict[int, int]:
    """Find the feature of every list.

    With ``categorical_feature="auto"`` there are as many lists as categorical features, one each, but see `find_doubtful`. With fewer lists, some
    categorical columns held integer codes, and the lists are placed only if unambiguous. With more, an ordered category column was split on its codes
    as a number.
    """
    every = len(lists) == len(trained.categorical)
    candidates = trained.categorical if every else sorted({*trained.categorical, *trained.spare})
    first, last = _extremes(len(lists), candidates, lambda i, j: bool(trained.needed[j] <= len(lists[i])))
    if first is None or first != last or not set(first.values()) <= set(trained.categorical):
        raise UnsupportedModel(
            f"{where}: the model stores pandas categories of {len(lists)} columns and has {len(trained.categorical)} categorical features, "
            "and which belong together cannot be told: make all of them unordered category columns, or all of them integers"
        )
    return first


def find_doubtful(lists: Sequence[list[Any]], columns: dict[int, int], trained: Trained) -> set[int]:
    """Find the features that may have been trained on values or on category codes.

    ``categorical_feature`` may have named an integer column and left out a category column, whose list then belongs to the other. A feature that had
    all codes of its list is certain, unless another had them all too; so is one whose codes equal its values.
    """
    needed, seen, sizes = trained.needed, trained.seen, [len(values) for values in lists]
    whole = [bool(seen[columns[i]] == size) for i, size in enumerate(sizes)]

    def fits(i: int, j: int) -> bool:
        return j == columns[i] or bool(seen[j] == needed[j] == sizes[i] if whole[i] else needed[j] <= sizes[i])

    first, last = _extremes(len(lists), sorted({*columns.values(), *trained.spare}), fits)
    if first is None or last is None:
        return set()
    doubted = [i for i, values in enumerate(lists) if first[i] != last[i] and any(value != code for code, value in enumerate(values))]
    # A feature split as a number takes no texts.
    of_numbers = [i for i in doubted if not any(isinstance(value, str) for value in lists[i])]
    exact = {sizes[i] for i in of_numbers if whole[i]}
    largest = max((sizes[i] for i in of_numbers if not whole[i]), default=-1)
    rivals = {j for j in trained.spare if needed[j] <= largest or (seen[j] == needed[j] and needed[j] in exact)}
    return {columns[i] for i in doubted} | rivals
