"""Tables of a model for a method and a partition, with refusal of unsupported combinations."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.method.method import BackgroundQuery, BackgroundStatistics, Method
from leafledger.kernels.prepare import ask_background, prepare, weigh_leaves
from leafledger.kernels.quotients.quantities import Quantity
from leafledger.kernels.set_indices import Sets
from leafledger.kernels.slices.buffers import Prepared
from leafledger.kernels.trees.ensemble import TreeEnsemble

from ..dataset.columns.partition import Groups
from ..dataset.columns.players import number_players
from ..errors import UnsupportedModel, UsageError
from ..models.model import Feature, Model
from ..models.objectives import OF_CLASSES, Margin
from .interaction_lists import check_order
from .parameters import number_groups

_OF_CLASSES = "is not meaningful for a classifier (objective {objective!r}), whose margin is the score or the probability of a class"
_MEANINGLESS = {
    **dict.fromkeys(OF_CLASSES, _OF_CLASSES),
    Margin.OTHER: "is not meaningful where the margin is not known to be a prediction of the label (objective {objective!r})",
}


def player_names(method: Method, groups: Groups, features: Sequence[Feature], combinations: Sequence[str] = ()) -> tuple[str, ...]:
    """Name the rows of phi: groups of a partition or features, combinations of them, and the method's scores.

    Parameters
    ----------
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.
    features : sequence of Feature
        Of the model, in its order.
    combinations : sequence of str
        Names of those that are players of their own.

    Returns
    -------
    tuple of str
        In the numbers of ``Prepared.players``.
    """
    names = tuple(group for group, _ in groups) if groups and method.phi.of_groups else tuple(feature.name for feature in features)
    return (*names, *combinations, *method.phi.scores)


@contextmanager
def refused() -> Iterator[None]:
    """Turn errors of kernels into errors about the caller's input."""
    try:
        yield
    except InvalidParameters as error:
        raise UsageError(str(error)) from error


def refuse_statistics(model: Model, what: str) -> None:
    """Refuse functions that treat a model's columns as features if it has statistics.

    Parameters
    ----------
    what : str
        That does so, for the message.
    """
    if model.ensemble.statistics.column.size:
        raise UnsupportedModel(f"{what} is not there for CatBoost models with target statistics (CTR); shapley and most other methods are")


def _are_ordered(ensemble: TreeEnsemble) -> bool:
    """Return whether trees were added one at a time to each output."""
    n_trees = ensemble.root.size
    if not ensemble.iteration.size:
        return n_trees <= 1
    return np.unique((ensemble.iteration, ensemble.output), axis=1).shape[1] == n_trees


def check_method(model: Model, method: Method) -> None:
    """Refuse a method that the model does not support with any arguments."""
    if method.labelled and model.objective.margin is not Margin.LABEL:
        why = _MEANINGLESS[model.objective.margin].format(objective=model.objective.name)
        raise UnsupportedModel(f"method {method.name!r} measures the margin against the label, which {why}")
    if method.labelled and not _are_ordered(model.ensemble):
        raise UnsupportedModel(
            f"method {method.name!r} takes trees in the order in which they were boosted; these are averaged or parallel, and shares depend on it"
        )
    if method.perturbs or not method.phi.of_groups:
        refuse_statistics(model, f"method {method.name!r}")


def check_groups(method: Method, groups: Groups) -> None:
    """Refuse a method of groups without a partition.

    Parameters
    ----------
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.
    """
    if not groups and not method.phi.of_groups:
        single = ", {} for groups of one feature each" if any(parameter.of_groups for parameter in method.parameters) else ""
        raise UsageError(f"method {method.name!r} needs a partition of the features: give --partition, in Python partition={single}")


def check_shared(method: Method, interactions: bool) -> None:
    """Refuse methods whose values cannot be shared among the features of a combination.

    Parameters
    ----------
    interactions : bool
        Interactions are asked for.
    """
    if interactions or not method.phi.linear:
        what = "interactions" if interactions else f"what method {method.name!r} finds"
        raise UsageError(f"{what} cannot be shared among the features of a combination; make combinations players, with combinations own")


def find_shared(model: Model, method: Method, groups: Groups, interactions: bool, own: bool) -> dict[int, tuple[int, ...]]:
    """Find the players that stand for several others, and how these share their values; refuse if impossible.

    Parameters
    ----------
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.
    interactions : bool
        Interactions are asked for.
    own : bool
        Combinations of features are players of their own.

    Returns
    -------
    dict of int to tuple of int
        Empty where nothing is shared.

    Raises
    ------
    UsageError
        It is interactions, or what the method finds cannot be shared.
    """
    shared = {} if own else number_players(model, groups).combinations
    if shared:
        check_shared(method, interactions)
    return dict(shared)


def ask_model(
    model: Model,
    method: Method,
    groups: Groups,
    n_rows: int | None,
    budget: int,
    interactions: bool = False,
    errors: bool = False,
    sets: Sets | None = None,
    quantity: Quantity | None = None,
) -> BackgroundQuery:
    """Make the background query of a model and a method.

    Parameters
    ----------
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.
    n_rows : int or None
        Of the background; None for the model's own leaf weights.
    budget : int
        Bytes that the tables may have.
    interactions : bool
        Interactions are asked for.
    errors : bool
        Standard errors are asked for.
    sets : Sets, optional
        That interactions are of; by default pairs.
    quantity : Quantity, optional
        That attributions are carried to, background row by background row.

    Raises
    ------
    UsageError
        The method has no marginal game, or tables do not fit in the budget.
    """
    check_method(model, method)
    check_groups(method, groups)
    with refused():
        numbers = number_players(model, groups).numbers
        return ask_background(
            model.ensemble,
            method,
            numbers,
            n_rows=n_rows,
            budget=budget,
            interactions=interactions,
            errors=errors,
            order=0 if sets is None else sets.order,
            quantity=quantity,
        )


def weigh_model(model: Model, method: Method, groups: Groups, query: BackgroundQuery) -> BackgroundStatistics:
    """Use the model's own leaf weights as background.

    Parameters
    ----------
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.
    query : BackgroundQuery
        Made for no rows, see `ask_model`.

    Raises
    ------
    UsageError
        The weights do not say enough, as where trees are not symmetric.
    """
    with refused():
        return weigh_leaves(model.ensemble, method, number_players(model, groups).numbers, query)


def prepare_model(
    model: Model,
    method: Method,
    parameters: Mapping[str, Any],
    groups: Groups,
    interactions: bool = False,
    own: bool = False,
    background: tuple[BackgroundQuery, BackgroundStatistics] | None = None,
    sets: Sets | None = None,
) -> Prepared:
    """Make the tables of a model and a method.

    Parameters
    ----------
    parameters : mapping of str to Any
        Of the method, all of them, as `check_parameters` returns them.
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.
    interactions : bool
        Also make tables of pairs.
    own : bool
        Combinations of features are players of their own; otherwise what they have is shared by their features.
    background : (BackgroundQuery, BackgroundStatistics), optional
        What was asked of a background and what was counted. None for the path-dependent game.
    sets : Sets, optional
        That interactions are of; by default pairs.

    Raises
    ------
    UnsupportedModel
        The method is not there for it, see `check_method`.
    UsageError
        The parameters, the partition or the background do not fit the model or the method.
    """
    check_method(model, method)
    check_groups(method, groups)
    shared = find_shared(model, method, groups, interactions, own)
    numbers = number_players(model, groups).numbers
    check_order(sets, model, groups, own)
    with refused():
        return prepare(
            model.ensemble,
            method,
            number_groups(method, parameters, groups),
            numbers,
            interactions=interactions,
            background=background,
            shared=shared,
            sets=sets,
        )


def set_names(prepared: Prepared, players: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Name the players of every pair or set that interacts.

    Parameters
    ----------
    players : sequence of str
        As `player_names` returns them.

    Returns
    -------
    tuple of tuples of str
        Empty where interactions are not asked for.
    """
    return tuple(tuple(players[i] for i in members if i >= 0) for members in prepared.pairs.players.tolist())
