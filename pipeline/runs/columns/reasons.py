"""Reasons: the attributions to report to a person, and their texts."""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa

from ...changes.asked import Changes
from ...dataset.columns.schema import column_values
from ...dataset.columns.values import hash_column
from ...json_records import EMPTY
from ...models.model import Feature

Direction = Literal["raises", "lowers"]
FEATURE, VALUE = "feature", "value"  # placeholders in a text


@dataclass(frozen=True, slots=True)
class Band:
    """Text for some values of a feature: numbers between bounds, listed values, missing ones, or, by default, all others."""

    code: str | None
    text: str
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    one_of: tuple[str | float, ...] | None = None
    missing: bool = False

    @property
    def bounded(self) -> bool:
        """Whether it is for numbers between bounds."""
        return any(bound is not None for bound in (self.above, self.at_least, self.below, self.at_most))

    @property
    def for_others(self) -> bool:
        """Whether it is for all values in no other band of the feature."""
        return not (self.bounded or self.missing or self.one_of is not None)

    @property
    def low(self) -> tuple[float, bool]:
        """Lower bound, and whether it is excluded, comparable as tuples."""
        return (self.above, True) if self.above is not None else (-math.inf if self.at_least is None else self.at_least, False)

    @property
    def high(self) -> tuple[float, bool]:
        """Upper bound, and whether it is included; a band that starts at an equal tuple is adjacent."""
        return (self.below, False) if self.below is not None else (math.inf if self.at_most is None else self.at_most, True)


@dataclass(frozen=True, slots=True)
class Worded:
    """A feature or group with its texts."""

    player: str
    bands: tuple[Band, ...]  # the default band, if any, last


@dataclass(frozen=True, slots=True)
class Reasons:
    """Selection of reasons, and their texts."""

    digest: str  # SHA-256 of the file, hexadecimal
    direction: Direction  # "raises" for attributions above 0, "lowers" for those below
    most: int  # most reasons of a row
    least: float  # least share of a reason in the total of its direction, 0 to 1
    never: tuple[str, ...]  # features or groups that are never named
    default: Band | None  # text of features without their own
    worded: tuple[Worded, ...]  # features or groups with their own texts, in the order of the file
    changes: Changes | None = field(default=None, metadata={EMPTY: True})  # what may be changed

    def bands_of(self, player: str) -> tuple[Band, ...]:
        """List the texts of a feature or group."""
        own = next((each.bands for each in self.worded if each.player == player), ())
        return own if self.default is None or (own and own[-1].for_others) else (*own, self.default)


def has_texts(feature: Feature) -> bool:
    """Return whether values are named by text: categories, unless the column holds codes."""
    return feature.hashed or feature.categories is not None


def find_codes(feature: Feature, column: pa.Array) -> np.ndarray:
    """Encode values as numbers that are equal if the model treats the values as equal."""
    if feature.hashed:
        return hash_column(feature, column)
    found = column_values(feature, column)
    if feature.categorical and feature.categories is None:  # codes are truncated to integers, and negative ones are no category
        with np.errstate(invalid="ignore"):
            return np.where(found < 0, -1.0, np.floor(found))
    return found
