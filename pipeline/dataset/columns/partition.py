"""Partitions of features into groups: reading, completion, and numbering of players."""

import json
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from os import PathLike
from typing import Any

import numpy as np

from ...display.nearest import did_you_mean
from ...display.text import is_whole
from ...errors import UsageError
from ...models.model import Feature
from ...stores import storage
from .names import name_at

Groups = tuple[tuple[str, tuple[str, ...]], ...]  # groups with their features, in the model's order; empty without a partition
Partition = Mapping[str, Iterable[str | int]] | str | PathLike  # groups with their features by name or position, or a JSON file of them


def _refuse_doubled(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        doubled = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"group {doubled!r} stands twice")
    return dict(pairs)


def _read(partition: Partition) -> tuple[Any, str]:
    """Read the partition, and where it comes from."""
    if not isinstance(partition, str | PathLike):
        return partition, "partition"
    where = str(partition)
    data = storage.read(where)
    try:
        return json.loads(data, object_pairs_hook=_refuse_doubled), where
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON: {' '.join(str(error).split())}") from error


def _members(name: Any, given: Any, where: str) -> tuple[str | int, ...]:
    members = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping) else None
    if not isinstance(name, str) or members is None or not all(isinstance(member, str | Integral) for member in members):
        raise UsageError(f"{where}: group {name!r} is not a list of feature names or positions")
    if not members:
        raise UsageError(f"{where}: group {name!r} has no features, expected at least one")
    if not is_whole(name):
        raise UsageError(f"{where}: group {name!r} has half a character in its name, which cannot be written")
    return members


def read_groups(partition: Partition | None, features: Sequence[Feature]) -> Groups:
    """List all groups: those of the partition, and a group of its own for every feature not in it.

    Groups are ordered by their first feature, and features as in the model, so that equal partitions compare equal.

    Parameters
    ----------
    partition : mapping, str or path, optional
        Groups with their features, by name or by position from 0, or a JSON file of such an object.
    features : sequence of Feature
        Of the model, in its order.

    Returns
    -------
    tuple of (str, tuple of str)
        Every group with its features; empty where no partition is given.

    Raises
    ------
    UsageError
        It is no mapping of names to lists of names, names what is no feature, a feature or a group twice, or a group as a feature outside of it.
    """
    if partition is None:
        return ()
    given, where = _read(partition)
    if not isinstance(given, Mapping):
        raise UsageError(f"{where}: is a {type(given).__name__}, expected an object: group -> list of feature names or positions")
    places = {feature.name: j for j, feature in enumerate(features)}
    spaced = {feature.name: feature.name for feature in features if feature.underscored}  # for unknown columns of the data
    group_of: dict[str, str] = {}
    for group, listed in given.items():
        for member in _members(group, listed, where):
            name = name_at(member, places, f"{where}: group {group!r}")
            if isinstance(name, str) and name not in places:
                name = spaced.get(name.replace(" ", "_"), name)
            if name not in places:
                raise UsageError(f"{where}: group {group!r} names {name!r}, which is no feature of the model{did_you_mean(name, places)}")
            if name in group_of:
                twice = "twice" if group_of[name] == group else f"and in group {group_of[name]!r}"
                raise UsageError(f"{where}: feature {name!r} stands in group {group!r} {twice}, expected once")
            group_of[name] = group
    for group in given:
        if group in places and group_of.get(group) != group:
            raise UsageError(f"{where}: group {group!r} is named as a feature outside of it; choose another name")
    groups: dict[str, list[str]] = {}
    for feature in features:
        groups.setdefault(group_of.get(feature.name, feature.name), []).append(feature.name)
    return tuple((group, tuple(members)) for group, members in groups.items())


def group_numbers(groups: Groups, features: Sequence[Feature]) -> np.ndarray | None:
    """Return the group number of every feature."""
    if not groups:
        return None
    group_of = {feature: number for number, (_, members) in enumerate(groups) for feature in members}
    return np.array([group_of[feature.name] for feature in features], np.int32)
