"""Who plays: every feature, or the groups of a partition that was given; and the tables of a model that is played so."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np

from kernels.background import Background
from kernels.batch import Asked, Counted, Prepared, prepare, survey, weigh_leaves
from kernels.methods import Method
from kernels.parameters import InvalidParameters

from . import storage
from .errors import UnsupportedModel, UsageError
from .models.model import Feature, Model
from .models.objectives import Margin

Groups = tuple[tuple[str, tuple[str, ...]], ...]  # every group with its features, in the model's order; empty where there is no partition
Partition = Mapping[str, Iterable[str]] | str | PathLike  # groups with their features, or where such an object is in JSON

_MEANINGLESS = {
    Margin.CLASS: "R² of the margin is not meaningful for a classifier (objective {objective!r}); the Brier score of its probability is not "
    "shared out, since a link stands between it and the trees",
    Margin.OTHER: "R² of the margin is not meaningful where the margin is not a prediction of the label (objective {objective!r})",
}


def _refuse_doubled(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        doubled = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"group {doubled!r} stands twice")
    return dict(pairs)


def _read(partition: Partition) -> tuple[Any, str]:
    """What was given, and where it is."""
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


def _members(name: Any, given: Any, where: str) -> tuple[str, ...]:
    members = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping) else None
    if not isinstance(name, str) or members is None or not all(isinstance(member, str) for member in members):
        raise UsageError(f"{where}: group {name!r} is not a list of feature names")
    if not members:
        raise UsageError(f"{where}: group {name!r} has no features, expected at least one")
    return members


def read_groups(partition: Partition | None, features: Sequence[Feature]) -> Groups:
    """All groups: those of the partition, and one of its own, under its own name, for every feature that it does not name.

    Groups come in the order of their first feature, features in the model's order, so that equal partitions are equal however they are written.
    """
    if partition is None:
        return ()
    given, where = _read(partition)
    if not isinstance(given, Mapping):
        raise UsageError(f"{where}: is a {type(given).__name__}, expected an object: group -> list of feature names")
    known = {feature.name for feature in features}
    group_of: dict[str, str] = {}
    for group, listed in given.items():
        for name in _members(group, listed, where):
            if name not in known:
                raise UsageError(f"{where}: group {group!r} names {name!r}, which is no feature of the model")
            if name in group_of:
                twice = "twice" if group_of[name] == group else f"and in group {group_of[name]!r}"
                raise UsageError(f"{where}: feature {name!r} stands in group {group!r} {twice}, expected once")
            group_of[name] = group
    for group in given:
        if group in known and group_of.get(group) != group:
            raise UsageError(f"{where}: group {group!r} is named as a feature outside of it; choose another name")
    groups: dict[str, list[str]] = {}
    for feature in features:
        groups.setdefault(group_of.get(feature.name, feature.name), []).append(feature.name)
    return tuple((group, tuple(members)) for group, members in groups.items())


def player_names(method: Method, groups: Groups, features: Sequence[Feature]) -> tuple[str, ...]:
    """Whose phi are, in the numbers of ``Prepared.players``: all groups of a partition, or all features; and scores."""
    names = tuple(group for group, _ in groups) if groups and method.by_player else tuple(feature.name for feature in features)
    return (*names, *method.scores)


def group_numbers(groups: Groups, features: Sequence[Feature]) -> np.ndarray | None:
    """Which group each feature belongs to, ``(features,) int32``; None where there is no partition."""
    if not groups:
        return None
    group_of = {feature: number for number, (_, members) in enumerate(groups) for feature in members}
    return np.array([group_of[feature.name] for feature in features], np.int32)


@contextmanager
def refused() -> Iterator[None]:
    """What kernels refuse, as a mistake of the caller's."""
    try:
        yield
    except InvalidParameters as error:
        raise UsageError(str(error)) from error


def survey_model(model: Model, method: Method, groups: Groups, n_rows: int | None, budget: int, interactions: bool) -> Asked:
    """What has to be known of a background with so many rows, None for the model's own leaf weights, or a refusal."""
    with refused():
        numbers = group_numbers(groups, model.features)
        return survey(model.ensemble, method, numbers, n_rows=n_rows, budget=budget, interactions=interactions)


def weigh_model(model: Model, method: Method, groups: Groups, surveyed: Asked) -> Background:
    """The model's own leaf weights as a background, or a refusal."""
    with refused():
        return weigh_leaves(model.ensemble, method, group_numbers(groups, model.features), surveyed)


def prepare_model(
    model: Model,
    method: Method,
    parameters: Mapping[str, Any],
    groups: Groups,
    interactions: bool,
    surveyed: Asked | None = None,
    background: Counted | None = None,
) -> Prepared:
    """Make the tables, or refuse a model or parameters that do not fit."""
    if method.labelled and model.objective.margin is not Margin.LABEL:
        raise UnsupportedModel(_MEANINGLESS[model.objective.margin].format(objective=model.objective.name))
    with refused():
        return prepare(model.ensemble, method, parameters, group_numbers(groups, model.features), interactions, surveyed, background)


def pair_names(prepared: Prepared, players: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The two players of every pair."""
    return tuple((players[i], players[j]) for i, j in prepared.pairs.players.tolist())
