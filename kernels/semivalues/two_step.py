"""The two-step Shapley value of a partition (Kamijo 2009, as in Filom et al. 2024, Example B.11).

A group's Shapley value in the game of groups goes to its members: each first gets its own Shapley value in the game of the group alone, and what
that leaves of the group's value is shared equally, also with members that no split asks for. So values add up within groups and altogether, and
a feature without any effect can have one.
"""

from typing import NamedTuple

import numpy as np

from ..trees.forest import Forest
from .tables import SemivalueTables, add_semivalues


class TwoStepTables(NamedTuple):
    """Both games, and who shares with whom; phi has a row for every member of a group that some split asks for."""

    alone: SemivalueTables  # a row of phi for each used feature
    groups: SemivalueTables  # a row for each group
    row: np.ndarray  # (used,) int64, row of phi of each used feature
    group: np.ndarray  # (rows,) int64, group of each row of phi


def share_equally(forest: Forest, alone: SemivalueTables, groups: SemivalueTables) -> TwoStepTables:
    """Put the values of both games together."""
    return TwoStepTables(
        alone=alone,
        groups=groups,
        row=np.searchsorted(forest.members, forest.column).astype(np.int64),
        group=np.searchsorted(forest.players, forest.groups[forest.members]).astype(np.int64),
    )


def add_two_step(bins: np.ndarray, tables: TwoStepTables, phi: np.ndarray) -> None:
    """Add every row's attributions to ``phi``."""
    outputs, _, n = phi.shape
    size = np.bincount(tables.group)
    alone, groups = np.zeros((outputs, tables.row.size, n)), np.zeros((outputs, size.size, n))
    add_semivalues(bins, tables.alone, alone)
    add_semivalues(bins, tables.groups, groups)
    for feature, row in enumerate(tables.row):
        phi[:, row] += alone[:, feature]
        groups[:, tables.group[row]] -= alone[:, feature]
    for row, group in enumerate(tables.group):
        phi[:, row] += groups[:, group] / size[group]
