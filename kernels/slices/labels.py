"""Labels, weights and groups of rows."""

from typing import NamedTuple

import numpy as np

from ..errors import InvalidParameters

MOST_VALUES = 1 << 17  # values in all groups, at most: every part stores their sums in its footer, some hundred bytes each


class Labels(NamedTuple):
    """Labels of a batch's rows, and the kernel's results for them."""

    label: np.ndarray  # (n,) float64, arbitrary where missing
    weight: np.ndarray  # (n,) float64, nonnegative; rows of weight 0 do not count
    missing: np.ndarray  # (n,) bool, the row has no label, and weight 0
    group: np.ndarray  # (n,) int64, position in ``names``
    names: np.ndarray  # (groups,) str, distinct and ascending
    residual: np.ndarray  # (n,) float64, written by the kernel: label - margin
    remainder: np.ndarray  # (n,) float64, written by the kernel: part of the row's loss that belongs to no feature


def no_labels(n: int) -> Labels:
    """Make empty labels: no row counts.

    Parameters
    ----------
    n : int
        rows of the buffer

    Returns
    -------
    Labels
        all rows of weight 0, in one group of the name ''
    """
    zero = np.zeros(n)
    return Labels(zero, zero.copy(), np.zeros(n, bool), np.zeros(n, np.int64), np.array([""]), zero.copy(), zero.copy())


def take_labels(labels: Labels, first: int, last: int) -> Labels:
    """Take the labels of rows ``first`` to ``last - 1`` as if these had been read alone, not padded: with the groups alone that they are of."""
    label, weight, missing, group, residual, remainder = (np.ascontiguousarray(each[first:last]) for each in (*labels[:4], *labels[5:]))
    found, group = np.unique(group, return_inverse=True) if labels.names.size > 1 else (slice(None), group)
    return Labels(label, weight, missing, group, labels.names[found], residual, remainder)


def check_groups(by: tuple[str, ...], n_groups: int, n_values: int) -> None:
    """Refuse too many groups of rows for a table.

    Parameters
    ----------
    by : tuple of str
        columns whose values make the groups, for the message
    n_groups, n_values : int
        groups so far, and values that each has: one for every output and player
    """
    if n_groups * n_values > MOST_VALUES:
        raise InvalidParameters(
            f"{', '.join(map(repr, by))} make {n_groups} groups of {n_values} values each, expected at most {MOST_VALUES} values in all"
        )
