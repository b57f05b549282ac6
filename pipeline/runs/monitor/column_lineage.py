"""Lineage of columns: the data columns that each column of a part is computed from."""

from dataclasses import dataclass

from leafledger.kernels.methods import METHODS

from ...dataset.columns.players import TIMES
from ..records.plan import Plan

IDENTITY, TRANSFORMATION = "IDENTITY", "TRANSFORMATION"  # OpenLineage's terms


@dataclass(frozen=True, slots=True)
class Traced:
    """Origin of a column."""

    features: tuple[str, ...]  # source columns
    how: str
    kind: str | None  # its type; None for that of the source


def list_fields(plan: Plan) -> list[tuple[str, str | None]]:
    """List the data columns that a run reads."""
    found: dict[str, str | None] = {feature.name: "category" if feature.categorical or feature.hashed else "number" for feature in plan.features}
    labels = () if plan.labels is None else plan.labels.numbers
    for name in (*plan.ids, *labels, *(group.name for group in plan.by), *plan.predictions):
        found.setdefault(name, None)
    return list(found.items())


def _features_of(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Map every player to its columns; scores without a player depend on all."""
    everything = tuple(feature.name for feature in plan.features)
    known: dict[str, tuple[str, ...]] = (
        {name: (name,) for name in everything} if not (plan.groups and METHODS[plan.method].phi.of_groups) else dict(plan.groups)
    )
    for name in plan.combinations:
        members = name.split(TIMES)
        known[name] = tuple(feature for member in members for feature in known[member]) if all(each in known for each in members) else everything
    return {player: known.get(player, everything) for player in plan.players}


def trace_columns(plan: Plan) -> dict[str, Traced]:
    """Trace every column of a part to its direct sources. Numbers also depend on all other features, labels and weights."""
    margins, phi, pairs = plan.columns
    number = "float" if plan.precision == "float32" else "double"
    everything, of_player = tuple(feature.name for feature in plan.features), _features_of(plan)
    label = () if plan.labels is None else (plan.labels.label,)  # for losses
    owners = [tuple(dict.fromkeys((*of_player[player], *label))) for player in plan.players] * len(plan.written_outputs)
    written = METHODS[plan.method].phi
    kinds = ["int" if written.ranks and player not in written.scores else number for player in plan.players] * len(plan.written_outputs)
    found = {name: Traced((name,), IDENTITY, None) for name in plan.ids}
    found |= {name: Traced(everything, TRANSFORMATION, "string") for name in plan.chosen}
    found |= {name: Traced(everything, TRANSFORMATION, number) for name in margins}
    found |= {name: Traced(mine, TRANSFORMATION, kind) for name, mine, kind in zip(phi, owners, kinds, strict=False)}
    found |= {name: Traced(mine, TRANSFORMATION, number) for name, mine in zip(plan.error_columns, owners, strict=False)}
    attributed = tuple(dict.fromkeys((*everything, *label)))
    found |= {name: Traced(attributed, TRANSFORMATION, None) for name in (*pairs, *plan.top_columns, *plan.reason_columns, *plan.change_columns)}
    found |= {name: Traced((feature.name,), IDENTITY, None) for name, feature in zip(plan.value_columns, plan.features, strict=False)}
    if plan.labels is not None and plan.label_column:
        found.setdefault(plan.label_column, Traced((plan.labels.label,), IDENTITY, None))
    return found
