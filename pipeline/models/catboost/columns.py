"""Features of a CatBoost model as stored in its file."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import InvalidModel, UnsupportedModel

MAX_FEATURES = 100_000


@dataclass(frozen=True, slots=True)
class Column:
    """A feature and its possible splits: ``x > border``, or ``hash(x) == value`` for categories."""

    categorical: bool
    index: int  # position among the features of its kind, used by splits
    flat: int  # position among all features
    name: str
    nan_right: bool
    borders: np.ndarray  # (borders,) float32
    values: tuple[int, ...]  # hashes of categories, 0..2**32 - 1
    texts: tuple[str, ...] | None  # the categories, if the file has them
    named: bool = True  # else named by its flat position


def order_columns(columns: Sequence[Column], where: str) -> dict[int, int]:
    """Check features and sort them."""
    if len(columns) > MAX_FEATURES:
        raise UnsupportedModel(f"{where}: {len(columns)} features, expected at most {MAX_FEATURES}")
    order = {flat: position for position, flat in enumerate(sorted(column.flat for column in columns))}
    if len(order) != len(columns) or min(order, default=0) < 0:
        found = sorted(column.flat for column in columns)[:9]
        raise InvalidModel(f"{where}: flat feature indices are {found}, expected distinct numbers >= 0")
    for column in columns:
        steps = np.flatnonzero(column.borders[1:] < column.borders[:-1])
        if steps.size:  # CatBoost counts the borders below a value, and compares the count
            first, second = column.borders[steps[0] : steps[0] + 2]
            raise InvalidModel(f"{where}: feature {column.name!r} has border {first:g} before {second:g}, expected ascending ones")
        if len(set(column.values)) != len(column.values) or len(set(column.texts or ())) != len(column.texts or ()):
            raise InvalidModel(f"{where}: feature {column.name!r} has the same category twice")
        if column.texts is not None and len(column.texts) != len(column.values):
            raise InvalidModel(f"{where}: feature {column.name!r} has {len(column.texts)} texts for {len(column.values)} categories")
    return order
