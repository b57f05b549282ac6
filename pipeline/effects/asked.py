"""What is asked of a model's effects: its forest, and the axes of features, groups and pairs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from leafledger.kernels.effects.axes import Nodes, Runs, find_runs, list_nodes
from leafledger.kernels.trees.binning import BinTables
from leafledger.kernels.trees.forest import Forest, make_forest

from ..arguments.readers import shorten
from ..dataset.columns.partition import Groups
from ..dataset.columns.players import number_players
from ..errors import UsageError
from ..methods.tables import refuse_statistics
from ..models.model import Model
from .named_axis import NamedAxis, choose_names, choose_pairs, name_axis


@dataclass(frozen=True, slots=True)
class AskedEffects:
    """A model's axes: of what is asked for, then of what pairs need besides.

    Attributes
    ----------
    model : Model
        Features as the data call them.
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.
    bins : BinTables
    forest : Forest
    nodes : Nodes
    axes : tuple of NamedAxis
    pairs : tuple of (int, int)
        Positions among the axes.
    """

    model: Model
    groups: Groups
    bins: BinTables
    forest: Forest
    nodes: Nodes
    axes: tuple[NamedAxis, ...]
    pairs: tuple[tuple[int, int], ...]

    def find_runs(self) -> list[Runs]:
        """Find the states of every axis that lead to every leaf."""
        return [find_runs(self.nodes, each.axis) for each in self.axes]

    @property
    def sets(self) -> np.ndarray:
        """Players of every axis, then of every pair, ``(axes + pairs, 2) int64``; -1 for none."""
        single = [(each.player, -1) for each in self.axes]
        return np.array([*single, *((self.axes[a].player, self.axes[b].player) for a, b in self.pairs)], np.int64).reshape(-1, 2)

    def meet(self, pair: tuple[int, int]) -> bool:
        """Return whether some path asks for both features of a pair."""
        player, wanted = self.forest.player_of_node, [self.axes[place].player for place in pair]
        seen, nodes = np.zeros((2, player.size), bool), self.nodes
        for v in nodes.order:
            parent = nodes.parent[v]
            if parent >= 0:
                seen[:, v] = seen[:, parent] | (player[parent] == wanted)
        return bool(seen.all(axis=0).any())

    def notes(self) -> tuple[str, ...]:
        """Say what is flat, and which pairs never meet."""
        flat = (f"no split asks for {each.name!r}: its curve is flat" for each in self.axes if each.player < 0)
        apart = [(self.axes[a].name, self.axes[b].name) for a, b in self.pairs if not self.meet((a, b))]
        return (*flat, *(f"no path asks for both {a!r} and {b!r}: what they do adds up" for a, b in apart))


def ask_effects(model: Model, groups: Groups, features: Any, pairs: Any, what: str) -> AskedEffects:
    """Find the axes that are asked for, of all features where none is said; refuse what is not there, and models with target statistics."""
    refuse_statistics(model, what)
    names, chosen = choose_names(features, model, groups), choose_pairs(pairs, model, groups)
    if not names and not chosen:
        raise UsageError(f"features are {shorten(features)}, expected at least one, or None for all")
    bins, forest = make_forest(model.ensemble, number_players(model, groups).numbers)
    more = dict.fromkeys(name for pair in chosen for name in pair if name not in names)
    axes = tuple(name_axis(model, bins, forest, groups, name) for name in (*names, *more))
    place = {each.name: k for k, each in enumerate(axes)}
    return AskedEffects(model, groups, bins, forest, list_nodes(forest), axes, tuple((place[a], place[b]) for a, b in chosen))
