"""A model's tables for a method and a partition: what workers get, or a refusal in one line."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kernels.buffers import Prepared
from kernels.method import BackgroundQuery, BackgroundStatistics, Method
from kernels.parameters import InvalidParameters
from kernels.prepare import ask_background, prepare, weigh_leaves

from ..dataset.partition import Groups, group_numbers
from ..errors import UnsupportedModel, UsageError
from ..models.model import Feature, Model
from ..models.objectives import Margin

_MEANINGLESS = {
    Margin.CLASS: "is not meaningful for a classifier (objective {objective!r}): a link stands between its trees and the probability of a class",
    Margin.OTHER: "is not meaningful where the margin is not a prediction of the label (objective {objective!r})",
}


def player_names(method: Method, groups: Groups, features: Sequence[Feature]) -> tuple[str, ...]:
    """Whose phi are, in the numbers of ``Prepared.players``: all groups of a partition, or all features; and scores."""
    names = tuple(group for group, _ in groups) if groups and method.phi.of_groups else tuple(feature.name for feature in features)
    return (*names, *method.phi.scores)


@contextmanager
def refused() -> Iterator[None]:
    """What kernels refuse, as a mistake of the caller's."""
    try:
        yield
    except InvalidParameters as error:
        raise UsageError(str(error)) from error


def ask_model(model: Model, method: Method, groups: Groups, n_rows: int | None, budget: int, interactions: bool) -> BackgroundQuery:
    """What has to be known of a background with so many rows, None for the model's own leaf weights, or a refusal."""
    with refused():
        numbers = group_numbers(groups, model.features)
        return ask_background(model.ensemble, method, numbers, n_rows=n_rows, budget=budget, interactions=interactions)


def weigh_model(model: Model, method: Method, groups: Groups, query: BackgroundQuery) -> BackgroundStatistics:
    """The model's own leaf weights as a background, or a refusal."""
    with refused():
        return weigh_leaves(model.ensemble, method, group_numbers(groups, model.features), query)


def prepare_model(
    model: Model,
    method: Method,
    parameters: Mapping[str, Any],
    groups: Groups,
    interactions: bool = False,
    background: tuple[BackgroundQuery, BackgroundStatistics] | None = None,
) -> Prepared:
    """Make the tables, or refuse a model or parameters that do not fit."""
    if method.labelled and model.objective.margin is not Margin.LABEL:
        why = _MEANINGLESS[model.objective.margin].format(objective=model.objective.name)
        raise UnsupportedModel(f"method {method.name!r} measures the margin against the label, which {why}")
    with refused():
        return prepare(model.ensemble, method, parameters, group_numbers(groups, model.features), interactions=interactions, background=background)


def pair_names(prepared: Prepared, players: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The two players of every pair."""
    return tuple((players[i], players[j]) for i, j in prepared.pairs.players.tolist())
