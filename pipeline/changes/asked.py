"""What may be changed of a row: features, their direction, bounds and steps, and the threshold to be crossed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from ..arguments.choices import MARGIN, Space
from ..arguments.readers import read_choice, read_float, read_space, refuse, shorten
from ..display.nearest import did_you_mean
from ..errors import UnsupportedModel, UsageError
from ..models.catboost.cityhash import HashedCategory
from ..models.model import Feature, Model

Way = Literal["up", "down", "both"]
WAYS: tuple[str, ...] = get_args(Way)
FIELDS = ("direction", "at_least", "at_most", "step", "to")  # of a feature that may be changed


@dataclass(frozen=True, slots=True)
class Change:
    """What may be changed of a feature."""

    feature: str
    direction: Way = "both"  # of numbers
    at_least: float | None = None
    at_most: float | None = None
    step: float | None = None  # numbers are multiples of it; None for all that the column holds
    to: tuple[str | float, ...] | None = None  # categories, the best first; None for all that the model knows
    text: str | None = None  # in words; None for the words of all


@dataclass(frozen=True, slots=True)
class Changes:
    """The threshold to be crossed, and what may be changed."""

    threshold: float
    space: Space
    text: str  # in words, of features without their own
    features: tuple[Change, ...]


def _read_categories(given: Any, where: str) -> tuple[str | float, ...]:
    listed = list(given) if isinstance(given, Iterable) and not isinstance(given, str | Mapping) else [given]
    found = tuple(each if isinstance(each, str) else read_float(where, each, "categories, as texts or numbers") for each in listed)
    if not found or len({*found}) < len(found):
        raise refuse(where, given, "one category or several, each once")
    return found


def read_change(feature: str, given: Mapping[str, Any], where: str, text: str | None = None) -> Change:
    """Read what may be changed of a feature.

    Parameters
    ----------
    given : mapping
        Of `FIELDS`.
    where : str
        What messages start with.
    text : str, optional
        In words.

    Raises
    ------
    UsageError
        A field is unknown or is no such thing, or no number is between the bounds.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"{where}: is {shorten(given)}, expected {', '.join(FIELDS)} by name")
    for name in given:
        if name not in FIELDS:
            raise UsageError(f"{where}: has {name!r:.80}, expected {', '.join(FIELDS)}{did_you_mean(name, FIELDS)}")
    least, most, step = (None if given.get(name) is None else read_float(f"{where}: {name}", given[name]) for name in ("at_least", "at_most", "step"))
    if step is not None and step <= 0:
        raise refuse(f"{where}: step", given["step"], "a number above 0")
    if least is not None and most is not None and least > most:
        raise UsageError(f"{where}: at_least is {least:g}, above at_most, {most:g}; expected the smaller one first")
    way = cast(Way, read_choice(f"{where}: direction", given.get("direction", "both"), WAYS))
    to = None if given.get("to") is None else _read_categories(given["to"], f"{where}: to")
    return Change(feature, way, least, most, step, to, text)


def read_threshold(threshold: Any, space: Any, where: str = "") -> tuple[float, Space]:
    """Read a threshold, and what it is of.

    Parameters
    ----------
    where : str
        What messages start with.
    """
    if threshold is None:
        raise UsageError(f"{where}threshold is not given, expected the number from which on a row is on the other side")
    return read_float(f"{where}threshold", threshold), read_space(f"{where}space", space or MARGIN)


def knows_hashes(feature: Feature) -> bool:
    """Return whether the model has no names of a feature's categories, but their hashes."""
    return bool(feature.categories) and isinstance((feature.categories or ("",))[0], HashedCategory)


def check_names(names: Iterable[str], features: Sequence[Feature], where: str) -> None:
    """Refuse features that the model does not have.

    Parameters
    ----------
    where : str
        What messages start with.
    """
    known = [feature.name for feature in features]
    for name in names:
        if name not in known:
            raise UsageError(f"{where} has {name!r:.80}, which is no feature of the model{did_you_mean(name, known)}")


def check_changes(changes: Sequence[Change], model: Model, features: Sequence[Feature], where: str) -> None:
    """Refuse changes that cannot be made of a model's features.

    Parameters
    ----------
    features : sequence of Feature
        As their columns are read, by position.
    where : str
        What messages start with.

    Raises
    ------
    UnsupportedModel
        A feature's statistics change along with it, or its categories have no names.
    UsageError
        Numbers are asked for of categories, or categories of numbers.
    """
    of_name, statistics = {feature.name: feature for feature in features}, model.ensemble.statistics
    counted = {features[source].name for source in statistics.source.tolist()}
    for change in changes:
        feature, here = of_name[change.feature], f"{where}: {change.feature!r}"
        if change.feature in counted:
            raise UnsupportedModel(f"{here}: statistics (CTR) that the model keeps of it change along with it; expected other features to change")
        of_numbers = [name for name in FIELDS[:-1] if getattr(change, name) not in (None, "both")]
        if feature.categorical and of_numbers:
            raise UsageError(f"{here}: has {of_numbers[0]}, but it is a feature of categories, which have no order; list those it may become with to")
        if not feature.categorical and change.to is not None:
            raise UsageError(f"{here}: has to, but it is a feature of numbers; expected {', '.join(FIELDS[:-1])}")
        if knows_hashes(feature) and change.to is None:
            raise UnsupportedModel(f"{here}: the model knows its categories by hashes alone; list those it may become with to")
