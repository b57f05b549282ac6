"""The forest that games are played on: trees, what their splits compare, and who the players are."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .binning import BinnedSplits, BinTables, bin_dtype, bin_ensemble
from .ensemble import TreeEnsemble
from .lookup import Comparisons, compare
from .paths import Trace, trace, value_range


class Forest(NamedTuple):
    """A model as it is played on: its trees, what their splits compare, and who the players are."""

    ensemble: TreeEnsemble  # what leaves of a tree have in common is in the base values
    stored: TreeEnsemble  # as it was: what a tree takes off a loss depends on the constants of those before it
    splits: BinnedSplits
    trace: Trace
    comparisons: Comparisons
    bin_type: type[np.unsignedinteger]  # of a bin
    column: np.ndarray  # (used,) int32, the used features' columns
    groups: np.ndarray  # (features,) int32, which group a feature belongs to; each a group of its own where there is no partition
    players: np.ndarray  # (players,) int32, groups with used features
    player: np.ndarray  # (used,) int32, which of the players a used feature belongs to

    @property
    def n_used(self) -> int:
        """Features that some split asks for."""
        return self.player.size

    @property
    def n_players(self) -> int:
        """Players that some split asks for."""
        return self.players.size

    @property
    def n_all(self) -> int:
        """Groups, with those of features in no split."""
        return np.unique(self.groups).size

    @property
    def members(self) -> np.ndarray:
        """``(members,) int64``, all features of the players, in splits or not."""
        return np.flatnonzero(np.isin(self.groups, self.players))

    @property
    def player_of_node(self) -> np.ndarray:
        """``(nodes,) int32``, the player whose feature a split asks for, -1 at leaves."""
        return np.where(self.splits.feature < 0, -1, self.player[self.splits.feature]).astype(np.int32) if self.n_used else self.splits.feature


def _center(ensemble: TreeEnsemble, trace: Trace) -> TreeEnsemble:
    """Move what the leaves of a tree have in common to the base values, which no game depends on: what they differ by keeps all of its digits.

    That is the leaf nearest to zero where all have one sign, so that no leaf grows, and nothing where a tree has leaves of both signs.
    """
    leaf = np.flatnonzero(ensemble.feature < 0)
    value, base = ensemble.value.astype(np.float64), ensemble.base.astype(np.float64)
    for column in range(value.shape[1]):
        low, high = value_range(ensemble, trace, column)
        common = np.maximum(low, 0.0) + np.minimum(high, 0.0)
        value[leaf, column] -= common[trace.tree[leaf]]
        base += np.bincount(ensemble.output + column, common, minlength=base.size)
    return ensemble._replace(value=value, base=base)


def make_forest(ensemble: TreeEnsemble, groups: npt.ArrayLike | None = None) -> tuple[BinTables, Forest]:
    """Bin an ensemble, and find its players. Margins stay, but what all leaves of a tree have in common goes to the base values.

    Parameters
    ----------
    groups : (features,) int, optional
        which group a feature belongs to; if not given, every feature is a group of its own

    Returns
    -------
    bins : BinTables
        how rows become bins
    forest : Forest
    """
    bins, splits = bin_ensemble(ensemble)
    traced = trace(ensemble, splits.feature, bins.column.size)
    groups = np.arange(ensemble.n_features, dtype=np.int32) if groups is None else np.asarray(groups, np.int32)
    players, player = np.unique(groups[bins.column], return_inverse=True)
    return bins, Forest(
        ensemble=_center(ensemble, traced),
        stored=ensemble,
        splits=splits,
        trace=traced,
        comparisons=compare(ensemble, splits, traced),
        bin_type=bin_dtype(bins),
        column=bins.column,
        groups=groups,
        players=players.astype(np.int32),
        player=player.astype(np.int32),
    )
