"""The forest that games use: trees, binned splits, and players."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .binning import BinnedSplits, BinTables, bin_dtype, bin_ensemble
from .ensemble import TreeEnsemble
from .lookup import Comparisons, compare
from .paths import Trace, trace, value_range


class Forest(NamedTuple):
    """A model for games: its trees, binned splits, and players."""

    ensemble: TreeEnsemble  # with the common component of each tree's leaves moved to the base values
    stored: TreeEnsemble  # as loaded: a tree's reduction of a loss depends on the constants of trees before it
    splits: BinnedSplits
    trace: Trace
    comparisons: Comparisons
    bin_type: type[np.unsignedinteger]  # of a bin
    column: np.ndarray  # (used,) int32, the used features' columns
    groups: np.ndarray  # (features,) int32, group of each feature; without a partition, each is its own group
    players: np.ndarray  # (players,) int32, groups with features in splits
    player: np.ndarray  # (used,) int32, player of each used feature

    @property
    def n_used(self) -> int:
        """Number of features in splits."""
        return self.player.size

    @property
    def n_players(self) -> int:
        """Number of players in splits."""
        return self.players.size

    @property
    def n_all(self) -> int:
        """Number of groups, including those of features in no split."""
        return np.unique(self.groups).size

    @property
    def members(self) -> np.ndarray:
        """``(members,) int64``, all features of the players, in splits or not."""
        return np.flatnonzero(np.isin(self.groups, self.players))

    @property
    def player_of_node(self) -> np.ndarray:
        """``(nodes,) int32``, the player of each split, -1 at leaves."""
        return np.where(self.splits.feature < 0, -1, self.player[self.splits.feature]).astype(np.int32) if self.n_used else self.splits.feature


def _center(ensemble: TreeEnsemble, trace: Trace) -> TreeEnsemble:
    """Move each tree's common leaf value to the base values, so that the differences between leaves keep all digits.

    The common value is the leaf nearest to zero if all leaves have one sign, so that no leaf grows, and otherwise 0.
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
    """Bin an ensemble and find its players. Margins stay; each tree's common leaf value moves to the base values.

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
