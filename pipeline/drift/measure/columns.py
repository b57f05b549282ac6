"""Columns of a run's parts that are measured, and their kinds."""

from dataclasses import dataclass
from typing import Literal

from ...models.catboost.cityhash import HashedCategory
from ...models.model import Feature
from ...runs.records.plan import Plan

Kind = Literal["total", "base", "phi", "value"]
TOTAL: Kind = "total"
BASE: Kind = "base"
PHI: Kind = "phi"
VALUE: Kind = "value"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the parts."""

    name: str
    kind: Kind  # margin, prediction or loss, base value of a loss, attribution of a player, or value of a feature
    output: str  # output of the model; "" for values
    of: str  # player or feature; "" for totals and base values


def list_columns(plan: Plan) -> tuple[Column, ...]:
    """List the columns that are measured."""
    if plan.global_only:
        return ()
    totals, phi, _ = plan.columns
    outputs, players, n_scores = plan.written_outputs, plan.players, len(plan.scores)
    found = [Column(name, TOTAL, output, "") for name, output in zip(totals, outputs, strict=True)]
    found += [Column(name, BASE, output, "") for name, output in zip(plan.base_columns, outputs, strict=False)]
    pairs = [(output, j) for output in outputs for j in range(len(players))] if plan.wide else []
    found += [Column(name, PHI, output, players[j]) for name, (output, j) in zip(phi, pairs, strict=True) if j < len(players) - n_scores]
    features = plan.features if plan.values else ()
    return (*found, *(Column(name, VALUE, "", feature.name) for name, feature in zip(plan.value_columns, features, strict=True)))


def has_categories(feature: Feature) -> bool:
    """Return whether values are unordered categories."""
    return feature.categorical or feature.hashed


def lists_categories(feature: Feature) -> bool:
    """Return whether the model lists all of a feature's categories, not only hashes or codes."""
    return (
        bool(feature.categories) and feature.tells_seen and not feature.hashed and not isinstance((feature.categories or (None,))[0], HashedCategory)
    )
