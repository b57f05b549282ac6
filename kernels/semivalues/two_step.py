"""The two-step Shapley value of a partition (Kamijo 2009, as in Filom et al. 2024, Example B.11).

A group's Shapley value in the game of groups is divided among its members: each gets its Shapley value in the group's own game, and an equal share of
the rest, also members in no split. So values add up within groups and in total, and a feature without effect may have a nonzero value.
"""

from typing import NamedTuple

import numpy as np

from ..trees.forest import Forest
from .tables import SemivalueTables, add_semivalues


class TwoStepTables(NamedTuple):
    """Both games, and the groups; phi has a row for every member of a group with a feature in a split."""

    alone: SemivalueTables  # a row of phi for each used feature
    groups: SemivalueTables  # a row for each group
    row: np.ndarray  # (used,) int64, row of phi of each used feature
    group: np.ndarray  # (rows,) int64, group of each row of phi


def share_equally(forest: Forest, alone: SemivalueTables, groups: SemivalueTables) -> TwoStepTables:
    """Combine the values of both games."""
    return TwoStepTables(
        alone=alone,
        groups=groups,
        row=np.searchsorted(forest.members, forest.column).astype(np.int64),
        group=np.searchsorted(forest.players, forest.groups[forest.members]).astype(np.int64),
    )


def add_two_step(bins: np.ndarray, tables: TwoStepTables, phi: np.ndarray, n_rows: int) -> None:
    """Add the attributions of the first ``n_rows`` rows to ``phi``; others may be left out."""
    outputs, _, n = phi.shape
    size = np.bincount(tables.group)
    alone, groups = np.zeros((outputs, tables.row.size, n)), np.zeros((outputs, size.size, n))
    add_semivalues(bins, tables.alone, alone, n_rows)
    add_semivalues(bins, tables.groups, groups, n_rows)
    for feature, row in enumerate(tables.row):
        phi[:, row] += alone[:, feature]
        groups[:, tables.group[row]] -= alone[:, feature]
    for row, group in enumerate(tables.group):
        phi[:, row] += groups[:, group] / size[group]
